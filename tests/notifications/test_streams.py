"""Files with many notifications, in XML and MessagePack: split again, they are the notifications
that were written one after another, whatever these contain."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from tests.waiting import PATIENCE

from tidings.model import NotificationError
from tidings.notifications.content_formats import decode_content, split_msgpack, split_xml

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
    | st.binary() | st.datetimes(timezones=st.just(dt.UTC)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip
long = st.sampled_from([15, 16, 31, 32, 255, 256, 65_535, 65_536])
wide = st.one_of(
    long.map(lambda size: "x" * size),
    long.map(lambda size: b"x" * size),
    long.map(lambda size: [1] * size),
    long.map(lambda size: {str(n): n for n in range(size)}),
    st.builds(msgspec.msgpack.Ext, st.integers(0, 127), long.map(bytes)),
    st.sampled_from([1, 2, 4, 8, 16]).map(lambda size: msgspec.msgpack.Ext(5, bytes(size))),
)


@given(st.lists(values | wide, max_size=5))
def test_maps_one_after_another(some: list[Any]) -> None:
    written = [msgspec.msgpack.encode(one) for one in some]
    assert list(split_msgpack(b"".join(written))) == written


@given(values | wide, st.data())
def test_a_map_that_is_cut_off(one: object, data: st.DataObject) -> None:
    written = msgspec.msgpack.encode(one)
    size = data.draw(st.integers(0, len(written) - 1))
    if size:
        with pytest.raises(NotificationError, match="byte 0 is incomplete"):
            list(split_msgpack(written[:size]))


def test_depth_does_not_matter() -> None:
    deep = b"\x91" * 100_000 + b"\x01"
    assert list(split_msgpack(deep + b"\x80")) == [deep, b"\x80"]


def test_a_byte_that_begins_nothing() -> None:
    with pytest.raises(NotificationError, match="found the byte 0xc1 at byte 1, expected"):
        list(split_msgpack(b"\x80\xc1"))


documents = st.sampled_from([
    b"<n/>", b"<n a='>'/>", b"<n><x>1</x></n>", b"<n>\n <x>a &lt; b</x>\n</n>",
    b"<?xml version='1.0'?>\n<n><x>2</x></n>", b"<!-- first --><n><x>3</x></n>",
    b"<n><x><![CDATA[</n><n>]]></x></n>", "<n><x>\u00e9\U0001f514</x></n>".encode(),
])  # fmt: skip


@given(st.lists(st.tuples(documents, st.sampled_from([b"", b"\n", b"  \r\n\n"])), max_size=6))
def test_documents_one_after_another(some: list[tuple[bytes, bytes]]) -> None:
    """A comment, or blanks, between two documents may belong to either."""
    data = b"".join(one + blank for one, blank in some)
    found = [*split_xml(data)]
    assert [decode_content(one) for _, one in found] == [decode_content(one) for one, _ in some]
    for line, one in found:
        assert one.lstrip() in b"\n".join(data.split(b"\n")[line - 1 :])


def test_entities_are_refused_before_they_grow() -> None:
    """In the second document, too."""
    bomb = b"<!DOCTYPE n [<!ENTITY a0 'aaaaaaaaaa'>" + b"".join(
        b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 40)
    )
    bomb += b"]>\n<n><x>&a39;</x></n>"
    for before, line in ((b"", 1), (b"<n/>\n\n", 3)):
        with pytest.raises(NotificationError, match=f"^XML, line {line}: found a document type"):
            list(split_xml(before + bomb))
    (_, one), = split_xml(b"<n><x>&eacute;</x></n>")  # fmt: skip
    with pytest.raises(NotificationError, match="line 1: found an entity that XML itself does not"):
        decode_content(one)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<n>\n<x>", "no element found: line 2, column 3"),
        (b"<n/>\n<n></m>", "mismatched tag: line 2, column 5"),
        (b"<n/> text", "syntax error: line 1, column 0"),
        (b'{"x": 1}', "not well-formed (invalid token): line 1, column 0"),
    ],
)
def test_what_is_no_xml(data: bytes, reason: str) -> None:
    with pytest.raises(NotificationError) as refused:
        list(split_xml(data))
    assert str(refused.value) == f"this is not valid XML: {reason}"


def test_many_documents_take_linear_time() -> None:
    began = time.process_time()
    assert sum(1 for _ in split_xml(b"<n><x>1</x></n>\n" * 10_000)) == 10_000
    assert time.process_time() - began < PATIENCE
