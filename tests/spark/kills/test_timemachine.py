"""Outboxes, change logs, snapshots and checkpoints that go back in time, and worse, between two
runs of a pipeline: the next one goes on exactly right, or refuses in one sentence, and nothing that
was committed is removed.

A round is determined by TIDINGS_SEED and its number; TIDINGS_ROUND plays one alone. See
tests/rounds.py.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import shutil
import threading
import time
from pathlib import Path

import pytest
from tests import damage
from tests.rounds import Result, Results, chance_of
from tests.spark.kills.aftermath import Aftermath, contents, read
from tests.spark.kills.history import History

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LIFE = 10  # rounds that begin with one past
LANES = 2  # at a time
KINDS = {"nothing": 1, "back": 2, "some": 2, "cut": 3, "flip": 3, "zero": 2, "swap": 1, "delete": 2}
AREAS = {"outbox": 5, "subscriptions": 3, "snapshots": 3, "checkpoint": 3}


class Round:
    """One round: damage, a run, a verdict."""

    def __init__(self, history: History, seed: int, number: int) -> None:
        self.history = history
        self.chance = chance_of(seed, number, "damage")
        self.kind = self.chance.choices([*KINDS], [*KINDS.values()])[0]
        self.area = self.chance.choices([*AREAS], [*AREAS.values()])[0]
        self.result = Result(number, self.kind, "", "", 0.0, [], {})
        history.put_back(chance_of(seed, number, "history"))

    def play(self) -> Result:
        began = time.monotonic()
        try:
            self._play()
        except Exception as problem:
            self.result.reasons.append(f"{type(problem).__name__}: {problem}")
        if self.result.reasons:
            self.result.verdict = "failed"
        self.result.seconds = round(time.monotonic() - began, 2)
        return self.result

    def _play(self) -> None:
        history, result = self.history, self.result
        out = history.places("outbox")
        history.change(self.chance.randrange(0, 4))
        history.feed(self.chance.randrange(1, 3))
        gets, before = read(out), damage.print_of([history.work])
        assert not isinstance(gets, str), gets
        result.done = f"{self.area}: {self._damage()}"
        untouched = damage.print_of([history.work]) == before
        older = self._is_older()
        verified = self._verify(changed=read(out) != gets, older=older, untouched=untouched)
        there = contents(out)
        ran = history.run()
        if ran.fault():
            result.reasons.append(ran.fault())
        gone = there - contents(out)
        if gone:
            result.reasons.append(f"{gone.total()} files of rows are gone")
        if ran.code == 0:
            if verified:
                history.mend_rows()
            result.reasons += Aftermath(history).faults()
            if not older:
                result.reasons += self._unseen()
        elif untouched:
            result.reasons.append(f"it refused though nobody touched the files: {ran.sentence}")
        how = "went on" if ran.code == 0 else "refused"
        result.verdict = f"{how}{', verify complained' if verified else ''}"
        result.verdict = f"{self.area} {result.verdict}{', untouched' if untouched else ''}"
        result.facts = {"refused": int(ran.code != 0), "went on": int(ran.code == 0)}
        if ran.code:
            result.done += f" ({ran.sentence.removeprefix('error: ')[:160]})"

    def _damage(self) -> str:
        place, chance = self.history.places(self.area), self.chance
        copies = [self.history.then, self.history.now]
        copy = chance.choice(copies) / place.relative_to(self.history.work)
        files = damage.files_in([place], self._is_passed_over)
        with contextlib.suppress(damage.Missed):
            if self.kind == "back":
                return damage.put_back(place, copy)
            if self.kind == "some":
                return damage.put_back_some(place, copy, chance)
            if self.kind != "nothing":
                return damage.SMALL[self.kind](files, chance)
        return "nothing"

    def _is_passed_over(self, path: Path) -> bool:
        """The folder of a log has its snapshots in it, which are an area of their own."""
        return self.area == "subscriptions" and not self.history.fixed and "snapshots" in path.parts

    def _is_older(self) -> bool:
        """Is what was damaged now exactly what it once was? Then it does not show in itself."""
        place = self.history.places(self.area)
        inside = place.relative_to(self.history.work)
        copies = [copy / inside for copy in (self.history.then, self.history.now)]
        return self._files(place) in map(self._files, copies)

    def _files(self, place: Path) -> dict[Path, bytes]:
        files = damage.files_in([place], self._is_passed_over)
        return {path.relative_to(place): path.read_bytes() for path in files}

    def _verify(self, *, changed: bool, older: bool, untouched: bool) -> bool:
        """Does `tidings pipeline verify` say what there is to say? Whether it complained."""
        ran = self.history.verify()
        if "No such command" in ran.said:
            self.result.reasons.append("there is no `tidings pipeline verify`")
            return False
        if ran.code not in (0, 1) or "Traceback" in ran.said:
            if not (ran.code == 2 and ran.sentence):
                self.result.reasons.append(f"verify ended with {ran.code}: {ran.said[-300:]!r}")
        elif changed and not older and ran.code == 0:
            self.result.reasons.append("verify is content, and readers get something else")
        elif untouched and ran.code:
            self.result.reasons.append(f"verify complained of nothing: {ran.said[-300:]!r}")
        return ran.code != 0

    def _unseen(self) -> list[str]:
        """Changes that were acknowledged before the run, and not seen by its last batch."""
        found = read(self.history.places("outbox"))
        assert not isinstance(found, str)
        last = found[-1][0]
        latest = self.history.latest
        return [] if last == latest else [f"the last batch has version {last}, expected {latest}"]


def play_all(folder: Path, results: Results) -> None:
    """Play what is to be played, some pipelines side by side."""
    waiting: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    for _, group in itertools.groupby(results.open(), lambda number: number // LIFE):
        waiting.put([*group])
    problems: list[BaseException] = []
    putting = threading.Lock()

    def lane() -> None:
        while not problems:
            try:
                numbers = waiting.get_nowait()
            except queue.Empty:
                return
            home = folder / f"from-{numbers[0]}"
            home.mkdir()
            history = History(home, chance_of(results.seed, numbers[0] // LIFE, "past"))
            try:
                history.make()
                for number in numbers:
                    result = Round(history, results.seed, number).play()
                    with putting:
                        results.put(result)
                shutil.rmtree(home)
            except BaseException as problem:
                problems.append(problem)

    lanes = [threading.Thread(target=lane) for _ in range(min(LANES, waiting.qsize()))]
    for one in lanes:
        one.start()
    for one in lanes:
        one.join()
    if problems:
        raise problems[0]


@pytest.mark.timeout(7200)
def test_all_rounds(tmp_path: Path, seed: int) -> None:
    results = Results("spark", seed, int(os.environ.get("TIDINGS_SPARK_ROUNDS", "60")))
    play_all(tmp_path, results)
    results.check()
