"""A folder that commands filled is the channel of a rendezvous point, and a pipeline reads the
folder of a rendezvous point: with the same versions and the same numbers of nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
from tests.broker.networks import BRIEF, at, payloads, running, started, stopped
from tests.waiting import until

from tidings.network.agent import connect
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.store import ChangeLog

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
