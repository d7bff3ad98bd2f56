"""Commands change the named subscriptions of a running rendezvous point, over the socket in its
folder: the same answers, versions and nodes as without one."""

from __future__ import annotations

import asyncio
import contextlib
import random
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.broker.networks import BRIEF, at, payloads, running, started, stopped
from tests.waiting import until

from tidings.broker import RootNode
from tidings.broker.queues import command_changes
from tidings.broker.queues.command_changes import _Known
from tidings.model import TidingsError
from tidings.network.agent import Agent, connect
from tidings.snapshots import Snapshot
from tidings.store import Asked, ChangeLog
from tidings.store.adoptions import Adoption

T = TypeVar("T")
THREADS = ThreadPoolExecutor(16)  # others than those in which a rendezvous point writes


async def apart(work: Callable[..., T], *args: object, **more: object) -> T:
    """What a command does, in a thread."""
    return await asyncio.get_running_loop().run_in_executor(THREADS, lambda: work(*args, **more))


def test_changes_of_a_running_rendezvous_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # longer than the path of a socket may be
    folder = tmp_path / ("long" * 30) / "more"
    folder.mkdir(parents=True)
    log = ChangeLog(folder / "journal.db")
    log.put("before", "n > 0")

    async def work() -> None:
        network = await started(folder, 1, BRIEF)
        root, (router,) = network
        graph, wants = root.machine.graph, root.machine.wants
        mode = stat.S_IMODE((log.path / "socket").stat().st_mode)
        assert mode == 0o600
        version = await apart(log.put, "high", "n > 5", owner="ana")
        assert version in graph  # a new node has the version of its change
        same = await apart(log.put, "same", "NOT (n <= 5)")
        assert same == version + 1
        assert log.subscriptions() == {
            "before": ("n > 0", 1), "high": ("n > 5", version), "same": ("NOT (n <= 5)", version),
        }  # fmt: skip
        assert log.state().owners == {"high": "ana"}
        async with connect(at(router), times=BRIEF) as agent, agent.subscribe("5 < n") as told:
            assert version in wants  # the same node
            await agent.publish({"n": 7}, b"7")
            assert await payloads(told, 1) == [b"7"]
        with pytest.raises(TidingsError, match=r"^there is no subscription with the id 'nobody'"):
            await apart(log.drop, "nobody")
        with pytest.raises(TidingsError, match=r"found the integer 7 as an id"):
            await apart(log.put, 7, "n > 1")
        await apart(log.drop, "high")
        await asyncio.sleep(1.5 * BRIEF.expire)
        assert version in graph  # `same` still holds it
        last = await apart(log.drop, "same")
        assert last == same + 2
        await until(lambda: version not in graph)
        many = {f"m{n}": f"n = {n}" for n in range(300)}
        end = await apart(log.put_many, many)
        # two at once, from two logs
        two = [apart(ChangeLog(log.path).put, f"t{n}", f"n = {n} OR n = -1") for n in range(8)]
        found = await asyncio.gather(*two)
        assert sorted(found) == [end + n for n in range(1, 9)]
        written: list[int] = []
        wrote = root._commands._wrote

        def count() -> None:
            written.append(1)
            wrote()

        monkeypatch.setattr(root._commands, "_wrote", count)
        monkeypatch.setattr(command_changes, "TIME", 0.0)  # as if each of them took long
        slow = {f"s{n}": f"n = {n} OR n = -2" for n in range(20)}
        assert await apart(log.put_many, slow) == end + 8 + 20
        assert len(written) == 20
        await stopped(network)

    running(work)
    now = ChangeLog(log.path)
    assert len(now.subscriptions()) == 1 + 300 + 8 + 20
    assert [now.subscriptions()[f"s{n}"][1] for n in range(20)] == [
        *range(now.version - 19, now.version + 1)
    ]
    assert not (log.path / "socket").exists()
    assert now.put("after", "n = 17") == now.version
    assert now.subscriptions()["after"][1] == now.subscriptions()["m17"][1]

    async def again() -> None:
        network = await started(folder, 0, BRIEF)
        held = {node for _, node in now.subscriptions().values()}
        assert held <= set(network[0].machine.graph)
        await stopped(network)

    running(again)


