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

Declared attributes have columns of their declared types (declared_columns.py); only undeclared
attributes are learned. If filters can't use them, they are only counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Union

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters import Attributes
from tidings.matching.json_columns import KINDS, JsonReader
from tidings.preprocessing.contents.declared_columns import is_field_name, make_columns

MOST_NAMES = 256  # the most attributes that may be learned
MOST_ODD = 8  # no batch is built if more than one in MOST_ODD notifications would be left out
# After so many failures, columns are learned anew: an odd notification may have come first. The
# number doubles each time, up to a limit, until a batch is read.
MOST_FAILURES, LONGEST_WAIT = 4, 256
EXACT = 2.0**53  # below this number, a double represents every whole number exactly

_decode = msgspec.json.Decoder(dict[str, object]).decode
_INTEGER = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES: dict[type, Any] = {
    str: str,
    int: _INTEGER,
    float: float,
    bool: bool,
    type(None): None,
    object: object,  # of an attribute that is only counted
}
_REFUSALS = (msgspec.DecodeError, ValueError, RecursionError)


class Read(NamedTuple):
    """A batch with a row for each notification. The notifications at the positions `odd` are left
    out: their rows mean nothing."""

    batch: pa.RecordBatch
    odd: list[int]
    extra: npt.NDArray[np.int64] | None = None
    """How many undeclared attributes each notification has; None if they are not counted."""
    mixed: frozenset[str] = frozenset()
    """The undeclared attributes of which a number may have another type in the batch than in its
    notification. Tests give the same result, but computations may not: as a text, 3 is not 3.0.
    Numbers of declared attributes have the declared type, however they are read."""

    def first(self, count: int) -> Read:
        """The first rows."""
        odd = [at for at in self.odd if at < count]
        extra = None if self.extra is None else self.extra[:count]
        return Read(self.batch.slice(0, count), odd, extra, self.mixed)


