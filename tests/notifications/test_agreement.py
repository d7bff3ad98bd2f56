"""Whole batches against single rows: Python's JSON reader and `Attributes.read`, line by line.

Random rows are written as JSON and damaged: characters lost, swapped and repeated, values of other
types, names misspelt or given twice, lines cut in two. The reader of batches has to take exactly
the lines that the slow way takes, with the same values, and has to account for every other.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.repeats import rounds

from tidings import Attributes, NotificationError
from tidings.notifications import Decoded, arrow_schema, decode_json, json_batch

TYPES: dict[str, Any] = {
    "delay": "integer",
    "price": "double",
    "dest": "string",
    "late": "boolean",
    "day": "date",
    "at": "timestamp",
    "user.city": "string",
    "user.home.since": "date",
    "user.home.rooms": "integer",
    "legs": "list",
    "legs.to": "string",
    "legs.cost": "double",
}
ATTRIBUTES = Attributes(TYPES)
SCHEMA = arrow_schema(ATTRIBUTES)

NUMBERS = ["0", "-0", "7", "-12", "1.0", "1e3", "2.5", "-0.0", "1E-3", "9007199254740993",
           "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e18", "1e19",
           "-9223372036854775809", "123456789012345678901234567890", "1e400", "01", "1.",
           "NaN"]  # fmt: skip
STRINGS = ["", "JFK", "São Paulo", "😀", "12", " 12 ", "+3", "1.5", "yes", "F", "nan", "0x1F",
           "2013-01-31", "2013-1-3", "2013", "2013-02-30", "0000-01-01", "9999-12-31", "tomorrow",
           "2013-01-31T05:06:07Z", "2013-01-31 05:06:07.25", "2013-01-31T05:06:07+19:00",
           "2013-01-31T05:06+01:30", "2013-01-31T24:00:00", '"', "\\", "\n", "\0",
           "\ud800", "\udc00x"]  # fmt: skip
FITTING = {"integer": ["1", "-250", "null", "7", "2.0", '"3"'], "double": ["1.5", "2", "-1e9"],
           "string": ['"JFK"', '"a\\u00e3"', '"😀"', "null"], "boolean": ["true", "false", "null"],
           "date": ['"2013-01-31"', '"1999-12-01"', '"2013-5-6"', "null"],
           "timestamp": ['"2013-01-31T05:06:07Z"', '"1970-01-01 00:00:00.5"',
                         '"2013-01-31"']}  # fmt: skip
ALPHABET = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u", b"1", b"e", b".", b"-", b" ",
            b"\n", b"\x00", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"null", b"true"]  # fmt: skip


def any_value(rng: random.Random, depth: int = 0) -> str:
    pick = rng.randrange(6 if depth < 2 else 4)
    if pick == 0:
        return rng.choice(["null", "true", "false"])
    if pick == 1:
        return rng.choice(NUMBERS)
    if pick < 4:
        return json.dumps(rng.choice(STRINGS), ensure_ascii=rng.random() < 0.5)
    inner = [any_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    if pick == 4:
        return "[" + ", ".join(inner) + "]"
    return "{" + ", ".join(f'"{rng.choice(["to", "city", "x"])}": {one}' for one in inner) + "}"


def value_of(rng: random.Random, kind: str, odd: float) -> str:
    return any_value(rng) if rng.random() < odd else rng.choice(FITTING[kind])


def object_of(rng: random.Random, fields: dict[str, str], odd: float) -> str:
    """An object with some of the fields, in any order; sometimes one twice or misspelt."""
    names = rng.sample(sorted(fields), rng.randint(0, len(fields)))
    if names and rng.random() < odd:
        names.append(rng.choice(names))
    parts = []
    for name in names:
        written = name + "x" if rng.random() < odd / 4 else name
        parts.append(f"{json.dumps(written)}: {fields[name]}")
    return "{" + ", ".join(parts) + "}"


def line_of(rng: random.Random, odd: float) -> bytes:
    def struct(prefix: str) -> str:
        fields = {
            name.removeprefix(prefix): value_of(rng, kind, odd)
            for name, kind in TYPES.items()
            if name.startswith(prefix) and "." not in name.removeprefix(prefix) and kind != "list"
        }
        if prefix == "user.":
            fields["home"] = struct("user.home.")
        if not prefix:
            fields["subject"] = '"a.b"'
            fields["user"] = rng.choice([struct("user."), "null", any_value(rng)])
            legs = ", ".join(rng.choice([struct("legs."), "null"]) for _ in range(rng.randrange(3)))
            fields["legs"] = any_value(rng) if rng.random() < odd else f"[{legs}]"
        return object_of(rng, fields, odd)

    line = struct("").encode("utf-8", "surrogatepass")
    return damaged(rng, line) if rng.random() < odd else line


def damaged(rng: random.Random, line: bytes) -> bytes:
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(line) + 1)
        to = at + rng.randrange(3)
        more = rng.choice(ALPHABET)
        cut = [line[:at] + line[to:], line[:at], b""]
        line = rng.choice([*cut, line[:at] + more + line[to:], more + line, line + more, line * 2])
    return line


# -- the slow way ------------------------------------------------------------------------------


class Beyond:
    """A number that is not among the doubles."""


def number(text: str) -> Any:
    return float(text) if math.isfinite(float(text)) else Beyond()


def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, value in found:  # half a character is refused even where the value is replaced
        json.dumps([name, value], ensure_ascii=False, default=str).encode()
    return dict(found)


def no_constant(text: str) -> Any:
    raise ValueError(text)


def slowly(line: bytes | None, unknown: str) -> dict[str, Any] | None:
    """The row as a mapping; None when it is refused."""
    try:
        text = (line or b"").decode().removeprefix("\ufeff")
        row = json.loads(
            text, parse_float=number, parse_constant=no_constant, object_pairs_hook=pairs
        )
        json.dumps(row, ensure_ascii=False, default=str).encode()
        return typed(row, pa.struct(list(SCHEMA)), unknown)
    except (ValueError, NotificationError):
        return None


def typed(row: Any, kind: Any, unknown: str, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """A row with all fields of the schema and no others; single values by `Attributes.read`."""
    if not isinstance(row, dict) or (unknown == "refuse" and row.keys() - {f.name for f in kind}):
        raise ValueError("not an object of these fields")
    out: dict[str, Any] = {}
    for field in kind:
        value, here = row.get(field.name), (*path, field.name)
        if value is None:
            out[field.name] = None
        elif pa.types.is_struct(field.type):
            out[field.name] = typed(value, field.type, unknown, here)
        elif pa.types.is_list(field.type):
            if not isinstance(value, list):
                raise ValueError("not a list")
            inner = field.type.value_type
            out[field.name] = [v if v is None else typed(v, inner, unknown, here) for v in value]
        else:
            out[field.name] = single(value, ".".join(here))
    return out


def single(value: Any, name: str) -> Any:
    kind = TYPES.get(name, "string")
    if kind == "integer" and type(value) is int and not -(2**63) <= value < 2**63:
        raise ValueError("beyond 64 bits")  # `Attributes.read` rounds first
    return Attributes({"x": kind}).read({"x": value})["x"]


def same(left: Any, right: Any) -> bool:
    """Equal in value and type; 0.0 is not -0.0, and a NaN is a NaN."""
    if isinstance(left, dt.datetime) and isinstance(right, dt.datetime):
        return left == right
    return repr(left) == repr(right)


# -- the tests ---------------------------------------------------------------------------------


def check(decoded: Decoded, lines: list[bytes | None], unknown: str) -> None:
    expected = [slowly(line, unknown) for line in lines]
    good = [at for at, row in enumerate(expected) if row is not None]
    wrong = set(good) ^ set(decoded.rows.tolist())
    told = dict(zip(decoded.bad_rows.tolist(), decoded.reasons, strict=True))
    assert not wrong, [(lines[at], told.get(at)) for at in sorted(wrong)[:3]]
    for at, row in zip(good, decoded.good.to_pylist(), strict=True):
        wanted = expected[at] or {}
        assert row.keys() == wanted.keys()
        assert all(same(deep(row[k]), deep(wanted[k])) for k in row), (lines[at], row)
    every = np.sort(np.concatenate([decoded.rows, decoded.bad_rows]))
    assert np.array_equal(every, np.arange(len(lines)))
    assert all("expected" in reason or "did you mean" in reason for reason in decoded.reasons)
    decoded.good.validate(full=True)


def deep(value: Any) -> Any:
    """Instants in one zone object, so that their texts are the same."""
    if isinstance(value, dict):
        return {key: deep(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [deep(inner) for inner in value]
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value


@pytest.mark.parametrize("unknown", ["refuse", "drop"])
@pytest.mark.parametrize("odd", [0.0, 0.02, 0.3])
def test_a_batch_is_its_rows(
    seed: int, odd: float, unknown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(json_batch, "PIECE", rng.choice([1, 7, 64, 4096]))
    lines: list[bytes | None] = [line_of(rng, odd) for _ in rounds(600, 1500)]
    if odd:
        lines[rng.randrange(len(lines))] = None
    check(decode_json(pa.array(lines, pa.binary()), SCHEMA, extra=unknown), lines, unknown)


def test_one_bad_line_changes_no_other(seed: int) -> None:
    rng = random.Random(seed)
    lines = [line for line in (line_of(rng, 0) for _ in range(900)) if slowly(line, "refuse")]
    whole = decode_json(pa.array(lines), SCHEMA).good
    assert whole.num_rows == len(lines)
    at = rng.randrange(len(lines))
    bad = rng.choice([b"", b"{", b'{"day": "soon"}', b'{"delay": 1.5}', b'{"x": 1}', b"[]"])
    decoded = decode_json(pa.array([*lines[:at], bad, *lines[at + 1 :]]), SCHEMA)
    assert decoded.bad_rows.tolist() == [at]
    kept = pa.array([one for one in range(len(lines)) if one != at])
    assert repr(decoded.good.to_pylist()) == repr(whole.take(kept).to_pylist())
