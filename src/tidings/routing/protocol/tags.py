"""The tag of a publication that was tagged elsewhere: the life, the version and the lowest nodes.

    i64 life   i64 version   i64 node   i64 node ...        little-endian, like the columns of parts

Messages contain tags as bytes, so that a kernel can read the tags of many publications. A tag
without nodes says that nothing matched.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

FRONT = 16  # bytes of a tag before its nodes


class Tag(NamedTuple):
    """The lowest nodes that match a notification at a version of a channel's life."""

    life: int
    version: int
    nodes: tuple[int, ...]


def pack_tag(life: int, version: int, nodes: Sequence[int]) -> bytes:
    return struct.pack(f"<{2 + len(nodes)}q", life, version, *nodes)


def unpack_tag(data: bytes) -> Tag | None:
    """The tag in these bytes; None if they are not a tag."""
    if len(data) < FRONT or len(data) % 8:
        return None
    life, version, *nodes = struct.unpack(f"<{len(data) // 8}q", data)
    return Tag(life, version, tuple(nodes))
