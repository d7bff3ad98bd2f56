"""What a rendezvous point reports about pipelines, named subscriptions and refusals, and that the
lists stay short."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, at, running, started, stopped
from tests.broker.parts import Root, make_part

from tidings.broker import TokenRights
from tidings.broker.root_reports import SHOWN, list_names, list_sources
from tidings.network.agent import Refusal, connect
from tidings.network.watching import watch
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import messages as m
from tidings.routing.root import Confirmation, Cursor
from tidings.routing.root.cursors import key_of


def test_pipelines(tmp_path: Path) -> None:
    """Batch, parts and age; only the beginning of a stream's name, because whoever knows the name
    can hand over under it."""
    root = Root(tmp_path)
    node = root.place("n > 1")
    stream = "0123456789abcdef"

    def hand_over(key: tuple[int, int], rows: int, *, last: bool) -> None:
        some = [((node,), b"x")] * rows
        assert not root.hand_over(
            make_part(stream, key, some, root.life, root.version, last=last)
        ).refusal

    hand_over((7, 0), 3, last=False)
    root.now += 2.0005
    assert list_sources(root.machine, root.now) == (
        m.SourceStatus("client", stream[:SHOWN], 7, 1, False, 3, 2000),
    )
    hand_over((7, 1), 2, last=True)
    hand_over((7, 1), 2, last=True)  # again, and not counted again
    (one,) = list_sources(root.machine, root.now)
    assert (one.batch, one.parts, one.whole, one.taken) == (7, 2, True, 5)
    root.restart()
    assert list_sources(root.machine, root.now) == (
        m.SourceStatus("", stream[:SHOWN], 7, 2, True, 0, None),
    )
    root.journal.close()
    (log,) = root.path.glob("*.log")
    log.write_bytes(log.read_bytes()[:-10])  # data is lost, and the batch may come again
    root.open()
    assert list_sources(root.machine, root.now) == (
        m.SourceStatus("", stream[:SHOWN], None, 0, False, 0, None),
    )


def test_few_of_many_pipelines(tmp_path: Path) -> None:
    """Those that were heard last."""
    root = Root(tmp_path)
    node = root.place("n > 1")
    names = [f"{number:08d}" for number in range(m.MOST_SOURCES + 20)]
    for name in names:
        root.now += 1.0
        part = make_part(name, (1, 0), [((node,), b"x")], root.life, root.version, last=True)
        assert not root.hand_over(part).refusal
    found = list_sources(root.machine, root.now)
    assert [one.stream for one in found] == names[: -m.MOST_SOURCES - 1 : -1]


def test_how_far_names_lag(tmp_path: Path, seed: int) -> None:
    """Against a count of the notifications that came for each name after the last confirmed."""
    chance = random.Random(seed)
    root = Root(tmp_path)
    nodes = [root.place(f"n > {number}") for number in range(4)]
    cursors = root.machine.naming.cursors
    confirmed = dict.fromkeys([f"name {number}" for number in range(70)], 0)
    for number, name in enumerate(confirmed):
        cursors.put(key_of("desk", name), Cursor(nodes[number % 4], b"", 0, 0, {}))
    told: list[int] = []  # the values of n
    for stamp in range(1, 40):
        value = chance.randrange(6)
        told.append(value)
        root.say(m.Publish("p", stamp, 1, b'{"n": %d}' % value, b"x"))
        root.sync()
        name = chance.choice([*confirmed])
        key = key_of("desk", name)
        node = cursors.known[key].node
        done = Confirmation(root.machine.serial, root.machine.counts.totals.get(node, 0), {})
        cursors.put(key, cursors.known[key].confirm(done))
        confirmed[name] = len(told)
    behind = {
        name: sum(value > number % 4 for value in told[confirmed[name] :])
        for number, name in enumerate(confirmed)
    }
    found = list_names(root.machine)
    assert len(found) == m.MOST_NAMED
    assert {one.owner for one in found} == {"desk"}
    assert all(one.behind == behind[one.name] for one in found)
    assert [one.behind for one in found] == sorted(behind.values(), reverse=True)[: m.MOST_NAMED]


@pytest.mark.usefixtures("forked")
def test_a_running_network(tmp_path: Path) -> None:
    """A name that lags, requests that are refused by rights, and strangers, at the node where they
    happen."""
    tokens = {
        "r": TokenRights("reader", within="n > 0"),
        "w": TokenRights("writer", frozenset({"publish"})),
        "e": TokenRights("r0", frozenset({"route"})),
    }

    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF, tokens=tokens)
        root, _ = network
        async with (
            connect(at(root), name="reader", token="r") as reader,
            connect(at(root), name="writer", token="w") as writer,
        ):
            async with reader.subscribe("n > 5", name="mine") as told:
                await writer.publish({"n": 7}, b"7")
                async for one in told:
                    assert isinstance(one, Delivery)
                    await told.confirm(one)
                    break
            for number in range(3):
                await writer.publish({"n": 6}, b"%d" % number)
            for agent, text in ((writer, "n > 5"), (reader, "n > -5")):
                with pytest.raises(Refusal):
                    await agent.subscribe(text).__aenter__()
            with pytest.raises(Refusal):
                await connect(at(root), token="guessed").__aenter__()
            async with watch(at(root), name="reader", token="r") as reports:
                async for report in reports:
                    node = report.nodes[0]
                    if node.names and node.names[0].behind == 3:
                        break
            assert (node.named, node.names[0].name) == (1, "mine")
            assert node.names[0].owner == "reader"
            assert node.refused == 2
            assert node.strangers == 1
            assert (node.pipelines, node.sources) == (0, ())
            (channel,) = node.carried
            assert (channel.kind, channel.followers) == ("content", 0)
        await stopped(network)

    running(work)
