"""Decodes many notifications at once: the attributes, which are JSON, become columns.

    contents ──JsonReader, compiled────────────────────> columns ──> batch for Matcher.match_batch
         └─ many odd ones ──msgspec, into one class──> records ──^
                  └─ refused: an attribute is new, or of another type ──> learn it, or leave it out

A channel that declares no attributes accepts any JSON object. But notifications that arrive
together usually have the same attributes, of the same types. So the columns are the attributes seen
so far, with their types. A kernel fills the columns. If the kernel can't read many of the
notifications, for instance because of escapes, msgspec fills a class with the same attributes.
Neither way runs Python code for single values.

A batch must give the same matches as its notifications would give one by one. So the type of each
value must be that of its column, with two exceptions. An absent value counts as null; if a filter
distinguishes null from absent, the caller reads notifications one by one. A whole number may be in
a column of doubles, if a double holds it exactly. A notification with any other value is left out
of the batch, and is read separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa

from tidings.matching.json_columns import KINDS, JsonReader

MOST_NAMES = 256  # the most attributes that the record class may have
MOST_LEARNED = 8  # at most this many notifications of a batch add attributes to the class
MOST_ODD = 8  # no batch is built if more than one in MOST_ODD notifications would be left out
EXACT = 2.0**53  # below this number, a double represents every whole number exactly

_decode = msgspec.json.Decoder(dict[str, object]).decode
_INTEGER = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES: dict[type, Any] = {
    str: str | None,
    int: _INTEGER | None,
    float: float | None,
    bool: bool | None,
    type(None): None,
}
_REFUSALS = (msgspec.DecodeError, ValueError, RecursionError)


class Read(NamedTuple):
    """A batch with a row for each notification. The notifications at the positions `odd` are left
    out: their rows are empty."""

    batch: pa.RecordBatch
    odd: list[int]


class EventColumns:
    """Decodes notifications into columns for the attributes that were seen so far."""

    def __init__(self) -> None:
        self._kinds: dict[str, type] = {}
        self._learn({})

    def read(self, contents: Sequence[bytes]) -> Read | None:
        """The attributes of notifications as columns, for filters that don't distinguish null from
        absent; None if the notifications must be read one by one."""
        return self._read_plain(contents) or self._read_any(contents)

    def _read_plain(self, contents: Sequence[bytes]) -> Read | None:
        """Read columns with kernels; None if the kernels can't read many of the notifications."""
        while self._kinds:
            found = self._reader.read(contents)
            if found is None:
                return None
            batch, odd = found
            learned = [self._learn_from(contents[at]) for at in odd[:MOST_LEARNED]]
            if not any(learned):
                return Read(batch, odd) if MOST_ODD * len(odd) <= len(contents) else None
        return None

    def _read_any(self, contents: Sequence[bytes]) -> Read | None:
        """Read columns with msgspec; if it refuses notifications, learn new attributes from
        them."""
        records: list[Any] = []
        odd: list[int] = []
        learned = 0
        while len(records) < len(contents):
            try:
                records += map(self._decode, contents[len(records) :])
            except _REFUSALS:  # `records` has all notifications before the refused one
                learned += 1
                if learned <= MOST_LEARNED and self._learn_from(contents[len(records)]):
                    records.clear()
                    odd.clear()
                    continue
                odd.append(len(records))
                if MOST_ODD * len(odd) > len(contents):
                    return None
                records.append(self._record())
        batch = self._batch(records)
        return None if batch is None else Read(batch, odd)

    def _batch(self, records: Sequence[Any]) -> pa.RecordBatch | None:
        columns = []
        rows = zip(*map(msgspec.structs.astuple, records), strict=True)
        for kind, values in zip(self._kinds.values(), rows, strict=True):
            if kind is float and not all(-EXACT < one < EXACT for one in values if one is not None):
                return None
            try:
                columns.append(pa.array(values, KINDS[kind][1]))
            except (pa.ArrowException, ValueError, OverflowError):
                return None  # for instance, a text with a lone surrogate
        if not columns:
            return None
        return pa.RecordBatch.from_arrays(columns, [*self._kinds])

    def _learn_from(self, content: bytes) -> bool:
        """Learn the attributes of a notification; False if the notification still can't be read."""
        try:
            event = _decode(content)
        except _REFUSALS:
            return False
        kinds = dict(self._kinds)
        for name, value in event.items():
            kind, known = type(value), kinds.get(name, type(None))
            if kind not in _TYPES:
                return False  # a list or an object
            if known is type(None) or (known is int and kind is float):
                kinds[name] = kind
            elif kind is not known and not (kind is type(None) or (known is float and kind is int)):
                return False
        if kinds == self._kinds or len(kinds) > MOST_NAMES:
            return False
        self._learn(kinds)
        return True

    def _learn(self, kinds: dict[str, type]) -> None:
        self._kinds = kinds
        self._reader = JsonReader(kinds)
        fields = [(f"f{at}", _TYPES[kind], None) for at, kind in enumerate(kinds.values())]
        names = {f"f{at}": name for at, name in enumerate(kinds)}
        self._record = msgspec.defstruct(
            "Attributes", fields, rename=names, forbid_unknown_fields=True, gc=False
        )
        self._decode = msgspec.json.Decoder(self._record).decode
