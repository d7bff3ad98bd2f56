"""Status reports of nodes: they are collected, bounded, and expire, whatever neighbours send."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from tests.broker.networks import BRIEF, at, payloads, running, started, stopped
from tests.repeats import amount
from tests.waiting import until

from tidings.broker.reports import MOST_CHANNELS, MOST_LISTED, Reports, shorten
from tidings.network import Link
from tidings.network.agent import Refusal, connect
from tidings.network.watching import watch
from tidings.routing.protocol import frames, messages as m

EXPIRE = 20.0
LONG = "\U0001f514" * m.MOST_NAME  # four bytes each
MOST = 2**63 - 1


def status(name: str, depth: int = 0, **more: int) -> m.NodeStatus:
    return m.NodeStatus(depth, name, "router", "127.0.0.1:1", **more)  # type: ignore[arg-type]


def with_rows(**rows: object) -> m.NodeStatus:
    return msgspec.structs.replace(status("x"), **rows)


def report(*nodes: m.NodeStatus) -> m.Report:
    return m.Report(nodes)


def seen(reports: Reports, now: float) -> list[tuple[int, str, int]]:
    return [(one.depth, one.name, one.age) for one in reports.gather(status("me"), now).nodes]


def test_a_tree_is_gathered() -> None:
    reports = Reports(EXPIRE)
    reports.take("b", report(status("b"), status("c", 1, age=500), status("d", 2)), now=10.0)
    reports.take("a", report(status("a")), now=11.0)
    expected = [(0, "me", 0), (1, "a", 1000), (1, "b", 2000), (2, "c", 2500), (3, "d", 2000)]
    assert seen(reports, 12.0) == expected
    reports.take("b", report(status("b")), now=12.0)
    assert seen(reports, 12.0) == [(0, "me", 0), (1, "a", 1000), (1, "b", 0)]


def test_what_is_old_is_gone() -> None:
    reports = Reports(EXPIRE)
    reports.take("a", report(status("a")), now=0.0)
    reports.take("b", report(status("b")), now=5.0)
    assert len(seen(reports, EXPIRE)) == 3
    assert seen(reports, EXPIRE + 0.1) == [(0, "me", 0), (1, "b", 15_100)]
    assert reports.known.keys() == {"b"}
    assert (reports.kind("a"), reports.kind("b")) == ("agent", "router")


@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (status("other"),),
        (status("a", 1),),
        (status("a"), status("b")),
        (status("a"), status("b", 2)),
        (status("a"), status("b", 1), status("c", 3)),
    ],
)
def test_what_is_no_tree_of_the_sender(nodes: tuple[m.NodeStatus, ...]) -> None:
    reports = Reports(EXPIRE)
    reports.take("a", m.Report(nodes), now=0.0)
    assert (reports.ignored, reports.known) == (1, {})


def test_many_nodes_of_many_neighbours() -> None:
    """Large reports are cut, small ones stay whole, and a thousand neighbours are enough."""
    reports = Reports(EXPIRE)
    many = [status("a"), *(status(f"a{n}", 1) for n in range(m.MOST_REPORTED - 1))]
    reports.take("a", report(*many), now=0.0)
    reports.take("b", report(status("b"), status("c", 1)), now=0.0)
    assert {name: len(one.nodes) for name, one in reports.known.items()} == {
        "a": m.MOST_REPORTED - 2,
        "b": 2,
    }
    assert len(seen(reports, 0.0)) == m.MOST_REPORTED
    for n in range(2 * m.MOST_REPORTED):
        name = f"n{n}"
        reports.take(name, report(status(name), *(status("x", 1) for _ in range(9))), now=0.0)
        assert sum(len(one.nodes) for one in reports.known.values()) <= m.MOST_REPORTED
    assert {"a", "b", "n0"} < reports.known.keys()
    assert len(reports.known) == m.MOST_REPORTED


def test_the_largest_reports_can_be_read_above() -> None:
    """What a node passes on is never more than the one above takes: else it would be cut off."""
    link = m.LinkStatus(LONG, "watcher", MOST, MOST, MOST, MOST, MOST, MOST, MOST, m.MOST_MILLIS)
    links = (link,) * m.MOST_LINKS
    tagger = m.PreprocessorStatus(LONG, LONG, MOST, MOST, MOST, m.MOST_MILLIS, m.MOST_MILLIS)
    channel = m.ChannelStatus(LONG, MOST, MOST, MOST, True, LONG, MOST)
    source = m.SourceStatus(LONG, LONG, MOST, MOST, True, MOST, m.MOST_MILLIS)
    name = m.NameStatus(LONG, LONG, MOST, MOST)
    taggers, channels = (tagger,) * m.MOST_PREPROCESSORS, (channel,) * m.MOST_CARRIED
    sources, named = (source,) * m.MOST_SOURCES, (name,) * m.MOST_NAMED

    def full(name: str, depth: int) -> m.NodeStatus:
        return m.NodeStatus(
            depth, name, "rendezvous", LONG, m.MOST_MILLIS, m.MOST_MILLIS, MOST, MOST, MOST, MOST,
            MOST, MOST, MOST, MOST, links, preprocessors=taggers, carried=channels,
            sources=sources, names=named, pipelines=MOST, named=MOST, refused=MOST, strangers=MOST,
        )  # fmt: skip

    whole = [
        full(LONG, 0),
        *(full(LONG, min(n, m.MOST_DEPTH - 1)) for n in range(1, m.MOST_REPORTED)),
    ]
    below = Reports(EXPIRE)
    below.take(LONG, report(*whole), now=0.0)
    data = frames.encode(below.gather(full("me", 0), now=15.0))
    assert len(data) < frames.LARGEST / 4
    read = frames.decode(data)
    assert isinstance(read, m.Report)
    assert sum(len(one.links) for one in read.nodes) <= MOST_LISTED
    assert sum(len(one.carried) for one in read.nodes) <= MOST_CHANNELS
    rows = [len(one.preprocessors) + len(one.sources) + len(one.names) for one in read.nodes]
    assert sum(rows) <= MOST_CHANNELS
    assert rows[0] == m.MOST_PREPROCESSORS + m.MOST_SOURCES + m.MOST_NAMED
    assert max(one.depth for one in read.nodes) == m.MOST_DEPTH - 1
    assert {one.age for one in read.nodes} == {m.MOST_MILLIS}


numbers = st.integers(0, MOST)
times = st.integers(0, m.MOST_MILLIS)
names = st.sampled_from(["a", "b", LONG]) | st.text(max_size=5)
links_ = st.builds(
    m.LinkStatus, names, st.sampled_from(["above", "router", "agent", "watcher"]), numbers,
    numbers, numbers, numbers, numbers, numbers, numbers, times,
)  # fmt: skip
taggers_ = st.builds(
    m.PreprocessorStatus, names, names, numbers, numbers, numbers, times, times
)  # fmt: skip
channels_ = st.builds(
    m.ChannelStatus, names, numbers, numbers, numbers, st.booleans(), names, numbers
)
sources_ = st.builds(
    m.SourceStatus, names, names, st.none() | numbers, numbers, st.booleans(), numbers,
    st.none() | times,
)  # fmt: skip
named_ = st.builds(m.NameStatus, names, names, numbers, numbers)
nodes_ = st.builds(
    m.NodeStatus, st.integers(0, 3) | st.integers(0, m.MOST_DEPTH - 1), names,
    st.sampled_from(["rendezvous", "router"]), names, times, times, numbers, numbers, numbers,
    numbers, numbers, numbers, numbers, numbers, st.lists(links_, max_size=3).map(tuple),
    preprocessors=st.lists(taggers_, max_size=3).map(tuple),
    carried=st.lists(channels_, max_size=3).map(tuple),
    sources=st.lists(sources_, max_size=3).map(tuple),
    names=st.lists(named_, max_size=3).map(tuple),
)  # fmt: skip
reports_ = st.builds(m.Report, st.lists(nodes_, max_size=6).map(tuple))


@settings(max_examples=amount(30, 1000))
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", LONG]), reports_, st.floats(0, 60)), max_size=8)
)
def test_whatever_neighbours_say(said: list[tuple[str, m.Report, float]]) -> None:
    reports = Reports(EXPIRE)
    for name, one, now in said:
        assert frames.decode(frames.encode(one)) == one
        reports.take(name, one, now)
        gathered = reports.gather(status("me"), now)
        assert frames.decode(frames.encode(gathered)) == gathered


@pytest.mark.parametrize(
    "bad",
    [
        m.Report((status("x" * (m.MOST_NAME + 1)),)),
        m.Report((status("x"),) * (m.MOST_REPORTED + 1)),
        m.Report((status("x", m.MOST_DEPTH),)),
        m.Report((status("x", age=m.MOST_MILLIS + 1),)),
        m.Report((status("x", serial=-1),)),
        m.Report((with_rows(carried=(m.ChannelStatus("x"),) * (m.MOST_CARRIED + 1)),)),
        m.Report((with_rows(carried=(m.ChannelStatus("x", nodes=-1),)),)),
        m.Report((with_rows(preprocessors=(m.PreprocessorStatus("x", "y" * 999),)),)),
        m.Report((with_rows(sources=(m.SourceStatus("x", "y"),) * (m.MOST_SOURCES + 1)),)),
        m.Report((with_rows(names=(m.NameStatus("x", "y"),) * (m.MOST_NAMED + 1)),)),
    ],
    ids=[
        "name",
        "nodes",
        "depth",
        "age",
        "number",
        "channels",
        "channel",
        "preprocessor",
        "sources",
        "names",
    ],
)
def test_what_is_beyond_the_bounds_is_not_read(bad: m.Report) -> None:
    with pytest.raises(frames.FrameError):
        frames.decode(frames.encode(bad))


def test_long_names() -> None:
    assert shorten("x" * m.MOST_NAME) == "x" * m.MOST_NAME
    assert shorten("x" * 10_000) == "x" * (m.MOST_NAME - 1) + "…"


# -- over real connections -------------------------------------------------------------------------


async def latest(address: str, until: int, token: str = "") -> dict[str, m.NodeStatus]:
    """The first report of so many nodes that has counted all of them."""
    async with watch(address, token=token) as reports:
        async for one in reports:
            if len(one.nodes) == until and all(node.serial == 20 for node in one.nodes):
                return {node.name: node for node in one.nodes}
    raise AssertionError("it ended")


def test_a_running_network_reports(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 2, BRIEF)
        root, (upper, lower) = network
        async with (
            connect(at(lower), times=BRIEF, name="reader") as reader,
            connect(at(upper), times=BRIEF, name="writer") as writer,
            reader.subscribe("n >= 10") as told,
        ):
            for n in range(20):
                await writer.publish({"n": n}, b"")
            await payloads(told, 10)
            nodes = await latest(at(root), 3)
            assert {name: one.depth for name, one in nodes.items()} == {"root": 0, "r0": 1, "r1": 2}
            passed = {
                name: (one.kind, one.published, one.told_in, one.told_out, one.nodes)
                for name, one in nodes.items()
            }
            assert passed == {
                "root": ("rendezvous", 20, 0, 10, 1),
                "r0": ("router", 20, 10, 10, 1),
                "r1": ("router", 0, 10, 10, 1),
            }
            links = {
                name: [(x.kind, x.name, x.told_in, x.told_out, x.nodes) for x in one.links]
                for name, one in nodes.items()
            }
            assert links["root"][0] == ("router", "r0", 20, 10, 1)
            assert links["root"][1][0] == "watcher"
            assert links["r0"] == [
                ("above", "root", 10, 0, 1),
                ("router", "r1", 0, 10, 1),
                ("agent", "writer", 20, 0, 0),
            ]
            assert links["r1"] == [("above", "r0", 10, 0, 1), ("agent", "reader", 0, 10, 1)]
            assert nodes["r1"].listen == f"127.0.0.1:{lower.port}"
        beneath = await latest(at(upper), 2)
        assert (beneath["r0"].depth, beneath["r1"].depth) == (0, 1)
        assert beneath["r0"].published == 20  # though the writer has left
        await stopped(network)

    running(work)


def test_a_router_that_is_gone_shows_its_age(tmp_path: Path) -> None:
    async def work() -> None:
        root, (router,) = await started(tmp_path, 1, BRIEF)
        ages: list[int] = []
        async with watch(at(root)) as reports:
            while len((await anext(reports)).nodes) < 2:
                pass
            await router.stop()
            await asyncio.sleep(3 * BRIEF.beat)  # it may have reported once more
            await anext(reports)
            async for one in reports:
                if len(one.nodes) == 1:
                    break
                ages.append(one.nodes[1].age)
        later = ages[2:]  # the last report of the router may have been on its way
        assert later == sorted(later)
        assert 3000 * BRIEF.beat < ages[-1] <= 1000 * BRIEF.expire
        await root.stop()

    running(work)


def test_who_may_watch(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF, tokens={"secret": "*", "eves": "eve"})
        for token in ("", "wrong", "eves"):
            with pytest.raises(Refusal, match="token"):
                await latest(at(network[0]), 1, token=token)
        for token, name in (("secret", None), ("eves", "eve")):
            async with watch(at(network[0]), token=token, name=name) as reports:
                assert (await anext(reports)).nodes[0].name == "root"
        await stopped(network)

    running(work)


def test_hostile_neighbours_of_a_node(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF)
        root = network[0]
        loop = asyncio.get_running_loop()
        body = b"\x92\xa6report\xdd" + struct.pack(">I", 2**32 - 1)  # so many nodes, it says
        large = struct.pack("<IBB", len(body) + 2, 2, frames.VERSION) + body
        ends: list[str] = []
        no_tree = frames.encode(m.Report(())) * 100
        cases: list[tuple[bytes, Callable[[], bool]]] = [
            (large, lambda: len(ends) == 1),
            (
                frames.encode(m.Report((status("x"),) * (m.MOST_REPORTED + 1))),
                lambda: len(ends) == 2,
            ),
            (no_tree + frames.encode(report(status("eve"))), lambda: "eve" in root.reports.known),
            (frames.encode(m.Watch()) * 100, lambda: "eve" in root.reports.watchers),
        ]
        for said, happened in cases:
            made = loop.create_connection(
                lambda: Link(lambda *_: None, lambda _, why: ends.append(why)),
                "127.0.0.1", root.port,
            )  # fmt: skip
            transport, link = await made
            link.send(m.Hello("eve"))
            link.send_notifications(said, 0)
            await until(happened)
            transport.abort()
            await until(lambda: "eve" not in root.links)
        assert root.reports.ignored == 100
        assert not root.reports.watchers
        assert "eve" in root.reports.known
        async with watch(at(root)) as reports:
            assert [one.name for one in (await anext(reports)).nodes] == ["root", "eve"]
        await stopped(network)

    running(work)