def test_a_rendezvous_point_of_a_channel_that_adopted_a_snapshot(tmp_path: Path) -> None:
    """It tags with the numbers of the snapshot, agents share its nodes, commands change its
    subscriptions, and all of it is there at the next start."""
    log = ChangeLog(tmp_path / "journal.db")
    log.put("before", "n > 0")
    log.adopt(Snapshot.build({f"b{n}": f"n > {n}" for n in range(9)}), owner="loader")
    nodes = {id_: node for id_, (_, node) in log.subscriptions().items()}
    assert nodes == {"before": 1} | {f"b{n}": 1 if n == 0 else n + 2 for n in range(9)}

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (router,) = network
        graph, interests = root.machine.graph, root.machine.interests
        assert set(nodes.values()) == set(graph)
        assert [interests.tag(b'{"n": %d}' % n) for n in (1, 4, 20)] == [[1], [5], [10]]
        async with connect(at(router), times=BRIEF) as agent, agent.subscribe("3 < n") as told:
            assert nodes["b3"] in root.machine.wants  # the same node
            await agent.publish({"n": 7}, b"7")
            assert await payloads(told, 1) == [b"7"]
            with pytest.raises(TidingsError, match="the id 'b3' has a subscription in"):
                await apart(log.adopt, Snapshot.build({"b3": "n > 1"}))
            version = await apart(log.put, "b7", "n > 70")
            assert version in graph
            await apart(log.drop, "b8")
            await until(lambda: nodes["b8"] not in graph)
            assert nodes["b3"] in graph
        assert log.subscriptions()["b7"] == ("n > 70", version)
        assert log.state().owners == {f"b{n}": "loader" for n in range(8)}
        await stopped(network)

    running(work)
    last = log.adopt(Snapshot.build({"more": "n > 71", "same": "n > 70"}))
    now = {id_: node for id_, (_, node) in log.subscriptions().items()}
    assert now["same"] == now["b7"]
    assert now["more"] in (last - 1, last)

    async def again() -> None:
        network = await started(tmp_path, 0, BRIEF)
        assert set(now.values()) <= set(network[0].machine.graph)
        assert network[0].machine.interests.tag(b'{"n": 100}') == [now["more"]]
        await stopped(network)

    running(again)


def test_a_snapshot_is_adopted_while_the_rendezvous_point_runs(tmp_path: Path) -> None:
    """As one version, behind numbers that others used meanwhile. Agents and commands go on: nothing
    is lost, filters that had nodes keep them, and the next start has the same nodes."""
    log = ChangeLog(tmp_path / "journal.db")
    log.put("before", "n > 0")
    many = {f"b{n}": f"n > {n}" for n in range(50)}

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (router,) = network
        async with connect(at(router), times=BRIEF) as agent, agent.subscribe("n > 30") as told:
            mine = told.node
            publishing = asyncio.create_task(publish(agent))
            version = await apart(log.adopt, Snapshot.build(many), owner="loader")
            later = await apart(log.put, "later", "n > 60")
            assert later > version
            sent = await stop(publishing)
            expected = [b"%d" % at for at, n in enumerate(sent) if n > 30]
            assert await payloads(told, len(expected)) == expected  # all of them, once, in order
            assert root.machine.interests.tag(b'{"n": 100}') == [later]
            async with agent.subscribe("n > 49") as deep:
                assert deep.node == log.subscriptions()["b49"][1]
                await agent.publish({"n": 50}, b"deep")
                assert await payloads(deep, 1) == [b"deep"]
            nodes = {id_: node for id_, (_, node) in log.subscriptions().items()}
            assert (nodes["b0"], nodes["b30"]) == (nodes["before"], mine)
            assert len({*nodes.values()}) == 51
            assert version == max(nodes[id_] for id_ in many)
            owners = log.state().owners
            assert {id_: owners[id_] for id_ in many} == dict.fromkeys(many, "loader")
            odd = Snapshot.build({"odd": "n > 'x' AND n > 1"})
            assert await apart(log.adopt, odd) > version
            assert not [*(tmp_path / "journal.db" / "bulks").glob("incoming-*")]
        await stopped(network)

    async def publish(agent: Agent) -> list[int]:
        sent: list[int] = []
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                n = 29 + len(sent) % 4
                await asyncio.shield(agent.publish({"n": n}, b"%d" % len(sent)))
                sent.append(n)
        return sent

    async def stop(publishing: asyncio.Task[list[int]]) -> list[int]:
        publishing.cancel()
        return await publishing

    running(work)
    nodes = {node for _, node in log.subscriptions().values()}

    async def again() -> None:
        network = await started(tmp_path, 0, BRIEF)
        assert nodes <= set(network[0].machine.graph)
        await stopped(network)

    running(again)


