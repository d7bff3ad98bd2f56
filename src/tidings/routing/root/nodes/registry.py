"""The nodes that there are, by version, and the pages of changes for those who follow.

    living    3  4  7  9         sorted; a node's number is the version with which it began
    history   what ended, and when

A page lists changes in the order of their versions. No state is kept for those who follow: they say
themselves how far they have come. A node that ends while somebody reads the pages of an older
version may be missing there, which does no harm: nobody wants it any more.

Cost: 8 bytes for each node; a removal moves the rest of the list, 0.1 ms at a million.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from heapq import merge
from itertools import islice

from tidings.routing.protocol import messages as m
from tidings.routing.root.history import Gone, History

PAGE = 2_000  # changes
PAGE_BYTES = 1 << 20  # of filters


class Registry:
    """The living nodes of a channel and its history."""

    def __init__(self, history: History, nodes: Iterable[int]) -> None:
        self.history = history
        self._living = array("q", sorted(nodes))

    def __len__(self) -> int:
        return len(self._living)

    def add(self, node: int) -> None:
        """Note that a node began; its number is the highest so far."""
        self._living.append(node)
        self.history.add(node)

    def drop(self, node: int, gone: Gone) -> None:
        at = bisect_left(self._living, node)
        del self._living[at : at + 1]
        self.history.drop(node, gone)

    def page(self, question: m.Follow, text: Callable[[int], str], epoch: int) -> m.Changed:
        """A page of the answer to a question. `text` gives the filter of a node."""
        history = self.history
        whole = question.life != history.life or not history.changed_since(question.since)
        upto = min(question.upto, history.version) if question.after else history.version
        after = max(question.after, 0 if whole else question.since)
        ended = [] if whole else [
            (version, node) for version, node in history.ended_since(question.since)
            if after < version <= upto
        ]  # fmt: skip
        first, last = bisect_right(self._living, after), bisect_right(self._living, upto)
        begun = ((self._living[at], 0) for at in range(first, last))
        found: list[m.NodeChange] = []
        size = 0
        rest = merge(begun, reversed(ended))
        for version, node in islice(rest, PAGE):
            filter_ = None if node else text(version)
            found.append(m.NodeChange(version, node or version, filter_))
            size += 0 if filter_ is None else len(filter_)
            if size > PAGE_BYTES:
                break
        is_more = len(found) < last - first + len(ended)
        return m.Changed(epoch, question.request, history.life, upto, whole, tuple(found), is_more)
