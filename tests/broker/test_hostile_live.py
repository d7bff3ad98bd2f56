"""Hostile strangers and neighbours connect to routers, as real processes; an honest publisher and
subscriber lose nothing."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from tests.broker.fuzzing import Senseless
from tests.broker.networks import payloads
from tests.broker.processes import EDGE, ROOT, Pair, Process, a_pair, tell, write_secret
from tests.broker.test_preprocessors_live import Preprocessor
from tests.repeats import amount
from tests.waiting import until

from tidings.network import connect
from tidings.routing.protocol import frames, messages as m

GROWTH = 80  # megabytes, once a router has seen a bit of everything


async def fuzzed(
    port: int, seed: int, count: int, idle: int, *more: str
) -> tuple[Counter[str], Counter[str]]:
    """What was sent to a node, and what it said, both by kind."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.broker.fuzzing", "--port", str(port), "--token", "hostile",
        "--frames", str(count), "--seed", str(seed), "--idle", str(idle), *more,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0
    found = json.loads(out)
    return Counter(found["sent"]), Counter(found["said"])


async def until_said(process: Process, text: str) -> None:
    await until(lambda: text in process.log())


async def until_few_files(process: Process, most: int) -> None:
    await until(lambda: process.open_files < most)


def check_pair(pair: Pair) -> None:
    assert pair.other == []
    assert sorted(pair.told) == sorted(set(pair.told)), "something came twice"
    assert set(pair.published) <= set(pair.told)
    assert len(pair.published) > 3


