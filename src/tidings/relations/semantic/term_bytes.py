"""The terms of a message as bytes: the *context* that a frame carries.

    u8 kind, then    area      name, f64 altitude
                     place     name, f64 latitude, f64 longitude, f64 altitude
                     span      i64 start, i64 stop
                     holiday, tag, person    name
    name             u8 size, UTF-8

Equal sets of terms have equal bytes, so the bytes can be used as a key: the terms are sorted by
their bytes and not repeated. Terms beyond the limits are left out, not shortened.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

from tidings.model import AttributesError
from tidings.relations.semantic.gazetteer import check_coordinates
from tidings.relations.semantic.term_values import Place, Recurring, Term, TimeSpan

MOST_TERMS = 16
MOST_BYTES = 1024
LONGEST_NAME = 64  # bytes

AREA, PLACE, SPAN, HOLIDAY, TAG, PERSON = range(1, 7)
_ALTITUDE = struct.Struct("<d")
_POINT = struct.Struct("<ddd")
_ENDS = struct.Struct("<qq")


def encode_terms(terms: Iterable[Term]) -> bytes:
    """The context of these terms; terms beyond the limits are left out."""
    found: set[bytes] = set()
    size = 0
    for term in terms:
        data = _encode(term)
        if data is None or data in found or size + len(data) > MOST_BYTES:
            continue
        found.add(data)
        size += len(data)
        if len(found) == MOST_TERMS:
            break
    return b"".join(sorted(found))


def decode_terms(data: bytes | memoryview) -> tuple[Term, ...]:
    """The terms in a context; raises AttributesError for bytes that `encode_terms` can't have
    made."""
    data = bytes(data)
    found: list[Term] = []
    at, before = 0, b""
    try:
        while at < len(data):
            term, end = _decode(data, at)
            if before >= data[at:end]:
                raise ValueError("its terms are not in order")
            found.append(term)
            at, before = end, data[at:end]
    except (ValueError, IndexError, struct.error, AttributesError) as problem:
        raise AttributesError(f"found a context that can't be read: {problem}") from None
    if len(found) > MOST_TERMS or len(data) > MOST_BYTES:
        raise AttributesError(
            f"found a context of {len(found)} terms in {len(data):,} bytes, expected at most "
            f"{MOST_TERMS} in {MOST_BYTES:,}"
        )
    return tuple(found)


def _encode(term: Term) -> bytes | None:
    """The bytes of a term; None if it can't be encoded, for example because its name is too
    long."""
    value = term.value
    try:
        if isinstance(value, TimeSpan):
            ends = _ENDS.pack(value.start, value.stop)
            return bytes((SPAN,)) + ends if value.start <= value.stop else None
        name = (value if isinstance(value, str) else value.name).encode()
        if isinstance(value, Place):
            check_coordinates(value)
    except (struct.error, UnicodeEncodeError, AttributesError):
        return None
    if len(name) > LONGEST_NAME:
        return None
    if isinstance(value, Recurring):
        return bytes((HOLIDAY, len(name))) + name
    if isinstance(value, str):
        return bytes((TAG if term.context == "tag" else PERSON, len(name))) + name
    high = value.altitude + 0.0  # -0.0 and 0.0 are the same coordinate
    if value.lat is None or value.lon is None:
        return bytes((AREA, len(name))) + name + _ALTITUDE.pack(high)
    return bytes((PLACE, len(name))) + name + _POINT.pack(value.lat + 0.0, value.lon + 0.0, high)


def _decode(data: bytes, at: int) -> tuple[Term, int]:
    """The term that begins at an offset, and the offset where it ends."""
    kind = data[at]
    if kind == SPAN:
        start, stop = _ENDS.unpack_from(data, at + 1)
        if start > stop:
            raise ValueError("it has a span that ends before it begins")
        return Term("time", TimeSpan(start, stop)), at + 1 + _ENDS.size
    if not AREA <= kind <= PERSON:
        raise ValueError(f"it has a term of the unknown kind {kind}")
    end = at + 2 + data[at + 1]
    name = data[at + 2 : end].decode()
    if end > len(data) or end - at - 2 > LONGEST_NAME or not (name or kind == PLACE):
        raise ValueError("it has a name that is too long, empty or cut off")
    if kind in (AREA, PLACE):
        place, end = _decode_place(data, kind, name, end)
        return Term("place", place), end
    if kind == HOLIDAY:
        return Term("time", Recurring(name)), end
    return Term("tag" if kind == TAG else "person", name), end


def _decode_place(data: bytes, kind: int, name: str, at: int) -> tuple[Place, int]:
    form = _ALTITUDE if kind == AREA else _POINT
    numbers = form.unpack_from(data, at)
    if not all(map(math.isfinite, numbers)) or any(str(one) == "-0.0" for one in numbers):
        raise ValueError("it has a coordinate or an altitude that is -0.0 or not finite")
    place = Place(name, altitude=numbers[0]) if kind == AREA else Place(name, *numbers)
    check_coordinates(place)
    return place, at + form.size
