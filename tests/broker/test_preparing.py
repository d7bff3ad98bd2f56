"""Filters are read in a thread before their questions wait: in order, and in turns."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from tests.broker.test_backlog import FakeLink
from tests.waiting import until

from tidings.broker import RootNode
from tidings.broker.admission.listen import Door
from tidings.broker.queues import preparing as module
from tidings.broker.queues.preparing import Preparing
from tidings.broker.queues.turns import REST_BEHIND
from tidings.network import Link
from tidings.network.agent import Refusal, connect
from tidings.routing.protocol import messages as m


class Prepared:
    """What was prepared, and what was put on."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds  # that a filter takes
        self.batches: list[list[bytes]] = []
        self.done: list[m.Ask] = []
        self.threads: set[int] = set()
        self.queue = Preparing(self.prepare, lambda _, message: self.done.append(message))

    def prepare(self, filters: Sequence[bytes]) -> list[float]:
        self.threads.add(threading.get_ident())
        self.batches.append([*filters])
        time.sleep(self.seconds * len(filters))
        return [self.seconds] * len(filters)

    async def until_done(self, count: int) -> None:
        await until(lambda: len(self.done) >= count)


def test_what_waits_is_prepared_together() -> None:
    async def work() -> None:
        found, link = Prepared(0.0005), cast(Link, FakeLink())
        asked = [m.Ask(number, b"%d" % number) for number in range(100)]
        for message in asked:
            found.queue.put(link, message)
        assert not found.done
        await found.until_done(100)
        assert found.done == asked
        assert [one for batch in found.batches for one in batch] == [a.interest for a in asked]
        assert 5 <= len(found.batches) < 50
        assert found.threads.isdisjoint({threading.get_ident()})
        await found.queue.stop()

    asyncio.run(work())


def test_publications_that_are_behind_go_first() -> None:
    """Meanwhile groups are small, and the thread rests most of the time; nothing is left out."""

    async def work() -> None:
        is_behind, each = True, module.BRIEF / 2
        found, link = Prepared(each), cast(Link, FakeLink())
        found.queue = Preparing(
            found.prepare, lambda _, message: found.done.append(message), lambda: False,
            lambda: is_behind,
        )  # fmt: skip
        for number in range(30):
            found.queue.put(link, m.Ask(number, b"%d" % number))
        begun = time.monotonic()
        await found.until_done(10)
        # the last group may not have rested yet
        worked = each * (len(found.done) - len(found.batches[-1]))
        assert time.monotonic() - begun >= REST_BEHIND * worked
        assert all(len(batch) <= 2 for batch in found.batches)
        is_behind = False
        await found.until_done(30)
        assert max(map(len, found.batches)) > 2
        assert [one.request for one in found.done] == [*range(30)]
        await found.queue.stop()

    asyncio.run(work())


