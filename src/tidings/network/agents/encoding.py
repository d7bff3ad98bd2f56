"""Encodes the attributes of a notification, so that filters test the same values that the publisher
has.

    plain values, decimals                         ──> JSON
    times, dates, NaN and infinite numbers too     ──> MessagePack, because JSON has none of them

A date becomes midnight in UTC, and a time without a zone is taken as UTC, as in filters. Values of
NumPy and pandas are replaced by equal Python values.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from tidings.model import ABSENT, normalise
from tidings.network.agents.refusals import Refusal

DEEPEST = 100  # the most levels of nested values
_PLAIN = frozenset([str, bool, int, type(None)])
_encode_json = msgspec.json.Encoder(decimal_format="number").encode
_encode_map = msgspec.msgpack.Encoder().encode


def encode_attributes(attributes: Mapping[str, Any] | bytes | bytearray | memoryview) -> bytes:
    """Encode attributes; attributes that are bytes count as already encoded. Raise Refusal if there
    is a value that filters can't test."""
    try:
        return _encode(attributes)
    except UnicodeEncodeError as problem:  # because JSON and MessagePack are UTF-8
        found = problem.object[problem.start]
        raise Refusal(
            f"attributes: found an unpaired surrogate, U+{ord(found):04X}, expected valid Unicode"
        ) from None


def _encode(attributes: Mapping[str, Any] | bytes | bytearray | memoryview) -> bytes:
    if type(attributes) is dict:
        if _is_plain(attributes, DEEPEST):
            try:
                return _encode_json(attributes)
            except OverflowError:  # an integer of more than 64 bits
                pass
    elif isinstance(attributes, bytes | bytearray | memoryview):
        return bytes(attributes)
    elif not isinstance(attributes, Mapping):
        raise Refusal(
            f"found attributes of type {type(attributes).__name__}, expected a mapping, or bytes"
        )
    converting = _Converting()
    found = {
        _key(name, name): value
        for name, one in attributes.items()
        if (value := converting.convert(one, str(name), DEEPEST)) is not ABSENT
    }
    if not converting.needs_map:
        return _encode_json(found)
    if converting.decimal:
        raise Refusal(
            f"attribute {converting.decimal}: found a decimal that no double equals, in a "
            "notification that also has a time or a number that is not finite; send the decimal in "
            "another notification"
        )
    return _encode_map(found)


def _is_plain(value: dict[Any, Any] | list[Any], levels: int) -> bool:
    """Whether JSON can express a value exactly."""
    if not levels:
        return False
    if type(value) is dict:
        try:
            "".join(value)  # there is no faster way to find a key that is not a string
        except TypeError:
            return False
    for one in value.values() if type(value) is dict else value:
        kind = type(one)
        if kind in _PLAIN or (kind is float and math.isfinite(one)):
            continue
        if not ((kind is dict or kind is list) and _is_plain(one, levels - 1)):
            return False
    return True


class _Converting:
    """Converts values to types of JSON or MessagePack."""

    needs_map = False  # whether there is a value that JSON can't express
    decimal = ""  # the name of an attribute with a decimal that no double equals

    def convert(self, given: Any, name: str, levels: int) -> Any:
        value = normalise(given)
        kind = type(value)
        if kind in _PLAIN or value is ABSENT:
            return value
        if isinstance(value, float):
            self.needs_map = self.needs_map or not math.isfinite(value)
            return float(value)
        if isinstance(value, dt.date):
            self.needs_map = True
            return _time(value)
        if isinstance(value, Decimal):
            self.decimal = name
            return Decimal(value)
        if isinstance(value, str):
            return str(value)
        if not levels:
            raise Refusal(f"attribute {name}: found more than {DEEPEST} levels of nested values")
        if isinstance(value, list):
            return [self.convert(one, name, levels - 1) for one in value]
        if isinstance(value, Mapping):
            return {
                _key(key, name): found
                for key, one in value.items()
                if (found := self.convert(one, name, levels - 1)) is not ABSENT
            }
        return self._convert_other(value, name, levels)

    def _convert_other(self, value: Any, name: str, levels: int) -> Any:
        if not isinstance(value, bytes | bytearray | memoryview):
            try:  # for instance a UUID, an enum or a dataclass
                found = msgspec.to_builtins(value, builtin_types=(dt.datetime, dt.date, Decimal))
            except (TypeError, ValueError):
                found = value
            if type(found) is not type(value):
                return self.convert(found, name, levels - 1)
        raise Refusal(
            f"attribute {name}: found a value of type {type(value).__name__}, expected a number, a "
            "string, a boolean, a time, a list or a mapping; send bytes as the payload"
        )


def _key(key: Any, name: Any) -> str:
    if not isinstance(key, str):
        raise Refusal(f"attribute {name}: found the key {key!r} in a mapping, expected a string")
    return key


def _time(value: dt.date) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value
