"""Several channels over real connections: two rendezvous points, routers and agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.broker.networks import FAST
from tests.waiting import PATIENCE, until

from tidings.broker.admission.listen import Address, Door
from tidings.broker.admission.permissions import ChannelRights, TokenRights
from tidings.broker.links import hop_name
from tidings.broker.root_node import RootNode
from tidings.broker.router_node import RouterNode
from tidings.network import Agent, Refusal, Subscription, connect, watch
from tidings.routing.channels import WINDOW, Flow, Route
from tidings.routing.clients import Delivery
from tidings.routing.forwarding.neighbours import Neighbour
from tidings.routing.protocol import Limits, messages as m


class Two(NamedTuple):
    """fx ── upper ── lower, and tea ── upper ── lower: two roots above two routers."""

    fx: RootNode
    tea: RootNode
    upper: RouterNode
    lower: RouterNode

    def address(self, channel: str = "fx") -> str:
        return f"tidings://127.0.0.1:{self.lower.port}/{channel}"


def at(node: RootNode | RouterNode) -> Address:
    return Address("127.0.0.1", node.port)


@asynccontextmanager
async def two_roots(folder: Path, **more: Any) -> AsyncIterator[Two]:
    fx = RootNode("fx-root", folder / "fx", Door(channel="fx"), times=FAST)
    tea = RootNode("tea-root", folder / "tea", Door(channel="tea"), times=FAST)
    await fx.start()
    await tea.start()
    upper = RouterNode("upper", at(fx), Door(channel="fx"), times=FAST,
                       hops={"west": [at(tea)]}, routes={"tea": Route("west")})  # fmt: skip
    await upper.start()
    lower = RouterNode("lower", at(upper), Door(channel="fx", **more), times=FAST,
                       routes={"*": Route("")})  # fmt: skip
    await lower.start()
    try:
        yield Two(fx, tea, upper, lower)
    finally:
        for node in (lower, upper, tea, fx):
            await node.stop()


async def payloads(told: Subscription, many: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < many:
        one = await told.next(PATIENCE)
        assert one is not None, found
        if isinstance(one, Delivery):
            found.append(one.payload)
    return found


async def nothing_more(*told: Subscription) -> None:
    for one in told:
        left = await one.next(0.3)
        assert not isinstance(left, Delivery), left


def test_two_channels_over_one_link(tmp_path: Path) -> None:
    """The same filter in both: each gets what was published in its own channel, and nothing else.
    The numbers of nodes are the same in both, and mean different filters."""

    async def work() -> None:
        async with two_roots(tmp_path) as net, connect(net.address()) as agent:
            tea = agent.channel("tea")
            assert agent.channel("tea") is tea
            assert agent.channel("fx") is agent
            async with agent.subscribe("x > 0") as a, tea.subscribe("x > 0") as b, \
                    tea.subscribe("x > 5") as c:  # fmt: skip
                assert a.node == b.node
                for x in (1, 9):
                    await agent.publish({"x": x}, b"fx %d" % x)
                    await tea.publish({"x": x}, b"tea %d" % x)
                assert await payloads(a, 2) == [b"fx 1", b"fx 9"]
                assert await payloads(b, 2) == [b"tea 1", b"tea 9"]
                assert await payloads(c, 1) == [b"tea 9"]
                await nothing_more(a, b, c)
                assert await tea.publish_many([({"x": n}, b"%d" % n) for n in range(2000)]) == 2000
                assert await payloads(b, 1999) == [b"%d" % n for n in range(1, 2000)]
                async with watch(net.address()) as reports:
                    carried = (await anext(reports)).nodes[0].carried
                    rows = {one.name: (one.nodes, one.subscriptions) for one in carried}
                    assert rows == {"fx": (1, 1), "tea": (2, 2)}
                async with watch(f"tidings://127.0.0.1:{net.upper.port}/fx") as reports:
                    carried = (await anext(reports)).nodes[0].carried  # no agent is linked to it
                    assert {one.name: one.subscriptions for one in carried} == {"fx": 0, "tea": 0}
            assert {*net.lower.channels.known} == {"fx", "tea"}
            async with watch(net.address()) as reports:
                status = (await anext(reports)).nodes[0]
                assert (status.name, status.channels, status.asleep) == ("lower", 2, 0)
                assert {one.name: one.told for one in status.carried} == {"fx": 2, "tea": 2001}
            place = f"tidings://127.0.0.1:{net.tea.port}/tea"
            async with watch(place) as reports:  # the other rendezvous point knows the routers too
                while [one.name for one in (await anext(reports)).nodes] != [
                    "tea-root", "upper", "lower",
                ]:  # fmt: skip
                    pass
            await tea.close()
            await until(lambda: "tea" not in net.upper.channels.known)
            assert {*net.lower.channels.known} == {"fx"}

    asyncio.run(work())


def test_a_channel_named_in_the_address(tmp_path: Path) -> None:
    """An agent of another channel than the router's own, and one of both: each sees its own."""

    async def work() -> None:
        async with (
            two_roots(tmp_path) as net,
            connect(net.address("tea")) as one,
            connect(net.address("fx")) as other,
            one.subscribe("x > 0") as a,
            other.channel("tea").subscribe("x > 0") as b,
            one.channel("fx").subscribe("x > 0") as c,
        ):
            await one.publish({"x": 1}, b"tea")
            await other.publish({"x": 1}, b"fx")
            found = [await payloads(told, 1) for told in (a, b, c)]
            assert found == [[b"tea"], [b"tea"], [b"fx"]]
            await nothing_more(a, b, c)

    asyncio.run(work())