def test_questions_that_overlap_share_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come one by one. While others are being answered, they wait for each other; the first
    one and those that come alone do not wait."""
    monkeypatch.setattr(module, "PERIOD", 0.5)

    async def work() -> None:
        answering = False
        found, link = Prepared(), cast(Link, FakeLink())
        found.queue = Preparing(
            found.prepare, lambda _, message: found.done.append(message), lambda: answering
        )
        begun = time.monotonic()
        for number in range(3):  # alone
            found.queue.put(link, m.Ask(number, b"%d" % number))
            await found.until_done(number + 1)
            await until(lambda: found.queue._task is None or found.queue._task.done())
        assert len(found.batches) == 3
        answering = True
        for number in range(3, 13):
            found.queue.put(link, m.Ask(number, b"%d" % number))
            await asyncio.sleep(0)
        await found.until_done(13)
        assert [len(batch) for batch in found.batches] == [1, 1, 1, 10]
        assert [one.request for one in found.done] == list(range(13))
        assert time.monotonic() - begun >= 0.5
        await found.queue.stop()

    asyncio.run(work())


def test_a_link_that_closes_while_its_questions_wait_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.05)

    async def work() -> None:
        found, link = Prepared(), cast(Link, FakeLink())
        found.queue = Preparing(
            found.prepare, lambda _, message: found.done.append(message), lambda: True
        )
        found.queue.put(link, m.Ask(1, b"1"))
        await found.until_done(1)
        found.queue.put(link, m.Ask(2, b"2"))
        await asyncio.sleep(0)
        found.queue.forget(link)
        await until(lambda: found.queue._task is not None and found.queue._task.done())
        found.queue.put(link, m.Ask(3, b"3"))
        await found.until_done(2)
        assert [one.request for one in found.done] == [1, 3]
        await found.queue.stop()

    asyncio.run(work())


def test_slow_filters_are_prepared_one_by_one_and_in_turns() -> None:
    """A flood of slow filters delays another owner by the first few of them."""

    async def work() -> None:
        found, flooding, modest = Prepared(0.02), FakeLink(), FakeLink()
        for number in range(40):
            found.queue.put(cast(Link, flooding), m.Ask(number, b"slow", owner="flood"))
        await found.until_done(1)
        found.queue.put(cast(Link, modest), m.Ask(1000, b"mine", owner="modest"))
        await found.until_done(40)
        assert [one.request for one in found.done].index(1000) < 20
        assert all(len(batch) == 1 for batch in found.batches[1:])
        await found.queue.stop()

    asyncio.run(work())


def test_links_that_close_meanwhile() -> None:
    async def work() -> None:
        found, gone, stays = Prepared(0.005), cast(Link, FakeLink()), cast(Link, FakeLink())
        for number in range(30):
            found.queue.put(gone, m.Ask(number, b"gone"))
        await until(lambda: found.batches)
        found.queue.forget(gone)
        found.queue.put(stays, m.Ask(77, b"stays"))
        await found.until_done(1)
        assert [one.request for one in found.done] == [77]
        await found.queue.stop()

    asyncio.run(work())


def test_a_failure_loses_no_question(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        done: list[m.Ask] = []

        def fail(_: Sequence[bytes]) -> list[float]:
            raise ValueError("odd")

        queue = Preparing(fail, lambda _, message: done.append(message))
        for number in range(3):
            queue.put(cast(Link, FakeLink()), m.Ask(number, b""))
        await until(lambda: len(done) == 3)
        assert "could not be prepared" in caplog.text
        await queue.stop()

    asyncio.run(work())


def test_whoever_asks_too_much_is_not_read_from() -> None:
    async def work() -> None:
        found, flooding = Prepared(), FakeLink()
        for number in range(module.MOST_WAITING + 1):
            found.queue.put(cast(Link, flooding), m.Ask(number, b""))
        assert not flooding.reading
        await found.until_done(module.MOST_WAITING + 1)
        assert flooding.reading
        await found.queue.stop()

    asyncio.run(work())


def test_a_root_answers_each_question_once(tmp_path: Path) -> None:
    """Good filters, bad ones and repeated ones, while others are prepared."""

    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door())
        await root.start()
        prepared: list[bytes] = []
        prepare = root._interests.prepare

        def watched(filters: Sequence[bytes]) -> list[float]:
            prepared.extend(filters)
            return prepare(filters)

        root._interests.prepare = watched  # type: ignore[assignment, method-assign]
        address = f"tidings://127.0.0.1:{root.port}"
        async with connect(address) as agent, connect(address) as other:
            some = [agent.subscribe(f"n > {number % 20}") for number in range(60)]
            bad = agent.subscribe("n >")
            for one in some:
                await one.__aenter__()
            with pytest.raises(Refusal, match="expected"):
                await bad.__aenter__()
            async with other.subscribe("n > 3"), other.subscribe("n > 100"):
                assert len(root.machine.registry) == 21
        assert {b"n > 3", b"n >", b"n > 100"} <= {*prepared}
        await root.stop()

    asyncio.run(asyncio.wait_for(work(), 60))
