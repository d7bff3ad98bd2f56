"""Decode the attributes of a notification: a JSON object, a map in MessagePack, or XML."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from tidings.model import NotificationError
from tidings.notifications.content_formats.xml_content import decode_xml

DEEPEST = 100  # levels of nested values in MessagePack; msgspec limits the levels of JSON

_decode_json = msgspec.json.Decoder(dict[str, Any]).decode
_decode_map = msgspec.msgpack.Decoder(dict[str, Any]).decode
_MAPS = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])  # the first bytes of maps in MessagePack


def is_json(content: bytes) -> bool:
    """Whether the content is JSON, or in an unknown format."""
    return content[:1] != b"<" and not (content and content[0] in _MAPS)


def decode_content(content: bytes) -> dict[str, Any]:
    """The attributes; raises NotificationError if they can't be decoded."""
    if content[:1] == b"<" and content[1:2] != b"\0":
        return decode_xml(content)
    wrong = _find_xml(content)
    if wrong:
        raise NotificationError(f"the notification looks like XML, but {wrong}")
    try:
        if is_json(content):
            what = "JSON object"
            return _decode_json(content)
        what = "map in MessagePack"
        found = _decode_map(content)
    except (ValueError, RecursionError) as problem:  # raised by msgspec, or for invalid UTF-8
        raise NotificationError(f"the notification is not a {what}: {problem}") from None
    for name, value in found.items():
        _check(value, name, DEEPEST)
    return found


def _find_xml(content: bytes) -> str:
    """What is wrong with XML that does not begin with its first tag; empty if the content is not
    XML."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or content[:2] in (b"<\0", b"\0<"):
        return "it is in UTF-16; expected UTF-8"
    if content[:3] == b"\xef\xbb\xbf" and content[3:].lstrip()[:1] == b"<":
        return "it begins with a byte order mark; expected '<' as the first byte"
    if content[:1].isspace() and content.lstrip()[:1] == b"<":
        return "it begins with blanks; expected '<' as the first byte"
    return ""


def _check(value: Any, name: str, levels: int) -> None:
    """Refuse values that MessagePack has and JSON does not, except times."""
    if isinstance(value, dict | list):
        if not levels:
            raise NotificationError(
                f"attribute {name}: found more than {DEEPEST} levels of nested values"
            )
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict) and not isinstance(key, str):
                raise NotificationError(
                    f"attribute {name}: found the key {key!r} in a mapping, expected a string"
                )
            _check(one, name, levels - 1)
    elif isinstance(value, bytes | msgspec.msgpack.Ext):
        what = "bytes" if isinstance(value, bytes) else f"an extension of type {value.code}"
        raise NotificationError(
            f"attribute {name}: found {what}, expected a JSON value or a time; "
            f"send bytes as the payload"
        )
    elif isinstance(value, datetime.datetime) and value.tzinfo is None:
        raise NotificationError(f"attribute {name}: found a time without a zone, expected a zone")
