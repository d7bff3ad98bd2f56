"""Status reports of a node and of the nodes below it.

    [node] ──Report: its own status, and the reports of neighbours below──> the node above
       └────────────────the same──> neighbours that sent Watch

About once a beat each node sends a report, so every node knows its whole subtree, with a delay of
one beat per level. A report expires after the time for which a neighbour may be silent. Reports are
bounded: all reports together describe at most MOST_REPORTED nodes, and the largest reports are cut
first. So the report of one neighbour displaces reports of other neighbours only if there are very
many neighbours.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice
from typing import Protocol

import msgspec

from tidings.broker.admission.listen import Door
from tidings.broker.early import EarlySending
from tidings.network import Link
from tidings.routing.channels import Channel, Channels
from tidings.routing.forwarding import Name, Router
from tidings.routing.protocol import messages as m
from tidings.routing.root import Rendezvous

MOST_LISTED = 5_000  # the most links in a report: 3 MB with the longest names
MOST_CHANNELS = 1_000  # the most channels, or other rows, in a report: 1 MB with long names
RIGHTS = "rights"  # counts requests that a client had no right to make
_UNRIGHTFUL = (RIGHTS, "outside", "not granted")  # the counts of requests that lacked a right
# links are listed by kind, in this order; within a kind, those with the longest queues come first
_ORDER: tuple[m.Kind, ...] = ("above", "router", "agent", "watcher", "direct")
_KINDS = {kind: number for number, kind in enumerate(_ORDER)}


class LinkCounts(Protocol):
    """The counters of a link that are kept after it closes."""

    name: str
    told_in: int
    told_out: int
    dropped: int


class Totals(msgspec.Struct, frozen=True):
    """Counts of notifications that passed through a node."""

    published: int = 0  # from below
    told_in: int = 0  # from above
    told_out: int = 0
    dropped: int = 0

    def plus(self, link: LinkCounts, above: bool) -> Totals:
        return Totals(
            self.published + (0 if above else link.told_in),
            self.told_in + (link.told_in if above else 0),
            self.told_out + link.told_out,
            self.dropped + link.dropped,
        )


class Rate:
    """How fast a count grows."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._count = self.per_second = 0

    def measure(self, count: int, now: float) -> int:
        """The rate per second, measured over at least the last half second."""
        passed = now - self._at
        if passed > 0.5:
            self.per_second = max(0, round((count - self._count) / passed))
            self._at, self._count = now, count
        return self.per_second


class LastReport(msgspec.Struct):
    """The latest report of a neighbour."""

    at: float
    nodes: tuple[m.NodeStatus, ...]


