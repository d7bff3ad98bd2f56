"""Which channels of a router have a locator, by a clock that the test sets: channels without
preprocessors must not keep others from getting one."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.broker.networks import running

from tidings.broker.links import locators
from tidings.broker.links.locators import FRUITLESS, LONGEST_REST, MOST, Locators
from tidings.network import Preprocessors
from tidings.routing.forwarding.locating import Locating
from tidings.routing.protocol import Times, messages as m


class Channels:
    """A router with channels, in which each tick takes a second and needs a place."""

    def __init__(self, names: list[str]) -> None:
        self.awake: dict[str, Any] = {}
        self.now = 0.0
        self.tasks: set[asyncio.Task[Any]] = set()
        for name in ["own", *names]:
            self.wake(name)
        node = SimpleNamespace(
            channels=self, own=self.awake["own"], send_above=lambda *_: True,
            take_places=lambda *_: None,
        )  # fmt: skip
        self.locators = Locators(
            cast(Any, node), m.Hello("edge"), Times(), None, self.spawn, clock=lambda: self.now
        )

    def wake(self, name: str) -> None:
        machine = SimpleNamespace(locating=Locating())
        self.awake[name] = SimpleNamespace(name=name, machine=machine)

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        return task

    def tick(self, *, lacks: bool = True) -> set[str]:
        """The channels with a locator, after another second."""
        self.now += 1
        if lacks:
            for one in self.awake.values():
                one.machine.locating.begin(7)
        self.locators.tend()
        return {name for name, one in self.awake.items() if self.locators.find(one) is not None}

    def find(self, name: str) -> None:
        """A preprocessor of a channel is found."""
        locator = self.locators.find(self.awake[name])
        assert locator is not None
        link = cast(Any, SimpleNamespace(close=lambda _: None, send=lambda _: None))
        locator.preprocessors._links["tidings://pre"] = link

    async def end(self) -> None:
        self.locators.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def test_channels_without_preprocessors_starve_no_other() -> None:
    """Three times as many channels as locators, each always with new nodes: each gets its turn,
    those with a preprocessor keep their locator, and there are never too many."""

    async def work() -> None:
        router = Channels([f"c{number}" for number in range(3 * MOST)])
        good = {f"c{number}" for number in range(0, 3 * MOST, 10)}
        begun: dict[str, int] = {}
        before: set[str] = set()
        for _ in range(round(12 * FRUITLESS)):
            found = router.tick()
            assert "own" in found
            assert len(found) == len(router.locators) <= MOST
            assert before & good <= found
            for name in found - before:
                begun[name] = begun.get(name, 0) + 1
                if name in good:
                    router.find(name)
            before = found
        assert good <= before
        assert begun.keys() == router.awake.keys()
        assert all(begun[name] == 1 for name in good | {"own"})
        await router.end()

    running(work)


def test_a_channel_rests_twice_as_long_each_time(seed: int) -> None:
    async def work() -> None:
        chance = random.Random(seed)
        router = Channels(["tea"])
        rests = []
        for _ in range(9):
            begun = router.now
            while "tea" in router.tick():
                pass
            assert router.now - begun <= FRUITLESS + 3
            assert router.awake["tea"].machine.locating.lacked == 0
            begun = router.now
            if chance.random() < 0.3:
                router.wake("tea")  # it slept in between
            while "tea" not in router.tick():
                pass
            rests.append(router.now - begun)
        due = [min(FRUITLESS * 2**at, LONGEST_REST) for at in range(9)]
        assert rests == due
        router.find("tea")
        assert "tea" in router.tick()
        router.locators.find(router.awake["tea"]).preprocessors._links.clear()  # type: ignore[union-attr]
        begun = router.now
        while "tea" in router.tick():
            pass
        assert router.now - begun > FRUITLESS  # it had one until then
        for _ in range(round(2 * FRUITLESS)):
            assert "tea" not in router.tick(lacks=False)  # it needs none
        assert "tea" in router.tick()
        await router.end()

    running(work)


def test_few_rests_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locators, "MOST_RESTS", 5)

    async def work() -> None:
        router = Channels([f"c{number}" for number in range(20)])
        for _ in range(round(4 * FRUITLESS)):
            router.tick()
            assert len(router.locators._rests) <= 5
        await router.end()

    running(work)


def test_searches_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            raise EOFError

    async def work() -> None:
        for longest, due in ((0.0, [1.0] * 6), (10.0, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0])):
            pauses.clear()
            some = Preprocessors(lambda _: True, m.Hello("x"), Times(), pause=1.0, longest=longest)
            with monkeypatch.context() as patched:
                patched.setattr(asyncio, "sleep", sleep)
                with pytest.raises(EOFError):
                    await some.seek_forever()
            assert pauses == due

    running(work)
