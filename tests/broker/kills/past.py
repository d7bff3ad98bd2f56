"""The time machine: a small tree and agents that stay, while its rendezvous point goes back.

              root  <- journal, which is copied, put back, cut, flipped, zeroed, swapped, deleted
             /    \\
    s0     r1      r2     routers: they stay, start anew, or sleep through it
         p s1     s2 s3   agents in this process; some of them do not read for a while

A round: publish, copy the journal at some moment, publish more, end the root, do something to the
files, start the root, publish more until everybody hears again, wait until all is quiet, judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from tests import damage
from tests.broker.kills.accounts import FOR_ALL, INTERESTS, Account, Book, payload_of
from tests.broker.kills.tree import ROOT, Process, Tree
from tests.rounds import Result, chance_of
from tests.waiting import until

from tidings.network.agent import Agent, Refusal, Subscription, connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.protocol.lineage import Break
from tidings.routing.protocol.times import Times

TIMES = Times(beat=0.2, resubscribe=0.4, retry=0.4, silent=1.5, expire=60.0, request=5.0)
ROUTERS = ("r1", "r2")
PLACES = (ROOT, "r1", "r2", "r2")  # of the subscribers
LAGGING = (0, 3)  # those that may be behind: at the root, and at a router
MOST_UNREAD = 150  # of these
PATIENCE = 40.0  # seconds for whatever must happen in the end
START = 60.0  # seconds in which a node must listen, or have ended
KINDS = {
    "nothing": 5, "back": 7, "older": 3, "some": 5, "cut": 6, "flip": 6, "zero": 5, "swap": 3,
    "delete": 3, "gone": 1,
}  # fmt: skip
"""What is done to the files, and how often each is drawn."""


class Plan(msgspec.Struct):
    """What is done in a round."""

    kind: str
    before: int  # notifications, before the copy,
    between: int  # between it and the end of the root,
    under_way: int  # those of them that are not waited for,
    after: int  # and after its start
    size: int  # bytes of a payload, at most
    cold: bool  # is the root stopped for the copy?
    kill: bool  # or stopped
    twice: bool  # something is done twice
    routers: dict[str, str]  # stays, restarts before or after the root, sleeps
    lagging: list[int]

    @classmethod
    def draw(cls, seed: int, number: int) -> Plan:
        chance = chance_of(seed, number, "plan")
        kind = chance.choices([*KINDS], [*KINDS.values()])[0]
        large = chance.random() < 0.04
        fates = ["stays"] * 6 + ["before", "after", "sleeps"]
        return cls(
            kind,
            before=chance.randrange(5, 250),
            between=chance.randrange(0, 250),
            under_way=chance.choice((0, 0, 10, 60)),
            after=chance.randrange(1, 150),
            size=60_000 if large else chance.choice((20, 200, 2000)),
            cold=chance.random() < 0.1,
            kill=chance.random() < 0.6,
            twice=chance.random() < 0.15,
            routers={name: chance.choice(fates) for name in ROUTERS},
            lagging=[at for at in LAGGING if chance.random() < 0.5],
        )


class Failed(Exception):
    """The round can't go on, and why that is a fault."""


