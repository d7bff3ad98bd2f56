"""The header that a neighbour gets: rewritten, or unchanged.

        7 <- G         header [9 | 3] comes in, two marks; what G can get:
        |                  labels       [7]        the front of the frame is rewritten
        9 <- F             unchanged    [9 | 3]    only if it contains node 7; here it does not
                           a list       [7 9]      lists all nodes, so it can stay unchanged

Labels are the shortest headers, and G never has to look at the nodes above them. But rewriting a
header takes longer than sending a few more bytes. So if a graph is shallow, the root sends *content
lists* as headers: all nodes at and above the mark that somebody subscribes to. Lists need not
change from router to router. If there is only one neighbour below and it wants everything, headers
are not read at all: everything goes to that neighbour, as in unicast.

Invariant, in every mode: a label that a neighbour gets has the lowest nodes that it subscribes to
at or above the mark; all other nodes in it are above the mark too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from enum import Enum
from typing import TypeVar

import msgspec

from tidings.routing.forwarding.label_graph import Groups, Label, LabelGraph
from tidings.routing.protocol import messages as m

Neighbour = TypeVar("Neighbour", bound=Hashable)
Labels = tuple[Label, ...]  # of the marks of a notification
MOST_ABOVE = 64  # nodes above a label in a shallow graph
MOST_LISTED = 64  # marks of a notification; comparing more lists costs more than it saves


class Mode(Enum):
    LABELS = "labels"  # headers are as short as possible
    LISTS = "lists"  # headers stay unchanged where possible
    ADAPTIVE = "adaptive"  # whichever costs less


class Forwarding(msgspec.Struct, frozen=True):
    """How to forward, and what that costs on this machine."""

    mode: Mode = Mode.LABELS
    rewrite: float = 2000.0  # nanoseconds to rewrite the front of a frame
    byte: float = 1.0  # nanoseconds to send a byte and to receive it

    def pays(self, more: int) -> bool:
        """Is it cheaper to send this many more bytes than to rewrite a front?"""
        return self.mode is Mode.LISTS or more * self.byte < self.rewrite


class Way(msgspec.Struct, frozen=True):
    """How a neighbour gets notifications with certain labels."""

    kept: tuple[int, ...] | None  # positions of marks; None for the unchanged notification
    labels: Labels

    def of(self, message: m.Notification) -> m.Notification:
        """The notification as the neighbour gets it."""
        if self.kept is None:
            return message
        marks = tuple(
            m.Mark(message.marks[at].node, message.marks[at].number, label)
            for at, label in zip(self.kept, self.labels, strict=True)
        )
        return msgspec.structs.replace(message, marks=marks)


def first_label(graph: LabelGraph[Neighbour], node: int, forwarding: Forwarding) -> Label:
    """The label of a mark when it leaves the root: its node, or a list."""
    if forwarding.mode is not Mode.LABELS:
        listed = graph.list_for_all(node, MOST_ABOVE)
        if listed is not None and forwarding.pays(8 * len(listed)):
            return tuple(sorted({node, *listed}))
    return (node,)


def ways_of(
    graph: LabelGraph[Neighbour], labels: Labels, forwarding: Forwarding
) -> dict[Neighbour, Way]:
    """How each neighbour gets a notification; neighbours that get nothing are left out. Cost: a
    look-up for each mark, and a step for each neighbour at each mark whose labels differ from
    those of the other marks; most nodes have the same labels."""
    compare = forwarding.mode is Mode.LISTS or (
        forwarding.mode is Mode.ADAPTIVE and len(labels) <= MOST_LISTED
    )
    ways: dict[Neighbour, Way] = {}
    for part, names in _parts(graph, labels):
        way = _joined(part, labels)
        if way.kept is None or not compare:
            ways |= dict.fromkeys(names, way)
        else:
            for neighbour in names:
                ways[neighbour] = _cheaper(graph, labels, neighbour, way, forwarding)
    return ways


Part = tuple[tuple[Sequence[int], Label], ...]
"""Positions of marks, with the label that a neighbour gets there; empty for that of the mark."""


def _parts(
    graph: LabelGraph[Neighbour], labels: Labels
) -> Iterable[tuple[Part, Iterable[Neighbour]]]:
    """What neighbours get at which marks, and the neighbours that get exactly this."""
    if len(labels) == 1:
        return [((((0,), new),), names) for new, names in graph.groups(labels[0])]
    marks: dict[int, tuple[list[int], Groups[Neighbour]]] = {}  # by the identity of the groups
    for at, label in enumerate(labels):
        groups = graph.groups(label)
        known = marks.get(id(groups))
        if known is None:
            marks[id(groups)] = [at], groups
        else:
            known[0].append(at)
    parts: dict[Neighbour, Part] = {}
    for at, groups in marks.values():
        for new, names in groups:
            part: Part = ((at, new),)
            for neighbour in names:
                parts[neighbour] = parts[neighbour] + part if neighbour in parts else part
    found: dict[tuple[tuple[int, Label], ...], tuple[Part, list[Neighbour]]] = {}
    for neighbour, part in parts.items():
        key = tuple([(at[0], new) for at, new in part])
        found.setdefault(key, (part, []))[1].append(neighbour)
    return found.values()


def _joined(part: Part, labels: Labels) -> Way:
    """The way of those who get these labels."""
    if len(part) == 1:
        ((kept, new),) = part
        if not new and len(kept) == len(labels):
            return Way(None, labels)
        some = [new or labels[at] for at in kept]
    else:
        each = {at: new or labels[at] for kept, new in part for at in kept}
        kept = sorted(each)
        some = [each[at] for at in kept]
    joined = tuple(some)
    return Way(None, labels) if joined == labels else Way(tuple(kept), joined)


def _cheaper(
    graph: LabelGraph[Neighbour],
    labels: Labels,
    neighbour: Neighbour,
    way: Way,
    forwarding: Forwarding,
) -> Way:
    """The cheapest way: the notification unchanged, with lists, or with labels."""
    assert way.kept is not None
    lists: list[Label] = []
    for at in way.kept:
        listed = graph.list_subscribed(labels[at], neighbour, MOST_ABOVE)
        if listed is None:
            return way
        lists.append(listed)
    size = _size(way.labels)
    enough = all(set(one) <= set(labels[at]) for at, one in zip(way.kept, lists, strict=True))
    if enough and forwarding.pays(_size(labels) - size):
        return Way(None, labels)
    if forwarding.pays(_size(tuple(lists)) - size):
        return Way(way.kept, tuple(lists))
    return way


def _size(labels: Labels) -> int:
    """The bytes of a header with these labels and their marks; see frames.py."""
    return sum(18 + 8 * len(label) for label in labels)
