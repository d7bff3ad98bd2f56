"""Reads filters, and finds their compiled neighbours, before the filters are placed.

    interests ──parse──> filters ──looked up together──> kept by Filters and Nodes, until placed

This changes no node, so it may run in another thread than the code that places filters. Looking up
filters takes most of the time, and needs no GIL.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from tidings.channel.interests.nodes import Nodes
from tidings.channel.interests.reading import MOST_KEPT, Filters
from tidings.filters import Filter
from tidings.matching.jit import shorten_turns
from tidings.model import TidingsError

GROUP = 256  # how many filters are prepared together at a start
AHEAD = 3  # how many groups are prepared while one is placed
GROUP_BYTES = MOST_KEPT // (AHEAD + 2)  # a group of more bytes is split, so that all are kept


def prepare(nodes: Nodes, filters: Filters, interests: Sequence[bytes]) -> list[float]:
    """Prepare filters that will be placed soon; return the seconds that each filter took. An
    invalid filter is refused only when it is placed."""
    times: list[float] = []
    found: dict[int, Filter] = {}
    with shorten_turns():
        for at, interest in enumerate(interests):
            begun = time.thread_time()
            try:
                filter_ = filters.parse(interest)
                _ = filter_.key  # computes the canonical form
                found[at] = filter_
            except TidingsError as problem:
                filters.keep(interest, problem)
            times.append(time.thread_time() - begun)
        took = nodes.prepare([*found.values()])
        for (at, filter_), seconds in zip(found.items(), took, strict=True):
            filters.keep(interests[at], filter_)
            times[at] += seconds
    return times


def prepare_ahead(
    nodes: Nodes, filters: Filters, interests: Sequence[bytes]
) -> Iterator[Sequence[bytes]]:
    """Yield the interests in groups that were prepared. Meanwhile, a thread prepares the
    next groups."""
    with ThreadPoolExecutor(1) as thread:
        waiting: deque[tuple[Sequence[bytes], Future[list[float]]]] = deque()
        for group in _groups_of(interests):
            waiting.append((group, thread.submit(prepare, nodes, filters, group)))
            if len(waiting) > AHEAD:
                yield _take(waiting)
        while waiting:
            yield _take(waiting)


def _groups_of(interests: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Groups of at most GROUP interests, and of at most GROUP_BYTES bytes if they have more than
    one."""
    first = size = 0
    for at, interest in enumerate(interests):
        size += len(interest)
        if at > first and (at - first == GROUP or size > GROUP_BYTES):
            yield interests[first:at]
            first, size = at, len(interest)
    if first < len(interests):
        yield interests[first:]


def _take(waiting: deque[tuple[Sequence[bytes], Future[list[float]]]]) -> Sequence[bytes]:
    group, prepared = waiting.popleft()
    prepared.result()
    return group
