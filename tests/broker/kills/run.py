"""A run: a tree under load, in which nodes are killed at random moments; judged at the end.

root, inner, edge   one node of that kind
several             two to five nodes at one stroke, of any kind
again               a node, and once more while it starts
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from tests.broker.kills.board import FINISH, PUBLISH, PUBLISHERS, STOP, Board
from tests.broker.kills.notes import KEPT, Verdict
from tests.broker.kills.tree import ABOVE, Process, Tree, kind_of
from tests.waiting import wait_for

KINDS = {"root": 4, "inner": 2, "edge": 2, "several": 2, "again": 1}
"""Kinds of kills, and how often each is drawn."""
PATIENCE = 120.0  # seconds that a tree is given to get on after a kill
WRITERS = [["root", "i1"], ["e0", "e3"]]  # by process: where its publishers are
READERS = [["e0", "e1", "e2", "e3"], ["e3", "e2", "i0", "root"]]
AT_ROUTERS = {"writers": [["i0", "i1"], ["e0", "e3"]], "readers": [["e0", "e1", "e2", "e3"],
              ["e3", "e2", "i0", "i2"]]}  # fmt: skip
"""Where everyone is with several channels: no rendezvous point has all of them."""


class Run:
    """One tree in one folder, from the first notification to the verdict."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        visitors: int = 2,
        tree: Tree | None = None,
        pace: int = 1_000_000,
    ) -> None:
        """`pace` is how many a publisher publishes in a second, at most."""
        self.folder = folder
        self.seed = seed
        self.visitors = visitors
        self.pace = pace
        self.chance = random.Random(seed)
        self.killed: Counter[str] = Counter()  # nodes, by kind
        self.strokes: Counter[str] = Counter()  # kills, by kind
        self.tree = tree or Tree(folder, ABOVE)
        self.board = Board(folder / "board")
        self.agents: list[Process] = []
        self.verdicts: list[Verdict] = []
        self._began = time.monotonic()

    def say(self, line: str) -> None:
        sys.stdout.write(f"  {time.monotonic() - self._began:6.1f} s  {line}\n")
        sys.stdout.flush()

    def go(
        self,
        kills: int,
        notifications: int,
        *,
        pause: float = 3.0,
        rest: float = 4.0,
        readers: Sequence[Sequence[str]] = READERS,
        writers: Sequence[Sequence[str]] = WRITERS,
    ) -> None:
        """Kill at least as often as told, and until as many are published; let it come to rest;
        judge."""
        self.say(f"TIDINGS_SEED={self.seed}: {kills} kills, {notifications:,} notifications")
        try:
            self.begin(readers, writers)
            while self.strokes.total() < kills or self.board.total() < notifications:
                self._await_moment(rest)
                kind = self.chance.choices([*KINDS], [*KINDS.values()])[0]
                names = self._kill(kind, pause)
                self.strokes[kind] += 1
                number, total = self.strokes.total(), self.board.total()
                self.say(f"{number:3d}. {kind:8s} {' '.join(names):20s} {total:9,} acknowledged")
            self.finish()
        finally:
            self.end()
        self.judge()

    # -- from beginning to end -----------------------------------------------------------------

    def begin(
        self,
        readers: Sequence[Sequence[str]] = READERS,
        writers: Sequence[Sequence[str]] = WRITERS,
    ) -> None:
        """Start everything, and publish."""
        for name in self.tree.names:
            self.tree.start(name)
        listening = [self.folder / f"{name}.errors" for name in self.tree.names]
        assert wait_for(
            lambda: all("listens" in one.read_text() for one in listening), 3 * PATIENCE
        )  # many processes start at once
        times = msgspec.json.encode(self.tree.times).decode()
        kept, channels = iter(range(len(KEPT))), ",".join(self.tree.channels)
        for number, places in enumerate(readers):
            each = [f"{next(kept)}={self.tree.addresses[place]}" for place in places]
            more = [str(number), str(self.seed), str(self.visitors), channels, *each]
            self._agent(f"reader-{number}", ["tests.broker.kills.reader", times, *more])
        self._await_agents()
        rest = iter(range(PUBLISHERS))
        for number, places in enumerate(writers):
            each = [f"{next(rest)}={self.tree.addresses[place]}" for place in places]
            name = f"writer-{number}"
            more = [name, str(self.pace), channels, *each]
            self._agent(name, ["tests.broker.kills.writer", times, *more])
        self._await_agents()  # nothing is killed before they are there
        self.board.stage = PUBLISH
        self.say("everyone is there")

    def _agent(self, name: str, command: list[str]) -> None:
        module, *arguments = command
        command = ["-m", module, str(self.folder), *arguments]
        self.agents.append(Process(self.folder, name, command, self.tree.within(name)))

    def _await_agents(self) -> None:
        ready = [self.folder / f"{one.name}.ready" for one in self.agents]
        assert self._wait(lambda: all(one.exists() for one in ready)), self._errors()

    def finish(self) -> None:
        """Publish no more; wait until all are acknowledged, then until all are told."""
        self.board.stage = STOP
        writers = [one for one in self.agents if one.name.startswith("writer")]
        assert self._wait(lambda: not any(one.alive() for one in writers)), self._errors()
        self.say(f"all {self.board.total():,} are acknowledged")
        self.board.stage = FINISH
        assert self._wait(lambda: not any(one.alive() for one in self.agents), 2), self._errors()
        failed = [one.name for one in self.agents if one.process.returncode]
        assert not failed, self._errors()
        self.tree.check()

    def end(self) -> None:
        for one in self.agents:
            one.kill()
        self.tree.end()

    def judge(self) -> None:
        for path in sorted(self.folder.glob("reader-*.json")):
            self.verdicts += msgspec.json.decode(path.read_bytes(), type=list[Verdict])
        told = sum(one.told for one in self.verdicts)
        seconds = time.monotonic() - self._began
        strokes = ", ".join(f"{count} {kind}" for kind, count in self.strokes.most_common())
        nodes = ", ".join(f"{count} {kind}" for kind, count in self.killed.most_common())
        self.say(
            f"{self.strokes.total()} kills ({strokes}) of {self.killed.total()} nodes ({nodes})"
        )
        self.say(f"{self.board.total():,} acknowledged, {told:,} told to {len(self.verdicts)} "
                 f"subscriptions, in {seconds:.0f} s; TIDINGS_SEED={self.seed}")  # fmt: skip
        wrong = [one for one in self.verdicts if not one.right]
        assert not wrong, wrong

    # -- kills ---------------------------------------------------------------------------------

    def _await_moment(self, rest: float) -> None:
        """Some of what is published must get through; then a random moment."""
        self.progress(1 + self.chance.randrange(2000))
        time.sleep(self.chance.uniform(0, rest))

    def _kill(self, kind: str, pause: float) -> list[str]:
        everyone = self.tree.names
        if kind == "several":
            names = self.chance.sample(everyone, self.chance.randrange(2, 6))
        elif kind == "again":
            names = [self.chance.choice(everyone)]
        else:
            names = [self.chance.choice([one for one in everyone if kind_of(one) == kind])]
        for name in names:
            self.tree.kill(name)
            self.killed[kind_of(name)] += 1
        self.chance.shuffle(names)
        for name in names:
            time.sleep(self.chance.choice([0, self.chance.uniform(0, pause)]) / len(names))
            self.tree.start(name)
        if kind == "again":
            time.sleep(self.chance.uniform(0, 1.5))
            self.tree.kill(names[0])
            self.killed[kind_of(names[0])] += 1
            self.tree.start(names[0])
        return names

    # -- how far it is -------------------------------------------------------------------------

    def progress(self, more: int) -> None:
        """Wait until more are acknowledged: whatever was killed, it goes on."""
        goal = self.board.total() + more
        assert self._wait(lambda: self.board.total() >= goal), f"it stands still: {self._errors()}"

    def progress_everywhere(self) -> None:
        """Wait until every publisher has got on."""
        before = [self.board.acknowledged(one) for one in range(PUBLISHERS)]
        assert self._wait(
            lambda: all(
                self.board.acknowledged(one) > count for one, count in enumerate(before) if count
            )
        ), f"it stands still: {self._errors()}"

    def _wait(self, what: object, patience: float = 1.0) -> bool:
        assert callable(what)

        def look() -> bool:
            self.tree.check()
            dead = [one for one in self.agents if one.process.poll() not in (None, 0)]
            assert not dead, self._errors()
            return bool(what())

        return wait_for(look, patience * PATIENCE)

    def _errors(self) -> str:
        everyone = [*self.agents, *self.tree.nodes.values()]
        return "\n".join(f"{one.name}: {one.errors()[-600:]}" for one in everyone)