class EventColumns:
    """Decodes notifications into columns, for the declared attributes and for the undeclared ones
    that were seen so far."""

    def __init__(self, attributes: Attributes | None = None) -> None:
        self._declared = None if attributes is None else make_columns(attributes)
        self._can_read = attributes is None or self._declared is not None
        self._names = [] if attributes is None else [*attributes.tree]
        extra = "open" if attributes is None else attributes.extra
        self._learns = extra != "refuse"
        self._uses_learned = extra == "open"  # filters may test undeclared attributes
        self._counts = attributes is not None and extra in ("keep", "open")
        self._failures = 0  # batches in a row that could not be read
        self._wait = MOST_FAILURES  # after so many, columns are learned anew
        self._learn({})

    def read(self, contents: Sequence[bytes]) -> Read | None:
        """The attributes of notifications as columns, for filters that don't distinguish null from
        absent; None if the notifications must be read one by one."""
        if not self._can_read:
            return None
        found = self._read_plain(contents) or self._read_any(contents)
        if found is not None:
            self._failures, self._wait = 0, MOST_FAILURES
            return found
        self._failures += 1
        if self._failures >= self._wait:
            self._failures, self._wait = 0, min(2 * self._wait, LONGEST_WAIT)
            self._learn({})
        return None

    def _read_plain(self, contents: Sequence[bytes]) -> Read | None:
        """Read columns with kernels; None if the kernels can't read many of the notifications."""
        if self._reader is None:
            return None
        found = self._reader.read(contents)
        if found is not None and found.odd:
            some = [contents[at] for at in found.odd]
            if self._learn_from(some, len(contents)) and self._reader is not None:
                found = self._reader.read(contents)
        if found is None:
            return None
        odd, columns = set(found.odd), found.batch.columns
        if self._declared is not None:
            odd |= self._declared.read_texts(columns)
        if MOST_ODD * len(odd) > len(contents):
            return None
        named = found.named[len(self._names) :].sum(axis=0)
        return self._finish(columns, odd, named, found.mixed)

    def _finish(
        self,
        columns: list[Any],
        odd: set[int],
        named: npt.NDArray[np.int64],
        mixed: frozenset[str],
    ) -> Read:
        """`mixed` are the columns of doubles with whole numbers."""
        names = [*self._names, *self._kinds] if self._uses_learned else self._names
        mixed = mixed.intersection(names).difference(self._names)
        batch = pa.RecordBatch.from_arrays(columns[: len(names)], names)
        extra = named.astype(np.int64) if self._counts else None
        if extra is not None:
            extra[[*odd]] = 0  # they are counted when they are read
        return Read(batch, sorted(odd), extra, mixed)

    def _read_any(self, contents: Sequence[bytes]) -> Read | None:
        """Read columns with msgspec; if it refuses notifications, learn new attributes from
        them."""
        records: list[Any] = []
        odd: set[int] = set()
        has_learned = False
        while len(records) < len(contents):
            try:
                records += map(self._decode, contents[len(records) :])
            except _REFUSALS:  # `records` has all notifications before the refused one
                if not has_learned:
                    has_learned = True
                    if self._learn_from(contents[len(records) :], len(contents)):
                        records.clear()
                        continue
                odd.add(len(records))
                if MOST_ODD * len(odd) > len(contents):
                    return None
                records.append(self._record())
        return self._read_records(records, odd)

    def _read_records(self, records: Sequence[Any], odd: set[int]) -> Read | None:
        values = [list(map(getter, records)) for getter in self._getters]
        columns: list[Any] = []
        if self._declared is not None:
            columns, bad = self._declared.read_values(values[: len(self._names)])
            odd |= bad
            if MOST_ODD * len(odd) > len(records):
                return None
        named = np.zeros(len(records), np.int64)
        for kind, some in zip(self._kinds.values(), values[len(self._names) :], strict=True):
            if self._counts:
                named += [one is not msgspec.UNSET for one in some]
                some = [None if one is msgspec.UNSET else one for one in some]
            if self._uses_learned:
                column = _column(kind, some)
                if column is None:
                    return None
                columns.append(column)
        if not columns:
            return None
        # msgspec does not tell how a number was written
        doubles = frozenset(name for name, kind in self._kinds.items() if kind is float)
        return self._finish(columns, odd, named, doubles)

    def _learn_from(self, contents: Sequence[bytes], total: int) -> bool:
        """Learn the attributes of notifications, out of a batch of `total`. False if nothing is
        new, or if the batch could not be read even then. All are learned at once, because building
        a class takes milliseconds if it has many attributes."""
        kinds, odd = self._kinds, 0
        for content in contents:
            more = self._add_kinds(kinds, content)
            odd += more is None
            if MOST_ODD * odd > total:
                return False
            kinds = kinds if more is None else more
        if kinds == self._kinds:
            return False
        self._learn(kinds)
        return True

    def _add_kinds(self, kinds: dict[str, type], content: bytes) -> dict[str, type] | None:
        """The kinds, with those of a notification; None if they don't agree."""
        try:
            event = _decode(content) if self._learns else {}
        except _REFUSALS:
            return None
        added: dict[str, type] = {}
        for name, value in event.items():
            if self._declared is not None and name in self._declared.readers:
                continue
            if not is_field_name(name):
                return None
            kind, known = type(value), kinds.get(name, type(None))
            if kind not in _TYPES and self._uses_learned:
                return None  # a list or an object
            if known is type(None) or (known is int and kind is float):
                added[name] = kind if kind in _TYPES else object
            elif kind is not known and not (kind is type(None) or (known is float and kind is int)):
                if self._uses_learned:
                    return None
                added[name] = object
        if all(kinds.get(name) is kind for name, kind in added.items()):
            return kinds
        found = kinds | added
        return found if len(found) <= MOST_NAMES else None

    def _learn(self, kinds: dict[str, type]) -> None:
        """Prepare both ways of reading for these undeclared attributes. If this raises, the
        attributes known so far remain."""
        declared = self._declared
        reader: JsonReader | None = None
        plain = {} if declared is None else declared.plain
        if plain is not None and (plain or kinds):
            # a kernel can't skip a value of any type, so it finds such an attribute odd
            learned = {name: type(None) if one is object else one for name, one in kinds.items()}
            reader = JsonReader(plain | learned)
        hints: list[tuple[Any, Any]] = []  # with the default
        if declared is not None:
            hints = [(one.hint(), None) for one in declared.readers.values()]
        missing, more = (msgspec.UNSET, msgspec.UnsetType) if self._counts else (None, None)
        hints += [(Union[_TYPES[one], None, more], missing) for one in kinds.values()]  # noqa: UP007
        fields = [(f"f{at}", *one) for at, one in enumerate(hints)]
        names = {f"f{at}": name for at, name in enumerate([*self._names, *kinds])}
        record = msgspec.defstruct(
            "Attributes", fields, rename=names, forbid_unknown_fields=True, gc=False
        )
        self._decode = msgspec.json.Decoder(record).decode
        self._record = record
        self._getters = [attrgetter(name) for name in names]
        self._kinds: dict[str, type] = kinds
        self._reader = reader


def _column(kind: type, values: list[Any]) -> Any:
    """A column of an undeclared attribute; None if its values are no column of this kind."""
    if kind is float and not all(-EXACT < one < EXACT for one in values if one is not None):
        return None
    try:
        return pa.array(values, KINDS[kind][1])
    except (pa.ArrowException, ValueError, OverflowError):
        return None  # for instance, a text with a lone surrogate
