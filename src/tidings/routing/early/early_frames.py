"""Frames of bodies that are sent early, and notifications that refer to such a body.

An early frame:

    0   u32  length of the rest of the frame
    4   u8   kind: 4
    5   u8   version of the format
    6   u16  how many more routers may pass the frame on
    8   u32  size of the context in bytes
    12  u32  size of the publisher's name in bytes
    16  f64  merit for which it was sent
    24  u64  stamp
    32       context, publisher, body

A *reference*, kind 5, is the frame of a notification in which a u64 replaces the body: the position
of the body among the early frames of the link, starting at 0. The reference contains the bytes in
front of the body (protocol/contents/envelopes.py), because these bytes are known only after the
notification was matched.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from tidings.routing.protocol import frames

_HEAD = struct.Struct("<IBBHIIdQ")
HEAD = frames.EARLY_HEAD
_POSITION = struct.Struct("<Q")
_SHORT = struct.Struct("<IB")
MOST_HOPS = (1 << 16) - 1
LARGEST_CONTEXT = 1 << 16  # bytes


class Early(NamedTuple):
    """The body of a notification, sent before the notification is matched."""

    hops: int  # how many more routers may pass the frame on
    merit: float
    context: bytes
    publisher: bytes
    stamp: int
    body: bytes

    @property
    def key(self) -> tuple[bytes, int]:
        """Identifies the notification in its channel."""
        return self.publisher, self.stamp


def encode_early(early: Early) -> bytes:
    length = HEAD - 4 + len(early.context) + len(early.publisher) + len(early.body)
    head = _HEAD.pack(
        length, frames.EARLY, frames.VERSION, early.hops, len(early.context),
        len(early.publisher), early.merit, early.stamp,
    )  # fmt: skip
    return b"".join((head, early.context, early.publisher, early.body))


def decode_early(buffer: bytes, start: int = 0) -> Early:
    """Decode the early frame that begins at `start`; raise FrameError if it is invalid."""
    end = start + frames.size_at(buffer, start)
    if end < start + HEAD:
        raise frames.FrameError(_TOO_SHORT)
    _, _, _, hops, context, name, merit, stamp = _HEAD.unpack_from(buffer, start)
    first = start + HEAD + context
    if context > LARGEST_CONTEXT or first + name > end:
        raise frames.FrameError(_TOO_SHORT)
    if not math.isfinite(merit) or merit < 0:
        raise frames.FrameError(f"found the merit {merit}, expected a number of at least 0")
    return Early(
        hops, merit, bytes(buffer[start + HEAD : first]), bytes(buffer[first : first + name]),
        stamp, bytes(buffer[first + name : end]),
    )  # fmt: skip


_TOO_SHORT = "found an early body whose frame is too short for its parts"


def refer(buffer: bytes | memoryview, start: int, body: int, position: int) -> bytes:
    """The reference for a notification whose frame begins at `start`. The early body begins at
    `body`."""
    length = body - start + _POSITION.size - 4
    rest = buffer[start + _SHORT.size : body]
    return b"".join((_SHORT.pack(length, frames.REFERENCE), rest, _POSITION.pack(position)))


def position_at(buffer: bytes, start: int) -> int:
    """The position that the reference at `start` contains; raise FrameError if the reference is
    invalid."""
    end = start + frames.size_at(buffer, start)
    if end < start + frames.HEAD or frames.origin_at(buffer, start)[2] + _POSITION.size > end:
        raise frames.FrameError("found a reference that is too short for its position")
    return int(_POSITION.unpack_from(buffer, end - _POSITION.size)[0])


def restore(buffer: bytes, start: int, body: bytes) -> bytes:
    """The whole frame of the notification, given the reference at `start` and the body."""
    end = start + frames.size_at(buffer, start) - _POSITION.size
    length = end - start - 4 + len(body)
    rest = buffer[start + _SHORT.size : end]
    return b"".join((_SHORT.pack(length, frames.NOTIFICATION), rest, body))
