"""The types and limits of fields, and the bases of all messages."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

MOST_NUMBER = 2**63 - 1
Number = Annotated[int, msgspec.Meta(ge=0, le=MOST_NUMBER)]
"""The number of a node, a notification or a request. Numbers outside the range are refused."""
MOST_NODES = 2_000_000  # in one message
MOST_PREPROCESSED = 10_000  # notifications in one message
MOST_PREPROCESSORS = 100
MOST_SUGGESTED = 10_000  # nodes above a suggested filter, and nodes below it
MOST_TOGETHER = 100  # suggested filters in one message
WITHIN = 1 << 62  # numbers from this one on refer to filters in the same message
KEY = 16  # bytes of the identity of a filter
MOST_LOCATED = 1_000  # nodes in one request for places
MOST_WANTED = 200_000  # nodes in a Wanted message; larger sets are sent in slices
MOST_RANGES = 1024
MOST_DIRECT = 100  # nodes of an agent that is linked to the rendezvous point itself
MOST_LIVES = 256  # lives of a rendezvous point that are remembered
MOST_STEPS = 64  # the most revisions that a subscriber can catch up with
MOST_GAPS = 8192  # unconfirmed notifications before the last confirmed one
Label = Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_NODES)]
Gaps = Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_GAPS)]
LONGEST_NAME = 255  # characters
LONGEST_SUBJECT = 1024
LONGEST_REASON = 300  # characters
UNKNOWN = "found a node that is not known here"
"""Why a suggested filter is refused, if a node above or below it was lost in a crash."""
NODE = "node"
"""The dialect of an interest that is given as the number of a node. Another client has obtained
this number."""
MOST_TAG = 8 * (2 + 65_535)  # bytes; a tag has at most as many nodes as a notification has marks
PartyName = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
"""The name of a node, an owner or a publisher. Its length is limited, because nodes store it."""
LONGEST_WITHIN = 4096  # characters
MOST_WITHIN = 8  # filters in one message
LONGEST_TICKET = 2048  # characters
LARGEST_GRANT = 1 << 16  # bytes
LARGEST_TICKET = 1 << 14  # bytes
SIGNATURE = 64  # bytes
KEY_ID = 8  # bytes that identify a key
Within = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=LONGEST_WITHIN)], ...],
    msgspec.Meta(max_length=MOST_WITHIN),
]
"""Filters, each of which must cover what a subscriber asks for. The nodes on the way to the root
take these filters from the rights of the neighbour that asks."""


class Mark(NamedTuple):
    """One of the lowest nodes of a notification, the number of the notification at that node, and
    the label: the nodes that represent the mark at the receiving neighbour. Only the label changes
    on the way."""

    node: Number
    number: Number
    label: Label


class Digest(NamedTuple):
    """The size of a set, and a number that distinguishes sets of the same size."""

    size: Number = 0
    mixed: Number = 0


class Range(NamedTuple):
    """A range of numbers at a node, both ends included."""

    node: Number
    first: Number
    last: Number


class Life(NamedTuple):
    """One start of a rendezvous point: a random number, and the first serial after the start."""

    life: Number
    first: Number


class Slice(NamedTuple):
    """The nodes whose number modulo `parts` is `part`. Large sets are handled slice by slice."""

    part: Number = 0
    parts: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1

    def has(self, node: int) -> bool:
        return node % self.parts == self.part


class Edges(NamedTuple):
    """A digest of the edges from the nodes of a slice to their parents."""

    slice: Slice
    mixed: Number


class Step(msgspec.Struct, frozen=True, array_like=True):
    """A revision of the channel that gave an interest another meaning, and so another `node`. Up to
    `serial`, the old meaning applies: by then, the old node had matched `closing` notifications,
    and `ends` has the counts of the old node and of the nodes below it. After `serial`, the new
    meaning applies: by then, the new node had matched `total` notifications, and `begins` has the
    counts of the new node and of the nodes below it. All counts are those at `serial`; nodes
    without notifications are left out. For each node in `ends` that no longer existed then, `ended`
    has the serial of its last notification: a subscriber that began after that serial needs none of
    its notifications."""

    serial: Number
    node: Number
    closing: Number
    total: Number
    ends: dict[Number, Number]
    begins: dict[Number, Number]
    ended: dict[Number, Number] = {}

    @property
    def size(self) -> int:
        return 1 + len(self.ends) + len(self.begins) + len(self.ended)


Steps = Annotated[tuple[Step, ...], msgspec.Meta(max_length=MOST_STEPS)]


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The base class of all messages. Messages hold values only, so no message is part of a
    reference cycle, and the garbage collector skips those that wait."""


class Up(Message, frozen=True):
    """A message that goes up and carries the rendezvous point's current epoch, as far as the sender
    knows it."""

    epoch: Number


class Down(Message, frozen=True):
    epoch: Number
