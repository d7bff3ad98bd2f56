"""What a neighbour gets of a notification: with its header written anew, or as it came.

        7 <- G         header [9 | 3] comes in, two marks; what G gets:
        |                  labels    [7]          the front of the frame is written anew
        9 <- F             as it is  [9 | 3]      where G can find 7 in it by itself: it can't here,
                           a list    [7 9]            but could in a header that lists all there is

Labels are the shortest headers, and G never has to look at anything above them. But to write a
header anew takes longer than to send some more bytes. So where a graph is shallow, headers are
*content lists*: all nodes at and above the mark that somebody subscribes to, from the root on. They
need not change from router to router. And where one neighbour alone is left below, that wants
everything, nothing is looked at: then all goes to it, as it does by unicast.

Invariant, however it is forwarded: a label that a neighbour gets has the lowest nodes that it
subscribes to at or above the mark; what else may be in it is above the mark too.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TypeVar

import msgspec

from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.protocol import messages as m

Neighbour = TypeVar("Neighbour", bound=Hashable)
Labels = tuple[Label, ...]  # of the marks of a notification
MOST_ABOVE = 64  # nodes above a label: a graph that has more is not shallow
MOST_LISTED = 64  # marks of a notification: to compare the lists of more takes longer than it saves


class Mode(Enum):
    LABELS = "labels"  # headers are as short as they can be
    LISTS = "lists"  # headers stay as they are wherever they can
    ADAPTIVE = "adaptive"  # whichever costs less


class Forwarding(msgspec.Struct, frozen=True):
    """How to forward, and what it costs here."""

    mode: Mode = Mode.LABELS
    rewrite: float = 2000.0  # nanoseconds, to write the front of a frame anew
    byte: float = 1.0  # nanoseconds, to send a byte and to receive it

    def pays(self, more: int) -> bool:
        """Is it cheaper to send some more bytes than to write a front anew?"""
        return self.mode is Mode.LISTS or more * self.byte < self.rewrite


class Way(msgspec.Struct, frozen=True):
    """What a neighbour gets of notifications with some labels."""

    kept: tuple[int, ...] | None  # which marks; None for the notification as it is
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
    """The label that a mark begins its way with, at the root: the node, or a list."""
    if forwarding.mode is not Mode.LABELS:
        listed = graph.list_for_all(node, MOST_ABOVE)
        if listed is not None and forwarding.pays(8 * len(listed)):
            return tuple(sorted({node, *listed}))
    return (node,)


def ways_of(
    graph: LabelGraph[Neighbour], labels: Labels, forwarding: Forwarding
) -> dict[Neighbour, Way]:
    """What each neighbour gets, of those that get anything."""
    found: dict[Neighbour, tuple[list[int], list[Label]]] = {}
    for at, label in enumerate(labels):
        for neighbour, new in graph.forward(label).items():
            kept, changed = found.setdefault(neighbour, ([], []))
            kept.append(at)
            changed.append(new)
    ways: dict[Neighbour, Way] = {}
    for neighbour, (kept, changed) in found.items():
        way = Way(tuple(kept), tuple(changed))
        if way.labels == labels:
            way = Way(None, labels)
        elif forwarding.mode is Mode.LISTS or (
            forwarding.mode is Mode.ADAPTIVE and len(labels) <= MOST_LISTED
        ):
            way = _cheaper(graph, labels, neighbour, way, forwarding)
        ways[neighbour] = way
    return ways


def _cheaper(
    graph: LabelGraph[Neighbour],
    labels: Labels,
    neighbour: Neighbour,
    way: Way,
    forwarding: Forwarding,
) -> Way:
    """The notification as it is, or with lists, or with labels: as the costs are."""
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
    """Bytes of a header with these labels, and of their marks; see frames.py."""
    return sum(18 + 8 * len(label) for label in labels)
