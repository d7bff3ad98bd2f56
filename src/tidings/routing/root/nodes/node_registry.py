"""The current nodes, by version, and the pages of changes for followers.

    living    3  4  7  9         sorted; a node's number is the version with which it began
    ended     5: node 2   8: node 6  ...      by the versions at which they ended, as in the history

A page lists changes in the order of their versions. No state is kept for followers: each question
says how far the follower has come. A follower reads the pages of one version; a node that ends
meanwhile may be missing from the pages. If such a node is missing, no harm is done, because nobody
wants it any more.

Cost: 8 bytes for each node, and 16 bytes for each node that ended. A removal moves the rest of the
list, which takes 0.1 ms with a million nodes. A page takes about a millisecond.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from heapq import merge

from tidings.routing.protocol import messages as m
from tidings.routing.root.node_history import History, RemovedNode

PAGE = 2_000  # changes
PAGE_BYTES = 1 << 20  # bytes of filters in a page
MOST_HIDDEN = 1_000  # if nodes may be hidden, `most` nodes and this many more are checked


class Registry:
    """The current nodes of a channel, and its history."""

    def __init__(self, history: History, nodes: Iterable[int]) -> None:
        self.history = history
        self._living = array("q", sorted(nodes))
        self._ends = array("q", (one.version for one in history.gone.values()))
        self._ended = array("q", history.gone)

    def __len__(self) -> int:
        return len(self._living)

    def living(self) -> array[int]:
        """A copy of the current nodes, in ascending order."""
        return self._living[:]

    def add(self, node: int) -> None:
        """Record that a node began; its number is the highest so far."""
        self._living.append(node)
        self.history.add(node)

    def drop(self, node: int, gone: RemovedNode) -> None:
        at = bisect_left(self._living, node)
        del self._living[at : at + 1]
        self.history.drop(node, gone)
        self._ends.append(gone.version)
        self._ended.append(node)
        forgotten = len(self._ends) - len(self.history.gone)
        if forgotten > 1000 + len(self.history.gone):
            del self._ends[:forgotten], self._ended[:forgotten]

    def list_begun(
        self, version: int, most: int, hidden: Collection[int] = ()
    ) -> Sequence[int] | None:
        """The current nodes, except hidden ones, that began after a version. Return None if there
        are more than `most`, or if too many nodes might be hidden and would have to be checked."""
        first = bisect_right(self._living, version)
        if len(self._living) - first > most + (MOST_HIDDEN if hidden else 0):
            return None
        newer: Sequence[int] = self._living[first:]
        if hidden:
            newer = [node for node in newer if node not in hidden]
        return newer if len(newer) <= most else None

    def count_since(self, version: int) -> int:
        """How many current nodes began after a version, plus how many nodes ended after it."""
        ended = len(self._ends) - bisect_right(self._ends, version)
        return len(self._living) - bisect_right(self._living, version) + ended

    def page(
        self,
        question: m.Follow,
        text: Callable[[int], str],
        epoch: int,
        hidden: Container[int] = (),
    ) -> m.Changed:
        """A page of the answer to a Follow message. `text` returns the filter of a node. Followers
        don't get the `hidden` nodes."""
        history = self.history
        whole = question.life != history.life or not history.has_changes_since(question.since)
        upto = min(question.upto, history.version) if question.after else history.version
        after = max(question.after, 0 if whole else question.since)
        first, last = bisect_right(self._living, after), bisect_right(self._living, upto)
        begun = ((self._living[at], 0) for at in range(first, last))
        ended: Iterable[tuple[int, int]] = ()
        # the follower never knew the nodes that both began and ended after its own version
        if not whole:
            first, last = bisect_right(self._ends, after), bisect_right(self._ends, upto)
            pairs = ((self._ends[at], self._ended[at]) for at in range(first, last))
            ended = (pair for pair in pairs if pair[1] <= question.since)
        found: list[m.NodeChange] = []
        size, more = 0, False
        for version, node in merge(begun, ended):
            if not node and version in hidden:
                continue
            more = len(found) == PAGE or size > PAGE_BYTES
            if more:
                break
            filter_ = None if node else text(version)
            found.append(m.NodeChange(version, node or version, filter_))
            size += 0 if filter_ is None else len(filter_)
        return m.Changed(epoch, question.request, history.life, upto, whole, tuple(found), more)
