"""Timeouts of agents, notes about the link, and the items of a subscription, while the root is
stopped and started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from socket import create_server

import msgspec
import pytest
from tests.broker.networks import FAST
from tests.network.test_blocking import Root
from tests.waiting import PATIENCE, eventually, until

import tidings
from tidings import Broken, Delivery, Refusal, TimedOut, connect, connect_blocking
from tidings.routing.clients.subscriber import Lost

SOON = 0.2


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    one = Root(tmp_path)
    one.start()
    yield one
    one.end()


def test_a_subscription_is_in_force_at_once(root: Root) -> None:
    """The question of a new agent is answered, not repeated after `retry`."""
    patient = msgspec.structs.replace(FAST, retry=10 * PATIENCE)
    with connect_blocking(root.address, token="secret", times=patient) as agent:
        agent.subscribe("n > 0", timeout=PATIENCE)


def test_a_publication_that_nobody_acknowledges(root: Root) -> None:
    """It is published as soon as it can be, and leaving the agent does not wait for it."""
    with connect_blocking(root.address, token="secret", times=FAST) as agent:
        assert agent.publish({"n": 1}, timeout=30) == 1
        root.stop()
        began = time.monotonic()
        with pytest.raises(TimedOut, match=r"was not acknowledged after 0\.2 seconds") as found:
            agent.publish({"n": 2}, timeout=SOON)
        assert isinstance(found.value, TimeoutError)
        assert isinstance(found.value, tidings.TidingsError)
        assert time.monotonic() - began < PATIENCE / 2
        root.start()
        assert agent.publish({"n": 3}, timeout=60) == 3  # after the second
        root.stop()
        with pytest.raises(TimedOut):
            agent.publish({"n": 4}, timeout=SOON)
    assert time.monotonic() - began < PATIENCE


def test_leaving_waits_for_those_that_did_not_time_out(root: Root) -> None:
    with connect_blocking(root.address, token="secret", times=FAST) as agent:
        root.stop()
        with pytest.raises(TimedOut):
            agent.publish({"n": 1}, timeout=SOON)
        later = agent.publish_soon({"n": 2})
        root.start()
    assert later.result(0) == 2


def test_a_subscription_that_does_not_come_into_force(root: Root) -> None:
    with connect_blocking(root.address, token="secret", times=FAST) as agent:
        root.stop()
        with pytest.raises(TimedOut, match=r"was not confirmed after 0\.2 seconds"):
            agent.subscribe("n > 0", timeout=SOON)
        root.start()
        with agent.subscribe("n > 0", timeout=60) as told:
            assert told.next(SOON) is None
            agent.publish({"n": 1}, b"one")
            found = told.next(60)
            assert isinstance(found, Delivery)
            assert found.payload == b"one"


def test_the_same_with_async(root: Root) -> None:
    words: list[str] = []

    async def work() -> None:
        async with connect(
            root.address, token="secret", times=FAST, timeout=30, on_link=words.append
        ) as agent:
            async with agent.subscribe("n > 0", timeout=30) as told:
                assert await told.next(SOON) is None
                await agent.publish({"n": 1}, b"one", timeout=30)
                assert isinstance(await told.next(30), Delivery)
            assert await told.next() is None  # it is closed
            assert words == []
            await asyncio.to_thread(root.stop)
            await until(lambda: words)
            with pytest.raises(TimedOut, match=r"after 0.2 seconds: .+"):
                await agent.publish({"n": 2}, timeout=SOON)
            with pytest.raises(TimedOut):
                await agent.subscribe("n > 0", timeout=SOON).__aenter__()
            await asyncio.to_thread(root.start)
            await until(lambda: words[-1] == "")
            assert await agent.publish({"n": 3}, timeout=30) == 3
        assert len(words) == 2  # once gone, once back; not at the end

    asyncio.run(work())


def test_the_word_about_the_link_in_a_thread(root: Root) -> None:
    words: list[str] = []
    with connect_blocking(root.address, token="secret", times=FAST, on_link=words.append):
        root.stop()
        eventually(lambda: words and words[-1])
        root.start()
        eventually(lambda: words[-1] == "")
    assert len(words) == 2


def test_a_server_that_does_not_greet() -> None:
    with create_server(("127.0.0.1", 0)) as silent:
        address = f"tidings://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimedOut, match=r"there is no link to 127\.0\.0\.1:\d+ after 0.2 sec"):
            connect_blocking(address, timeout=SOON)


def test_filters_of_other_dialects(root: Root) -> None:
    with connect_blocking(root.address, token="secret", times=FAST) as agent:
        pattern = '{"detail": {"tags": ["red"]}}'
        with agent.subscribe(pattern, "eventbridge", timeout=60) as told:
            agent.publish({"detail": {"tags": ["blue"]}}, b"no")
            agent.publish({"detail": {"tags": ["blue", "red"]}}, b"yes")
            found = told.next(60)
            assert isinstance(found, Delivery)
            assert found.payload == b"yes"
        with pytest.raises(Refusal, match="expected"):
            agent.subscribe('{"detail": 5}', "eventbridge", timeout=60)
        with pytest.raises(Refusal, match="there is no dialect 'latin', expected one of: "):
            agent.subscribe("n > 5", "latin", timeout=60)


def test_names() -> None:
    assert Lost(3).count == Lost(3).numbers == 3
    assert issubclass(Refusal, tidings.TidingsError)
    assert issubclass(Broken, tidings.TidingsError)
    assert tidings.Lost is Lost