def test_nodes_that_come_while_a_snapshot_is_prepared(tmp_path: Path) -> None:
    """A filter of the snapshot gets a node, and another loses its own: the bulk is written again.
    An id that is taken meanwhile is refused, and nothing of the bulk stays."""
    folder = tmp_path / "journal.db"
    log = ChangeLog(folder)
    log.put("there", "n > 3")

    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF)
        root = network[0]
        real, rounds = root._prepare_adoption, list[int]()
        loop = asyncio.get_running_loop()

        def prepare(adoption: Adoption) -> None:
            real(adoption)
            rounds.append(len(rounds))
            for one in changes.pop(0) if changes else ():
                asyncio.run_coroutine_threadsafe(change(*one), loop).result()

        async def change(id_: str, text: str | None) -> None:
            # what a command does, in the turn that the adoption has
            known, machine = root._commands._known, root.machine
            asked = [Asked(id_, text, "sql")]
            root._commands._place(machine, asked, known or await read_known(), end=0.0)
            root.after_receiving()
            await root._await_stored()

        async def read_known() -> Any:
            root._commands._known = await apart(_Known, folder)
            return root._commands._known

        root._prepare_adoption = prepare  # type: ignore[method-assign]
        changes: list[list[tuple[str, str | None]]]
        changes = [[("new", "n > 7")], [("there", None)], []]
        version = await apart(log.adopt, Snapshot.build({"a": "n > 3", "b": "n > 7", "c": "n > 9"}))
        assert len(rounds) >= 2
        found = {id_: node for id_, (_, node) in log.subscriptions().items()}
        assert found["new"] == found["b"]
        assert found["c"] == version
        assert {*found} == {"new", "a", "b", "c"}
        changes = [[("d", "n > 1")]]
        with pytest.raises(TidingsError, match="the id 'd' has a subscription"):
            await apart(log.adopt, Snapshot.build({"d": "n > 3"}))
        assert len([*(folder / "bulks").iterdir()]) == 1
        await stopped(network)

    running(work)


@pytest.mark.bench
def test_a_large_load_leaves_the_event_loop_its_turns(tmp_path: Path, seed: int) -> None:
    """A thread reads the filters: while 4,000 are added, the loop seldom works for long without a
    turn for others (adopting compiled nodes still does). Its own processor time counts, so other
    processes do not disturb this."""
    chance = random.Random(seed)

    def a_filter() -> str:
        parts = [f"f{chance.randrange(40)} > {chance.random():.6f}" for _ in range(6)]
        return " AND ".join(parts) + f" AND name LIKE 'x{chance.randrange(10**6)}%'"

    async def longest(root: RootNode, prefix: str) -> float:
        asked = [Asked(f"{prefix}{at}", a_filter(), "sql") for at in range(4_000)]
        loading = asyncio.wrap_future(root._commands.take(asked))
        pauses, before = [0.0], time.thread_time()
        while not loading.done():
            await asyncio.sleep(0.001)
            now = time.thread_time()
            pauses.append(now - before)
            before = now
        await loading
        assert len(root.machine.graph) >= len(asked)
        return sorted(pauses)[-1 - len(pauses) // 100]

    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF)
        root = network[0]
        await longest(root, "first")  # loads code and kernels
        pause = await longest(root, "second")
        assert pause < 0.02
        await stopped(network)

    running(work)
