"""Rounds of a long random run: each is determined by (seed, number), and its result is recorded at
once, so that a run that was stopped continues where it stopped.

TIDINGS_SEED    the seed; another file of results for each
TIDINGS_ROUND   play this round alone, or those from one to another: 17, or 11-17
TIDINGS_RESULTS the folder of the results, build/timemachine if not said
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from pathlib import Path

import msgspec

HOME = Path(__file__).parents[1]


class Result(msgspec.Struct):
    """What came of a round."""

    round: int
    kind: str  # of what was done to the files
    verdict: str
    done: str  # what was done, in words
    seconds: float
    reasons: list[str] = []  # why it failed; none where it did not
    facts: dict[str, int] = {}

    @property
    def failed(self) -> bool:
        return bool(self.reasons)


def chance_of(seed: int, number: int, what: str) -> random.Random:
    """What a part of a round is drawn from."""
    return random.Random(f"{seed} {number} {what}")


def chosen(rounds: int) -> list[int]:
    """The numbers of the rounds that are asked for."""
    only = os.environ.get("TIDINGS_ROUND", "")
    if not only:
        return list(range(rounds))
    first, _, last = only.partition("-")
    return list(range(int(first), int(last or first) + 1))


class Results:
    """The file of results of one kind of rounds and one seed."""

    def __init__(self, kind: str, seed: int, total: int, *, keep: bool = True) -> None:
        """`keep` writes them down. Rounds that are asked for by number are played in any case, and
        so are those that failed."""
        folder = Path(os.environ.get("TIDINGS_RESULTS") or HOME / "build" / "timemachine")
        self.path = folder / f"{kind}-{seed}.jsonl"
        self.kind, self.seed, self.total = kind, seed, total
        self.keep = keep and not os.environ.get("TIDINGS_ROUND")
        self.all: dict[int, Result] = {}
        if self.keep:
            folder.mkdir(parents=True, exist_ok=True)
            self.all = {one.round: one for one in self._read() if not one.failed}

    def _read(self) -> list[Result]:
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().splitlines()
        return [msgspec.json.decode(line, type=Result) for line in lines if line.endswith(b"}")]

    def open(self) -> list[int]:
        """The rounds that are still to be played."""
        return [number for number in chosen(self.total) if number not in self.all]

    def put(self, result: Result) -> None:
        self.all[result.round] = result
        if self.keep:
            with self.path.open("ab") as file:
                file.write(msgspec.json.encode(result) + b"\n")
        how = "; ".join(result.reasons)
        say(
            f"  {self.kind} {result.round:4d} {result.seconds:5.1f} s  {result.kind:9s} "
            f"{result.done}: {'FAILED: ' + how if how else result.verdict}"
        )

    def summary(self) -> str:
        """Rounds by what was done and what came of it."""
        found = Counter((one.kind, one.verdict) for one in self.all.values())
        lines = [
            f"{count:4d}  {kind:9s} {verdict}" for (kind, verdict), count in sorted(found.items())
        ]
        seconds = sum(one.seconds for one in self.all.values())
        facts = sum((Counter(one.facts) for one in self.all.values()), Counter[str]())
        told = ", ".join(f"{facts[key]:,} {key}" for key in sorted(facts))
        head = f"{len(self.all)} {self.kind} rounds, TIDINGS_SEED={self.seed}, {seconds:,.0f} s"
        return "\n".join([f"{head}; {told}", *lines])

    def check(self) -> None:
        """AssertionError where a round failed, with how to play it again."""
        say(self.summary())
        failed = [one for number, one in sorted(self.all.items()) if one.failed]
        again = [
            f"TIDINGS_SEED={self.seed} TIDINGS_ROUND={one.round}: {one.done}: "
            + "; ".join(one.reasons)
            for one in failed
        ]
        assert not failed, f"{len(failed)} of {len(self.all)} rounds failed\n" + "\n".join(again)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