def test_a_slow_channel_does_not_stall_another(tmp_path: Path) -> None:
    """One rendezvous point does not read: publishing in its channel waits, within bounds, and
    publishing in another channel over the same links does not. Nothing is lost when it reads
    again."""
    size, many = 100_000, 200  # far more than fits into the buffers of connections and windows

    async def work() -> None:
        async with two_roots(tmp_path) as net, connect(net.address(), times=FAST) as agent:
            tea = agent.channel("tea")
            async with agent.subscribe("x >= 0") as a, tea.subscribe("x >= 0") as b:
                await tea.publish({"x": 0}, b"first")
                assert await payloads(b, 1) == [b"first"]
                (link,) = [one for name, one in net.tea.links.items() if name == "upper"]
                link.read("test", on=False)
                waiting = [tea.publish_soon({"x": n}, b"%d" % n + bytes(size)) for n in range(many)]
                for n in range(50):
                    await agent.publish({"x": n}, b"fx %d" % n, timeout=60)
                    assert await payloads(a, 1) == [b"fx %d" % n]
                assert not all(one.done() for one in waiting)
                for node in (net.upper, net.lower):
                    flows = [node.channels.links.flow_of(name) for name in node.channels._links]
                    assert node.channels.links.held <= 2 * WINDOW
                    assert not any(flow.is_overdrawn for flow in flows)
                    assert not any(one.paused for one in node.links.values())
                link.read("test", on=True)
                await asyncio.gather(*waiting)
                found = await payloads(b, many)
                assert [one[:-size] for one in found] == [b"%d" % n for n in range(many)]
            await until(lambda: not net.upper.channels.links.held)

    asyncio.run(work())


def test_a_slow_agent_in_one_channel(tmp_path: Path) -> None:
    """For an agent without credit in one channel, no more waits than the limit says; what it misses
    comes later, and another channel of the same link goes on."""
    size, many, most = 50_000, 300, 4 << 20

    async def work() -> None:
        async with (
            two_roots(tmp_path, limits=Limits(queue_bytes=most)) as net,
            connect(net.address(), times=FAST) as writer,
            connect(net.address(), name="reader", times=FAST) as reader,
        ):
            tea = reader.channel("tea")
            async with reader.subscribe("x >= 0") as a, tea.subscribe("x >= 0") as b:
                flow = reader._agent_link._flow
                allow = Flow.raise_limit
                give = {"tea": False}

                def raise_limit(self: Flow, number: int, unread: int = 0) -> int | None:
                    if self is flow and number and not give["tea"]:
                        return None
                    return allow(self, number, unread)

                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(Flow, "raise_limit", raise_limit)
                    pairs = [({"x": n}, b"%d" % n + bytes(size)) for n in range(many)]
                    assert await writer.channel("tea").publish_many(pairs) == many
                    lower = net.lower.channels.links.flow_of("reader")
                    (number,) = lower.numbers
                    await until(lambda: lower.waiting(number) > most)
                    assert lower.waiting(number) <= most + WINDOW
                    await writer.publish({"x": 1}, b"fx", timeout=60)
                    assert await payloads(a, 1) == [b"fx"]
                    give["tea"] = True
                    await writer.channel("tea").publish({"x": 1}, b"last" + bytes(size))
                    limit = flow.raise_limit(number)
                    assert limit is not None
                    assert reader._agent_link._link is not None
                    reader._agent_link._link.send(m.Credit({number: limit}))
                    found = await payloads(b, many + 1)
            expected = [b"%d" % n for n in range(many)] + [b"last"]
            assert [one[:-size] for one in found] == expected

    asyncio.run(work())


