"""A full disk: publishers get errors, nothing that was acknowledged is lost, and everything
continues when there is room again."""

from __future__ import annotations

import asyncio
import resource
import subprocess
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.kills.tree import ROOT, TIMES, Tree
from tests.waiting import PATIENCE, until, wait_for

from tidings.network.agent import Agent, Refusal, connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery


class Disk(ABC):
    """What a rendezvous point has its journal on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def fill(self, tree: Tree) -> None: ...
    @abstractmethod
    def free(self, tree: Tree) -> None: ...
    @abstractmethod
    def end(self) -> None: ...


class SmallDisk(Disk):
    """A file system of its own, that something else fills up."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        command = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def fill(self, tree: Tree) -> None:
        with (self.folder / "ballast").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self, tree: Tree) -> None:
        (self.folder / "ballast").unlink()

    def end(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


class Limit(Disk):
    """Files that may not become larger: the same to SQLite, with another error."""

    def fill(self, tree: Tree) -> None:
        most = max(one.stat().st_size for one in self.folder.iterdir())
        self._limit(tree, most)

    def free(self, tree: Tree) -> None:
        self._limit(tree, resource.RLIM_INFINITY)

    def end(self) -> None:
        pass

    def _limit(self, tree: Tree, most: int) -> None:
        hard = resource.RLIM_INFINITY
        resource.prlimit(tree.nodes[ROOT].process.pid, resource.RLIMIT_FSIZE, (most, hard))


@pytest.fixture(params=[pytest.param(SmallDisk, marks=pytest.mark.slow), Limit])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    found: Disk = request.param(tmp_path / "disk")
    yield found
    found.end()


class Story:
    """One publisher and what became of what it published; one subscriber."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.number = 0
        self.taken: set[int] = set()
        self.refused: dict[int, str] = {}
        self.told: Counter[int] = Counter()
        self.listens = asyncio.Event()

    async def publish(self, count: int) -> int:
        """Publish some at once; how many were taken."""
        numbers = range(self.number + 1, self.number + count + 1)
        self.number += count
        filler = b" " * 500
        waiting = [self.agent.publish_soon({"n": n}, b"%d" % n + filler) for n in numbers]
        before = len(self.taken)
        for number, one in zip(numbers, waiting, strict=True):
            try:
                await asyncio.wait_for(one, PATIENCE)
                self.taken.add(number)
            except Refusal as problem:
                self.refused[number] = str(problem)
        return len(self.taken) - before

    async def listen(self) -> None:
        async with self.agent.subscribe("n >= 0") as told:
            self.listens.set()
            async for one in told:
                if isinstance(one, Interrupted | Resumed):
                    continue
                assert isinstance(one, Delivery), one
                self.told[int(one.payload)] += 1

    async def check(self) -> None:
        """All that was taken was told, nothing twice; what was refused, once or never."""
        await until(lambda: self.taken <= self.told.keys())
        await asyncio.sleep(1)
        assert self.told.keys() <= self.taken | self.refused.keys()
        assert set(self.told.values()) == {1}


@pytest.mark.timeout(600)
def test_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    tree = Tree(tmp_path, {"i0": ROOT, "e0": "i0"}, journal="disk/journal.db")

    async def fill_and_free(story: Story) -> None:
        assert await story.publish(300) == 300
        disk.fill(tree)
        async with asyncio.timeout(PATIENCE):
            while not story.refused or max(story.refused) < story.number:
                await story.publish(50)
        assert await story.publish(200) == 0  # one after the other is refused, none hangs
        reasons = set(story.refused.values())
        assert all("journal.db can't be written: " in one and "\n" not in one for one in reasons)
        with pytest.raises(Refusal, match=r"journal\.db can't be written"):
            async with story.agent.subscribe(f"n < {story.number}"):
                pass
        disk.free(tree)
        async with asyncio.timeout(PATIENCE):
            while not await story.publish(1):
                assert story.refused[story.number]
                await asyncio.sleep(0.05)
        assert await story.publish(300) == 300
        async with story.agent.subscribe(f"n > {story.number}") as new:
            assert await story.publish(1) == 1
            async for one in new:
                if isinstance(one, Interrupted | Resumed):
                    continue
                assert isinstance(one, Delivery)
                assert int(one.payload) == story.number
                break

    async def work() -> None:
        async with connect(tree.addresses["e0"], times=TIMES) as agent:
            story = Story(agent)
            listening = asyncio.create_task(story.listen())
            await asyncio.wait_for(story.listens.wait(), PATIENCE)
            for _ in range(2):
                await fill_and_free(story)
                tree.check()
            await story.check()
            tree.kill(ROOT)
            tree.start(ROOT)
            assert await story.publish(100) == 100
            await story.check()
            assert not listening.done()
            listening.cancel()

    try:
        for name in tree.names:
            tree.start(name)
        assert wait_for(lambda: all("listens" in one.errors() for one in tree.nodes.values()))
        asyncio.run(work())
    finally:
        tree.end()
