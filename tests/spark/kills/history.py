"""A pipeline with a past, for rounds in which its files are damaged: made once, put back for each.

    work/     in/ subscriptions/ (or snapshot/) out/ checkpoint/ pipeline.toml
    then/     a copy of it after some batches
    now/      a copy of it after more of them, and changes of subscriptions before these

Paths stand in what Spark notes, so every round plays in `work`.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.damage import copy_hot
from tests.spark.kills.scene import ATTRIBUTES, KINDS, PLACES, draw_filter
from tests.spark.kills.victims import Session
from tests.waiting import wait_for

from tidings.snapshots import Snapshot
from tidings.store import ChangeLog

PATIENCE = 300.0  # seconds that a run may take
MARK = 1000  # the price of the first row of each file: everybody in ALWAYS is told of it
ALWAYS = {"always": f"price = {MARK}"}
FILE = """
name = "timemachine"

[source]
kind = "files"
path = "in"
format = "json"
files_per_trigger = 1

[columns]
id = "integer"
price = "integer"
kind = "string"
place = "string"

[subscriptions]
{subscriptions}

[outbox]
path = "out"

[trigger]
available_now = true

[spark]
master = "local[1,2]"

[spark.settings]
"spark.ui.enabled" = "false"
"spark.driver.memory" = "512m"
"""
QUICK = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""A Java process that lives for seconds has better things to do than to optimise itself."""

Event = dict[str, Any]


class Ran:
    """How a run ended."""

    def __init__(self, code: int, said: str) -> None:
        self.code, self.said = code, said
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        self.sentence = errors[0] if len(errors) == 1 else ""

    def fault(self) -> str:
        """Why this is no way to end; nothing where it is one."""
        if self.code not in (0, 2):
            return f"it ended with {self.code}: {self.said[-300:]!r}"
        for word in ("Traceback", "SIGSEGV", "crashed", "Segmentation"):
            if word in self.said:
                return f"it said {word}: {self.said[-400:]!r}"
        if self.code and not self.sentence:
            return f"it refused without one sentence: {self.said[-400:]!r}"
        if len(self.sentence) > 1000:
            return f"its sentence has {len(self.sentence)} characters: {self.sentence[:300]!r}"
        return ""


def run_tidings(folder: Path, *arguments: str) -> Ran:
    """`tidings` in a process of its own, in a session that is ended with it."""
    errors = folder.parent / f"{folder.name}.errors"
    errors.unlink(missing_ok=True)
    session = Session([sys.executable, "-m", "tidings", *arguments], errors, QUICK)
    try:
        ended = wait_for(lambda: not session.alive(), PATIENCE)
    finally:
        session.end()
    said = errors.read_text(errors="replace")
    if not ended:
        return Ran(-1, f"it did not end in {PATIENCE:g} seconds: {said}")
    return Ran(session.process.returncode, said)