def test_a_link_without_channels_stays_up(tmp_path: Path) -> None:
    """Nobody uses the channel tea, but its rendezvous point still sends something to the router."""

    async def work() -> None:
        async with two_roots(tmp_path) as net:
            above = net.upper.hops[hop_name("west")]
            await until(lambda: above.link is not None)
            link = above.link
            assert link is not None
            began = link.heard
            await until(lambda: link.heard > began + 2 * FAST.beat, seconds=FAST.silent)
            assert above.link is link
            assert "tea" not in net.upper.channels.known

    asyncio.run(work())


def test_a_channel_without_a_route(tmp_path: Path) -> None:
    """It is refused in one sentence; the link and its other channels go on."""

    async def work() -> None:
        async with two_roots(tmp_path) as net, connect(net.address()) as agent:
            coffee = agent.channel("coffee")
            with pytest.raises(Refusal, match="the channel 'coffee', which has no route here"):
                async with coffee.subscribe("x > 0"):
                    pass
            with pytest.raises(Refusal, match="found no channel, expected one at the end of the"):
                async with connect(f"tidings://127.0.0.1:{net.upper.port}"):
                    pass
            with pytest.raises(Refusal, match="no route here"):
                await coffee.publish({"x": 1}, b"")
            async with agent.subscribe("x > 0") as told:
                await agent.publish({"x": 1}, b"there")
                assert await payloads(told, 1) == [b"there"]
            with pytest.raises(Refusal, match="no route here"):
                async with connect(f"tidings://127.0.0.1:{net.upper.port}/coffee"):
                    pass

    asyncio.run(work())


def test_agents_that_tag_in_another_channel(tmp_path: Path) -> None:
    """An agent tags by itself in one of its channels, with the nodes of this channel."""

    async def work() -> None:
        async with two_roots(tmp_path) as net, connect(net.address(), times=FAST) as agent:
            tea = agent.channel("tea", tag="local")
            assert agent.channel("tea") is tea
            with pytest.raises(Refusal, match="'tea', which is open with tag='local'; close it"):
                agent.channel("tea", tag="preprocessor")
            with pytest.raises(Refusal, match="'fx', which is open with tag='root'"):
                agent.channel("fx", tag="local")
            with pytest.raises(Refusal, match="found tag='x', expected 'root', 'local'"):
                agent.channel("tea", tag="x")  # type: ignore[arg-type]
            async with agent.subscribe("x < 5") as a, tea.subscribe("x > 5") as b:
                await tea.wait_for_tagging(30)
                await until(lambda: tea.view.version == net.tea.machine.history.version)
                assert agent.view is None
                header = await tea.header({"x": 9})
                await tea.publish(None, b"bare", header=header)  # nobody else could tag this
                await tea.publish({"x": 7}, b"tea")
                await agent.publish({"x": 1}, b"fx")
                assert await payloads(b, 2) == [b"bare", b"tea"]
                assert await payloads(a, 1) == [b"fx"]
                await nothing_more(a, b)

    asyncio.run(work())


