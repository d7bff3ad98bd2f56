"""Checks that an outbox is intact: every commit, every file that a commit names, every number.

Nothing is changed, and the pipeline may be running: the check covers the commits acknowledged when
it began. Cost: every data file is read twice, once for its digest and once for three of its
columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.model import TidingsError
from tidings.spark.outbox.batches.batch_stages import NODES
from tidings.spark.outbox.batches.numbering import ALL
from tidings.spark.outbox.commits import Commit, DataFile
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.sealed_files import digest_of

Array = npt.NDArray[Any]


class CheckReport(msgspec.Struct):
    """The amounts that were checked, and one sentence per problem."""

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
    """A check of one outbox. Iterate over `batches`; the result is then in `found`."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.found = CheckReport(str(outbox.path))
        self._counters: dict[int, int] = {}
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
        rows, tables = 0, list[Any]()
        for one in commit.files:
            self._named.add(outbox.path / one.path)
            mine = one.path.startswith(data)
            rows += one.rows if mine else 0
            if self._check_file(commit.batch, one) and mine:
                tables.append(self._read_table(outbox.path / one.path))
        if rows != commit.matched:
            self._report(commit.batch, f"the files have {rows} rows, expected {commit.matched}")
        if None not in tables and sum(table.num_rows for table in tables) == commit.matched:
            self._check_numbers(commit, tables)
        self._counters.update(commit.counters)

    def _report(self, batch: int, problem: str) -> None:
        self.found.problems.append(f"batch {batch}: {problem}")

    def _check_pin(self, commit: Commit) -> None:
        if commit.batch not in self._pins:
            return  # the commit has the same data
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

    def _read_table(self, path: Path) -> Any:
        try:
            with pq.ParquetFile(path) as file:
                return file.read(columns=["notification", NODES, "numbers"])
        except (pa.ArrowException, OSError) as problem:
            self.found.problems.append(f"{path} can't be read: {problem}")
            return None

    def _check_numbers(self, commit: Commit, tables: list[Any]) -> None:
        """Check that the numbers of each node continue without gaps or repeats, up to the commit's
        counter."""
        self.found.notifications += commit.matched
        after: dict[int, int] = {}
        if commit.matched:
            rows = pa.concat_tables(tables)
            flat = [rows.column(name).combine_chunks().flatten() for name in (NODES, "numbers")]
            nodes, numbers = (one.to_numpy(zero_copy_only=False) for one in flat)
            everything = rows.column("notification").to_numpy()
            nodes = np.concatenate([np.full(len(everything), ALL), nodes])
            numbers = np.concatenate([everything, numbers])
            order = np.lexsort((numbers, nodes))
            nodes, numbers = nodes[order], numbers[order]
            distinct, starts, counts = np.unique(nodes, return_index=True, return_counts=True)
            before = np.array([self._counters.get(int(node), 0) for node in distinct], np.int64)
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
        for node in sorted(after.keys() | commit.counters.keys()):
            said, there = commit.counters.get(node), after.get(node)
            if said != there:
                self._report(
                    commit.batch,
                    f"the commit has {said} for the counter of {_node_name(node)}, but the rows "
                    f"end with {there}",
                )

    def _check_rest(self, count: int) -> None:
        """Check for files and pins that no commit names."""
        outbox, problems = self.outbox, self.found.problems
        homes = [one for home in ("data", "dead") for one in outbox.attempts(home)]
        pins, kept = outbox.numbers("pins"), outbox.numbers("counters")
        # the number of commits is read last, because a pipeline may be running
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


def _node_name(node: int) -> str:
    return "all notifications" if node == ALL else f"node {node}"
