"""All messages of a buffer, for tests that look at what was sent."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.routing.protocol import frames
from tidings.routing.protocol.messages import Message


def decode_all(buffer: bytes) -> Iterator[Message]:
    """Decode all complete frames of a buffer."""
    starts, _ = frames.split(buffer)
    return (frames.decode(buffer, start) for start in starts)