class World:
    """A tree in a folder, for some rounds."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.tree = Tree(
            folder, dict.fromkeys(ROUTERS, ROOT), times=TIMES, journal="store/journal.db"
        )
        self.store = folder / "store"
        self.book = Book()
        self.accounts: list[Account] = []
        self.reading: list[asyncio.Event] = []  # whether each of them reads
        self.older: list[Path] = []  # copies of the journal
        self._stack = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._marks: dict[str, int] = {}  # how much of what a node says was before this round
        self._publisher: Agent
        self._refusals = 0  # times that the root would not start
        self._asleep: list[str] = []

    async def __aenter__(self) -> World:
        try:
            for name in self.tree.names:
                await self._start(name)
            self._publisher = await self._connect("r1", on_break=self._on_break)
            for at, (place, (text, wants)) in enumerate(zip(PLACES, INTERESTS, strict=True)):
                agent = await self._connect(place)
                most = MOST_UNREAD if at in LAGGING else 100_000
                told = await self._stack.enter_async_context(agent.subscribe(text, most=most))
                self.accounts.append(Account(f"s{at}", wants, self.book))
                self.reading.append(asyncio.Event())
                self._tasks.append(asyncio.create_task(self._read(at, told)))
        except BaseException:
            await self.end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._wake()
        with contextlib.suppress(Exception):
            await self._stack.aclose()
        self.tree.end()

    async def _connect(self, place: str, **more: Any) -> Agent:
        address = self.tree.addresses[place]
        return await self._stack.enter_async_context(connect(address, times=TIMES, **more))

    def _on_break(self, what: Break) -> None:
        self.book.put_break((span.first, span.last) for span in what.stamps)

    async def _read(self, at: int, told: Subscription) -> None:
        async for what in told:
            await self.reading[at].wait()
            if not isinstance(what, Interrupted | Resumed):
                self.accounts[at].put(what)

    # -- a round -------------------------------------------------------------------------------

    async def play(self, number: int) -> Result:
        began, plan = time.monotonic(), Plan.draw(self.seed, number)
        result = Result(number, plan.kind, "", "", 0.0, [], {})
        self.book.begin_round()
        for account in self.accounts:
            account.begin_round()
        for name in self.tree.names:
            self._marks[name] = len(self._said_by(name))
        try:
            await self._play(plan, number, result)
        except Failed as problem:
            result.reasons.append(str(problem))
        except Exception as problem:
            result.reasons.append(f"{type(problem).__name__}: {problem}")
        finally:
            self._wake()
        for name in self.tree.names:
            if "Traceback" in self._news_of(name):
                last = self._news_of(name).strip().splitlines()[-1]
                result.reasons.append(f"a traceback of {name}: {last}")
        result.verdict = "failed" if result.reasons else result.verdict
        result.seconds = round(time.monotonic() - began, 2)
        return result

    async def _play(self, plan: Plan, number: int, result: Result) -> None:
        chance = chance_of(self.seed, number, "moments")
        for at, reads in enumerate(self.reading):
            reads.clear() if at in plan.lagging else reads.set()
        backup = self.folder / f"copy-{number}"
        await self._publish(plan.before, plan, chance)
        if plan.cold:
            await self._end_root(kill=False)
            damage.copy_hot(self.store, backup)
            await self._start(ROOT)
        else:
            copying = asyncio.to_thread(damage.copy_hot, self.store, backup)
            copied = asyncio.create_task(copying)
            await self._publish(plan.between // 2, plan, chance)
            await copied
        await self._publish(plan.between // 2, plan, chance)
        for name, fate in plan.routers.items():
            if fate == "sleeps":
                self.tree.nodes[name].process.send_signal(signal.SIGSTOP)
                self._asleep.append(name)
        under_way = [self._say(plan, chance) for _ in range(plan.under_way)]
        await asyncio.sleep(chance.choice((0.0, 0.0, 0.005, 0.05)))
        await self._end_root(kill=plan.kill)
        before = damage.print_of([self.store])
        result.done = self._damage(plan, backup, chance_of(self.seed, number, "damage"))
        untouched = damage.print_of([self.store]) == before
        for name, fate in plan.routers.items():
            if fate == "before":
                self.tree.kill(name)
                await self._start(name)
        refusal = await self._start_root()
        for name, fate in plan.routers.items():
            if fate == "after":
                self.tree.kill(name)
                await self._start(name)
        after = asyncio.create_task(self._publish(plan.after, plan, chance))
        await asyncio.sleep(chance.choice((0.0, 0.3)))
        self._wake()
        for reads in self.reading:
            reads.set()
        await after
        await self._acknowledged(under_way)
        await self._settle(chance, plan, must_break=bool(refusal))
        self._judge(result, refusal, untouched=untouched)

    def _damage(self, plan: Plan, backup: Path, chance: random.Random) -> str:
        done = []
        for kind in [plan.kind, *([chance.choice([*damage.SMALL])] if plan.twice else [])]:
            if plan.kind == "nothing":
                continue
            files = damage.files_in([self.store], lambda path: "aside" in path.parts)
            with contextlib.suppress(damage.Missed):
                if kind == "back":
                    done.append(damage.put_back(self.store, backup))
                elif kind == "older":
                    copy = chance.choice([*self.older, backup])
                    done.append(f"{damage.put_back(self.store, copy)} as of {copy.name}")
                elif kind == "some":
                    done.append(damage.put_back_some(self.store, backup, chance))
                elif kind == "gone":
                    shutil.rmtree(self.store)
                    done.append("the journal removed")
                else:
                    done.append(damage.SMALL[kind](files, chance))
        self.older.append(backup)
        if len(self.older) > 4:
            shutil.rmtree(self.older.pop(0))
        how = "killed" if plan.kill else "stopped"
        fates = [f"{name} {fate}" for name, fate in plan.routers.items() if fate != "stays"]
        lag = [f"s{at} behind" for at in plan.lagging]
        return ", ".join([how, *done, *fates, *lag])

    async def _settle(self, chance: random.Random, plan: Plan, *, must_break: bool) -> None:
        """Wait until everybody hears again and nothing is missing that nobody named."""
        settled = partial(self._is_settled, must_break=must_break)
        late = time.monotonic() + PATIENCE
        while time.monotonic() < late:
            while (self.book.said + 1) % 100 not in FOR_ALL:
                self.book.said += 1  # numbers that nobody says
            await self._acknowledged([self._say(plan, chance)])
            with contextlib.suppress(TimeoutError):
                await until(partial(settled, self.book.said), 0.6)
                break
        last = [self._say(plan, chance) for _ in range(10)]
        await self._acknowledged(last)
        with contextlib.suppress(TimeoutError):
            await until(partial(settled, self.book.said), 5.0)
        await asyncio.sleep(2 * TIMES.beat)  # for what must not come

    def _is_settled(self, beacon: int, *, must_break: bool) -> bool:
        return all(
            one.is_settled()
            and (one.has(beacon) or not one.wants(beacon))
            and (one.new_breaks or not must_break)
            for one in self.accounts
        )

    def _judge(self, result: Result, refusal: str, *, untouched: bool) -> None:
        book, accounts = self.book, self.accounts
        for account in accounts:
            result.reasons += account.judge(untouched=untouched)
            if refusal and not account.new_breaks:
                result.reasons.append(f"{account.name} got no break from an empty journal")
        if untouched and (book.breaks or refusal):
            result.reasons.append(refusal or "the publisher was told of a break for nothing")
        breaks, lost = sum(one.new_breaks for one in accounts), sum(one.lost for one in accounts)
        result.facts = {
            "acknowledged": len(book.due()),
            "delivered": sum(one.told for one in accounts),
            "breaks": breaks,
            "lost": lost,
            "stamps named": sum(last - first + 1 for first, last in book.named),
        }
        words = [("a break", breaks), ("lost ones", lost), ("stamps named", book.breaks)]
        told = " and ".join(word for word, count in words if count) or "nothing missed"
        result.verdict = f"refused, then {told}" if refusal else told
        if untouched:
            result.verdict += ", untouched"

    # -- publishing ----------------------------------------------------------------------------

    def _say(self, plan: Plan, chance: random.Random) -> asyncio.Future[int]:
        self.book.said += 1
        number = self.book.said
        size = plan.size if plan.size > 2000 else chance.randrange(plan.size)
        payload = payload_of(number, size)
        future = self._publisher.publish_soon({"n": number, "k": number % 100}, payload)
        future.add_done_callback(lambda done: self._note(number, done))
        return future

    def _note(self, number: int, done: asyncio.Future[int]) -> None:
        if done.cancelled():
            return
        if isinstance(done.exception(), Refusal):
            self.book.refused += 1
        elif done.exception() is None:
            self.book.acknowledged[number] = done.result()

    async def _publish(self, count: int, plan: Plan, chance: random.Random) -> None:
        waiting = []
        for at in range(count):
            waiting.append(self._say(plan, chance))
            if at % 25 == 24:
                await asyncio.sleep(chance.choice((0.0, 0.0, 0.02)))
        await self._acknowledged(waiting)

    async def _acknowledged(self, waiting: list[asyncio.Future[int]]) -> None:
        if not waiting:
            return
        _, late = await asyncio.wait(waiting, timeout=PATIENCE)
        if late:
            raise Failed(f"{len(late)} were not acknowledged in {PATIENCE:g} seconds")

    # -- nodes ---------------------------------------------------------------------------------

    def _said_by(self, name: str) -> str:
        path = self.folder / f"{name}.errors"
        return path.read_text(errors="replace") if path.exists() else ""

    def _news_of(self, name: str) -> str:
        """What a node said in this round."""
        return self._said_by(name)[self._marks.get(name, 0) :]

    def _wake(self) -> None:
        for name in self._asleep:
            self.tree.nodes[name].process.send_signal(signal.SIGCONT)
        self._asleep.clear()

    async def _start(self, name: str) -> Process:
        """Start a node; it listens, or it has ended."""
        before = len(self._said_by(name))
        self.tree.start(name)
        node = self.tree.nodes[name]
        try:
            await until(
                lambda: "listens on" in self._said_by(name)[before:] or not node.alive(), START
            )
        except TimeoutError:
            raise Failed(f"{name} neither listens nor ends in {START:g} seconds") from None
        return node

    async def _start_root(self) -> str:
        """Start the root. Where it refuses, it must say so in one sentence; then its journal is
        moved away, as an operator would. The sentence, or nothing."""
        before = len(self._said_by(ROOT))
        node = await self._start(ROOT)
        if node.alive():
            return ""
        said = self._said_by(ROOT)[before:].strip()
        code = node.process.returncode
        if code < 0 or "Traceback" in said or not said or said.count("\n"):
            raise Failed(f"the root ended with {code} and said: {said[-300:]!r}")
        self._refusals += 1
        self.store.rename(self.folder / f"moved-{self._refusals}")
        node = await self._start(ROOT)
        if not node.alive():
            raise Failed(f"the root does not start without a journal: {node.errors()[-300:]}")
        return said

    async def _end_root(self, *, kill: bool) -> None:
        node = self.tree.nodes.pop(ROOT)
        if not node.alive():
            raise Failed(f"the root ended by itself: {self._news_of(ROOT)[-300:]!r}")
        if kill:
            node.kill()
            return
        node.process.send_signal(signal.SIGTERM)
        try:
            await until(lambda: not node.alive(), 20.0)
        except TimeoutError:
            node.kill()
            raise Failed("the root did not end within 20 seconds of SIGTERM") from None
