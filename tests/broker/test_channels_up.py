"""`tidings up` with several channels: the files of the nodes, and the nodes as processes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tomllib
from pathlib import Path

import pytest
from tests.broker.test_channels_live import payloads

from tidings.broker import Address, RouterNode
from tidings.broker.config import ConfigError, load_config, make_node
from tidings.broker.trees.running_tree import RunningTree
from tidings.broker.trees.tree_file import load_tree
from tidings.network import Refusal, connect, connect_blocking
from tidings.routing.clients import Delivery

TREE = """
channel = "fx"
[router.upper]
[router.lower]
upstream = "upper"
[channels.tea]
columns = {x = "bigint"}
"""
TOKENS = """
[tokens]
both = {name = "desk", channels = ["fx", "tea"]}
each = {name = "clerk", channels = {fx = ["publish"], tea = ["subscribe"]}}
"""


def written(path: Path, text: str) -> Path:
    path.touch(0o600)
    path.write_text(text)
    return path


def test_files_of_nodes(tmp_path: Path) -> None:
    async def work() -> dict[str, dict[str, object]]:
        running = RunningTree(load_tree(written(tmp_path / "t.toml", TREE + TOKENS)), print)
        running.tree.folder.mkdir()
        for at, branch in enumerate(running.branches.values()):
            branch.port = 7000 + at
        return {
            name: tomllib.loads(running._write_config(branch).read_text())
            for name, branch in running.branches.items()
        }

    files = asyncio.run(work())
    assert [*files] == ["root", "root-tea", "upper", "lower"]
    assert files["root"]["channel"] == files["upper"]["channel"] == "fx"
    tea = files["root-tea"]
    assert (tea["channel"], tea["journal"], tea["columns"]) == (
        "tea", "tea.journal.db", {"x": "integer"},
    )  # fmt: skip
    assert files["upper"]["upstreams"] == {"root-tea": "127.0.0.1:7001"}
    assert files["upper"]["channels"] == {"tea": "root-tea"}
    assert "upstreams" not in files["lower"]
    assert files["lower"]["channels"] == {"tea": ""}
    token = files["upper"]["token"]
    for root in ("root", "root-tea"):
        tokens = files[root]["tokens"]
        assert isinstance(tokens, dict)
        assert tokens[token] == {"name": "upper", "may": ["route"], "channels": ["*"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            'channel = "tea"\n[channels.tea]\n',
            "found the channel 'tea' twice, expected another name",
        ),
        (
            "[router.root-tea]\n[channels.tea]\n",
            "its node needs the name 'root-tea', which another node of the tree has",
        ),
        ('[channels."a/b"]\n', "found the name 'a/b', expected at most 64 ASCII"),
        ('[channels.tea]\ncolumns = {x = "nonsense"}\n', "nonsense"),
        ("[channels.tea]\nport = 7\n", "port"),
        (
            '[channels.tea.preprocessor]\nkind = "topics"\n',
            "channels.tea: preprocessor: found no ontology, which the kind 'topics' needs",
        ),
        (
            '[channels.tea.preprocessor]\nkind = "topics"\nontology = "none.json"\n',
            "none.json",
        ),
    ],
)
def test_bad_files(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_tree(written(tmp_path / "t.toml", text))


def test_two_channels_as_processes(tmp_path: Path) -> None:
    """Two rendezvous points and two routers, of which one is killed."""

    async def work() -> None:
        running = RunningTree(load_tree(written(tmp_path / "t.toml", TREE + TOKENS)), print)
        try:
            await running.start()
            address = f"tidings://{running.branches['lower'].address()}/fx"
            async with connect(address, name="desk", token="both", timeout=30) as agent:
                tea = agent.channel("tea")
                async with agent.subscribe("x > 0") as a, tea.subscribe("x > 0") as b:
                    for n in range(3):
                        if n == 1:
                            pid = running.branches["upper"].pid
                            assert pid is not None
                            running.branches["upper"].process.send_signal(signal.SIGKILL)  # type: ignore[union-attr]
                        await agent.publish({"x": 1}, b"fx %d" % n, timeout=60)
                        await tea.publish({"x": 1}, b"tea %d" % n, timeout=60)
                        assert await payloads(a, 1) == [b"fx %d" % n]
                        assert await payloads(b, 1) == [b"tea %d" % n]
            await asyncio.to_thread(publish_blocking, address)
            await use_rights(address)
        finally:
            await running.stop()

    asyncio.run(work())


TOPICS = """
[router.edge]
[channels.news.preprocessor]
kind = "topics"
ontology = "topics.json"
"""


def test_a_channel_with_topics(tmp_path: Path) -> None:
    """The kind of interest of another channel, and its ontology that is read again."""

    async def work() -> None:
        topics = tmp_path / "topics.json"
        topics.write_text('{"football": "sports"}')
        path = written(tmp_path / "t.toml", TOPICS)
        running = RunningTree(load_tree(path), print)
        try:
            await running.start()
            async with connect(f"tidings://{running.branches['edge'].address()}") as agent:
                news = agent.channel("news")
                async with news.subscribe("sports", "topics") as told:
                    await news.publish({"topic": "football"}, b"2:1", timeout=60)
                    with pytest.raises(Refusal, match="there is no topic 'chess'"):
                        await news.publish({"topic": "chess"}, b"e4", timeout=60)
                    topics.write_text('{"football": "sports", "chess": "sports"}')
                    running.renew(load_tree(path))

                    for _ in range(1200):  # until the file has been read
                        with contextlib.suppress(Refusal):
                            await news.publish({"topic": "chess"}, b"e4", timeout=60)
                            break
                        await asyncio.sleep(0.05)
                    assert await payloads(told, 2) == [b"2:1", b"e4"]
        finally:
            await running.stop()

    asyncio.run(work())


async def use_rights(address: str) -> None:
    """One token: publishes in one channel, and only subscribes in the other."""
    async with connect(address, name="clerk", token="each", timeout=30) as clerk:
        tea = clerk.channel("tea")
        await clerk.publish({"x": 1}, b"", timeout=60)
        with pytest.raises(Refusal, match="'clerk' may not publish here"):
            await tea.publish({"x": 1}, b"", timeout=60)
        with pytest.raises(Refusal, match="'clerk' may not subscribe here"):
            async with clerk.subscribe("x > 0"):
                pass
        async with (
            tea.subscribe("x > 7") as told,
            connect(address, name="desk", token="both", timeout=30) as desk,
        ):
            await desk.channel("tea").publish({"x": 8}, b"eight", timeout=60)
            assert await payloads(told, 1) == [b"eight"]


def publish_blocking(address: str) -> None:
    """The same for code without `async`."""
    with connect_blocking(address, name="desk", token="both", timeout=30) as agent:
        tea = agent.channel("tea")
        assert tea.name == "tea"
        with tea.subscribe("x > 5") as told:
            assert tea.publish({"x": 7}, b"one") == 1
            assert tea.publish_many([({"x": n}, b"%d" % n) for n in range(5, 8)]) == 3
            found = [told.next(120) for _ in range(3)]
            assert [one.payload for one in found if isinstance(one, Delivery)] == [
                b"one", b"6", b"7",
            ]  # fmt: skip
        tea.close()


ROUTER = """
name = "edge"
listen = "127.0.0.1:0"
channel = "fx"
"""


def test_routes_of_a_file(tmp_path: Path) -> None:
    text = (
        ROUTER
        + """
