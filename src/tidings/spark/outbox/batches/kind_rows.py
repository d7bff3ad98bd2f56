"""Reads rows by the kind of the channel: topics, types, or a class of an application.

    topics, types   ──> rows without a known topic, or with attributes of other types, are refused
    application     ──> the class reads each row; filters test the attributes that it returns

A worker reads rows as the rendezvous point reads publications, so it needs the same kind: an
application's class must be installed on every worker, in the same version. Topics and types are
checked once for each distinct combination of a topic and a set of attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.model import Event, NotificationError, parse_name
from tidings.notifications import Decoded, encode_rows, without_marks
from tidings.notifications.content_formats import decode_row, types_of
from tidings.preprocessing import Kind
from tidings.spark.tagging.channel_kinds import ChannelKind, kind_of


def read_rows(
    told: ChannelKind, decoded: Decoded, extra: str
) -> tuple[Decoded, Sequence[Event] | None]:
    """The rows that the kind accepts, and the events that filters test, or None instead of the
    events if filters test the columns. `extra` is the name of the column of undeclared fields."""
    kind = kind_of(told)
    if kind.definition.kind == "application":
        return _read_by_class(kind, decoded, extra)
    if kind.definition.kind == "content":
        return decoded, None
    return _refuse(decoded, _check_topics(kind, decoded.good)), None


def _check_topics(kind: Kind, good: pa.RecordBatch) -> dict[int, str]:
    """The reason for each refused row, by position."""
    topic, count = kind.definition.attribute, good.num_rows
    names = set(good.schema.names)
    topics = good.column(topic) if topic in names else pa.nulls(count, pa.string())
    declared = {parse_name(name)[0] for own in kind.definition.columns.values() for name in own}
    columns = [name for name in sorted(declared & names) if name != topic]
    has = {name: np.asarray(good.column(name).is_valid()) for name in columns}
    codes = topics.dictionary_encode(null_encoding="encode").indices.to_numpy()
    for there in has.values():  # rows with the same code have the same topic and attributes
        codes = np.unique(2 * codes.astype(np.int64) + there, return_inverse=True)[1]
    _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
    reasons: dict[int, str] = {}
    for code, at in enumerate(firsts.tolist()):
        event = {name: True for name, there in has.items() if there[at]}
        try:
            kind.read({**event, topic: topics[at].as_py()})
        except NotificationError as problem:
            reasons.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), str(problem)))
    return reasons


def _read_by_class(kind: Kind, decoded: Decoded, extra: str) -> tuple[Decoded, list[Event]]:
    good = without_marks(decoded.good)
    types = types_of(good.schema)
    has_extra = decoded.extra is not None
    if has_extra:
        columns, names = [*good.columns, decoded.extra], [*good.schema.names, extra]
        good = pa.RecordBatch.from_arrays(columns, names=names)
    assert kind.attributes is not None
    reasons: dict[int, str] = {}
    events: list[Event] = []
    for at, text in enumerate(encode_rows(good, extra if has_extra else None)):
        try:
            events.append(kind.attributes.read(kind.read(decode_row(text, types))))
        except NotificationError as problem:
            reasons[at] = str(problem)
    return _refuse(decoded, reasons), events


def _refuse(decoded: Decoded, reasons: dict[int, str]) -> Decoded:
    """Turn the good rows at these positions into bad rows, with these reasons."""
    if not reasons:
        return decoded
    bad = np.array(sorted(reasons), np.int64)
    kept = np.ones(decoded.good.num_rows, np.bool_)
    kept[bad] = False
    mask, good = pa.array(kept), decoded.good
    if good.num_columns:
        good = good.filter(mask)
    else:  # Arrow can't filter a batch without columns
        good = pa.RecordBatch.from_struct_array(pa.array([{}] * int(kept.sum()), pa.struct([])))
    bad_rows = np.concatenate([decoded.bad_rows, decoded.rows[bad]])
    said: list[Any] = [*decoded.reasons, *(reasons[at] for at in bad.tolist())]
    order = np.argsort(bad_rows)
    return msgspec.structs.replace(
        decoded,
        good=good,
        rows=decoded.rows[kept],
        bad_rows=bad_rows[order],
        reasons=[said[at] for at in order.tolist()],
        extra=None if decoded.extra is None else decoded.extra.filter(mask),
    )
