"""The formats of attributes: what is read, and what is refused with which message."""

from __future__ import annotations

import contextlib
import datetime
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from tidings.model import NotificationError
from tidings.notifications.content_formats import decode_content

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(), VALUES, max_size=20))
def test_json_and_messagepack_are_read_alike(event: dict[str, Any]) -> None:
    try:
        text = json.dumps(event).encode()
        packed = msgspec.msgpack.encode(event)
    except UnicodeEncodeError:  # a lone surrogate
        return
    assert decode_content(packed) == event
    assert decode_content(text) == event


def test_times_in_messagepack() -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert decode_content(msgspec.msgpack.encode({"at": when})) == {"at": when}


XML = b"""<?xml version="1.0"?>
<quote source="left alone">
  <symbol>AC&amp;ME</symbol> <price type="double">95.5</price> <size type="integer"> -7 </size>
  <up type="boolean">true</up> <volume nil="true"/> <empty/>
  <tag>new</tag><tag>hot</tag><tag type="integer">3</tag>
  <place><city>M\xc3\xbcnchen</city><zip type="string">80331</zip></place>
  <attribute name="geo.zone">EU</attribute>
  <note><![CDATA[a < b]]></note>
</quote>"""


def test_xml() -> None:
    assert decode_content(XML) == {
        "symbol": "AC&ME", "price": 95.5, "size": -7, "up": True, "volume": None, "empty": "",
        "tag": ["new", "hot", 3], "place": {"city": "München", "zip": "80331"}, "geo.zone": "EU",
        "note": "a < b",
    }  # fmt: skip
    assert decode_content(b"<n/>") == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the notification is not a JSON object: Input data was truncated"),
        (b"[1]", "the notification is not a JSON object: Expected `object`, got `array`"),
        (b"\x81\xa1a", "the notification is not a map in MessagePack: Input data was truncated"),
        (b"\x81\x01\x02", "the notification is not a map in MessagePack: Expected `str`"),
        (b"\x81\xa1a\xc4\x01x", "attribute a: found bytes, expected a JSON value or a time"),
        (b"\x81\xa1a\xd4\x05x", "attribute a: found an extension of type 5"),
        (b"\x81\xa1a\x81\x01\x02", "attribute a: found the key 1 in a mapping, expected a string"),
        (b"\x81\xa1a" + b"\x91" * 120 + b"\x01", "attribute a: found more than 100 levels"),
        (b"<n>", "the notification is not valid XML: no element found: line 1, column 3"),
        (b"<n>text</n>", "XML, line 1: element n: found text, expected elements only"),
        (
            b"<n><a>x<b/></a></n>",
            "element a: found child elements together with text, or with a `type` or `nil`",
        ),
        (b'<n><a type="integer">x</a></n>', "element a: found 'x', expected type 'integer'"),
        (b'<n><a type="double">NaN</a></n>', "element a: found 'NaN', expected type 'double'"),
        (b'<n><a type="int">1</a></n>', "found type 'int', expected string, integer, double or"),
        (b'<n><a nil="maybe"/></n>', "element a: found nil='maybe', expected true or"),
        (b'<n><a nil="true">x</a></n>', "element a: found both nil and text, expected only one"),
        (b'<n><a lang="de">x</a></n>', "element a: found the attribute 'lang', expected type,"),
        (b"<n>\n" + b"<a>" * 60 + b"</a>" * 60 + b"</n>", "line 2: found more than 50 levels"),
        (b"<!DOCTYPE n [<!ENTITY a 'b'>]><n><a>&a;</a></n>", "found a document type declaration"),
        (b"<!DOCTYPE n SYSTEM 'file:///etc/passwd'><n/>", "found a document type declaration"),
        (b"<n><a>&b;</a></n>", "line 1: found an entity that XML itself does not"),
        (b"<n>\xff</n>", "the notification is not valid XML: not well-formed"),
        (b" \n<n/>", "looks like XML, but it begins with blanks; expected '<' as the first byte"),
        (b"\xef\xbb\xbf<n/>", "looks like XML, but it begins with a byte order mark; expected"),
        ("<n/>".encode("utf-16"), "looks like XML, but it is in UTF-16; expected UTF-8"),
        ("<n/>".encode("utf-16-le"), "looks like XML, but it is in UTF-16; expected UTF-8"),
        ("<n/>".encode("utf-16-be"), "looks like XML, but it is in UTF-16; expected UTF-8"),
        (b" \n[1]", "the notification is not a JSON object: Expected `object`, got `array`"),
    ],
)
def test_refusals(content: bytes, sentence: str) -> None:
    with pytest.raises(NotificationError) as problem:
        decode_content(content)
    assert sentence in str(problem.value)


@given(st.binary(max_size=200), st.sampled_from([b"", b"<", b"\x82", b"{", b"<n><a type='"]))
def test_any_bytes_are_read_or_refused(rest: bytes, begin: bytes) -> None:
    with contextlib.suppress(NotificationError):
        assert isinstance(decode_content(begin + rest), dict)
