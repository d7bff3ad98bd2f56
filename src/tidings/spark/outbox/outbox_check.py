"""Checks that an outbox is intact: every commit, every file that a commit names, every number.

Nothing is changed, and the pipeline may be running: the check covers the commits acknowledged when
it began. The last batch may not have its numbers yet. Cost: every data file is read twice, once for
its digest and once for three of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.model import TidingsError
from tidings.spark.outbox.batches.numbering import (
    ALL,
    NODES,
    NOTIFICATION,
    NUMBERS,
    Counts,
)
from tidings.spark.outbox.commits import Commit, DataFile
from tidings.spark.outbox.numbered_rows import number_files, stored_columns
from tidings.spark.outbox.outbox import Outbox, count
from tidings.spark.outbox.sealed_files import digest_of
from tidings.store.numbers import unpack_counts

Array = npt.NDArray[Any]


class CheckReport(msgspec.Struct):
    """How much was checked, and one sentence per problem."""

    outbox: str
    batches: int = 0
    files: int = 0
    bytes: int = 0
    notifications: int = 0
    nodes: int = 0
    without_digest: int = 0  # files from the old format
    aside: int = 0  # folders of uncommitted attempts
    problems: list[str] = []


class OutboxCheck:
    """A check of one outbox. Iterate over `batches` first; then `found` has the result."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.found = CheckReport(str(outbox.path))
        self._counters: Counts = {}  # how often each node occurred
        self._last: Counts = {}  # the last number of each node
        self._named: set[Path] = set()
        self._pins: set[int] = set()

    def __len__(self) -> int:
        """The number of batches to check."""
        try:
            return len(self.outbox.log)
        except TidingsError:
            return 0

    def batches(self) -> Iterator[int]:
        """Check everything; yield each batch when it is done."""
        outbox, problems = self.outbox, self.found.problems
        if outbox.log.has_old_format():
            problems.append(
                "the outbox was written by an older version; start its pipeline, which converts it "
                "to the current format, and then check it again"
            )
            return
        problems += outbox.log.problems()
        if problems:
            return  # a damaged log does not say which batches exist
        self._pins = set(outbox.numbers("pins"))
        count = len(outbox.log)
        for batch in range(count):
            try:
                commit = outbox.read_commit(batch)
            except TidingsError as problem:
                problems.append(str(problem))
                return
            if commit is None or commit.batch != batch:
                problems.append(f"commit {batch} is missing")
                return
            self._check_batch(commit)
            yield batch
        self._check_rest(count)
        self.found.nodes = len(self._counters) - (ALL in self._counters)

    def _check_batch(self, commit: Commit) -> None:
        found, outbox = self.found, self.outbox
        found.batches += 1
        self._check_pin(commit)
        data = f"{outbox.folder(commit.batch, commit.attempt).relative_to(outbox.path)}/"
        rows, mine, is_sound = 0, list[Path](), True
        for one in commit.files:
            self._named.add(outbox.path / one.path)
            is_same = self._check_file(commit.batch, one)
            if one.path.startswith(data):
                rows += one.rows
                is_sound = is_sound and is_same
                mine.append(outbox.path / one.path)
        if rows != commit.matched:
            self._report(commit.batch, f"the files have {rows} rows, expected {commit.matched}")
        elif is_sound:
            self._check_numbers(commit, mine)
        count(commit, self._counters)

    def _report(self, batch: int, problem: str) -> None:
        self.found.problems.append(f"batch {batch}: {problem}")

    def _check_pin(self, commit: Commit) -> None:
        if commit.batch not in self._pins:
            return  # a pin this old may be missing; the commit has the same data
        try:
            pin = self.outbox.read_pin(commit.batch)
        except TidingsError as problem:
            self._report(commit.batch, str(problem))
            return
        said = (commit.batch, commit.version, commit.micros)
        if pin is not None and (pin.batch, pin.version, pin.micros) != said:
            path = self.outbox.pin_path(commit.batch)
            self._report(commit.batch, f"{path} differs from the commit")

    def _check_file(self, batch: int, one: DataFile) -> bool:
        """Whether a file is unchanged since it was written."""
        self.found.files += 1
        self.found.bytes += one.size
        self.found.without_digest += not one.digest
        path = self.outbox.path / one.path
        problem = self.outbox.find_problem(one)
        if not problem and one.digest and digest_of(path) != one.digest:
            problem = f"{path} was altered: its checksum differs"
        if problem:
            self._report(batch, problem)
        return not problem

    def _read_rows(self, path: Path) -> pa.Table | None:
        """The nodes of a file's rows, and their numbers or places."""
        try:
            with pq.ParquetFile(path) as file:
                wanted = stored_columns([NOTIFICATION, NODES, NUMBERS], file.schema_arrow.names)
                return file.read(columns=wanted)
        except (pa.ArrowException, OSError) as problem:
            self.found.problems.append(f"{path} can't be read: {problem}")
            return None

    def _check_numbers(self, commit: Commit, files: list[Path]) -> None:
        """Check that the nodes of a batch occur as often as its commit says, and that their numbers
        have no gaps or repeats, and follow those of earlier batches."""
        tables = [self._read_rows(path) for path in files]
        if any(one is None for one in tables):
            return
        self.found.notifications += commit.matched
        before = self.outbox.log.read_numbers(commit.batch)
        if commit.partitions:
            if not self._check_counts(commit, [one for one in tables if one is not None]):
                return
            total = self._counters.get(ALL, 0)
            if commit.before != total:
                self._report(
                    commit.batch,
                    f"the commit says that {commit.before} notifications came before, expected "
                    f"{total}",
                )
            self._check_order(commit.batch, before or {})
            counts = commit.count_nodes()
            # a batch without numbers yet: check the places instead
            before = before or dict.fromkeys(counts, 0)
            joined = number_files(commit, before)
            rows = [
                joined[str(path.relative_to(self.outbox.path))].join(batch)
                for path, table in zip(files, tables, strict=True)
                if table is not None
                for batch in table.to_batches()
            ]
            self._check_each(commit, pa.Table.from_batches(rows), {ALL: commit.before, **before})
            return
        after: Counts = {}
        if commit.matched:
            told = pa.concat_tables([one for one in tables if one is not None])
            after = self._check_each(commit, told, self._counters)
        for node in sorted(after.keys() | commit.counters.keys()):
            said, there = commit.counters.get(node), after.get(node)
            if said != there:
                self._report(
                    commit.batch,
                    f"the commit has {said} for the counter of {_node_name(node)}, but the rows "
                    f"end with {there}",
                )

    def _check_counts(self, commit: Commit, tables: list[pa.Table]) -> bool:
        """Whether the nodes occur as often in the files of each partition as the commit says."""
        rest, is_right = list(tables), True
        for at, one in enumerate(commit.partitions):
            mine, rest = rest[: one.files], rest[one.files :]
            nodes = [list_values(table.column(NODES)) for table in mine]
            distinct, counts = np.unique(np.concatenate(nodes), return_counts=True)
            there = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
            said = unpack_counts(one.counts)
            if there != said or one.rows != sum(table.num_rows for table in mine):
                is_right = False
                wrong = sorted(node for node in there.keys() | said.keys()
                               if there.get(node) != said.get(node))  # fmt: skip
                what = f"node {wrong[0]}" if wrong else "the rows"
                self._report(commit.batch, f"partition {at} was counted wrongly: {what}")
        return is_right

    def _check_order(self, batch: int, before: Counts) -> None:
        """Check that no number of a batch was already used in an earlier batch."""
        for node in [one for one in before if before[one] < self._last.get(one, 0)][:3]:
            self._report(
                batch,
                f"{_node_name(node)} continues after the number {before[node]}, expected at least "
                f"{self._last[node]}",
            )

    def _check_each(self, commit: Commit, rows: pa.Table, known: Mapping[int, int]) -> Counts:
        """Check that the numbers of each node continue the known ones without gaps or repeats;
        return the last number of each node."""
        nodes, numbers = (list_values(rows.column(name)) for name in (NODES, NUMBERS))
        everything = rows.column(NOTIFICATION).to_numpy()
        nodes = np.concatenate([np.full(len(everything), ALL), nodes])
        numbers = np.concatenate([everything, numbers])
        order = np.lexsort((numbers, nodes))
        nodes, numbers = nodes[order], numbers[order]
        distinct, starts, counts = np.unique(nodes, return_index=True, return_counts=True)
        before = np.array([known.get(int(node), 0) for node in distinct], np.int64)
        expected = np.arange(len(nodes)) + np.repeat(before + 1 - starts, counts)
        for at in np.flatnonzero(np.add.reduceat(numbers != expected, starts))[:3].tolist():
            first = int(starts[at])
            wrong = first + int(np.argmax((numbers != expected)[first : first + counts[at]]))
            self._report(
                commit.batch,
                f"{_node_name(int(distinct[at]))} has the number {numbers[wrong]}, expected "
                f"{expected[wrong]}",
            )
        after = dict(zip(distinct.tolist(), (before + counts).tolist(), strict=True))
        self._last.update(after)
        return after

    def _check_rest(self, count: int) -> None:
        """Check for files and pins that no commit names."""
        outbox, problems = self.outbox, self.found.problems
        homes = [one for home in ("data", "dead") for one in outbox.attempts(home)]
        pins, kept = outbox.numbers("pins"), outbox.numbers("counters")
        # read the number of commits last, because a pipeline may be adding some
        end = len(outbox.log)
        ends = f"the commits end with batch {end - 1}"
        for batch, folder in homes:
            files = [path for path in folder.rglob("*") if path.is_file()]
            unknown = [path for path in files if path not in self._named]
            if batch > end:
                problems.append(f"{folder} exists, but {ends}")
            elif batch == end:  # an attempt is in progress, or was interrupted
                self.found.aside += 1
            elif batch < count and unknown:
                problems.append(f"{unknown[0]} exists, but no commit names it")
        problems += [f"batch {pin} was started, but {ends}" for pin in pins if pin > end]
        problems += [f"counters of batch {one} exist, but {ends}" for one in kept if one >= end]
        last = outbox.read_kept()
        if last is not None and last.batch == count - 1 and last.counters != self._counters:
            problems.append(f"the saved counters of batch {last.batch} differ from its commit")


def list_values(lists: Any) -> Array:
    """The values of a column of lists."""
    found: Array = lists.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return found


def _node_name(node: int) -> str:
    return "all notifications" if node == ALL else f"node {node}"
