"""A cache of facts about nodes, in arrays, so that kernels can resolve notifications.

    node     16777230   16777231  ...        code     0     1  ...      in the order of first use
    plain    in the graph, not set aside, and no other node is equal to it
    above    the codes of the node itself and of all nodes that cover it

A notification whose nodes are all known and plain is handled by kernels alone. When a node changes,
it is forgotten together with all nodes below it, because their `above` contains its code. The codes
of forgotten nodes are not reused. Cost: a few microseconds for each unknown node, and for each
unknown node above it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.routing.root.records import MarkColumns, MatchColumns

MOST = 2_000_000  # with more codes than this, the table is cleared
MOST_FORGOTTEN = 10_000  # the table may have this many more forgotten codes than known nodes

Numbers = npt.NDArray[np.int64]


class NodeTable:
    """A cache of facts about nodes, by code. Each array may be longer than its used part."""

    def __init__(self, look: Callable[[int], tuple[bool, Iterable[int]]]) -> None:
        """`look` says whether a node is plain, and which nodes cover it."""
        from tidings.routing.root.handover import handover_kernels  # routers do without

        self._look = look
        self._kernels = handover_kernels
        self.clear()

    def clear(self) -> None:
        self._keys = np.zeros(1 << 10, np.int64)
        self._codes = np.zeros(1 << 10, np.int64)
        self._known: dict[int, int] = {}  # the code of each node
        self._used = 0  # codes
        self.plain: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        """By code: whether the node can stay in a tag as it is."""
        self.numbers: Numbers = np.zeros(0, np.int64)
        """By code: the number of the node."""
        self.above_starts: Numbers = np.zeros(1, np.int64)
        self.above: Numbers = np.zeros(0, np.int64)
        """The codes at and above a code: above[above_starts[code] : above_starts[code + 1]]."""
        self._scratch = np.zeros((3, 0), np.int64)
        self._stamp = 0

    def drop(self, nodes: Collection[int]) -> None:
        """Forget nodes. The caller must also pass all nodes below these nodes."""
        known = self._known
        dropped = [node for node in nodes if known.pop(node, None) is not None] if known else []
        if self._used > 2 * len(self._known) + MOST_FORGOTTEN:
            self.clear()
        elif dropped:
            none = np.full(len(dropped), -1)
            self._kernels.put_all(np.array(dropped, np.int64), none, self._keys, self._codes)

    def __len__(self) -> int:
        return len(self._known)

    def codes_of(self, nodes: Numbers) -> Numbers:
        """The codes of nodes; unknown nodes get new codes."""
        found = np.empty(len(nodes), np.int64)
        if self._kernels.look_up(nodes, self._keys, self._codes, found):
            new = np.unique(nodes[found < 0])
            if self._used + len(new) > MOST:
                self.clear()
                new = np.unique(nodes)
            self._learn(new.tolist())
            self._kernels.look_up(nodes, self._keys, self._codes, found)
        return found

    def odd(self, starts: Numbers, nodes: Numbers, codes: Numbers, most: int) -> Any:
        """Flags for the notifications that must be resolved one by one, because their nodes are not
        plain, not ascending, or more than `most`. None if there are no such notifications."""
        found = np.zeros(len(starts) - 1, np.uint8)
        return (
            found if self._kernels.find_odd(starts, nodes, codes, self.plain, most, found) else None
        )

    def list_matched(self, starts: Numbers, codes: Numbers) -> MatchColumns:
        """The nodes that notifications match, given the codes of their lowest nodes."""
        most = self._kernels.count_above(codes, self.above_starts)
        seen, times, _ = self._room()
        matched_starts = np.empty(len(starts), np.int64)
        matched, used = np.empty(most, np.int64), np.empty(most, np.int64)
        done, distinct = self._kernels.list_matched(
            starts, codes, self.above_starts, self.above, self.numbers, seen, self._stamp, times,
            matched_starts, matched, used,
        )  # fmt: skip
        self._stamp += len(starts)
        used = used[:distinct]
        often = times[used]
        times[used] = 0
        return MatchColumns(matched_starts, matched[:done], self.numbers[used], often)

    def lowest(self, starts: Numbers, nodes: Numbers) -> tuple[Numbers, Numbers]:
        """The lowest nodes of each notification, in ascending order. Here, `look` may return only
        the parents of a node, because a node between two matching nodes also matches."""
        codes = self.codes_of(nodes)
        seen = self._room()[0]
        kept_starts, kept = np.empty(len(starts), np.int64), np.empty(len(nodes), np.int64)
        many = self._kernels.keep_lowest(
            starts, nodes, codes, self.above_starts, self.above, seen, self._stamp, kept_starts,
            kept,
        )  # fmt: skip
        self._stamp += len(starts)
        return kept_starts, kept[:many]

    def number(
        self, starts: Numbers, nodes: Numbers, codes: Numbers, given: Mapping[int, int]
    ) -> MarkColumns:
        """The marks of these nodes, with the numbers that follow those in `given`."""
        local = self._room()[2]
        which, used = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
        used = used[: self._kernels.list_distinct(codes, local, which, used)]
        distinct = self.numbers[used]
        before = map(given.get, distinct.tolist(), repeat(0))
        last = np.fromiter(before, np.int64, len(used))
        numbers, rows = np.empty(len(codes), np.int64), np.empty(len(used), np.int64)
        self._kernels.number_marks(starts, which, last, numbers, rows)
        return MarkColumns(starts, nodes, numbers, distinct, which, last, rows)

    def _room(self) -> Numbers:
        """Working memory for each code: the row that last used it, how often it was used, and a
        position."""
        if self._scratch.shape[1] < self._used:
            self._scratch = np.zeros((3, len(self.numbers)), np.int64)
            self._scratch[2] = -1
            self._stamp = 1
        return self._scratch

    def _learn(self, nodes: Iterable[int]) -> None:
        """Add nodes and all nodes above them."""
        first = self._used
        plain, new, above = bytearray(), list[int](), list[tuple[int, ...]]()
        todo = [*nodes]
        while todo:
            node = todo.pop()
            if node in self._known:
                continue
            self._known[node] = self._used
            self._used += 1
            is_plain, found = self._look(node)
            new.append(node)
            plain.append(is_plain)
            above.append((node, *found))
            todo += found
        sizes = np.fromiter(map(len, above), np.int64, len(above))
        codes = (self._known[node] for one in above for node in one)
        flat = np.fromiter(codes, np.int64, int(sizes.sum()))
        begun = int(self.above_starts[first])
        ends = begun + np.cumsum(sizes)
        self.plain = _put(self.plain, first, np.frombuffer(bytes(plain), np.uint8))
        self.numbers = _put(self.numbers, first, np.array(new, np.int64))
        self.above_starts = _put(self.above_starts, first + 1, ends)
        self.above = _put(self.above, begun, flat)
        self._enter(np.array(new, np.int64), np.arange(first, self._used))

    def _enter(self, nodes: Numbers, codes: Numbers) -> None:
        """Put new nodes into the hash table. Forgotten nodes stay there until the table grows."""
        if 2 * self._used > len(self._keys):
            size = 1 << (4 * self._used).bit_length()
            self._keys, self._codes = np.zeros(size, np.int64), np.zeros(size, np.int64)
            count = len(self._known)
            nodes = np.fromiter(self._known, np.int64, count)
            codes = np.fromiter(self._known.values(), np.int64, count)
        self._kernels.put_all(nodes, codes, self._keys, self._codes)


def _put(array: Any, at: int, new: Any) -> Any:
    """Put values at an offset of an array; return the array, or a larger one if it was too
    small."""
    if at + len(new) > len(array):
        larger = np.zeros(2 * (at + len(new)), array.dtype)
        larger[:at] = array[:at]
        array = larger
    array[at : at + len(new)] = new
    return array


def number_alone(starts: Numbers, nodes: Numbers) -> tuple[MarkColumns, MatchColumns]:
    """The marks and matches of notifications, computed as if these were the first notifications of
    the channel, and as if no node covered another."""
    table = NodeTable(lambda _: (True, ()))
    codes = table.codes_of(nodes)
    table.odd(starts, nodes, codes, len(nodes))
    table.lowest(starts, nodes)
    return table.number(starts, nodes, codes, {}), table.list_matched(starts, codes)
