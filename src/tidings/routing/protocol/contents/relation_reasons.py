"""The nodes that match a notification only because they are related to it, and why.

    [[context, name, kind, weight], ...], [[node, weight, [reason, ...]], ...]      in MessagePack

Many nodes have the same reasons, so each reason is written once, and nodes refer to it by its
position. The bytes are the part `found` of an envelope; see envelopes.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.envelopes import MAGIC, open_body

MOST_REASONS = 16  # of one node


class Reason(msgspec.Struct, frozen=True, array_like=True):
    """Why a notification is related to a filter in one context. An edge leads from `name`, a term
    of the notification, to a term that the filter names; the edge has a kind (near, ancestor,
    friend ...) and a weight. If a context is not related at all, the name is empty, the kind is
    "none" and the weight is 0."""

    context: str
    name: str
    kind: str
    weight: float


class Related(msgspec.Struct, frozen=True, array_like=True):
    """How strongly a notification is related to a filter that it does not match: the mean of the
    weights of all contexts in which the filter names values."""

    weight: float
    reasons: tuple[Reason, ...]


class _Node(msgspec.Struct, frozen=True, array_like=True):
    node: m.Number
    weight: float
    reasons: Annotated[tuple[m.Number, ...], msgspec.Meta(max_length=MOST_REASONS)]


class _Found(msgspec.Struct, frozen=True, array_like=True):
    reasons: tuple[Reason, ...]
    nodes: tuple[_Node, ...]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Found).decode


def encode_found(nodes: Mapping[int, Related]) -> bytes:
    """The bytes that say why nodes are related; empty if there are no nodes."""
    if not nodes:
        return b""
    places: dict[Reason, int] = {}
    found = tuple(
        _Node(node, one.weight, tuple(places.setdefault(r, len(places)) for r in one.reasons))
        for node, one in nodes.items()
    )
    return _encode(_Found(tuple(places), found))


def decode_found(data: bytes) -> dict[int, Related]:
    """The related nodes with the reasons; none if the bytes can't be read."""
    if not data:
        return {}
    try:
        found = _decode(data)
        return {
            one.node: Related(one.weight, tuple(found.reasons[at] for at in one.reasons))
            for one in found.nodes
        }
    except (msgspec.DecodeError, ValueError, RecursionError, IndexError):
        return {}


def find_related(message: m.Notification, nodes: tuple[int, ...]) -> Related | None:
    """Why a notification is delivered for these nodes although it matches none of them exactly;
    None if it matches one exactly. Cost: one comparison, unless the channel has relations."""
    if message.payload[: len(MAGIC)] != MAGIC:
        return None
    found = decode_found(open_body(message.payload)[0].found)
    if not found or any(node not in found for node in nodes):
        return None
    return max((found[node] for node in nodes), key=lambda one: one.weight, default=None)


def find_exact(message: m.Notification) -> tuple[m.Mark, ...]:
    """The marks of a notification at nodes that it matches exactly."""
    if message.payload[: len(MAGIC)] != MAGIC:
        return message.marks
    found = decode_found(open_body(message.payload)[0].found)
    return tuple(mark for mark in message.marks if mark.node not in found)