class Reports:
    """The reports of neighbours, the watchers, and the counts of closed links."""

    def __init__(self, expire: float) -> None:
        self.expire = expire
        self.known: dict[Name, LastReport] = {}
        self.watchers: set[Name] = set()
        self.ignored = 0  # malformed reports
        self.past = Totals()  # of closed links

    def watch(self, name: Name) -> bool:
        """Register a watcher; return False if it is already registered."""
        before = len(self.watchers)
        self.watchers.add(name)
        return len(self.watchers) > before

    def kind(self, name: Name) -> m.Kind:
        """The kind of a neighbour below."""
        if name in self.known:
            return "router"
        return "watcher" if name in self.watchers else "agent"

    def end_link(self, link: LinkCounts, *, above: bool = False) -> None:
        """Add the counts of a closed link. The last report of the node at its other end is kept, to
        show which node is missing."""
        self.watchers.discard(link.name)
        self.past = self.past.plus(link, above)

    def take(self, sender: str, report: m.Report, now: float) -> None:
        """Store a neighbour's report about itself and the nodes below it."""
        if not _is_tree(report.nodes, shorten(sender)):
            self.ignored += 1
            return
        self.known[sender] = LastReport(now, report.nodes)
        self._cut_reports(sender)

    def gather(self, mine: m.NodeStatus, now: float) -> m.Report:
        """The report of this node: its own status, and recent reports from below."""
        for name, known in [*self.known.items()]:
            if now - known.at > self.expire:
                del self.known[name]
        nodes = [mine]
        links, carried = len(mine.links), len(mine.carried)
        rows = _count_rows(mine)
        for _, known in sorted(self.known.items(), key=lambda item: str(item[0])):
            older = millis(now - known.at)
            for node in known.nodes:
                if node.depth + 1 >= m.MOST_DEPTH or len(nodes) >= m.MOST_REPORTED:
                    continue
                links += len(node.links)
                carried += len(node.carried)
                rows += _count_rows(node)
                nodes.append(
                    msgspec.structs.replace(
                        node,
                        depth=node.depth + 1,
                        age=min(node.age + older, m.MOST_MILLIS),
                        links=node.links if links <= MOST_LISTED else (),
                        carried=node.carried if carried <= MOST_CHANNELS else (),
                        preprocessors=node.preprocessors if rows <= MOST_CHANNELS else (),
                        sources=node.sources if rows <= MOST_CHANNELS else (),
                        names=node.names if rows <= MOST_CHANNELS else (),
                    )
                )
        return m.Report(tuple(nodes))

    def _cut_reports(self, newest: Name) -> None:
        """If there are too many nodes, cut the largest reports."""
        over = sum(len(known.nodes) for known in self.known.values()) - m.MOST_REPORTED
        while over > 0:
            largest = max(self.known.values(), key=lambda known: len(known.nodes))
            kept = max(1, len(largest.nodes) - over)
            if kept == len(largest.nodes):  # no report can be cut: each has only one node
                del self.known[newest]
                return
            over -= len(largest.nodes) - kept
            largest.nodes = largest.nodes[:kept]


class Reporting(Protocol):
    """The part of a running node's interface that its status is computed from."""

    machine: Router | Rendezvous
    channels: Channels
    reports: Reports
    links: dict[Name, Link]
    above: str  # the name of the node above
    began: float
    rate: Rate
    early: EarlySending | None

    @property
    def reached(self) -> str: ...
    @property
    def door(self) -> Door: ...
    @property
    def port(self) -> int: ...
    @property
    def undeclared(self) -> int: ...
    @property
    def located(self) -> int: ...
    def is_direct(self, name: Name) -> bool: ...
    def refusals(self) -> dict[str, int]: ...


def status_of(node: Reporting, now: float) -> m.NodeStatus:
    """The status of a node, without the nodes below it. While the status is computed, nothing is
    forwarded, so little work is done for each link, and more only for the few links that are
    listed."""
    machine, past = node.machine, node.reports.past
    upstream = machine.upstream if isinstance(machine, Router) else None
    published, told_in = past.published, past.told_in
    told_out, dropped = past.told_out, past.dropped
    waiting = below = 0
    order: list[tuple[int, int, int, str, Name]] = []  # the sort keys and name of each link
    for name, link in node.links.items():
        if name == upstream:
            kind: m.Kind = "above"
            told_in += link.told_in
        else:
            kind = "direct" if node.is_direct(name) else node.reports.kind(name)
            published += link.told_in
            below += 1
        told_out += link.told_out
        dropped += link.dropped
        waits = link.waiting
        waiting += waits
        order.append((_KINDS[kind], -waits, -link.dropped, str(name), name))
    links = []
    for number, waits, _, _, name in nsmallest(m.MOST_LINKS, order, key=lambda one: one[:4]):
        link = node.links[name]
        links.append(
            m.LinkStatus(
                name=shorten(node.above if name == upstream else str(name)),
                kind=_ORDER[number],
                bytes_in=link.bytes_in,
                bytes_out=link.bytes_out,
                told_in=link.told_in,
                told_out=link.told_out,
                waiting=-waits,
                dropped=link.dropped,
                nodes=_count_subscribed(machine, name),
                heard=millis(now - link.heard),
            )
        )
    refusals = node.refusals()
    early, used = (0, 0) if node.early is None else node.early.count()
    return m.NodeStatus(
        depth=0,
        name=shorten(machine.name),
        kind="rendezvous" if upstream is None else "router",
        listen=shorten(f"{node.door.address.host}:{node.port}"),
        uptime=millis(now - node.began),
        age=0,
        nodes=node.channels.count_nodes(),
        epoch=machine.epoch,
        serial=machine.serial,
        published=published,
        told_in=told_in,
        told_out=told_out,
        dropped=dropped,
        neighbours=below,
        links=tuple(links),
        undeclared=node.undeclared,
        located=node.located,
        channels=len(node.channels),
        asleep=len(node.channels) - len(node.channels.awake),
        reached=shorten(node.reached),
        most=node.door.limits.neighbours,
        rate=node.rate.measure(told_out, now),
        waiting=waiting,
        carried=_list_channels(node),
        early=early,
        early_used=used,
        refused=sum(refusals.get(one, 0) for one in _UNRIGHTFUL),
        strangers=refusals.get("greeting", 0),
    )


