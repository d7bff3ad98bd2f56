"""The header that a neighbour gets: rewritten, or unchanged.

        7 <- G         header [9 | 3] with two marks arrives; what G can get:
        |                  labels       [7]        the front of the frame is rewritten
        9 <- F             unchanged    [9 | 3]    only if it contains node 7; here it does not
                           a list       [7 9]      lists all nodes, so it can stay unchanged

Labels are the shortest headers, and the receiver need not look at the nodes above them. But
rewriting a header takes longer than sending a few more bytes. So if a graph is shallow, the root
sends *content lists* as headers: all nodes, at and above the mark, that any neighbour subscribes
to. Lists need not change from router to router. If there is only one neighbour below and it wants
all nodes, headers are not read at all: all notifications go to that neighbour, as in unicast.

Invariant, in every mode: each label that a neighbour gets contains the lowest nodes, at or above
the mark, that the neighbour subscribes to. All other nodes of the label cover the mark's node too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import TypeVar

import msgspec

from tidings.routing.forwarding.label_graph import Groups, Label, LabelGraph
from tidings.routing.protocol import messages as m

Neighbour = TypeVar("Neighbour", bound=Hashable)
Labels = tuple[Label, ...]  # the labels of the marks of a notification
MOST_ABOVE = 64  # in a shallow graph, at most this many nodes are at or above a label
MOST_LISTED = 64  # with more marks than this, comparing lists would cost more than it saves


class Mode(Enum):
    LABELS = "labels"  # headers are as short as possible
    LISTS = "lists"  # headers stay unchanged where possible
    ADAPTIVE = "adaptive"  # whichever costs less


class Forwarding(msgspec.Struct, frozen=True):
    """How to forward, and how much time rewriting and sending take on this machine."""

    mode: Mode = Mode.LABELS
    rewrite: float = 2000.0  # nanoseconds to rewrite the front of a frame
    byte: float = 1.0  # nanoseconds to send and receive one byte

    def pays(self, more: int) -> bool:
        """Is it cheaper to send `more` additional bytes than to rewrite the front of a frame?"""
        return self.mode is Mode.LISTS or more * self.byte < self.rewrite


class Way(msgspec.Struct, frozen=True):
    """How notifications with certain labels are sent to a neighbour."""

    kept: tuple[int, ...] | None  # positions of the marks to send; None if nothing changes
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
    """How a notification with these labels is sent to each neighbour; neighbours that do not get it
    are left out. Cost: a lookup for each mark, and a step for each neighbour at each mark. In the
    usual case, all marks have the same labels, and each neighbour takes only one step."""
    each = [graph.groups(label) for label in labels]
    if each and all(groups is each[0] for groups in each):
        ways = _join_equal(each[0], labels)
    else:
        ways = _join(each, labels)
    if forwarding.mode is Mode.LISTS or (
        forwarding.mode is Mode.ADAPTIVE and len(labels) <= MOST_LISTED
    ):
        for neighbour, way in ways.items():
            if way.kept is not None:
                ways[neighbour] = _cheaper(graph, labels, neighbour, way, forwarding)
    return ways


def _join_equal(groups: Groups[Neighbour], labels: Labels) -> dict[Neighbour, Way]:
    """The ways for marks with the same labels; neighbours with the same label share a way."""
    ways: dict[Neighbour, Way] = {}
    for new, names in groups:
        changed = (new,) * len(labels) if new else labels
        way = Way(None if changed == labels else (*range(len(labels)),), changed)
        for neighbour in names:
            ways[neighbour] = way
    return ways


def _join(each: Sequence[Groups[Neighbour]], labels: Labels) -> dict[Neighbour, Way]:
    """The ways for marks with different labels."""
    found: dict[Neighbour, tuple[list[int], list[Label]]] = {}
    for at, groups in enumerate(each):
        for new, names in groups:
            label = new or labels[at]
            for neighbour in names:
                there = found.get(neighbour)
                if there is None:
                    found[neighbour] = [at], [label]
                else:
                    there[0].append(at)
                    there[1].append(label)
    ways: dict[Neighbour, Way] = {}
    for neighbour, (kept, changed) in found.items():
        way = Way(tuple(kept), tuple(changed))
        ways[neighbour] = Way(None, labels) if way.labels == labels else way
    return ways


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
    """The size in bytes of a header with these labels and their marks; see frames.py."""
    return sum(18 + 8 * len(label) for label in labels)
