"""Filters of a journal that are refused now: the root starts, and their owners are told."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped

from tidings.broker import Address, Door, RootNode
from tidings.channel.interests import MOST_TOLD, ArrayInterests
from tidings.channel.interests.reading import Filters
from tidings.filters import Attributes, Filter, parse
from tidings.network.agent import Refusal, Subscription, connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.protocol.lineage import Break

OLD = "s RLIKE '(?=a)b'"


async def only_breaks(subscription: Subscription) -> None:
    async for one in subscription:
        assert isinstance(one, Break | Interrupted | Resumed)


def as_before(self: Filters, interest: bytes) -> Filter:
    """What an engine that goes back made of it."""
    return parse("s = 'b'" if b"(?=" in interest else interest.decode())


def test_a_root_starts_without_a_filter_that_it_refuses_now(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        patched = pytest.MonkeyPatch()
        patched.setattr(Filters, "read", as_before)
        root, (router,) = await started(tmp_path, 1)
        port = root.port
        async with (
            connect(at(router), times=FAST) as agent,
            agent.subscribe(OLD) as old,
            agent.subscribe("n > 0") as told,
        ):
            await agent.publish({"n": 1, "s": "b"}, b"1")
            assert await payloads(old, 1) == await payloads(told, 1) == [b"1"]
            await root.stop()
            patched.undo()
            door = Door(Address("127.0.0.1", port))
            again = RootNode("root", tmp_path / "journal.db", door, times=FAST)
            await again.start()
            interests = again.machine.interests
            assert isinstance(interests, ArrayInterests)
            assert [one.text for one in interests.refused.values()] == [OLD]
            with pytest.raises(Refusal, match="a lookahead: write the two conditions"):
                await only_breaks(old)
            await agent.publish({"n": 2, "s": "b"}, b"2")
            assert await payloads(told, 1) == [b"2"]
        await stopped((again, [router]))

    with caplog.at_level(logging.WARNING):
        running(work)
    assert "is now refused and was set aside" in caplog.text


def test_few_are_told_of_and_the_rest_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    stored = [(n, f"s RLIKE '(?=a{n})'".encode()) for n in range(1, 301)]
    stored += [(301, b"n > 1"), (302, b"\xff"), (303, b"gone = 1")]
    with caplog.at_level(logging.WARNING):
        interests = ArrayInterests(Attributes({"n": "integer", "s": "string"}), stored, last=303)
        assert not caplog.records
        interests.log_refused()
    assert len(caplog.records) == MOST_TOLD + 1
    assert "302 stored filters were set aside in total" in caplog.records[-1].getMessage()
    assert interests.tag(b'{"n": 2}') == [301]
    assert interests.place(b"n > 5").node == 304
    assert [one.node for one in interests.all_placed()] == [301, 304]
