"""Who owns each node: who asked for it, and how much each owner has.

An *owner* is a name that is bound to a token or a certificate, or a guest token; the node to which
a client is linked decides which. A *claim* records that an owner asked for a node. Several owners
may claim a node, and it is charged to all of them. Claims can be out of date: when several owners
behind a router want a node, nobody above sees which of them leaves. So a claim counts against its
owner only while it is *sure*, that is, recent or confirmed.

Cost: two dictionary entries for each node, and one more if it has several owners.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

import msgspec

from tidings.routing.protocol.limits import long_bytes

MOST_OWNERS = 8  # owners that are remembered for one node
MOST_ASIDE = 20_000  # filters of one owner that are remembered as set aside
ALL_ASIDE = 200_000  # filters of all owners that are remembered as set aside
REMEMBERED = 600.0  # seconds after which the owner may ask again


class Holding(msgspec.Struct):
    """The nodes that an owner has."""

    nodes: int = 0
    size: int = 0  # the total size of the owner's filters, as `work_of` measures it
    long: int = 0  # bytes of long filters
    room: int = 0  # how many nodes the owner dropped since the last filter was set aside
    # filters that were set aside, by digest, with the reason
    aside: dict[bytes, str] = msgspec.field(default_factory=dict)
    since: float = 0.0  # when the last filter was set aside


class Claims:
    """The claims at one rendezvous point. Claims can be looked up by node, not by owner."""

    def __init__(self) -> None:
        self.sole: dict[int, str] = {}  # nodes with one owner
        self.shared: dict[int, tuple[str, ...]] = {}  # nodes with several owners
        self.holdings: dict[str, Holding] = {}
        self._sizes: dict[int, int] = {}
        self._confirmed: dict[int, float] = {}  # when the owners of a node were last confirmed
        self._doubted: set[int] = set()  # nodes whose claims are unsure although they are recent
        self._ages: deque[tuple[float, int]] = deque()  # a time, and the newest node at that time
        self._old = 0  # nodes up to this one are old: their owners may have left
        self._aside = 0  # filters that are remembered as set aside
        self._now = 0.0
        self.version = 0  # counts changes of owners

    def owners(self, node: int) -> tuple[str, ...]:
        one = self.sole.get(node)
        return self.shared.get(node, ()) if one is None else (one,)

    def holding(self, owner: str) -> Holding:
        found = self.holdings.get(owner)
        return Holding() if found is None else found

    # -- owners --------------------------------------------------------------------------------

    def measure(self, node: int, work: int) -> None:
        """Set the size of a node's filter, as `work_of` measures it, before the node has owners."""
        self._sizes.setdefault(node, work)

    def add(self, node: int, owner: str) -> bool:
        """Add an owner that asked for a node; return False if it was already one."""
        now = self.owners(node)
        return owner not in now and self.replace(node, (*now, owner))

    def replace(self, node: int, owners: Iterable[str]) -> bool:
        """Set the owners of a node; False if nothing changes. If there are too many owners, those
        with the fewest nodes are remembered: an owner with too many nodes will lose this one, but
        the node must stay for the others."""
        now, found = self.owners(node), sorted(set(owners))
        if len(found) > MOST_OWNERS:
            found.sort(key=lambda one: self.holding(one).nodes + (one not in now))
            del found[MOST_OWNERS:]
        if set(found) == set(now):
            return False
        self._set(node, tuple(found))
        return True

    def remove(self, node: int) -> None:
        """Forget a node that is gone."""
        self._set(node, ())
        self._sizes.pop(node, None)
        self._confirmed.pop(node, None)
        self._doubted.discard(node)

    def _set(self, node: int, owners: tuple[str, ...]) -> None:
        self.version += 1
        size = self._sizes.get(node, 0)
        long = long_bytes(size)
        for gone in self.owners(node):
            if gone not in owners:
                self._charge(gone, -1, -size, -long)
        for new in owners:
            if new not in self.owners(node):
                self._charge(new, 1, size, long)
        self.sole.pop(node, None)
        self.shared.pop(node, None)
        if len(owners) == 1:
            self.sole[node] = owners[0]
        elif owners:
            self.shared[node] = owners

    def _charge(self, owner: str, nodes: int, size: int, long: int) -> None:
        held = self.holdings.setdefault(owner, Holding())
        held.nodes += nodes
        held.size += size
        held.long += long
        if not held.nodes and not held.aside:
            del self.holdings[owner]

    def count(self, nodes: Iterable[int]) -> Counter[str]:
        """How many of `nodes` each owner has. Nodes without an owner count for the name ""."""
        found: Counter[str | None] = Counter(map(self.sole.get, nodes))
        if found.pop(None, 0):
            for node in nodes:
                if node not in self.sole:
                    found.update(self.shared.get(node, ("",)))
        return found  # type: ignore[return-value]

    def of(self, owner: str, nodes: Iterable[int]) -> list[int]:
        """The nodes among `nodes` that an owner has."""
        return [node for node in nodes if owner in (self.owners(node) or ("",))]

    # -- sure and unsure claims ----------------------------------------------------------------

    def pass_time(self, now: float, last: int, lasting: float) -> None:
        """Claims older than `lasting` seconds become unsure; `last` is the newest node. Cost: every
        owner is visited if filters were set aside recently."""
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
        """Record that the last known owner of a node has left, although somebody still wants the
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
            # forgotten filters are judged again if they are requested again
            if self._aside > ALL_ASIDE:
                self._forget_aside(*max(self.holdings.items(), key=lambda one: len(one[1].aside)))

    def _forget_aside(self, owner: str, held: Holding) -> None:
        self._aside -= len(held.aside)
        held.aside.clear()
        if not held.nodes:
            del self.holdings[owner]

    def refusal_for(self, owner: str, key: bytes) -> str:
        """Why an owner may not ask for a filter; empty if it may. For each node that an owner
        dropped, it may try one filter again."""
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
                del self.holdings[owner]
            return ""
        return why or next(iter(held.aside.values()))

    def make_room(self, node: int) -> None:
        """Let the owners of a node that nobody wants any more ask for another one."""
        for owner in self.owners(node):
            held = self.holdings[owner]
            if held.aside:
                held.room += 1
