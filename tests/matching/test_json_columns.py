"""JSON by kernels, against a decoder: what is not odd has the same values, and little is odd."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from tests.repeats import draws

from tidings.matching.json_columns import JsonReader

COLUMNS: dict[str, type] = {"a": str, "bc": int, "b": float, "größe": bool, "n": type(None)}
SAMPLES: list[Any] = [
    "", "x", "müde", '"', "\\", "\n", 0, -1, 7, 10**17, -(10**18) + 1, 2**53, 2**53 + 1, 2**63,
    10**30,
    0.0, -0.0, 0.1, 1e22, 1e23, 1.5e-7, 5e-324, 1.7976931348623157e308, 123456789.123456789,
    True, False, None, [], {}, [1],
]  # fmt: skip


def _fits(value: Any, kind: type) -> bool:
    if value is None:
        return True
    if kind is float and type(value) is int:
        return True
    return type(value) is kind


def _same(one: Any, other: Any) -> bool:
    """Are they equal, with the same bits if they are doubles?"""
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", float(other))
    return type(one) is type(other) and one == other


def _check(contents: list[bytes]) -> list[int]:
    """Compare with a decoder; returns the odd rows."""
    found = JsonReader(COLUMNS).read(contents)
    assert found is not None
    batch, odd, named, mixed = found
    whole = False
    rows = batch.to_pylist()
    assert len(rows) == len(contents)
    batch.validate(full=True)
    for at, (content, row) in enumerate(zip(contents, rows, strict=True)):
        if at in odd:
            assert set(row.values()) == {None}
            continue
        event = msgspec.json.decode(content, type=dict[str, object])
        assert set(event) <= set(COLUMNS), content
        assert [name for name, has in zip(COLUMNS, named[:, at], strict=True) if has] == [
            name for name in COLUMNS if name in event
        ], content
        whole |= type(event.get("b")) is int
        for name, kind in COLUMNS.items():
            value = event.get(name)
            assert _fits(value, kind), content
            if value is None:
                assert row[name] is None, content
            else:
                assert _same(row[name], value), content
    assert mixed >= ({"b"} if whole else set())  # an odd object may count as well
    assert mixed <= {"b"}
    return odd


def test_what_is_read() -> None:
    plain = [
        b"{}", b" { } ", b'{"a":"x"}', b'{"bc":12,"a":"y"}\n', b'{"b":7}',
        b'{"a" :null,"n": null}', b'{"gr\xc3\xb6\xc3\x9fe":true, "a":"m\xc3\xbcde"}',
        b'{"b":-1.5e3}', b'{"b":100E-2}', b'{"bc":-999999999999999999}',
    ]  # fmt: skip
    assert _check(plain) == []


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"}", b"[]", b"null", b"{}x", b'{"a"}', b'{"a":}', b'{"a":"x"', b'{"a":"x",}',
        b'{"a":"x"}}', b'{a:"x"}', b'{"a":"\\n"}', b'{"a":"\n"}', b'{"\\u0061":"x"}', b'{"z":1}',
        b'{"a":1}', b'{"bc":"x"}', b'{"bc":1.0}', b'{"bc":01}', b'{"bc":-}', b'{"bc":-0}',
        b'{"bc":+1}', b'{"bc":1000000000000000000}', b'{"b":.5}', b'{"b":5.}', b'{"b":1e}',
        b'{"b":1e+}', b'{"b":-0.0}', b'{"b":1e23}', b'{"b":1e99999}',
        b'{"b":0.1234567890123456789}', b'{"b":9007199254740993}', b'{"b":NaN}', b'{"n":1}',
        b'{"n":nul}', b'{"gr\xc3\xb6\xc3\x9fe":tru}', b'{"a":[]}', b'{"a":{}}', b'{"b":1 2}',
        b'{"a":"x" "b":1}', b'{"a" "x"}', b'{"b":-', b'{"a":"x', b'{"n":n', b'{"b":1e',
        b'{"bc":1', b'{"b":1.25, "b":2}', b'{"a":"x","a":null}', b'{"a":null,"a":"x"}',
        b'{"a":"\xff","a":"x"}',
    ],
)  # fmt: skip
def test_what_is_odd(content: bytes) -> None:
    neighbours = [b'{"a":"x"}', content, b'{"a":"y"}']
    assert _check(neighbours) == [1]


def test_a_text_that_is_not_utf8() -> None:
    assert JsonReader(COLUMNS).read([b'{"a":"\xff"}']) is None
    assert JsonReader(COLUMNS).read([b'{"a":"\xed\xa0\x80"}']) is None  # a lone surrogate


OBJECTS = st.dictionaries(
    st.sampled_from([*COLUMNS, "z"]),
    st.one_of(st.sampled_from(SAMPLES), st.integers(), st.floats(allow_nan=False), st.text()),
)


@given(st.lists(OBJECTS, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_any_objects(objects: list[dict[str, Any]], spaced: bool, plain: bool) -> None:
    separators = (" ,  ", " : ") if spaced else (",", ":")
    texts = [json.dumps(one, ensure_ascii=plain, separators=separators) for one in objects]
    try:
        contents = [text.encode() for text in texts]
    except UnicodeEncodeError:  # a lone surrogate
        return
    odd = _check(contents)
    for at, (text, one) in enumerate(zip(texts, objects, strict=True)):
        small = all(
            _fits(value, COLUMNS.get(name, type(None)))
            and (type(value) is not int or abs(value) < 2**53)
            and (type(value) is not float or (value == round(value, 3) and 0 < abs(value) < 1e9))
            for name, value in one.items()
        )
        if small and "\\" not in text and "z" not in one:
            assert at not in odd, text


def test_objects_with_a_byte_changed(seed: int) -> None:
    chance = random.Random(seed)
    whole = '{"a": "müde", "bc": -120, "b": 1.5e2, "größe": false, "n": null}'.encode()
    read = 0
    for _ in draws(3000, lambda: read > 100):
        changed = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2])):
            at = chance.randrange(len(changed))
            match chance.randrange(3):
                case 0:
                    changed[at] = chance.choice(b'{}":,0123456789.eE+-ntf \\\xc3a[')
                case 1:
                    del changed[at]
                case _:
                    changed.insert(at, chance.choice(b'{}":,0123456789.eE+-ntf \\'))
        try:
            bytes(changed).decode()
        except UnicodeDecodeError:
            continue
        read += not _check([bytes(changed)])
    assert read > 100
