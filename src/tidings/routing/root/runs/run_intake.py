"""Runs of publications. The publications of a run are tagged, numbered and journalled together.

    Run ──> rows with the expected stamps ──tag_many──> columns ──> Block ──> journal
              └─ all others, one by one: repeated, early, refused, or with too many nodes

The publications have the same effects as if they had come one at a time, in the same order. Special
cases are left to intake.py. Tags are valid as long as the graph does not change. Setting a filter
aside changes the graph, so the rest is then tagged again.

Other publishers must not wait for a run of slow publications. So if `MOST_ALONE` publications were
processed one by one, or if the interests or the relations stopped early, the rest of the run waits
for its publisher's next turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.model import TidingsError
from tidings.routing.forwarding.graph_caches import GraphCaches
from tidings.routing.forwarding.neighbours import Context, Name, ReturnPaths
from tidings.routing.root.counts import Counts
from tidings.routing.root.handover import Correcting, TagColumns
from tidings.routing.root.handover.node_table import NodeTable
from tidings.routing.root.interests import TaggedMany
from tidings.routing.root.nodes import AT_ONCE, TypeNodes
from tidings.routing.root.problems import Problems
from tidings.routing.root.publishing.intake import Intake
from tidings.routing.root.publishing.root_tagger import LARGEST, Tagger
from tidings.routing.root.publishing.stamps import Stamps
from tidings.routing.root.records import Block
from tidings.routing.root.relating import enclose
from tidings.routing.root.runs.frame_columns import Column
from tidings.routing.root.runs.run import FEW, Run
from tidings.routing.root.write_queue import WriteQueue

MOST_ALONE = 32  # the most publications that are processed one by one in one turn

Numbers = npt.NDArray[np.int64]


class Tags(NamedTuple):
    """The lowest nodes of the rows of a run from `first` on. The tags are valid while the graph has
    this version. The `odd` rows must be processed one by one."""

    first: int
    version: int
    starts: Numbers
    nodes: Numbers
    odd: list[int]  # positions in the run, ascending
    asked: int  # the position after the last row that was to be tagged
    fronts: Sequence[bytes] = ()  # in a channel with relations, the bytes that precede each body

    @property
    def end(self) -> int:
        return self.first + len(self.starts) - 1

    def next_odd(self, at: int) -> int:
        """The first odd row at or after `at`; the end of the tagged rows if there is none."""
        place = bisect_left(self.odd, at)
        return self.odd[place] if place < len(self.odd) else self.end


def _accepted(contents: Sequence[bytes], found: TaggedMany) -> Iterator[bytes]:
    """The contents that the interests tagged, without those that they refused."""
    reached = contents[: len(found.starts) - 1]
    return (one for row, one in enumerate(reached) if row not in found.refused)


class RunIntake:
    """Accepts the runs of a channel."""

    def __init__(
        self,
        context: Context,
        stamps: Stamps,
        tagger: Tagger,
        counts: Counts,
        queue: WriteQueue,
        return_paths: ReturnPaths,
        intake: Intake,
        table: NodeTable,
        caches: GraphCaches,
        problems: Problems,
        correcting: Correcting,
        type_nodes: TypeNodes,
    ) -> None:
        self._limits = context.limits
        self._stamps = stamps
        self._tagger = tagger
        self._counts = counts
        self._queue = queue
        self._return_paths = return_paths
        self._intake = intake
        self._table = table
        self._caches = caches
        self._problems = problems
        self._correcting = correcting
        self._type_nodes = type_nodes

    def take(self, sender: Name, run: Run) -> None:
        """Process the next publications of a run, or all of them if none are slow. `run.rows.done`
        counts the publications that were processed. Raises Undecided at a publication for which
        predicates must be called first."""
        rows, alone, tags = run.rows, 0, None
        while rows.done < len(run) and alone < MOST_ALONE:
            at = rows.done
            end = self._find_expected(run, at)
            if end - at >= FEW:
                if tags is not None and tags.end <= at < tags.asked:
                    return  # the interests stopped before this row
                if tags is None or tags.version != self._caches.version or tags.asked <= at:
                    tags = self._tag(run, at, end)
                upto = min(end, tags.end, tags.next_odd(at))
                if upto - at >= FEW and self._append(sender, run, at, upto, tags):
                    rows.done = upto
                    continue
            self._intake.publish(sender, run.message(at))
            rows.done += 1
            alone += 1

    def _find_expected(self, run: Run, at: int) -> int:
        """The position after the rows from `at` on that have the expected consecutive stamps, and
        payloads that are not too large."""
        known = self._stamps.known.get(run.publisher)
        if known is None or self._queue.failed:
            return at
        rows = run.rows.columns[at:]
        if rows[0, Column.STAMP] != known + 1:
            return at  # checked first, because many rows may repeat accepted publications
        stamps = rows[:, Column.STAMP]
        fits = stamps == np.arange(known + 1, known + 1 + len(rows))
        fits &= rows[:, Column.UNSETTLED] <= stamps
        fits &= rows[:, Column.PAYLOAD_END] - rows[:, Column.PAYLOAD] <= LARGEST
        return len(run) if fits.all() else at + int(np.argmin(fits))

    def _tag(self, run: Run, at: int, end: int) -> Tags:
        end, given = run.tags(at, end)
        contents = run.contents(at, end)
        if given is not None:
            corrected = self._correct(given, contents, at)
            if corrected is not None:
                return corrected
        try:
            found = self._tagger.tag_many(contents)
            left = AT_ONCE
            while added := self._type_nodes.add(_accepted(contents, found), left):
                left -= added
                found = self._tagger.tag_many(contents)  # may reach further than before
            version = self._caches.version
            starts, nodes, fronts = self._tagger.relate_many(
                contents[: len(found.starts) - 1], found.starts, found.nodes, all_rows=False
            )
        except Exception:  # rows are then tagged one by one, which shows the one that fails
            return self._leave_alone(at, end)
        wide = np.flatnonzero(np.diff(starts) > self._limits.marks)
        odd = sorted(at + row for row in {*found.refused, *wide.tolist()})
        return Tags(at, version, starts, nodes, odd, end, fronts)

    def _correct(self, given: TagColumns, contents: list[bytes], at: int) -> Tags | None:
        """The corrected tags of rows that were tagged elsewhere; None if the rows must be tagged
        here. Rows whose tags can't be corrected are `odd`."""
        try:
            found = self._correcting.correct_many(given, contents)
            skipped = frozenset(found.odd)
            accepted = (one for row, one in enumerate(contents) if row not in skipped)
            if self._type_nodes.add(accepted):
                found = self._correcting.correct_many(given, contents)
            starts, nodes, fronts = self._tagger.relate_many(
                contents, found.starts, found.nodes, all_rows=False
            )
        except TidingsError:
            return None
        except Exception:
            return self._leave_alone(at, at + len(contents))
        wide = np.flatnonzero(np.diff(starts) > self._limits.marks)
        odd = sorted(at + row for row in {*found.odd, *wide.tolist()})
        end = at + len(contents)
        return Tags(at, self._caches.version, starts, nodes, odd, end, fronts)

    def _leave_alone(self, at: int, end: int) -> Tags:
        """Treat all rows as odd, because they could not be tagged together."""
        self._problems.report("tag many notifications")
        starts = np.zeros(end - at + 1, np.int64)
        return Tags(at, self._caches.version, starts, starts[:0], [*range(at, end)], end)

    def _append(self, sender: Name, run: Run, at: int, end: int, tags: Tags) -> bool:
        """Number rows and pass them to the journal. If a row matches too many nodes, or if there
        was an error, return False; then nothing has changed."""
        who = run.publisher
        try:
            block = self._number(run, at, end, tags)
            if block is None:
                return False
            self._queue.append_block(block)
        except TidingsError:  # the publications will be refused one by one, with the reason
            return False
        except Exception:
            self._problems.report("number many notifications")
            return False
        if len(self._stamps.known) > self._return_paths.many:
            self._stamps.hear(who)
        self._stamps.advance_many(who, block.stamp, block.last_stamp)
        self._return_paths.add(who, sender)
        self._counts.give_block(block)
        return True

    def _number(self, run: Run, at: int, end: int, tags: Tags) -> Block | None:
        starts = tags.starts[at - tags.first : end - tags.first + 1]
        nodes = tags.nodes[starts[0] : starts[-1]]
        starts = starts - starts[0]
        codes = self._table.codes_of(nodes)
        matched = self._table.list_matched(starts, codes)
        wide = np.flatnonzero(np.diff(matched.starts) > self._limits.matches)
        if len(wide):
            tags.odd[:] = sorted({*tags.odd, *(at + wide).tolist()})
            return None
        marks = self._table.number(starts, nodes, codes, self._counts.given_counts)
        bodies = run.write_bodies(at, end)
        if tags.fronts:
            bodies = enclose(tags.fronts[at - tags.first : end - tags.first], bodies)
        return Block(
            run.publisher, None, self._counts.given + 1, marks, matched, bodies,
            int(run.rows.columns[at, Column.STAMP]),
        )  # fmt: skip