async def fuzz_both(
    routers: tuple[Process, Process], seed: int, count: int, idle: int
) -> tuple[Counter[str], Counter[str]]:
    root, edge = routers
    sent: Counter[str] = Counter()
    said: Counter[str] = Counter()
    found = await asyncio.gather(
        fuzzed(edge.port, seed, count // 2, idle), fuzzed(root.port, seed + 1, count // 2, idle)
    )
    for one, other in found:
        sent += one
        said += other
    return sent, said


def _shortened(log: str) -> str:
    """The last of the lines about what was refused, and all others."""
    lines = log.splitlines()
    refused = [line for line in lines if "refused so far" in line]
    return "\n".join([line for line in lines if line not in refused] + refused[-1:])


def fuzz(routers: tuple[Process, Process], seed: int, count: int, idle: int) -> None:
    async def work() -> None:
        root, edge = routers
        async with a_pair(edge.port, edge.port) as pair:
            warm, _ = await fuzz_both(routers, seed % 1000, max(5000, count // 10), idle)
            before = [one.resident for one in routers]
            sent, said = await fuzz_both(routers, seed % 1000 + 2, count, idle)
            after = [one.resident for one in routers]
            assert root.is_up()
            assert edge.is_up()
        tell("seed", seed, "warm-up", warm.total(), "sent", sent.total(), dict(sent))
        tell("the routers said", dict(said))
        tell("RSS of root and edge, MB", before, after)
        tell(f"latency p50 {pair.percentile(0.5):.3f} p99 {pair.percentile(0.99):.3f} "
              f"most {max(pair.seconds):.3f} of {len(pair.told)}")  # fmt: skip
        tell(_shortened(root.log()), _shortened(edge.log()))
        check_pair(pair)
        assert said["nothing"] == 0, "a connection that had to be ended was not"
        for first, last in zip(before, after, strict=True):
            assert last - first < GROWTH
        assert pair.percentile(0.5) < 5
        for one in routers:
            await until_said(one, "bad frame: ")  # every ten seconds at most
            assert "Traceback" not in one.log()
        # nobody below may make the edge say what the root can't read
        assert "the router above: found" not in edge.log()

    asyncio.run(work())


def test_fuzzed_frames(routers: tuple[Process, Process], seed: int) -> None:
    fuzz(routers, seed, 20_000, idle=50)


def test_every_message_is_drawn() -> None:
    """Each one that a node reads from below; but Goodbye, which ends the link."""
    senseless = Senseless(random.Random(1))
    drawn = {type(senseless.message()) for _ in range(20_000)}
    assert drawn == {*get_args(m.UP | m.LINK)} - {m.Goodbye}


CHANNELS = """
[upstreams]
west = "127.0.0.1:{port}"
[channels]
tea = "west"
"""


def test_fuzzed_channels(tmp_path: Path, seed: int) -> None:
    """Two channels, whose frames share links; an honest agent uses both."""
    everywhere = '{name = "*", channels = ["*"]}'
    in_fx = ("[tokens]", 'channel = "fx"\n[tokens]')
    root = ROOT.replace('"*"', everywhere)
    fx = Process(tmp_path, "root", root.replace(*in_fx))
    root = root.replace("journal.db", "tea.db").replace("[tokens]", 'channel = "tea"\n[tokens]')
    tea = Process(tmp_path, "tea", root)
    text = EDGE.format(port=fx.port).replace('"*"', everywhere).replace(*in_fx)
    text = text.replace('"reader"', '{name = "reader", channels = ["*"]}')
    edge = Process(tmp_path, "edge", text + CHANNELS.format(port=tea.port))

    async def work() -> None:
        place = f"tidings://127.0.0.1:{edge.port}/fx"
        async with (
            connect(place, name="reader", token="reads") as agent,
            agent.subscribe("pair = 1") as of_fx,
            agent.channel("tea").subscribe("pair = 1") as of_tea,
        ):
            fuzzing = asyncio.create_task(
                fuzzed(edge.port, seed % 1000, amount(8000, 100_000), 20, "--channels", "fx,tea")
            )
            published = 0
            while not fuzzing.done() or published < 5:
                await agent.publish({"pair": 1}, b"fx %d" % published)
                await agent.channel("tea").publish({"pair": 1}, b"tea %d" % published)
                published += 1
                await asyncio.sleep(0.02)
            for name, told in ((b"fx", of_fx), (b"tea", of_tea)):
                assert await payloads(told, published) == [
                    b"%s %d" % (name, number) for number in range(published)
                ]
            sent, said = await fuzzing
            tell("sent", dict(sent), "the router said", dict(said))
            assert sent["switch"] > 100
            assert sent["early"] > 10
            assert said["nothing"] == 0, "a connection that had to be ended was not"
            assert any("was not opened" in one for one in said), (sent["not open"], list(said))

    asyncio.run(work())
    assert "Traceback" not in edge.log() + fx.log() + tea.log()
    assert "could not" not in edge.log() + fx.log() + tea.log()
    assert "the router above: found" not in edge.log()
    assert [one.stop() for one in (edge, tea, fx)] == [0, 0, 0]


def test_a_fuzzed_preprocessor(tmp_path: Path, seed: int) -> None:
    """It goes on tagging for an honest agent."""
    tags = '[tokens]\ntags = {name = "tagger", may = ["publish", "subscribe", "preprocess"]}'
    root = Process(tmp_path, "root", ROOT.replace("[tokens]", tags))
    config = write_secret(tmp_path / "pre.toml", '[tokens]\nhostile = "*"\nwrites = "writer"\n')
    preprocessor = Preprocessor(
        tmp_path,
        "pre",
        root.port,
        more=("--name", "tagger", "--token", "tags", "--config", str(config)),
    )

    async def work() -> None:
        place = f"tidings://127.0.0.1:{root.port}"
        async with (
            connect(place, name="reader", token="reads") as reader,
            connect(place, name="writer", token="writes", tag="preprocessor",
                    show_token=True) as writer,
            reader.subscribe("pair = 1") as told,
        ):  # fmt: skip
            assert await writer.preprocessors.wait_for_any(60)
            count = amount(8000, 100_000)
            fuzzing = asyncio.create_task(
                fuzzed(preprocessor.port, seed % 1000, count, 20, "--preprocessor")
            )
            published = 0
            while not fuzzing.done() or published < 5:
                await writer.publish({"pair": 1}, b"%d" % published)
                published += 1
                await asyncio.sleep(0.02)
            assert await payloads(told, published) == [b"%d" % one for one in range(published)]
            sent, said = await fuzzing
            tell("sent", dict(sent), "the preprocessor said", dict(said))
            tell(writer.preprocessors.asked, "of", published, "notifications were tagged there")
            assert said["nothing"] == 0, "a connection that had to be ended was not"
            await until(lambda: len(writer.preprocessors) > 0)
            asked = writer.preprocessors.asked
            assert asked > 0  # one that is late is left out for some seconds

            async def publish() -> None:
                await writer.publish({"pair": 1}, b"last")

            await until(lambda: writer.preprocessors.asked > asked, doing=publish)

    asyncio.run(work())
    assert preprocessor.stop() == 0
    log = (tmp_path / "pre.log").read_text()
    tell(_shortened(log))
    assert "Traceback" not in log + root.log()
    assert root.stop() == 0


def test_thousands_of_connections(routers: tuple[Process, Process]) -> None:
    """That say nothing, or half of something; and neighbours that never read what they ask for."""

    def connected(port: int, count: int) -> list[socket.socket]:
        found = []
        hello = frames.encode(m.Hello("x" * 200, "", "hostile"))
        for number in range(count):
            one = socket.create_connection(("127.0.0.1", port), timeout=30)
            one.sendall((b"", hello[:1], hello[:9], hello[:-1])[number % 4])
            found.append(one)
        for number in range(50):
            one = socket.create_connection(("127.0.0.1", port), timeout=30)
            questions = [m.Redraw(0), m.Ask(1, b"n > 1"), m.Resubscribe(0, m.Digest(5, 5))] * 40
            said = (m.Hello(f"deaf-{number}", "", "hostile"), *questions)
            one.sendall(b"".join(frames.encode(message) for message in said))
            found.append(one)
        return found

    async def work() -> None:
        root, edge = routers
        count = min(1000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - 100)
        async with a_pair(edge.port, edge.port) as pair:
            before = [one.resident for one in routers]
            for router in routers:
                silent = await asyncio.to_thread(connected, router.port, count)
                await until_few_files(router, 256 + 50 + 50)
                for one in silent:
                    one.close()
            await until(lambda: len(pair.published) > 5)  # the pair goes on
            # at once, or with the next count where another stranger was logged just before
            await until(lambda: "too many strangers" in root.log())
            after = [one.resident for one in routers]
            tell(count, "connections; RSS of root and edge, MB", before, after)
        check_pair(pair)
        for first, last in zip(before, after, strict=True):
            assert last - first < GROWTH

    asyncio.run(work())


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_million_fuzzed_frames(routers: tuple[Process, Process], seed: int) -> None:
    fuzz(routers, seed, 1_050_000, idle=1000)