def _count_rows(node: m.NodeStatus) -> int:
    """How many rows a rendezvous point reports, apart from channels."""
    return len(node.preprocessors) + len(node.sources) + len(node.names)


def _list_channels(node: Reporting) -> tuple[m.ChannelStatus, ...]:
    """The channels that a report lists. If there are too many, the report lists those with the most
    traffic."""
    known = node.channels
    busy = nsmallest(m.MOST_CARRIED, known.awake.values(), key=lambda one: (-one.told, one.name))
    asleep = (one for one in known.known.values() if one.asleep is not None)
    return tuple(
        _status_of_channel(node, one)
        for one in (*busy, *islice(asleep, m.MOST_CARRIED - len(busy)))
    )


def _status_of_channel(node: Reporting, channel: Channel) -> m.ChannelStatus:
    asleep = channel.asleep
    if asleep is None:
        machine = channel.machine
        nodes, wanted = len(machine.graph), {
            name: len(one.nodes) for name, one in machine.neighbours.items()
        }  # fmt: skip
    else:
        nodes, wanted = len(asleep.nodes), {name: len(some) for name, some in asleep.wanted}
    own = sum(count for name, count in wanted.items() if count and not _is_router(node, name))
    return m.ChannelStatus(shorten(channel.name), nodes, own, channel.told, asleep is not None)


def _is_router(node: Reporting, name: Name) -> bool:
    link = node.links.get(name)
    return name in node.reports.known or (link is not None and link.routes)


def shorten(text: str) -> str:
    """Shorten a name that is too long for a report."""
    return text if len(text) <= m.MOST_NAME else text[: m.MOST_NAME - 1] + "…"


def millis(seconds: float) -> int:
    return min(max(0, int(seconds * 1000)), m.MOST_MILLIS)


def _count_subscribed(machine: Router | Rendezvous, name: Name) -> int:
    """How many nodes the lower end of a link is subscribed to."""
    if isinstance(machine, Router) and name == machine.upstream:
        return len(machine.held)
    known = machine.neighbours.get(name)
    return 0 if known is None else len(known.nodes)


def _is_tree(nodes: tuple[m.NodeStatus, ...], sender: str) -> bool:
    """Whether a report begins with its sender, and lists every other node after a node above it."""
    if not nodes or nodes[0].depth or nodes[0].name != sender:
        return False
    depth = 0
    for node in nodes[1:]:
        if not 0 < node.depth <= depth + 1:
            return False
        depth = node.depth
    return True


def advise(report: m.Report, expire: float) -> tuple[m.RouterLoad, ...]:
    """The routers in a report that agents may use."""
    return tuple(
        m.RouterLoad(one.name, one.neighbours, one.most, one.waiting, one.rate, one.reached)
        for one in report.nodes
        if one.kind == "router" and one.reached and one.age < 1000 * expire
    )