def test_restarts_of_routers_and_roots(tmp_path: Path) -> None:
    """Whoever starts again, nothing is lost in any channel."""

    async def work() -> None:
        async with two_roots(tmp_path) as net, connect(net.address(), times=FAST) as agent:
            tea = agent.channel("tea")
            async with agent.subscribe("x > 0") as a, tea.subscribe("x > 0") as b:
                for round_ in range(3):
                    place = Address("127.0.0.1", net.lower.port)
                    if round_ == 0:
                        await net.upper.stop()
                        upper = RouterNode(
                            "upper", at(net.fx),
                            Door(Address("127.0.0.1", net.lower.upstream.port), channel="fx"),
                            times=FAST, hops={"west": [at(net.tea)]},
                            routes={"tea": Route("west")},
                        )  # fmt: skip
                        await upper.start()
                        net = net._replace(upper=upper)
                    elif round_ == 1:
                        port = net.tea.port
                        await net.tea.stop()
                        door = Door(Address("127.0.0.1", port), channel="tea")
                        root = RootNode("tea-root", tmp_path / "tea", door, times=FAST)
                        await root.start()
                        net = net._replace(tea=root)
                    assert place.port
                    await agent.publish({"x": 1}, b"fx %d" % round_, timeout=60)
                    await tea.publish({"x": 1}, b"tea %d" % round_, timeout=60)
                    assert await payloads(a, 1) == [b"fx %d" % round_]
                    assert await payloads(b, 1) == [b"tea %d" % round_]
            await net.upper.stop()
            await net.tea.stop()

    asyncio.run(work())


def test_failover_between_nodes_above(tmp_path: Path) -> None:
    """A router has two nodes above it for one channel; when one stops, the other is used."""

    async def work() -> None:
        root = RootNode("root", tmp_path / "journal", Door(), times=FAST)
        await root.start()
        middle = [RouterNode(f"m{n}", at(root), Door(), times=FAST) for n in range(2)]
        for one in middle:
            await one.start()
        edge = RouterNode("edge", [at(one) for one in middle], Door(), times=FAST)
        await edge.start()
        try:
            async with connect(f"tidings://127.0.0.1:{edge.port}", times=FAST) as agent, \
                    agent.subscribe("x > 0") as told:  # fmt: skip
                await agent.publish({"x": 1}, b"before")
                assert await payloads(told, 1) == [b"before"]
                await middle[0].stop()
                await agent.publish({"x": 1}, b"after", timeout=60)
                assert await payloads(told, 1) == [b"after"]
                assert edge.upstream == at(middle[1])
        finally:
            for node in (edge, *middle, root):
                await node.stop()

    asyncio.run(work())


def test_a_router_says_when_it_is_linked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        root = RootNode("root", tmp_path / "journal", Door(), times=FAST)
        await root.start()
        place = at(root)
        edge = RouterNode("edge", place, Door(), times=FAST)
        await edge.start()
        await until(lambda: edge.above == "root")
        assert not caplog.messages  # the first link is no news
        await root.stop()
        await until(lambda: any("Connect call failed" in one for one in caplog.messages))
        root = RootNode("root", tmp_path / "journal", Door(place), times=FAST)
        await root.start()
        await until(lambda: "edge: the router above: linked again" in caplog.messages)
        await edge.stop()
        await root.stop()

    with caplog.at_level("WARNING", logger="tidings"):
        asyncio.run(work())


def test_tokens_name_channels(tmp_path: Path) -> None:
    """A token without channels is good for the router's own channel only."""

    async def work() -> None:
        tokens = {
            "plain": "ana",
            "both": TokenRights("bob", channels=("fx", "te*")),
            "other": TokenRights("eve", channels=("tea",)),
        }
        async with two_roots(tmp_path, tokens=tokens) as net:
            async with connect(net.address(), name="ana", token="plain") as ana:
                await ana.publish({"x": 1}, b"")
                with pytest.raises(Refusal, match="'ana' may not use the channel 'tea' here"):
                    async with ana.channel("tea").subscribe("x > 0"):
                        pass
            async with (
                connect(net.address(), name="bob", token="both") as bob,
                bob.channel("tea").subscribe("x > 0") as told,
            ):
                await bob.channel("tea").publish({"x": 1}, b"tea")
                assert await payloads(told, 1) == [b"tea"]
            with pytest.raises(Refusal, match="'eve' may not use the channel 'fx' here"):
                async with connect(net.address(), name="eve", token="other"):
                    pass
            async with connect(net.address("tea"), name="eve", token="other") as eve:
                await eve.publish({"x": 1}, b"")

    asyncio.run(work())