upstream = ["127.0.0.1:7400", "127.0.0.1:7401"]
[limits]
nodes = 500
questions = 40
[upstreams]
west = "10.0.0.7:7400"
[channels]
tea = "west"
"orders-*" = {upstream = "west", limits = {nodes = 7}}
"orders-eu-*" = ""
"""
    )
    node = make_node(load_config(written(tmp_path / "edge.toml", text)))
    assert isinstance(node, RouterNode)
    routes = node.channels.routes
    assert [*node.hops] == ["<upstream>", "<upstream west>"]
    assert node.upstream == Address("127.0.0.1", 7400)
    found = {name: routes.find(name) for name in ("tea", "orders-1", "orders-eu-1", "coffee", "te")}
    hops = {name: None if one is None else one.hop for name, one in found.items()}
    assert hops == {
        "tea": "<upstream west>", "orders-1": "<upstream west>", "orders-eu-1": "<upstream>",
        "coffee": None, "te": None,
    }  # fmt: skip
    limits = node.make_machine("orders-1").limits
    assert (limits.nodes, limits.questions) == (7, 40)
    assert node.make_machine("tea").limits.nodes == 500


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('journal = "j"\n[channels]\ntea = ""\n', r"found \[channels\], which only a router"),
        ("upstream = []\n", "upstream: found no address, expected at least one"),
        ('upstream = "nowhere"\n', "found 'nowhere', expected a host and a port"),
        ('upstream = "a:1"\n[upstreams]\nwest = "b"\n', "upstreams.west: found 'b', expected a"),
        (
            'upstream = "a:1"\n[channels]\ntea = "west"\n',
            "the upstream 'west', expected one of \"\"",
        ),
        ('upstream = "a:1"\n[channels]\nfx = ""\n', "found 'fx', expected the name of another"),
        (
            'upstream = "a:1"\n[channels]\ntea = {limits = {nodes = 0}}\n',
            "nodes",
        ),
        ('upstream = "a:1"\n[channels]\ntea = {limits = {node = 1}}\n', "node"),
    ],
)
def test_bad_routes(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(written(tmp_path / "edge.toml", ROUTER + text))
