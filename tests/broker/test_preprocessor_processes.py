"""`tidings preprocessor` as processes: two share the load, and one places the filters of agents
that subscribe. What each subscriber is due is said by Python functions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.broker.kills.coming_and_going import draw_event, draw_filter
from tests.broker.networks import payloads, running
from tests.broker.processes import Process
from tests.broker.test_preprocessors_live import Preprocessor
from tests.forking import Forked
from tests.waiting import PATIENCE, until

from tidings.network import Agent, connect
from tidings.routing.protocol import messages as m

ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal"
"""
PUBLISHED = 90


async def tagged_by_each(address: str) -> dict[str, int]:
    """How many notifications each preprocessor has tagged, as `tidings top` shows it."""
    command = [sys.executable, "-m", "tidings", "top", "--router", address, "--json", "--once"]
    process = Forked(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out, _ = await asyncio.to_thread(process.communicate)
    return {one["address"]: one["tagged"] for one in json.loads(out)["preprocessors"]}


def test_two_share_the_load(tmp_path: Path) -> None:
    root = Process(tmp_path, "root", ROOT)
    both = [Preprocessor(tmp_path, f"pre{at}", root.port) for at in range(2)]
    address = f"tidings://127.0.0.1:{root.port}"

    async def work() -> None:
        async with (
            connect(address, tag="preprocessor") as writer,
            connect(address) as reader,
            reader.subscribe("n > 3") as told,
        ):
            await until(lambda: len(writer.preprocessors) == 2)
            for number in range(PUBLISHED):
                await writer.publish({"n": number % 9}, b"%d" % number)
            due = [b"%d" % number for number in range(PUBLISHED) if number % 9 > 3]
            assert await payloads(told, len(due)) == due
            asked = writer.preprocessors.asked
            assert asked > 0  # one that is late is left out for some seconds
            shown: dict[str, int] = {}
            async with asyncio.timeout(PATIENCE):
                while sum(shown.values()) < asked:  # they say it every few seconds
                    shown = await tagged_by_each(address)
            assert {f"tidings://127.0.0.1:{one.port}/" for one in both} == shown.keys()
            assert min(shown.values()) > 0, shown  # how many each tags depends on the machine

    running(work)
    assert [one.stop() for one in both] == [0, 0]
    assert root.stop() == 0


def test_one_places_filters(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent asks it for the nodes of new filters, until it is killed; another agent asks the
    root. Equal filters share a node, whoever placed them."""
    chance = random.Random(seed)
    root = Process(tmp_path, "root", ROOT)
    preprocessor = Preprocessor(tmp_path, "pre", root.port)
    address = f"tidings://127.0.0.1:{root.port}"

    async def work() -> None:
        async with (
            connect(address, tag="preprocessor") as agent,
            connect(address) as plain,
            contextlib.AsyncExitStack() as stack,
        ):
            assert await agent.preprocessors.wait_for_any(PATIENCE)
            placed, place = dict[str, int](), agent.preprocessors.place

            async def note(interest: str, *how: Any, **more: Any) -> m.Proposed | None:
                found = await place(interest, *how, **more)
                placed[interest] = 0 if found is None else found.node
                return found

            monkeypatch.setattr(agent.preprocessors, "place", note)
            first = 0
            async with asyncio.timeout(PATIENCE):
                while not any(placed.values()):  # it loads the nodes when it is first asked
                    first += 1
                    async with agent.subscribe(f"n = {1000 + first}"):
                        await asyncio.sleep(0.1)
            due: list[tuple[Any, list[bytes], Any]] = []
            number = 0
            for step in range(20):
                if step == 15:
                    assert sum(map(bool, placed.values())) > 5, placed
                    preprocessor.kill()
                text, judge = draw_filter(chance)
                text = f"({text}) AND n <> {100 + step} AND n < 1000"
                who: Agent = plain if step % 4 == 3 else agent
                told = await stack.enter_async_context(who.subscribe(text, timeout=60))
                if step % 4 == 1:
                    same = await stack.enter_async_context(plain.subscribe(text, timeout=60))
                    assert same.node == told.node
                if step < 15 and placed.get(text):
                    assert told.node == placed[text]
                due.append((told, [], judge))
                many = []
                for _ in range(20):
                    number += 1
                    many.append((draw_event(chance), b"%d" % number))
                await agent.publish_many(many)
                for event, payload in many:
                    for _, mine, matches in due:
                        if matches(event):
                            mine.append(payload)
            for told, mine, _ in due:
                assert not mine or await payloads(told, len(mine)) == mine

    running(work)
    assert "could not" not in root.log()
    assert root.stop() == 0
