"""The bytes that a channel with relations puts in front of the body of a notification.

    MAGIC, u32 size + 2^31, u16 size of the context, context, found, body

The *context* has the place, the time, the tags and the people of the notification. `found` has the
related nodes for which the notification is delivered, with the reasons. Routers read the context,
but not the body with its attributes and payload. To journals, caches and routers, all these bytes
are part of the body. Channels without relations have no envelopes. A body can't be mistaken for an
envelope: in a body, the size after MAGIC is always less than 2^31, and a payload that begins with
MAGIC follows an `About`; see bodies.py.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MAGIC = b"\xf5tidings"
ENCLOSED = 1 << 31
_SIZES = struct.Struct("<IH")
_CONTEXT_AT = len(MAGIC) + _SIZES.size


class Envelope(NamedTuple):
    """The context of a notification, and `found`; both are empty in a channel without relations."""

    context: bytes = b""
    found: bytes = b""


NOTHING = Envelope()


def make_front(context: bytes, found: bytes = b"") -> bytes:
    """The bytes in front of a body; empty if both arguments are empty."""
    if not context and not found:
        return b""
    size = 2 + len(context) + len(found)
    return b"".join((MAGIC, _SIZES.pack(ENCLOSED | size, len(context)), context, found))


def open_body(body: bytes) -> tuple[Envelope, bytes]:
    """The envelope of a notification, and its body. Bytes that do not begin with a valid envelope
    are returned as the body."""
    at = len(MAGIC)
    if body[:at] != MAGIC or len(body) < _CONTEXT_AT:
        return NOTHING, body
    size, many = _SIZES.unpack_from(body, at)
    end = at + 4 + size - ENCLOSED
    if size < ENCLOSED + 2 + many or end > len(body):
        return NOTHING, body
    first = _CONTEXT_AT + many
    return Envelope(body[_CONTEXT_AT:first], body[first:end]), body[end:]


def read_context(buffer: bytes | memoryview, start: int, end: int) -> bytes:
    """The context of the notification whose body is buffer[start:end]; empty if it has none. Cost:
    only the context is copied."""
    at = start + len(MAGIC)
    if end < start + _CONTEXT_AT or buffer[start:at] != MAGIC:
        return b""
    size, many = _SIZES.unpack_from(buffer, at)
    if size < ENCLOSED + 2 + many or at + 4 + size - ENCLOSED > end:
        return b""
    return bytes(buffer[start + _CONTEXT_AT : start + _CONTEXT_AT + many])
