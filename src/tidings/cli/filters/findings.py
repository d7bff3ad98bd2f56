"""Finds faults in a set of subscriptions: odd filters, duplicates and redundant filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidings import ContentGraph, Filter, Node
from tidings.cli.common.screen import track
from tidings.cli.common.subscription_files import FileSubscription
from tidings.filters import ALWAYS_TRUE, NEVER_TRUE, ODDITIES, oddities_of

MANY = 1_000  # if a subscriber has more filters, their graph is built in bulk
DUPLICATE, COVERED = "duplicate", "covered"

KINDS = {
    DUPLICATE: "the subscriber already has an equal filter",
    COVERED: "not needed: the subscriber has a filter that covers it",
    **ODDITIES,
}

Parsed = tuple[FileSubscription, Filter]


class Finding(msgspec.Struct, frozen=True):
    """A fault of one subscription; if another subscription causes it, that is `other`."""

    kind: str
    subscription: FileSubscription
    other: FileSubscription | None = None
    fields: tuple[str, ...] = ()
    """The fields of an event pattern that cause the fault."""
    note: str = ""
    """Why the filter can never match, or that it always matches."""


def examine(parsed: list[Parsed]) -> list[Finding]:
    """All findings, in the order of the subscriptions.

    Filters without a subscriber are treated as those of one subscriber.
    """
    owners: dict[str | None, list[Parsed]] = {}
    for one in parsed:
        owners.setdefault(one[0].subscriber, []).append(one)
    place = {str(one.id): at for at, (one, _) in enumerate(parsed)}
    found = [finding for own in owners.values() for finding in _examine_one(own)]
    return sorted(found, key=lambda finding: place[str(finding.subscription.id)])


def count_shared(parsed: Iterable[Parsed]) -> int:
    """How many filters have several subscribers, which is not a fault; equal filters share a
    node."""
    owners: dict[bytes, set[str | None]] = {}
    for one, filter_ in parsed:
        owners.setdefault(filter_.key, set()).add(one.subscriber)
    return sum(len(who) for who in owners.values() if len(who) > 1)


def _examine_one(own: list[Parsed]) -> Iterator[Finding]:
    first: dict[bytes, FileSubscription] = {}
    sound: list[Parsed] = []
    for one, filter_ in own:
        odd = oddities_of(filter_.form)
        # filters that never or always match are not reported as duplicates
        empty = NEVER_TRUE in odd or ALWAYS_TRUE in odd
        earlier = one if empty else first.setdefault(filter_.key, one)
        if earlier is not one:
            yield Finding(DUPLICATE, one, earlier)
            continue
        yield from (Finding(kind, one, note=filter_.note) for kind in odd)
        if not empty:
            sound.append((one, filter_))
    yield from _find_covered(sound)


def _find_covered(own: list[Parsed]) -> Iterator[Finding]:
    """Yield a finding for each filter that equals an earlier filter, or that another filter covers.
    If several filters cover a filter, the finding names one that no other filter covers."""
    filters = [filter_ for _, filter_ in own]
    owner = {filter_.key: one for one, filter_ in own}
    if len(filters) > MANY:
        graph = ContentGraph.build(track(filters, "comparing", len(filters)))
    else:
        graph = ContentGraph(filters)
    tops: dict[Node, Node] = {}
    for one, filter_ in own:
        node = graph.node(filter_)
        assert node is not None
        # the filters are equal, although they are written differently
        if owner[node.filter.key] is not one:
            yield Finding(DUPLICATE, one, owner[node.filter.key])
        elif (top := _top(graph, node, tops)) is not node:
            yield Finding(COVERED, one, owner[top.filter.key])


def _top(graph: ContentGraph, node: Node, tops: dict[Node, Node]) -> Node:
    """Walk up from a node to a node that no other node covers. Chains can be long, so `tops` caches
    the results."""
    passed = [node]
    while passed[-1] not in tops and (parents := graph.parents(passed[-1])):
        passed.append(parents[0])
    top = tops.get(passed[-1], passed[-1])
    tops.update(dict.fromkeys(passed, top))
    return top
