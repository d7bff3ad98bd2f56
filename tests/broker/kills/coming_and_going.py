"""Subscriptions that come and go while preprocessors and their rendezvous point are killed, with
agents that publish in every way, some of them with headers that are out of date.

Each filter is drawn as SQL together with a Python function that says the same, so what each
subscription is due is known without any code of tidings.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from tests.broker.networks import connect_writers
from tests.broker.processes import Process, tell
from tests.broker.test_preprocessors_live import Preprocessor, kill
from tests.waiting import until

from tidings.network import Agent, Header, connect
from tidings.network.agent import Subscription
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery
from tidings.studies.host.ports import free_ports

ROOT = """
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal"
[times]
expire = 7
"""
EDGE = """
name = "edge"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
"""
WORDS = ("a", "ab", "b", "ba")
HIGHEST = 20  # `n` is below it
MOST = 10  # subscriptions at a time
DUE = 90.0  # seconds; a subscription waits for what it is due
REMOVED = 90.0  # seconds; a node that nobody wants is removed after 14
KEPT = 120  # headers
Event = dict[str, Any]
Judge = Callable[[Event], bool]


# -- filters ---------------------------------------------------------------------------------------


def draw_filter(chance: random.Random) -> tuple[str, Judge]:
    """A filter, and what it means."""
    text, judge = _leaf(chance)
    for _ in range(chance.choice((0, 0, 1, 2))):
        text, judge = _joined(chance, (text, judge), _leaf(chance))
    if chance.random() < 0.1:
        return f"NOT ({text})", lambda event: not judge(event)
    return text, judge


def _leaf(chance: random.Random) -> tuple[str, Judge]:
    low, word = chance.randrange(HIGHEST), chance.choice(WORDS)
    high = low + chance.randrange(1, HIGHEST)
    few = {chance.randrange(HIGHEST) for _ in range(3)}
    return chance.choice((
        (f"n > {low}", lambda event: event["n"] > low),
        (f"n <= {low}", lambda event: event["n"] <= low),
        (f"n BETWEEN {low} AND {high}", lambda event: low <= event["n"] <= high),
        (f"n IN ({', '.join(map(str, sorted(few)))})", lambda event: event["n"] in few),
        (f"n % 3 = {low % 3}", lambda event: event["n"] % 3 == low % 3),
        (f"word = '{word}'", lambda event: event["word"] == word),
        (f"word LIKE '{word}%'", lambda event: event["word"].startswith(word)),
        (f"length(word) > {low % 2}", lambda event: len(event["word"]) > low % 2),
    ))  # fmt: skip


def _joined(
    chance: random.Random, one: tuple[str, Judge], other: tuple[str, Judge]
) -> tuple[str, Judge]:
    (text, judge), (more, second) = one, other
    if chance.random() < 0.6:
        return f"({text}) AND ({more})", lambda event: judge(event) and second(event)
    return f"({text}) OR ({more})", lambda event: judge(event) or second(event)


def draw_event(chance: random.Random) -> Event:
    return {"n": chance.randrange(HIGHEST), "word": chance.choice(WORDS)}


# -- what was published, and who is due what -------------------------------------------------------


class Publication(msgspec.Struct):
    payload: bytes
    event: Event
    begun: int
    acknowledged: int


class Wish(msgspec.Struct):
    """A subscription, and when it was asked for, in force, about to end, and over."""

    text: str
    judge: Judge
    asked: int
    subscription: Subscription
    reading: asyncio.Task[None]
    node: int = 0
    in_force: int = -1
    ending: int = -1
    told: Counter[bytes] = msgspec.field(default_factory=Counter)
    other: list[object] = msgspec.field(default_factory=list)

    def must(self, published: Iterable[Publication]) -> set[bytes]:
        """What was published while it was in force, from beginning to end."""
        return {
            one.payload for one in published
            if one.begun > self.in_force and (self.ending < 0 or one.acknowledged < self.ending)
            and self.judge(one.event)
        }  # fmt: skip

    def may(self, published: Iterable[Publication]) -> set[bytes]:
        """The same, and what was published while it came or went."""
        return {
            one.payload for one in published
            if one.acknowledged > self.asked and self.judge(one.event)
        }  # fmt: skip

    def problems(self, published: list[Publication]) -> str:
        told, must, may = {*self.told}, self.must(published), self.may(published)
        twice = [payload for payload, count in self.told.items() if count > 1]
        found = {"missing": must - told, "unwanted": told - may, "twice": twice,
                 "other": self.other}  # fmt: skip
        return "; ".join(f"{self.text}: {what}: {some}" for what, some in found.items() if some)


class Churn:
    """A root, a router, two preprocessors, and agents of all kinds."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._chance = random.Random(seed)
        (self._port,) = free_ports(1)
        self.root = self._start_root()
        self.edge = Process(folder, "edge", EDGE.format(port=self._port))
        self.tagging = [self._start_preprocessor(at) for at in range(2)]
        self._clock = itertools.count()
        self.published: list[Publication] = []
        self.wishes: list[Wish] = []
        self.ended: list[Wish] = []
        self.gone: set[int] = set()  # removed nodes
        self.late = 0  # how many headers were used after a node was removed
        self._headers: deque[tuple[Event, Header, int]] = deque(maxlen=KEPT)

    def _start_root(self) -> Process:
        return Process(self._folder, "root", ROOT.format(port=self._port))

    def _start_preprocessor(self, at: int) -> Preprocessor:
        return Preprocessor(self._folder, f"pre{at}", self._port)

    def stop(self) -> None:
        for one in self.tagging:
            one.process.kill()
        for process in (self.edge, self.root):
            process.stop()

    async def play(self, rounds: int) -> None:
        place = f"tidings://127.0.0.1:{self.edge.port}"
        async with contextlib.AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(connect(place))]
            writers = await connect_writers(stack, place)
            readers.append(writers[2])  # a preprocessor places its filters
            assert await writers[2].preprocessors.wait_for_any(60)
            for _ in range(6):
                await self._subscribe(readers)
            for number in range(rounds):
                # both kinds of victim come in any run of two rounds or more
                what = self._chance.randrange(3) if number > 1 else (2, 0)[number]
                calm = number == rounds - 1 or self._chance.random() < 0.05
                await asyncio.gather(
                    self._kill(what), self._change(readers), self._publish(writers)
                )
                if calm:
                    await self._let_go(writers[1])
                await self._publish(writers)
                await self._drain(self.wishes)
            assert writers[2].preprocessors.asked > 0, "no preprocessor was used"
            for one in self.wishes:
                one.reading.cancel()
            await asyncio.gather(*(one.reading for one in self.wishes), return_exceptions=True)
        found = [one.problems(self.published) for one in (*self.wishes, *self.ended)]
        assert not any(found), "\n".join(filter(None, found))

    # -- changes -------------------------------------------------------------------------------

    async def _kill(self, what: int) -> None:
        """Kill one of the processes, and start it again after a while."""
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        loop = asyncio.get_running_loop()
        if what == 2:
            kill(self.root)
            await asyncio.sleep(self._chance.uniform(0, 0.5))
            self.root = await loop.run_in_executor(None, self._start_root)
        else:
            self.tagging[what].kill()
            await asyncio.sleep(self._chance.uniform(0, 0.5))
            self.tagging[what] = await loop.run_in_executor(None, self._start_preprocessor, what)

    async def _change(self, readers: list[Agent]) -> None:
        for _ in range(self._chance.randrange(2, 5)):
            if len(self.wishes) > self._chance.randrange(1, MOST):
                await self._end()
            else:
                await self._subscribe(readers)

    async def _subscribe(self, readers: list[Agent]) -> None:
        text, judge = draw_filter(self._chance)
        if self.wishes and self._chance.random() < 0.2:  # two subscriptions share a node
            other = self._chance.choice(self.wishes)
            text, judge = other.text, other.judge
        subscription = self._chance.choice(readers).subscribe(text)
        wish = Wish(text, judge, next(self._clock), subscription, None)  # type: ignore[arg-type]
        await subscription.__aenter__()
        wish.reading = asyncio.create_task(self._read(wish))
        wish.in_force, wish.node = next(self._clock), subscription.node
        self.wishes.append(wish)

    async def _end(self) -> None:
        """End a subscription, after it got what it is due by now."""
        wish = self.wishes.pop(self._chance.randrange(len(self.wishes)))
        wish.ending = next(self._clock)
        await self._drain([wish])
        wish.subscription.close()
        await wish.reading
        self.ended.append(wish)

    async def _let_go(self, agent: Agent) -> None:
        """End subscriptions until a node is wanted by nobody, and wait until the agent that tags by
        itself has seen that it is gone."""
        while not self._left_nodes() - self.gone and self.wishes:
            await self._end()
        wanted = {one.node for one in self.wishes}
        await until(lambda: agent.view.copy_nodes()[1].keys() <= wanted, REMOVED)
        self.gone |= self._left_nodes()

    def _left_nodes(self) -> set[int]:
        """The nodes that nobody wants any more."""
        return {one.node for one in self.ended} - {one.node for one in self.wishes} - {0}

    async def _read(self, wish: Wish) -> None:
        async for one in wish.subscription:
            if isinstance(one, Delivery):
                wish.told[one.payload] += 1
            elif not isinstance(one, Interrupted | Resumed):
                wish.other.append(one)

    async def _drain(self, wishes: list[Wish]) -> None:
        """Wait until everything that is due has come."""
        for wish in wishes:
            due = wish.must(self.published)
            try:
                await until(lambda wish=wish, due=due: due <= wish.told.keys(), DUE)  # type: ignore[misc]
            except TimeoutError:
                raise AssertionError(wish.problems(self.published)) from None

    # -- publications --------------------------------------------------------------------------

    async def _publish(self, writers: list[Agent]) -> None:
        for writer in self._chance.sample(writers, len(writers)):
            events = [draw_event(self._chance) for _ in range(100)]
            await asyncio.gather(*(self._publish_one(writer, event) for event in events[:15]))
            pairs = [(event, b"%d" % next(self._clock)) for event in events[15:]]
            begun = next(self._clock)
            await writer.publish_many(pairs)
            for event, payload in pairs:
                self._note(event, payload, begun)
        local = writers[1]
        for event, header, gone in [*self._headers]:
            if self._chance.random() < 0.5:
                await self._publish_one(local, event, header)
                self.late += gone < len(self.gone)
        for _ in range(30):
            event = draw_event(self._chance)
            self._headers.append((event, await local.header(event), len(self.gone)))

    async def _publish_one(self, writer: Agent, event: Event, header: Header | None = None) -> None:
        begun = next(self._clock)
        payload = b"%d" % begun
        await writer.publish(event, payload, header=header)
        self._note(event, payload, begun)

    def _note(self, event: Event, payload: bytes, begun: int) -> None:
        self.published.append(Publication(payload, event, begun, next(self._clock)))


def come_and_go(folder: Path, seed: int, rounds: int) -> None:
    """Nothing is lost, doubled or unwanted."""
    churn = Churn(folder, seed)
    try:
        asyncio.run(asyncio.wait_for(churn.play(rounds), 180 + 60 * rounds))
        assert churn.gone, "no node was removed"
        assert churn.late, "no header was older than the removal of a node"
        assert [one.stop() for one in churn.tagging] == [0, 0]
        assert "could not" not in churn.root.log() + churn.edge.log()
    finally:
        churn.stop()
    tell(f"{rounds} rounds: {len(churn.published):,} notifications, {len(churn.wishes)} of "
         f"{len(churn.wishes) + len(churn.ended)} subscriptions left, {len(churn.gone)} nodes "
         f"removed, {churn.late} headers from before a removal")  # fmt: skip
