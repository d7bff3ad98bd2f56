"""Filters that are set aside, because their owner exceeds its share of a notification.

    judge ──> apply ──> aside      notifications are no longer tagged with the node
                 │                 ──its last notification was sent──> retired
                 └────> in doubt   routers are asked for the owners of the nodes, and later
                                   notifications are judged by their answers

Claims of owners can be out of date; see claims.py. A node whose claims may be out of date is set
aside only after routers were asked for its owners.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from tidings.routing.forwarding.graph_caches import HeaderCache
from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.neighbours import (
    UNKNOWN,
    Name,
    ask_for_owners,
    name_owner_behind,
)
from tidings.routing.protocol import frames
from tidings.routing.root.nodes.ancestors import Ancestors
from tidings.routing.root.nodes.lifecycle import NodeLifecycle
from tidings.routing.root.nodes.shared_objects import NodePart, Parts
from tidings.routing.root.ownership import MOST_OWNERS, ShareVerdict, judge, lighten

MARKS, MATCH = "give marks to", "match"  # verbs in messages to owners with too many filters
MOST_FITTING = 100_000  # headers
MOST_NAMED = 4 * MOST_OWNERS  # owners of a node that one router may name


class SetAside(NodePart):
    """The nodes that are set aside at a rendezvous point, and those whose owners are in doubt."""

    def __init__(self, parts: Parts, nodes: NodeLifecycle) -> None:
        super().__init__(parts)
        self._nodes = nodes
        self.aside: dict[int, int] = {}
        """Nodes to be removed; for each, the serial up to which notifications must be sent."""
        self.ancestors = Ancestors(parts.graph, self.aside, parts.caches)
        self.doubted: dict[int, set[str]] = {}
        """The nodes whose owners were asked for; for each, the owners that were named so far."""
        self._asked = 0.0  # when routers were asked
        self._named: Counter[tuple[int, Name]] = Counter()  # how many owners, by node and router
        self._most_marks = min(parts.context.limits.all_marks, frames.MOST_MARKS)
        # headers whose nodes exceed no share
        self._fitting: HeaderCache[Label, bool] = parts.caches.add(HeaderCache(MOST_FITTING))
        self._fitting_version = -1  # `_fitting` is valid for this version of the claims
        self._most_judged = 0  # how many nodes the last judged notification had
        self.without_node: set[str] = set()
        """The types whose nodes were set aside; they get no node again until the next start."""

    # -- judging -------------------------------------------------------------------------------

    @property
    def most_marks(self) -> int:
        """The most marks that a notification can have."""
        return self._most_marks

    def drop_kept(self, lowest: Label) -> bool:
        """Set aside the nodes of a notification that are kept for their types, so that no filter of
        a subscriber is set aside because of them; return False if there are none."""
        kept = self._nodes.kept
        found = sorted(kept.intersection(self.ancestors.add_ancestors(lowest))) if kept else ()
        for node in found:
            self.without_node.add(self._interests.type_at(node))
            kept.discard(node)
            self.aside[node] = self._counts.given
            self._caches.change(node)
        if found:
            self._interests.set_aside(found)
        return bool(found)

    def judge(self, lowest: Label) -> bool:
        """Set aside the nodes of a notification that exceed a share; return False if none do.
        Headers that exceed no share are cached, since most notifications repeat a header."""
        claims = self._claims
        if self._fitting_version != claims.version:
            self._fitting_version = claims.version
            self._fitting.clear()
        if lowest in self._fitting.known:
            return False
        if self.doubted and len(lowest) <= self._most_judged:
            return False  # not while routers are being asked for the owners of nodes
        self._most_judged = len(lowest)
        limits, wanted = self._context.limits, self._subscriptions.wants.__contains__
        verdict = judge(claims, lowest, limits.marks, self._most_marks, wanted, MARKS)
        if not verdict.aside:
            matched = self.ancestors.add_ancestors(lowest)
            is_fitting = not (verdict.less or verdict.doubts)
            self._take_from_owners(verdict)  # `judge` must see only the remaining owners
            more = judge(claims, matched, limits.matches, limits.all_nodes, wanted, MATCH)
            if is_fitting and not (more.aside or more.less or more.doubts):
                self._fitting.put(lowest, True, lowest)
            more.doubts = [*{*verdict.doubts, *more.doubts}]
            verdict = more
        return self._apply(verdict)

    def lighten(self, over: Mapping[int, str]) -> None:
        """Set aside filters that need more computing time than their owners' shares."""
        self._apply(lighten(self._claims, over))

    def _apply(self, verdict: ShareVerdict) -> bool:
        """Carry out a verdict; return False if it sets no nodes aside."""
        self._take_from_owners(verdict)
        self._add_dependents(verdict)
        for node, (owner, why) in verdict.aside.items():
            self._claims.set_aside(owner, self._interests.identity(node), why)
            self.aside[node] = self._counts.given
            self._nodes.want(node)  # after this, the node is neither new nor unwanted
            self._subscriptions.refuse_all(node)
        if verdict.aside:
            self._context.beyond["marks"] += len(verdict.aside)
            self._interests.set_aside(verdict.aside)
            for node in verdict.aside:
                self._caches.change(node)
        if verdict.doubts and not self.doubted:
            self._ask(verdict.doubts)
        return bool(verdict.aside)

    def _add_dependents(self, verdict: ShareVerdict) -> None:
        """Also set aside the related nodes of the nodes that are set aside. The related nodes come
        first, so that they are also removed first."""
        if self._relating is not None and verdict.aside:
            above = {
                one: why
                for node, why in verdict.aside.items()
                for one in self._relating.dependents(node)
            }
            verdict.aside = {**above, **verdict.aside}

    def _take_from_owners(self, verdict: ShareVerdict) -> None:
        for node, owners in verdict.less.items():
            self.own(node, owners)

    def bring_back(self, node: int) -> bool:
        """Use a set-aside node again; return False if the node was not set aside."""
        if node not in self.aside:
            return False
        del self.aside[node]
        self._interests.bring_back(node)
        self._caches.change(node)
        return True

    def retire(self, most: int) -> None:
        """Remove up to `most` nodes that were set aside, once all notifications with their marks
        have been sent."""
        if self._queue.failed:
            return
        for node, serial in [*islice(self.aside.items(), most)]:
            if serial > self._subscriptions.sums.serial:
                break
            del self.aside[node]
            self._nodes.retire(node)

    # -- owners --------------------------------------------------------------------------------

    def own(self, node: int, owners: Iterable[str]) -> None:
        """Set the owners of a node."""
        if self._queue.failed:  # another state machine may already use the journal
            return
        if self._claims.replace(node, owners):
            self._queue.set_owners(node, self._claims.owners(node))

    def leave(self, sender: Name, node: int) -> None:
        """Charge a node only to the owners that still want it, after a neighbour dropped it."""
        wants, owner_of = self._subscriptions.wants, self._context.owner_of
        owner = owner_of(sender)
        if owner and node in wants and owner in self._claims.owners(node):
            left = {owner_of(name) or name_owner_behind(name, UNKNOWN) for name in wants[node]}
            if owner not in left:
                others = {*self._claims.owners(node)} - {owner}
                self.own(node, others or left)
                if not others:  # only routers know other owners; they are asked later
                    self._claims.doubt(node)

    def _ask(self, nodes: Iterable[int]) -> None:
        """Ask routers for the owners of nodes."""
        self.doubted = {node: set() for node in nodes}
        self._named.clear()
        self._asked = self._context.now
        for owner, some in ask_for_owners(self._context, self.doubted).items():
            for node in some:
                self.doubted[node].add(owner)

    def take_owner(self, router: Name, owner: str, nodes: Iterable[int]) -> None:
        """Record that a router named an owner for nodes. Nodes that are not in doubt are ignored;
        for each other node, a router may name only a limited number of owners."""
        for node in nodes:
            if node in self.doubted and self._named[node, router] < MOST_NAMED:
                before = len(self.doubted[node])
                self.doubted[node].add(owner)
                self._named[node, router] += len(self.doubted[node]) - before

    def settle_doubts(self) -> None:
        """Apply the answers from routers, after enough time for answers has passed. If nobody
        answers for a node, the node keeps its owners, so a router that does not answer changes no
        owner's share."""
        if self._queue.failed or not self.doubted:
            return
        if self._context.now - self._asked >= self._context.times.retry:
            for node, owners in self.doubted.items():
                if node in self._graph and node not in self.aside:
                    if owners:
                        self.own(node, owners)
                    self._claims.confirm(node, self._context.now)
            self.doubted = {}
