"""Compares two revisions of tidings on the same filters and events, in turn.

    files of the workload ---+--> worker of the first revision  <--- a line: what to measure
    (written by this code)   +--> worker of the second          ---> a line: the figures

Workers keep running and are measured repeatedly, in the order A B, B A, A B, ... so that neither
always comes first. Each revision has its own cache for compiled kernels. All files are in a
temporary folder, which is removed when the comparison ends or fails.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from tidings.model import EnvironmentProblem
from tidings.studies.compare.compared_revision import (
    ComparedRevision,
    checkout_of,
    find_revision,
    take_out,
)
from tidings.studies.compare.verdict import Measure, Verdict, judge
from tidings.studies.host.driver import Driver, Unavailable
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.workloads.draws import BLOCK
from tidings.studies.workloads.workloads import Workload, make_workload

BUILD = Measure("build", "filters/s", more_is_better=True)
INDEX = Measure("index", "bytes/filter")
FIGURES = {
    ("pairs", "us"): Measure("batch, pairs", "µs/event"),
    ("lists", "us"): Measure("batch, lists", "µs/event"),
    ("dict", "p50"): Measure("one dict, p50", "µs"),
    ("dict", "p99"): Measure("one dict, p99", "µs"),
    ("json", "p50"): Measure("one JSON, p50", "µs"),
}
"""The measures; a key is the request to a worker, and the name of the value in its answer."""

LEAST_SECONDS = 0.25  # shorter measurements are repeated
PATIENCE = 3600.0  # seconds to wait for an answer; building a million filters is slow
_WORKER = Path(__file__).with_name("revision_worker.py")

Note = Callable[[str], None]


class Comparison(msgspec.Struct, frozen=True):
    """The comparison of two revisions on one workload."""

    machine: MachineInfo
    workload: str
    filters: int
    events: int
    seed: int
    rounds: int
    threshold: float
    first: ComparedRevision
    second: ComparedRevision
    matches: int
    """The matches in all events, which are the same for both revisions."""
    verdicts: list[Verdict]


class Disagreement(EnvironmentProblem):
    """Two revisions find different matches, so a comparison of their speed is meaningless."""


class _Answer(msgspec.Struct, frozen=True):
    values: dict[str, Any] = {}
    failed: str = ""


class _Side:
    """One of the two revisions, with its worker."""

    def __init__(self, revision: ComparedRevision, driver: Driver, source: Path) -> None:
        self.revision = revision
        self._driver = driver
        self._source = source
        self.built: dict[str, Any] = {}
        self.measured: dict[Measure, list[float]] = {}

    def ask(self, request: str) -> dict[str, Any]:
        try:
            answer = self._driver.ask(_Answer, PATIENCE, request)
        except TimeoutError:
            raise EnvironmentProblem(
                f"{self.revision} did not answer within {PATIENCE:.0f} s"
            ) from None
        except Unavailable as problem:
            raise EnvironmentProblem(f"{self.revision} can't be measured: {problem}") from None
        if answer.failed:
            what = {"import": "import tidings"}.get(request, f"measure {request}")
            reason = answer.failed.splitlines()[0].rstrip(".")
            raise EnvironmentProblem(f"{self.revision}: can't {what}: {reason}")
        return answer.values

    def load(self) -> None:
        file = self.ask("import")["file"]
        if not Path(file).resolve().is_relative_to(self._source.resolve()):
            raise EnvironmentProblem(
                f"{self.revision} was requested, but {file} was imported instead"
            )

    def build(self) -> float:
        self.built = self.ask("build")
        return float(self.built["seconds"])

    def keep(self, measure: Measure, value: float) -> None:
        self.measured.setdefault(measure, []).append(value)


def compare_revisions(
    first: str,
    second: str,
    *,
    folder: Path,
    workload: str = "mixed",
    filters: int = 10_000,
    events: int = BLOCK,
    rounds: int = 10,
    builds: int = 5,
    seed: int = 1,
    threshold: float = 0.03,
    note: Note = lambda _: None,
) -> Comparison:
    """Measure two revisions of the checkout that contains `folder`. `note` is called with each
    step. `builds` is the number of rounds that also measure the build."""
    checkout = checkout_of(folder)
    revisions = [find_revision(checkout, name) for name in (first, second)]
    where = describe_machine()
    note(f"{workload}: drawing {filters:,} filters and {events:,} events")
    drawn = make_workload(workload, filters, events, seed)
    with (
        tempfile.TemporaryDirectory(prefix="tidings-compare-") as scratch,
        contextlib.ExitStack() as up,
    ):
        work = Path(scratch, "work")
        write_work(drawn, work)
        sides = []
        for revision, letter in zip(revisions, "ab", strict=True):
            home = Path(scratch, letter)
            home.mkdir()
            source = take_out(checkout, revision, home)
            command = [sys.executable, "-P", str(_WORKER), str(work), str(LEAST_SECONDS)]
            driver = Driver(letter, command, _environment(source, home / "cache"), Path(scratch))
            sides.append(_Side(revision, up.enter_context(driver), source))
        for side in sides:
            note(f"{side.revision}: importing, compiling, building {filters:,} filters")
            side.load()
            side.build()
        _refuse_disagreement(sides)
        for number in range(rounds):
            order = sides if number % 2 == 0 else sides[::-1]
            _round(order, filters, number < builds, f"round {number + 1} of {rounds}", note)
            _refuse_disagreement(sides)
    one, other = (side.measured for side in sides)
    return Comparison(
        machine=where,
        workload=workload,
        filters=filters,
        events=events,
        seed=seed,
        rounds=rounds,
        threshold=threshold,
        first=revisions[0],
        second=revisions[1],
        matches=sides[0].built["matches"]["match_pairs"],
        verdicts=[
            judge(measure, one[measure], other[measure], threshold)
            for measure in (BUILD, *FIGURES.values(), INDEX)
            if measure in one and measure in other
        ],
    )


def write_work(workload: Workload, folder: Path) -> None:
    """Write filters and events as files that a worker of any revision can read."""
    folder.mkdir()
    with (folder / "filters.jsonl").open("wb") as file:
        file.writelines(msgspec.json.encode(pair) + b"\n" for pair in workload.texts())
    with (folder / "events.jsonl").open("wb") as file:
        file.writelines(line + b"\n" for line in workload.event_lines())
    with pa.ipc.new_file(str(folder / "events.arrow"), workload.events.schema) as sink:
        for batch in workload.batches():
            sink.write_batch(batch)


def _round(order: list[_Side], filters: int, build: bool, label: str, note: Note) -> None:
    if build:
        for side in order:
            note(f"{label}: build, {side.revision}")
            side.keep(BUILD, filters / side.build())
    for request in dict.fromkeys(request for request, _ in FIGURES):
        for side in order:
            note(f"{label}: {request}, {side.revision}")
            values = side.ask(request)
            for (asked, name), measure in FIGURES.items():
                if asked == request:
                    side.keep(measure, values[name])
    for side in order:
        if side.built["index_bytes"]:
            side.keep(INDEX, side.built["index_bytes"] / filters)


def _refuse_disagreement(sides: list[_Side]) -> None:
    first, second = (side.built["matches"] for side in sides)
    for way, count in first.items():
        if count == second[way]:
            continue
        told = f"{sides[0].revision} and {sides[1].revision} find different matches"
        if way == "digest":
            raise Disagreement(
                f"{told} (the numbers of matches are equal); speeds are not compared"
            )
        raise Disagreement(
            f"{told} with {way}: {count:,} and {second[way]:,} matches; speeds are not compared"
        )


def _environment(source: Path, cache: Path) -> dict[str, str]:
    paths = [str(source), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONHASHSEED": "0",  # both revisions iterate over sets in the same order
        "TIDINGS_CACHE_DIR": str(cache),
        # This process sets NUMBA_CACHE_DIR when it loads a matcher. If the worker inherited that
        # value, it would take precedence over TIDINGS_CACHE_DIR.
        "NUMBA_CACHE_DIR": str(cache / "kernels"),
    }
