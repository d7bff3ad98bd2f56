"""A folder that commands filled is the channel of a rendezvous point, and a pipeline reads the
folder of a rendezvous point: with the same versions and the same numbers of nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
from tests.broker.networks import BRIEF, at, payloads, running, started, stopped
from tests.broker.parts import Root, make_part
from tests.waiting import until

from tidings.network.agent import connect
from tidings.routing.protocol import messages as m
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.store import Accepting, ChangeLog

ROWS = pa.record_batch({"n": [1, 4, 7]})


def test_commands_then_a_rendezvous_point_then_a_pipeline(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "journal.db")
    log.put_many({"low": "n > 0", "high": "n > 5", "gone": "n > 100"})
    log.drop("gone")
    pipeline = FollowedSubscriptions(log.path)
    assert pipeline.view(4).nodes(ROWS).to_pylist() == [[1], [1], [2]]
    seen = list[int]()

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (router,) = network
        graph = root.machine.graph
        async with connect(at(router), times=BRIEF) as agent:
            async with agent.subscribe("5 < n") as same, agent.subscribe("n > 3") as new:
                (node,) = {one for one in root.machine.wants if one > 4}
                assert {2, node} <= set(root.machine.wants)
                for n in (1, 4, 7):
                    await agent.publish({"n": n}, b"%d" % n)
                assert await payloads(same, 1) == [b"7"]
                assert await payloads(new, 2) == [b"4", b"7"]
                # a pipeline that follows the folder meanwhile has the same nodes
                version = pipeline.version
                assert version >= node
                assert pipeline.view(version).nodes(ROWS).to_pylist() == [[1], [node], [2]]
                seen.append(node)
            await until(lambda: node not in graph)  # its agent has left
            await until(lambda: pipeline.version > version)  # as soon as it is written
        # nobody in the network wants these two, but named subscriptions do
        await asyncio.sleep(1.5 * BRIEF.expire)
        assert 1 in graph
        assert 2 in graph
        await stopped(network)

    running(work)
    assert pipeline.view(pipeline.version).nodes(ROWS).to_pylist() == [[1], [1], [2]]
    assert pipeline.view(4).nodes(ROWS).to_pylist() == [[1], [1], [2]]
    assert log.put("later", "n > 3") > seen[0]
    assert log.subscriptions()["later"][1] == log.version
    found = pipeline.view(pipeline.version)
    assert found.nodes(ROWS).to_pylist() == [[1], [log.version], [2]]
    assert sorted(found.subscriptions(ROWS).to_pylist()[2]) == ["high", "later", "low"]


def test_the_two_counters_of_a_node(tmp_path: Path) -> None:
    """A pipeline without a network counts in `numbers/`, and a rendezvous point in its marks: one
    takes no number of the other, in any order, and after restarts."""
    root = Root(tmp_path)
    node = root.place("n > 5")
    root.sync()
    stamp, batch = 0, 0

    def accept(many: int) -> int:
        """The last number before a batch with so many rows of the node."""
        nonlocal batch
        batch += 1
        after = batch - 1 if batch > 1 else None
        found = Accepting(root.path / "numbers").accept(
            "out", batch, "a", {node: many}, after=after, floor=dict
        )
        return found[node]

    def publish() -> int:
        """The number in the mark of a publication."""
        nonlocal stamp
        stamp += 1
        root.say(m.Publish("p", stamp, 1, b'{"n": 7}', b"%d" % stamp))
        root.sync()
        (mark,) = root.records()[-1].marks
        assert mark.node == node
        return mark.number

    assert accept(100) == 0
    assert publish() == 1
    assert accept(1) == 100
    root.restart()
    assert publish() == 2
    assert accept(1) == 101
    part = make_part("s", (1, 0), [((node,), b"row")], root.life, root.version, last=True)
    assert not root.hand_over(part).refusal  # counted by the rendezvous point alone
    assert publish() == 4
    assert accept(1) == 102
    assert Accepting(root.path / "numbers").counters() == {node: 103}
    assert root.machine.counts.counts == {node: 4}