class History:
    """See the top of the module."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.work, self.then, self.now = (folder / name for name in ("work", "then", "now"))
        self.fixed = chance.random() < 0.3  # a snapshot instead of a log
        self.states: dict[int, dict[str, str]] = {}  # subscriptions by version
        self.good: dict[str, list[Event]] = {}  # rows by file
        self.bad: dict[str, list[str]] = {}
        self._subscriptions: dict[str, str] = dict(ALWAYS)
        self._ids = 0
        self._kept: tuple[dict[int, dict[str, str]], dict[str, list[Event]], dict[str, list[str]]]

    def make(self) -> None:
        """Two runs, and a copy after each."""
        (self.work / "in").mkdir(parents=True)
        what = 'snapshot = "snapshot"' if self.fixed else 'log = "subscriptions"\nrebuild_after = 4'
        (self.work / "pipeline.toml").write_text(FILE.format(subscriptions=what))
        if self.fixed:
            self._subscriptions |= {f"s{at}": draw_filter(self.chance) for at in range(15)}
            Snapshot.build(self._subscriptions, ATTRIBUTES, number=1).save(self.work / "snapshot")
            self.states[1] = dict(self._subscriptions)
        else:
            self._change(12)
        self.feed(self.chance.randrange(2, 4))
        self._run()
        copy_hot(self.work, self.then)
        self.change(self.chance.randrange(1, 7))
        self.feed(self.chance.randrange(1, 4))
        self._run()
        copy_hot(self.work, self.now)
        self._kept = dict(self.states), dict(self.good), dict(self.bad)
        self._kept_subscriptions = dict(self._subscriptions)

    def put_back(self, chance: random.Random) -> None:
        """Everything is as it was when it was made."""
        shutil.rmtree(self.work)
        shutil.copytree(self.now, self.work)
        self.chance = chance
        self.states, self.good, self.bad = (dict(one) for one in self._kept)  # type: ignore[assignment]
        self._subscriptions = dict(self._kept_subscriptions)
        self._ids = 1_000_000

    def mend_rows(self) -> None:
        """Put files of rows back that were altered: `tidings pipeline verify` says which. A start
        does not read all rows of the past; what it adds must be right, and these be named."""
        for home in ("data", "dead"):
            kept = self.now / "out" / home
            if kept.exists():
                shutil.copytree(kept, self.work / "out" / home, dirs_exist_ok=True)

    def _run(self) -> None:
        ran = self.run()
        assert ran.code == 0, ran.said

    def run(self) -> Ran:
        return run_tidings(self.work, "pipeline", "run", str(self.work / "pipeline.toml"))

    def verify(self) -> Ran:
        return run_tidings(self.work, "pipeline", "verify", str(self.work / "pipeline.toml"))

    @property
    def latest(self) -> int:
        """The version of the last change that was acknowledged."""
        return max(self.states)

    def places(self, area: str) -> Path:
        """Where the files of an area are."""
        subscriptions = self.work / ("snapshot" if self.fixed else "subscriptions")
        snapshots = subscriptions if self.fixed else subscriptions / "snapshots"
        return {
            "outbox": self.work / "out",
            "subscriptions": subscriptions,
            "snapshots": snapshots,
            "checkpoint": self.work / "checkpoint",
        }[area]

    # -- what comes ----------------------------------------------------------------------------

    def change(self, count: int) -> None:
        """Change subscriptions, where these can be changed."""
        if not self.fixed:
            self._change(count)

    def _change(self, count: int) -> None:
        log = ChangeLog(self.work / "subscriptions", ATTRIBUTES)
        if not self.states:
            self.states[log.put_many(self._subscriptions)] = dict(self._subscriptions)
        for _ in range(count):
            id_ = f"s{self.chance.randrange(20)}"
            if id_ in self._subscriptions and self.chance.random() < 0.3:
                del self._subscriptions[id_]
                version = log.drop(id_)
            else:
                self._subscriptions[id_] = draw_filter(self.chance)
                version = log.put(id_, self._subscriptions[id_])
            self.states[version] = dict(self._subscriptions)

    def feed(self, files: int) -> None:
        """Put files of notifications into the folder."""
        for _ in range(files):
            name = f"{len(self.good):06d}.json"
            good = [self._event(MARK)]
            good += [self._event() for _ in range(self.chance.randrange(3, 25))]
            refused = range(self.chance.randrange(2))
            bad = [f'{{"id": {self._next()}, "price": "dear"}}' for _ in refused]
            self.good[name], self.bad[name] = good, bad
            beside = self.work / f".{name}"
            beside.write_text("\n".join([*map(json.dumps, good), *bad]) + "\n")
            beside.rename(self.work / "in" / name)

    def _next(self) -> int:
        self._ids += 1
        return self._ids

    def _event(self, price: int | None = None) -> Event:
        chance = self.chance
        return {
            "id": self._next(),
            "price": chance.randrange(100) if price is None else price,
            "kind": chance.choice(KINDS),
            "place": chance.choice(PLACES),
        }