def test_rights_in_each_channel(tmp_path: Path) -> None:
    """One token: publishes in one channel, only subscribes in another, and within a filter in a
    third. What its name wanted in a channel before ends where it may not subscribe any more."""
    first = TokenRights("desk", channels=("fx", "tea"))
    rights: dict[str, Any] = {
        "fx": frozenset({"publish"}),
        "tea": ChannelRights(frozenset({"subscribe"}), "x > 5"),
    }
    tokens = {
        "first": first,
        "second": TokenRights("desk", channels=rights),
        "pub": TokenRights("*"),
    }

    async def work() -> None:
        async with two_roots(tmp_path, tokens=tokens) as net:
            async with (
                connect(net.address(), name="desk", token="first") as desk,
                desk.subscribe("x > 0"),
                desk.channel("tea").subscribe("x > 0"),
            ):
                assert [*net.lower.machine.neighbours["desk"].nodes]
                net.lower.links["desk"].abort("the client dies")
                async with connect(net.address(), name="desk", token="second") as after:
                    assert not [*net.lower.machine.neighbours.get("desk", Neighbour(0)).nodes]
                    await check(after, net)
            writer = connect(f"tidings://127.0.0.1:{net.upper.port}/tea", name="w")
            async with connect(net.address(), name="desk", token="second") as after, writer as w:
                tea = after.channel("tea")
                async with tea.subscribe("x > 6") as told:
                    await w.publish({"x": 7}, b"seven")
                    assert await payloads(told, 1) == [b"seven"]

    async def check(desk: Agent, net: Two) -> None:
        await desk.publish({"x": 1}, b"")
        with pytest.raises(Refusal, match="'desk' may not subscribe here"):
            async with desk.subscribe("x > 0"):
                pass
        tea = desk.channel("tea")
        with pytest.raises(Refusal, match="'desk' may not publish here"):
            await tea.publish({"x": 1}, b"")
        with pytest.raises(Refusal, match="found a filter that is not covered by x > 5"):
            async with tea.subscribe("x > 0"):
                pass

    asyncio.run(work())


def test_limits_of_channels(tmp_path: Path) -> None:
    """Of the channels of one agent, and of all channels of a router."""

    async def work() -> None:
        limits = Limits(channels=2, neighbour_channels=2)
        async with two_roots(tmp_path, limits=limits) as net, connect(net.address()) as agent:
            async with agent.channel("tea").subscribe("x > 0"):
                with pytest.raises(Refusal, match="there are 2 channels on this link"):
                    async with agent.channel("coffee").subscribe("x > 0"):
                        pass
            async with connect(net.address()) as other:
                with pytest.raises(Refusal, match="there are 2 channels, expected at most 2"):
                    async with other.channel("coffee").subscribe("x > 0"):
                        pass

    asyncio.run(work())


def test_a_frame_of_a_channel_that_was_not_opened(tmp_path: Path) -> None:
    async def work() -> None:
        async with two_roots(tmp_path) as net, connect(net.address()) as agent:
            link = agent._agent_link._link
            assert link is not None
            link.send(m.Trace(1), 77)
            await until(lambda: bool(net.lower.connection_limits.counts["bad frame"]))

    asyncio.run(work())


def test_an_agent_keeps_channels_apart(tmp_path: Path) -> None:
    """Many channels, opened and closed, while everyone is subscribed to everything."""

    async def work() -> None:
        async with two_roots(tmp_path) as net:
            agents: list[Agent] = []
            async with connect(net.address()) as one, connect(net.address("tea")) as other:
                agents = [one, other]
                for round_ in range(5):
                    for agent in agents:
                        async with agent.channel("tea").subscribe("x >= 0") as a, \
                                agent.channel("fx").subscribe("x >= 0") as b:  # fmt: skip
                            await one.publish({"x": round_}, b"fx")
                            await other.publish({"x": round_}, b"tea")
                            assert await payloads(a, 1) == [b"tea"]
                            assert await payloads(b, 1) == [b"fx"]

    asyncio.run(work())
