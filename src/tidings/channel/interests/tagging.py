"""The lowest nodes that match a notification, or each of many notifications.

Many notifications are matched together, as columns. Filters that compute are matched notification
by notification if the columns are not enough: if they take too long, call predicates, or depend on
the exact type of a number. Everything is matched one by one if a filter distinguishes null from
absent, or if the kind of the channel is not `content`.

A batch has a fixed cost, and the cost of a single notification grows with the number of filters. So
the costs of both ways are measured, and a run that is neither short nor long is tagged in the
cheaper way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.channel.interests.index_kinds import computes
from tidings.channel.interests.nodes import Nodes
from tidings.matching.covering import bounds
from tidings.model import Event, TidingsError
from tidings.preprocessing import BatchEvents, Contents, EventColumns, PredicateCall, Read
from tidings.routing.root import Fair, TaggedMany, TooMuchWork

Array = npt.NDArray[Any]
LEAST = 8  # if there are fewer notifications than this, they are always tagged one by one
MOST = 100  # this many notifications or more are always tagged as a batch
BATCH, EACH = 1e-3, 1e-5  # the first estimates, in seconds, for a batch and for one notification
NEWEST = 1 / 8  # the weight of the last measurement
FADING = 0.998  # the estimate for a batch shrinks by this factor until a batch is tagged again
SLICE = 0.002  # tagging one by one stops after this many seconds
COMPUTED = 0.005  # a batch ends where filters that compute have taken this many seconds
TOGETHER = 0.01  # filters that compute may take this many seconds for a batch of columns


class _Computed(msgspec.Struct):
    """The matches of filters that compute, in the first `count` rows of a batch: rows and the
    numbers of nodes. Rows that are refused have no matches."""

    count: int
    rows: Sequence[int] | Array = ()
    numbers: Sequence[int] | Array = ()
    refused: dict[int, TidingsError] = {}


class Tagging:
    """Tags notifications with nodes. Filters that compute are matched first, so that no other work
    is wasted if they take too long."""

    def __init__(self, nodes: Nodes, contents: Contents) -> None:
        self._nodes = nodes
        self._contents = contents
        self._columns = EventColumns(contents.attributes)
        self._batch_cost, self._each_cost = BATCH, EACH  # seconds of processor time
        self._computed_cost = 0.0  # the part of both costs for filters that compute, for each

    def tag(self, content: bytes) -> list[int]:
        event = self._contents.read(content)
        self._nodes.computing.calls.need_decided(event)
        computed = self._nodes.computing.match(event, len(content))
        self._contents.count_extra(event)
        return self._lowest(event, computed)

    def tag_fairly(self, content: bytes, owners: Callable[[int], Sequence[str]]) -> Fair:
        event = self._contents.read(content)
        self._nodes.computing.calls.need_decided(event)
        found = self._nodes.computing.match_each(event, len(content), owners)
        self._contents.count_extra(event)
        return Fair(self._lowest(event, found.matched), found.over)

    def missing_calls(self, content: bytes) -> Sequence[PredicateCall]:
        calls = self._nodes.computing.calls
        return calls.missing(self._contents.read(content)) if len(calls) else ()

    def among(self, content: bytes, numbers: Sequence[int]) -> list[int]:
        """Those of the given nodes that match; raises TooMuchWork if a filter computes."""
        event = self._contents.read(content)
        filters = {number: self._nodes.filter(number) for number in numbers}
        if any(computes(one.form) for one in filters.values()):
            raise TooMuchWork("one of the filters computes a value, which may take too long")
        return [number for number, one in filters.items() if one.matches(event)]

    def _lowest(self, event: Event, computed: Iterable[int]) -> list[int]:
        """The lowest nodes, given the matching nodes whose filters compute."""
        nodes = self._nodes
        graph = nodes.graph
        found: list[Any] = [graph.need(number) for number in computed]
        for matcher, has_places in nodes.matchers():
            ids: list[Any] = matcher.match(event)
            found += ids if has_places else graph.added_places(ids)
        return graph.lowest(found)

    # -- many ----------------------------------------------------------------------------------

    def tag_many(self, contents: Sequence[bytes]) -> TaggedMany:
        if not len(self._nodes.computing):
            self._computed_cost = 0.0
        if not self._prefers_batch(len(contents)):
            return self._tag_each(contents)
        begun = time.thread_time()
        # no more than can be computed in the time
        most = max(LEAST, int(2 * COMPUTED / max(self._computed_cost, 1e-9)))
        found = self._tag_batch(contents[:most])
        if found is None:
            return self._tag_each(contents)
        if len(contents) < MOST:
            took = time.thread_time() - begun - self._computed_cost * (len(found.starts) - 1)
            self._batch_cost = _average(self._batch_cost, max(took, 0.0))
        return found

    def _prefers_batch(self, count: int) -> bool:
        if LEAST <= count < MOST:
            if count * (self._each_cost - self._computed_cost) > self._batch_cost:
                return True
            self._batch_cost *= FADING
        return count >= MOST

    def _tag_batch(self, contents: Sequence[bytes]) -> TaggedMany | None:
        """Tag notifications together, perhaps only the first ones; None if they must be tagged one
        by one."""
        is_readable = self._contents.are_unchanged and self._contents.are_short(contents)
        read = self._columns.read(contents) if is_readable else None
        if read is None:
            return None
        events = BatchEvents(self._contents, contents, read.odd)
        computed = self._compute(read, contents, events)
        if computed.count < len(contents):
            read, contents = read.first(computed.count), contents[: computed.count]
        found = self._match_batch(read, events, computed)
        if found is None:
            return None
        graph, refused = self._nodes.graph, computed.refused
        left_out = [at for at in events.odd if at < len(contents)]
        if read.extra is not None:
            counts = read.extra.copy()
            counts[[*refused, *left_out]] = 0  # the latter are counted when they are tagged
            self._contents.count_extra_fields(counts)
        starts, places = graph.lowest_lists(*found)
        nodes = _sort_rows(starts, graph.numbers[places])
        odd = {at: list[int]() for at in refused}
        odd |= {at: self._tag_or_refuse(contents[at], at, refused) for at in left_out}
        if odd:
            starts, nodes = _replace_rows(starts, nodes, dict(sorted(odd.items())))
        return TaggedMany(starts, nodes, refused)

    def _compute(self, read: Read, contents: Sequence[bytes], events: BatchEvents) -> _Computed:
        """Match the filters that compute. Unless they can be matched with the columns, stop when
        that takes too long; each notification then has the same limit as if it were alone."""
        computing = self._nodes.computing
        found = _Computed(len(contents))
        if not len(computing):
            return found
        is_exact = not computing.compute_with(read.mixed)
        together = computing.match_batch(read.batch, TOGETHER) if is_exact else None
        if together is not None:
            self._computed_cost = 0.0  # it belongs to the batch
            found.rows, found.numbers = together
            return found
        needed = computing.find_rows(read.batch)
        needed[read.odd] = False
        rows, numbers = list[int](), list[int]()
        until, begun, row = time.monotonic() + COMPUTED, time.thread_time(), -1
        for row in np.flatnonzero(needed).tolist():
            try:
                event = events(row)
                computing.calls.need_decided(event)
                matched = computing.match(event, len(contents[row]))
            except TidingsError as problem:
                found.refused[row] = problem
            else:
                rows += [row] * len(matched)
                numbers += matched
            if time.monotonic() >= until:
                break
        else:
            row = len(contents) - 1
        found.rows, found.numbers, found.count = rows, numbers, row + 1
        each = (time.thread_time() - begun) / found.count
        self._computed_cost += (each - self._computed_cost) * NEWEST
        return found

    def _match_batch(
        self, read: Read, events: BatchEvents, computed: _Computed
    ) -> tuple[Array, Array] | None:
        """(starts, places) of all matches; None if a filter distinguishes null from absent, or if
        the values of a term have no common type in Arrow."""
        graph = self._nodes.graph
        rows = [np.array(computed.rows, np.int64)]
        places = [graph.translate(np.array(computed.numbers, np.int64))]
        for matcher, has_places in self._nodes.matchers():
            try:
                found = matcher.match_rows(read.batch, events)
            except (pa.ArrowException, OverflowError):
                return None
            if found is None:
                return None
            rows.append(found[0])
            places.append(found[1] if has_places else graph.translate(found[1]))
        row, place = np.concatenate(rows), np.concatenate(places)
        order = np.argsort(row, kind="stable")
        return bounds(np.bincount(row, minlength=read.batch.num_rows)), place[order]

    def _tag_each(self, contents: Sequence[bytes]) -> TaggedMany:
        """Tag notifications one by one; stop, and leave the rest, when that takes too long."""
        until, begun = time.monotonic() + SLICE, time.thread_time()
        found: list[list[int]] = []
        refused: dict[int, TidingsError] = {}
        for at, content in enumerate(contents):
            found.append(self._tag_or_refuse(content, at, refused))
            if time.monotonic() >= until:
                break
        if len(found) >= LEAST:
            each = (time.thread_time() - begun) / len(found)
            self._each_cost = _average(self._each_cost, each)
        starts = bounds(np.array([len(one) for one in found], np.int64))
        return TaggedMany(starts, np.array([n for one in found for n in one], np.int64), refused)

    def _tag_or_refuse(
        self, content: bytes, at: int, refused: dict[int, TidingsError]
    ) -> list[int]:
        """The nodes of a tag, ascending. If the notification is refused, or needs calls to
        predicates that are not decided yet, return no nodes, and add the problem to `refused`."""
        try:
            return sorted(self.tag(content))
        except TidingsError as problem:
            refused[at] = problem
            return []


def _sort_rows(starts: Array, nodes: Array) -> Array:
    """The nodes of each row, ascending."""
    row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    found: Array = nodes[np.lexsort((nodes, row))]
    return found


def _replace_rows(
    starts: Array, nodes: Array, lists: Mapping[int, Sequence[int]]
) -> tuple[Array, Array]:
    """Replace the nodes of some rows; `lists` has the new nodes by row, in ascending order."""
    sizes, pieces, at = np.diff(starts), list[Array](), 0
    for row, given in lists.items():
        pieces += nodes[at : starts[row]], np.array(given, np.int64)
        sizes[row], at = len(given), starts[row + 1]
    pieces.append(nodes[at:])
    return bounds(sizes), np.concatenate(pieces)


def _average(before: float, measured: float) -> float:
    """A running average, which a single slow measurement changes little."""
    return before + NEWEST * (min(measured, 4 * before) - before)
