"""The state that results from a journal: nodes, their owners and history, counters, publishers'
stamps, the progress of sources, lives.

    checkpoint ──> state ──things after the checkpoint──> state ──> the next checkpoint

Notifications are counted many at a time. The marks and matched nodes of notifications are gathered,
and each node is updated once: before the next record that is not a notification, or at the end.

Any record that mentions a node shows that its number was used, even if the record that added the
node is lost. So `last_node` is the highest number that any record mentions.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from tidings.routing.root import Cursor, History, Progress, Record
from tidings.store.groups import Position
from tidings.store.journal import things as t

MANY = 1 << 16  # the most numbers that are gathered
MOST_LIVES = 256


class Node(msgspec.Struct, array_like=True):
    interest: bytes
    owners: tuple[str, ...] = ()


class Counter(msgspec.Struct, array_like=True):
    """The counters of a node: how many notifications it marked, how many matched it, and the serial
    of the last notification that it marked."""

    count: int = 0
    total: int = 0
    latest: int = 0


class State(msgspec.Struct):
    """See the top of the module."""

    at: Position = Position()
    serial: int = 0
    last_node: int = 0
    lives: list[tuple[int, int]] = []
    nodes: dict[int, Node] = {}
    counters: dict[int, Counter] = {}
    publishers: dict[str, int] = {}
    history: History = msgspec.field(default_factory=History)
    sources: dict[str, Progress] = {}
    cursors: dict[str, Cursor] = {}


class Counting:
    """Applies things to a state, in order. Call `finish` after the last one."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._marks: list[bytes] = []
        self._serials: list[tuple[int, int]] = []  # serial and number of marks
        self._matched: list[bytes] = []
        self._size = 0

    def apply_all(self, records: Iterable[bytes]) -> None:
        state = self.state
        unpack, size = t.HEAD.unpack_from, t.HEAD.size
        for data in records:
            if data[:1] != t.NOTIFICATION:
                self.apply(t.decode(data))
                continue
            _, serial, stamp, name, marks, matched = unpack(data)
            start = size + name
            state.publishers[data[size:start].decode()] = stamp
            if not serial:
                continue  # this notification was refused
            state.serial = serial
            behind = start + 16 * marks
            self._marks.append(data[start:behind])
            self._serials.append((serial, marks))
            self._matched.append(data[behind : behind + 8 * matched])
            self._size += marks + matched
            if self._size > MANY:
                self.finish()

    def apply(self, thing: t.Small | Record) -> None:
        """Apply a thing that is not a notification."""
        assert not isinstance(thing, Record)
        self.finish()
        state, history = self.state, self.state.history
        if isinstance(thing, t.Life):
            if thing.broken:
                state.lives.clear()
            state.lives = [*state.lives, (thing.life, thing.first)][-MOST_LIVES:]
            if thing.broken:  # after a loss, no number may be used again
                history.version = max(history.version, state.last_node)
                state.sources = {name: one.anew() for name, one in state.sources.items()}
            history.begin_life(thing.life, thing.base, broken=thing.broken)
        elif isinstance(thing, t.Added):
            state.nodes[thing.node] = Node(thing.interest, (thing.owner,) if thing.owner else ())
            # after a loss, the counters may belong to another node
            state.counters.pop(thing.node, None)
            state.last_node = max(state.last_node, thing.node)
            history.add(thing.node)
        elif isinstance(thing, t.Owned):
            state.last_node = max(state.last_node, thing.node)
            if thing.node in state.nodes:
                state.nodes[thing.node].owners = thing.owners
        elif isinstance(thing, t.Dropped):
            state.last_node = max(state.last_node, thing.node, thing.gone.version)
            state.nodes.pop(thing.node, None)
            state.counters.pop(thing.node, None)
            history.drop(thing.node, thing.gone)
        elif isinstance(thing, t.Taken):
            state.sources[thing.source] = thing.progress
            state.publishers.pop(thing.source, None)  # its stamps are in its progress
        elif isinstance(thing, t.Named):
            state.cursors.pop(thing.key, None)
            if thing.cursor is not None:
                state.cursors[thing.key] = thing.cursor
        elif isinstance(thing, t.Confirmed):
            known = state.cursors.get(thing.key)
            if known is not None:
                state.cursors[thing.key] = known.confirm(thing.serial, thing.total, thing.counts)
        elif isinstance(thing, t.Renewed):
            state.last_node = max(state.last_node, thing.version)
            history.renew(thing.version, thing.hidden, thing.declaration)
        else:
            for name in thing.publishers:
                state.publishers.pop(name, None)

    def finish(self) -> None:
        """Count the gathered notifications."""
        if not self._serials:
            return
        state, counters = self.state, self.state.counters
        matched = np.frombuffer(b"".join(self._matched), "<i8")
        for node, many in zip(*map(np.ndarray.tolist, np.unique(matched, return_counts=True)),
                              strict=True):  # fmt: skip
            counters.setdefault(node, Counter()).total += many
        pairs = np.frombuffer(b"".join(self._marks), "<i8").reshape(-1, 2)
        serials = np.repeat(*np.array(self._serials, dtype=np.int64).T)
        # the numbers of a node increase, so its last mark contains its count
        nodes, last = np.unique(pairs[::-1, 0], return_index=True)
        last = len(pairs) - 1 - last
        for node, number, serial in zip(nodes.tolist(), pairs[last, 1].tolist(),
                                        serials[last].tolist(), strict=True):  # fmt: skip
            counter = counters.setdefault(node, Counter())
            counter.count, counter.latest = number, serial
        for seen in (matched, nodes):
            state.last_node = max(state.last_node, int(seen.max(initial=0)))
        self._marks, self._serials, self._matched, self._size = [], [], [], 0
