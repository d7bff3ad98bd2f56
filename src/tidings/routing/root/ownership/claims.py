"""Which owners asked for each node, and how many nodes each owner has.

An *owner* is a name that is bound to a token or a certificate, or a guest token. The router or root
to which a client is linked determines its owner. A *claim* records that an owner asked for a node.
Several owners may claim a node, and it is charged to all of them. Claims can be out of date: if
several owners behind a router want a node, the router does not report when one of them leaves. So a
claim counts against its owner only while it is *sure*, that is, recent or confirmed.

Cost: 18 bytes for each node (node_values.py), and a dictionary entry if it has several owners.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tidings.routing.protocol.limits import LONG, long_bytes
from tidings.routing.root.ownership.node_values import NodeValues

CHANNEL = "*/channel"  # owns the nodes for types in the journal; no client has this name
MOST_OWNERS = 8  # owners that are remembered for one node
MOST_ASIDE = 20_000  # filters of one owner that are remembered as set aside
ALL_ASIDE = 200_000  # filters of all owners that are remembered as set aside
REMEMBERED = 600.0  # seconds until set-aside filters may be requested again


class Holding(msgspec.Struct):
    """The nodes that an owner has."""

    nodes: int = 0
    size: int = 0  # the total size of the owner's filters, as `work_of` measures it
    long: int = 0  # bytes of long filters
    room: int = 0  # how many nodes the owner dropped since the last filter was set aside
    # filters that were set aside, by digest, with the reason
    aside: dict[bytes, str] = msgspec.field(default_factory=dict)
    since: float = 0.0  # when the last filter was set aside
    number: int = 0  # the number of the owner


class Claims:
    """The claims at one rendezvous point. Claims can be looked up by node, not by owner."""

    def __init__(self) -> None:
        self._sole = NodeValues()  # for nodes with one owner, the number of the owner
        self._shared: dict[int, tuple[str, ...]] = {}  # the owners of nodes with several owners
        self.holdings: dict[str, Holding] = {}
        self._names: dict[int, str] = {}  # owners by number
        self._last_owner = 0
        self._sizes = NodeValues()
        self._confirmed: dict[int, float] = {}  # when the owners of a node were last confirmed
        self._doubted: set[int] = set()  # nodes whose claims are unsure although they are recent
        self._ages: deque[tuple[float, int]] = deque()  # a time, and the newest node at that time
        self._old = 0  # nodes up to this one are old: their owners may have left
        self._aside = 0  # filters that are remembered as set aside
        self._now = 0.0
        self.version = 0  # counts changes to owners

    def owners(self, node: int) -> tuple[str, ...]:
        one = self._sole.get(node)
        return (self._names[one],) if one else self._shared.get(node, ())

    def holding(self, owner: str) -> Holding:
        found = self.holdings.get(owner)
        return Holding() if found is None else found

    # -- owners --------------------------------------------------------------------------------

    def measure(self, node: int, work: int) -> None:
        """Set the size of a node's filter, as `work_of` measures it, before the node has owners."""
        if not self._sizes.get(node):
            self._sizes.set(node, work)

    def load(self, nodes: Any, sizes: Sequence[int], owners: Mapping[int, tuple[str, ...]]) -> None:
        """Set the sizes and owners of many nodes at a start. `nodes` is an array of int64."""
        there = np.array(sizes, np.int64)
        self._sizes.load(nodes[there > 0], there[there > 0])
        kinds: dict[tuple[str, ...], int] = {}  # the different sets of owners
        kind = np.array(
            [kinds.setdefault(owners.get(node, ()), len(kinds)) for node in nodes.tolist()],
            np.int64,
        )
        counts = np.bincount(kind, minlength=len(kinds)).tolist()
        totals = np.bincount(kind, there, len(kinds)).tolist()
        long = [0] * len(kinds)
        for at in np.flatnonzero(there > LONG).tolist():
            long[kind[at]] += long_bytes(int(there[at]))
        number_of = np.zeros(len(kinds), np.int64)
        for some, at in kinds.items():
            if len(some) == 1:
                self._charge(some[0], counts[at], int(totals[at]), long[at])
                number_of[at] = self.holdings[some[0]].number
        numbers = number_of[kind]
        self._sole.load(nodes[numbers > 0], numbers[numbers > 0])
        several = [at for some, at in kinds.items() if len(some) > 1]
        for node in nodes[np.isin(kind, several)].tolist():
            self.replace(node, owners[node])
        self.version += 1

    def add(self, node: int, owner: str) -> bool:
        """Add an owner that asked for a node; return False if it already owned the node."""
        now = self.owners(node)
        return owner not in now and self.replace(node, (*now, owner))

    def replace(self, node: int, owners: Iterable[str]) -> bool:
        """Set the owners of a node; return False if nothing changes. If there are too many owners,
        those with the fewest nodes are remembered, because they are the least likely to lose the
        node by exceeding their share."""
        now, found = self.owners(node), sorted(set(owners))
        if len(found) > MOST_OWNERS:
            found.sort(key=lambda one: self.holding(one).nodes + (one not in now))
            del found[MOST_OWNERS:]
        if set(found) == set(now):
            return False
        self._set(node, tuple(found))
        return True

    def remove(self, node: int) -> None:
        """Forget a removed node."""
        self._set(node, ())
        self._sizes.set(node, 0)
        self._confirmed.pop(node, None)
        self._doubted.discard(node)

    def _set(self, node: int, owners: tuple[str, ...]) -> None:
        self.version += 1
        size, before = self._sizes.get(node), self.owners(node)
        long = long_bytes(size)
        for gone in before:
            if gone not in owners:
                self._charge(gone, -1, -size, -long)
        for new in owners:
            if new not in before:
                self._charge(new, 1, size, long)
        self._shared.pop(node, None)
        self._sole.set(node, self.holdings[owners[0]].number if len(owners) == 1 else 0)
        if len(owners) > 1:
            self._shared[node] = owners

    def _charge(self, owner: str, nodes: int, size: int, long: int) -> None:
        held = self.holdings.get(owner)
        if held is None:
            self._last_owner += 1
            held = self.holdings[owner] = Holding(number=self._last_owner)
            self._names[held.number] = owner
        held.nodes += nodes
        held.size += size
        held.long += long
        if not held.nodes and not held.aside:
            self._forget_owner(owner)

    def _forget_owner(self, owner: str) -> None:
        del self._names[self.holdings.pop(owner).number]

    def count(self, nodes: Iterable[int]) -> Counter[str]:
        """How many of `nodes` each owner has. Nodes without an owner are counted under the empty
        name ""."""
        there = list(nodes)
        numbers = Counter(map(self._sole.get, there))
        is_any_shared = numbers.pop(0, 0)
        found = Counter({self._names[number]: many for number, many in numbers.items()})
        if is_any_shared:
            for node in there:
                if not self._sole.get(node):
                    found.update(self._shared.get(node, ("",)))
        return found

    def of(self, owner: str, nodes: Iterable[int]) -> list[int]:
        """The nodes among `nodes` that an owner has."""
        return [node for node in nodes if owner in (self.owners(node) or ("",))]

    # -- sure and unsure claims ----------------------------------------------------------------

    def pass_time(self, now: float, last: int, lasting: float) -> None:
        """Record the current time: claims older than `lasting` seconds become unsure. `last` is the
        newest node. Cost: every owner is visited if filters were set aside recently."""
        self._now = now
        if not self._ages or last > self._ages[-1][1]:
            self._ages.append((now, last))
        while self._ages and self._ages[0][0] < now - lasting:
            self._old = self._ages.popleft()[1]
        late = [node for node, when in self._confirmed.items() if when < now - lasting]
        for node in late:
            del self._confirmed[node]
        if self._aside:
            for owner, held in list(self.holdings.items()):
                if held.aside and held.since < now - REMEMBERED:
                    self._forget_aside(owner, held)

    def confirm(self, node: int, now: float) -> None:
        self._confirmed[node] = now
        self._doubted.discard(node)

    def doubt(self, node: int) -> None:
        """Record that the last known owner of a node has left, although a neighbour still wants the
        node."""
        self._confirmed.pop(node, None)
        self._doubted.add(node)

    def is_sure(self, node: int) -> bool:
        return (node > self._old and node not in self._doubted) or node in self._confirmed

    # -- filters that were set aside -----------------------------------------------------------

    def set_aside(self, owner: str, key: bytes, why: str) -> None:
        """Remember that a filter of an owner was set aside, and why."""
        held = self.holdings.get(owner)
        if held is not None and key not in held.aside and len(held.aside) < MOST_ASIDE:
            held.room = 0
            held.since = self._now
            held.aside[key] = why
            self._aside += 1
            # if a forgotten filter is requested again, it is judged again
            if self._aside > ALL_ASIDE:
                self._forget_aside(*max(self.holdings.items(), key=lambda one: len(one[1].aside)))

    def _forget_aside(self, owner: str, held: Holding) -> None:
        self._aside -= len(held.aside)
        held.aside.clear()
        if not held.nodes:
            self._forget_owner(owner)

    def refusal_for(self, owner: str, key: bytes) -> str:
        """Why an owner may not ask for a filter; empty if it may. For each node that an owner has
        dropped, it may ask for one set-aside filter again."""
        held = self.holdings.get(owner)
        if held is None or not held.aside:
            return ""
        why = held.aside.get(key, "")
        if not why and len(held.aside) < MOST_ASIDE:
            return ""
        if held.room:
            held.room -= 1
            self._aside -= 1
            held.aside.pop(key if why else next(iter(held.aside)))
            if not held.aside and not held.nodes:
                self._forget_owner(owner)
            return ""
        return why or next(iter(held.aside.values()))

    def make_room(self, node: int) -> None:
        """Record that nobody wants a node any more, so its owners may ask for another filter."""
        for owner in self.owners(node):
            held = self.holdings[owner]
            if held.aside:
                held.room += 1
