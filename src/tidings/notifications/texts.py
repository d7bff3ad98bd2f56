"""Parse a column of strings as a type, exactly as `Attributes.read` would parse each string.

    texts ──shape──> plain shape      ──Arrow's cast──> values
               `───> any other shape  ──fit, once per distinct string──> values, or bad

A plain shape is a pattern of strings that Arrow parses as tidings does (`2013-01-31`, `-12.5`). A
plain shape excludes strings that only Arrow accepts (hexadecimal, time zones far from UTC) and
strings that only tidings accepts (blanks, short dates). A string of the right shape may still be
invalid (`2013-02-30`). In that case the cast of the whole column fails. A part of the column that
fails is halved again and again; when it is small, its strings are parsed one by one.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters.language import conform
from tidings.model import DataType, NotificationError, Type, exact_value, normalise
from tidings.notifications.decoded import Positions
from tidings.notifications.schema import type_name

_DAY = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_SHAPES = {
    "integer": r"\A-?[0-9]{1,18}\z",
    "double": r"\A-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?\z",
    "decimal": r"\A-?[0-9]{1,18}(\.[0-9]{1,18})?\z",
    "date": rf"\A{_DAY}\z",
    "timestamp": rf"\A{_DAY}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?Z?\z",
}
_UTC = pa.timestamp("us", "UTC")
_SMALL = 256  # a column is not halved into parts of fewer strings than this
_NONE: Positions = np.zeros(0, np.int64)


def fit(value: Any, kind: Any, name: str) -> Any:
    """Convert a JSON value to the scalar type `name`, whose Arrow type is `kind`.

    Raise ValueError if the value does not fit, for example an integer that needs more bits."""
    declared = (
        DataType("decimal", precision=kind.precision, scale=kind.scale)
        if name == "decimal"
        else cast(Type, name)
    )
    try:
        value = conform(normalise(value) if name == "decimal" else value, declared, ())
    except (NotificationError, OverflowError, RecursionError):
        raise ValueError(f"not {name}") from None
    if name == "integer":
        beyond = 1 << (kind.bit_width - 1)
        if not -beyond <= value < beyond:
            raise ValueError("too wide")
    return exact_value(value) if name == "decimal" else value


def read_texts(texts: Any, kind: Any) -> tuple[Any, Positions]:
    """The values that strings represent. A string that can't be parsed gives null, and its position
    is returned."""
    name = str(type_name(kind))
    if name == "string":
        return texts.cast(kind), _NONE
    if name not in _SHAPES:
        return _read_distinct(texts, kind, name)
    has_shape = pc.match_substring_regex(texts, _SHAPES[name])
    odd = pc.invert(has_shape).fill_null(False)
    some_odd = bool(pc.any(odd).as_py())
    try:
        plain = pc.if_else(has_shape, texts, None) if some_odd else texts
        values = _cast(plain, kind)
    except pa.ArrowInvalid:
        return _read_halves(texts, kind, name)
    if not some_odd:
        return values, _NONE
    others, bad = _read_distinct(texts.filter(odd), kind, name)
    positions: Positions = np.flatnonzero(np.asarray(odd))
    return pc.replace_with_mask(values, odd, others), positions[bad]


def _cast(texts: Any, kind: Any) -> Any:
    if not pa.types.is_timestamp(kind):
        return texts.cast(kind)
    in_utc = pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us"))
    return in_utc.cast(_UTC).cast(kind)


def _read_halves(texts: Any, kind: Any, name: str) -> tuple[Any, Positions]:
    half = len(texts) // 2
    if half < _SMALL:
        return _read_distinct(texts, kind, name)
    first, bad_first = read_texts(texts.slice(0, half), kind)
    second, bad_second = read_texts(texts.slice(half), kind)
    return pa.concat_arrays([first, second]), np.concatenate([bad_first, bad_second + half])


def _read_distinct(texts: Any, kind: Any, name: str) -> tuple[Any, Positions]:
    encoded = texts.dictionary_encode()
    values: list[Any] = []
    bad: list[int] = []
    for at, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            values.append(fit(text, kind, name))
        except ValueError:
            values.append(None)
            bad.append(at)
    whole = pa.array(values, _UTC if pa.types.is_timestamp(kind) else kind).cast(kind)
    found = whole.take(encoded.indices)
    if not bad:
        return found, _NONE
    hits = pc.is_in(encoded.indices, value_set=pa.array(bad, encoded.indices.type))
    return found, np.flatnonzero(np.asarray(hits))
