"""The methods of blocking agents and of their channels that need a router, preprocessors or several
routers: headers, nodes, grants, links that bypass the tree, and advice."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.broker.networks import BRIEF
from tests.waiting import PATIENCE, wait_for

from tidings import Delivery, Refusal, connect_blocking
from tidings.broker import Address, Direct, Door, PreprocessorNode, RootNode, RouterNode, Signer
from tidings.broker.admission.permissions import TokenRights, Tokens
from tidings.network import connect
from tidings.network.agent import Agent, AgentChannel, Subscription
from tidings.network.agents import direct_link
from tidings.network.agents.blocking_channel import BlockingChannel
from tidings.network.blocking import BlockingAgent, BlockingSubscription
from tidings.routing.channels import Route
from tidings.routing.clients import ChoosingTimes

PRIVATE, PUBLIC = Signer.generate()
ALL = frozenset({"route", "publish", "subscribe", "preprocess"})
TOKENS: Tokens = {
    "edges": TokenRights("edge", ALL, channels=("*",)),  # type: ignore[arg-type]
    "tags": TokenRights("tagger", ALL, channels=("*",)),  # type: ignore[arg-type]
    "writes": TokenRights("writer", ALL, channels=("*",)),  # type: ignore[arg-type]
    "grants": TokenRights("boston", signed=True, channels=("*",)),
}
SOON = ChoosingTimes(ask=0.2, spread=0.3, stay=1.0)


class Place:
    """The addresses of a router with two channels, and of the rendezvous point of the first."""

    def __init__(self, edge: RouterNode, fx: RootNode) -> None:
        self._edge, self._fx = edge, fx

    def connect(self, channel: str, name: str, token: str, **how: Any) -> BlockingAgent:
        port = self._fx.port if how.pop("above", False) else self._edge.port
        there = f"tidings://127.0.0.1:{port}/{channel}"
        how.setdefault("show_token", True)  # no router of this place signs tickets
        return connect_blocking(there, name=name, token=token, times=BRIEF, timeout=PATIENCE, **how)


@asynccontextmanager
async def a_place(folder: Path) -> AsyncIterator[Place]:
    direct = Direct(4, "")
    fx = RootNode("fx", folder / "fx", Door(channel="fx", tokens=TOKENS), times=BRIEF,
                  direct=direct)  # fmt: skip
    tea = RootNode("tea", folder / "tea", Door(channel="tea", tokens=TOKENS), times=BRIEF)
    await fx.start()
    await tea.start()
    above = [Address("127.0.0.1", one.port) for one in (fx, tea)]
    edge = RouterNode(
        "edge", above[0], Door(channel="fx", tokens=TOKENS, keys={"tagger": PUBLIC}), times=BRIEF,
        token="edges", hops={"west": [above[1]]}, routes={"tea": Route("west")},
    )  # fmt: skip
    await edge.start()
    there = f"tidings://127.0.0.1:{tea.port}/tea"
    async with connect(there, name="tagger", token="tags", tag="local", times=BRIEF) as tagger:
        door = Door(channel="tea", tokens=TOKENS)
        node = PreprocessorNode("tagger", tagger, door, times=BRIEF, signer=Signer(PRIVATE))
        await node.start()
        yield Place(edge, fx)
        await node.stop()
    for one in (edge, tea, fx):
        await one.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)

    there = a_place(tmp_path_factory.mktemp("place"))
    yield run(there.__aenter__())
    run(there.__aexit__(None, None, None))
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


Parameters = list[tuple[str, Any, Any]]
ADDED = {"close": ["timeout"]}  # what only the blocking agent has: its thread may hang


def parameters(function: Any, without: Sequence[str] = ()) -> Parameters:
    """Names, kinds and defaults; the annotations of some differ, such as that of the result."""
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found if one.name not in without]


@pytest.mark.parametrize(
    ("plain", "blocking", "names"),
    [
        (Agent, BlockingAgent, {"channel", "close", "drop_named", "grant", "header", "node_of",
                                "publish", "publish_many", "publish_soon", "subscribe"}),
        (AgentChannel, BlockingChannel, {"close", "drop_named", "grant", "header", "node_of",
                                         "publish", "publish_many", "publish_soon", "subscribe"}),
        (Subscription, BlockingSubscription, {"close", "confirm", "confirm_soon", "drop", "next"}),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_asynchronous_agent(
    plain: type, blocking: type, names: set[str]
) -> None:
    """A parameter that only one of them has would be missed by whoever changes to the other."""
    own = {name for name in vars(blocking) if callable(getattr(blocking, name))}
    common = {name for name in own if name[0] != "_" and hasattr(plain, name)}
    assert common - {"start"} == names  # `start` is for `connect`
    for name in names:
        there = parameters(getattr(plain, name))
        here = parameters(getattr(blocking, name), ADDED.get(name, ()))
        assert here == there, name


def test_connecting_takes_the_same() -> None:
    here, there = ({one[0]: one for one in parameters(f)} for f in (connect_blocking, connect))
    assert here == there


def test_a_parameter_that_is_missing_is_found() -> None:
    def subscribe(interest: str, *, most: int = 1) -> None: ...
    def other(interest: str) -> None: ...
    def another(interest: str, *, most: int = 2) -> None: ...

    assert parameters(subscribe) != parameters(other)
    assert parameters(subscribe) != parameters(another)
    assert parameters(subscribe, ["most"]) == parameters(other)


def whole(agent: BlockingAgent) -> Any:
    return agent


def a_channel(agent: BlockingAgent) -> Any:
    return agent.channel("tea")


def next_payload(told: BlockingSubscription) -> bytes:
    one = told.next(PATIENCE)
    assert isinstance(one, Delivery), one
    return one.payload


@pytest.mark.parametrize(("own", "choose"), [("tea", whole), ("fx", a_channel)])
def test_headers_nodes_and_grants(
    place: Place, own: str, choose: Callable[[BlockingAgent], Any]
) -> None:
    """Of an agent in its own channel, and of its channel `tea`."""
    with (
        place.connect(own, "writer", "writes") as agent,
        place.connect(own, "boston", "grants") as boston,
    ):
        one, other = choose(agent), choose(boston)
        assert one.state.linked
        assert one.state.router == agent.state.router
        with one.subscribe("n > 3") as told:
            done = [one.publish_soon({"n": 5}, b"%d" % number) for number in range(3)]
            stamps = [future.result(PATIENCE) for future in done]
            assert stamps == sorted(set(stamps))
            assert [next_payload(told) for _ in range(3)] == [b"0", b"1", b"2"]
            with pytest.raises(Refusal):
                one.publish_soon(b"no attributes", b"x").result(PATIENCE)
            # the preprocessor may not know the node yet
            assert wait_for(lambda: one.header({"n": 7}).version >= told.node, PATIENCE)
            header = one.header({"n": 7})
            assert one.preprocessed > 0
            one.publish(payload=b"without attributes", header=header)
            assert next_payload(told) == b"without attributes"
            node = one.node_of("n > 3")
            assert node == told.node
            grant = other.grant("n > 3")
            with one.subscribe(node=node) as same, other.subscribe(grant=grant) as granted:
                one.publish({"n": 9}, b"both", timeout=PATIENCE)
                assert next_payload(same) == next_payload(granted) == b"both"
        one.publish_soon({"n": 5}, b"when the block ends, it is on the disk")
    assert not agent.state.linked


def test_links_that_bypass_the_tree(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_link, "SETTLED", 0.1)
    monkeypatch.setattr(direct_link, "PAUSES", (0.2, 0.5))
    with (
        place.connect("fx", "writer", "writes") as agent,
        place.connect("fx", "tagger", "tags", direct=False) as other,
        agent.subscribe("n > 3") as told,
        other.subscribe("n > 3") as same,
    ):
        assert wait_for(lambda: bool(agent.state.direct), PATIENCE)
        assert not other.state.direct
        agent.publish({"n": 5}, b"5")
        assert next_payload(told) == next_payload(same) == b"5"


def test_an_agent_that_follows_advice(place: Place) -> None:
    with (
        place.connect("fx", "writer", "writes", above=True, advice=SOON) as agent,
        agent.subscribe("n > 3") as told,
    ):
        before = agent.state.router
        assert wait_for(lambda: agent.state.router != before, PATIENCE)
        agent.publish({"n": 5}, b"5")
        assert next_payload(told) == b"5"
