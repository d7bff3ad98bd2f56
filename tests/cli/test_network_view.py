"""The picture of a network: rates from counters, a tree that fits 80 columns."""

from __future__ import annotations

import msgspec
from rich.console import Console, RenderableType

from tidings.cli.network.network_view import NetworkView
from tidings.routing.protocol import messages as m


def link(name: str, kind: m.Kind = "agent", **more: int) -> m.LinkStatus:
    return m.LinkStatus(name, kind, **more)


def node(depth: int, name: str, *links: m.LinkStatus, **more: int) -> m.NodeStatus:
    below = sum(one.kind != "above" for one in links)
    where = f"127.0.0.1:{57400 + depth}"
    kind = "router" if depth else "rendezvous"
    return m.NodeStatus(depth, name, kind, where, neighbours=below, links=links, **more)  # type: ignore[arg-type]


def report(*nodes: m.NodeStatus) -> m.Report:
    return m.Report(nodes)


def lines(picture: RenderableType, width: int = 80) -> list[str]:
    console = Console(width=width, highlight=False, markup=False, force_terminal=False)
    with console.capture() as shown:
        console.print(picture)
    return [line.rstrip() for line in shown.get().splitlines()]


def test_rates_come_from_the_counters_and_clocks_of_nodes() -> None:
    view = NetworkView()
    first = node(0, "root", link("a"), uptime=1000, published=10, told_out=100)
    edge = node(1, "edge", uptime=500, told_in=5)
    view.feed(report(first, edge))
    assert view.rates("root").into is None
    assert not view.has_rates
    later = node(0, "root", link("a", told_out=50), uptime=3000, published=30, told_out=200)
    view.feed(report(later, edge))  # nothing new of the edge
    assert (view.rates("root").into, view.rates("root").out) == (10, 50)
    assert view.rates("root", "agent a").into == 25
    assert view.rates("root", "edge").into is None
    view.feed(report(later, node(1, "edge", uptime=1500, told_in=25)))
    assert view.has_rates
    assert view.rates("root", "edge").into == 20
    assert view.rates("root").into == 10  # nothing new of the root, and its rate stays
    view.feed(report(node(0, "root", uptime=10, published=1)))
    assert view.rates("root").into is None  # it was started again
    assert view.rates("root", "edge").into is None  # and has lost the edge


def test_agents_that_bypass_the_tree_count_once() -> None:
    view = NetworkView()
    root = node(0, "root", link("edge", "router"), link("bob/direct-1", "direct", nodes=1))
    view.feed(report(root, node(1, "edge", link("root", "above"), link("bob"))))
    shown = lines(view.draw())
    assert shown[0].startswith("2 nodes  1 agent  ")
    assert [line.split()[:3] for line in shown[4:]] == [
        ["root", "127.0.0.1:57400", "0"],
        ["├─", "edge", "127.0.0.1:57401"],
        ["│", "└─", "bob"],
        ["└─", "bob/direct-1", "direct"],
    ]


def test_the_tree() -> None:
    agents = [link(f"agent-{n}", nodes=n) for n in range(6)]
    view = NetworkView()
    west = link("west", "router", waiting=1_234_567, dropped=7)
    view.feed(
        report(
            node(0, "root", west, link("east", "router"), uptime=3_723_000, serial=1234),
            node(1, "east", link("root", "above"), link("bob", nodes=3), link("w", "watcher")),
            node(1, "west", link("root", "above"), *agents),
            node(2, "coast", age=7_900),
        )
    )
    assert lines(view.draw()) == [
        "4 nodes  7 agents  up 1:02:03  serial 1,234  1 silent",
        "",
        "node              where            nodes  in/s  out/s  waiting  dropped",
        "───────────────────────────────────────────────────────────────────────",
        "root              127.0.0.1:57400      0     -      -",
        "├─ east           127.0.0.1:57401      0     -      -      0 B        0",
        "│  └─ bob         agent                3     -      -      0 B        0",
        "└─ west           127.0.0.1:57401      0     -      -   1.2 MB        7",
        "   ├─ coast       silent for 7 s       0     -      -",
        "   ├─ agent-0     agent                0     -      -      0 B        0",
        "   ├─ agent-1     agent                1     -      -      0 B        0",
        "   └─ and 4 more  agents",
    ]


def test_every_agent() -> None:
    view = NetworkView(every=True)
    view.feed(report(node(0, "root", *(link(f"agent-{n}") for n in range(6)))))
    assert sum("agent-" in line for line in lines(view.draw())) == 6


def test_large_numbers_and_long_names_fit() -> None:
    view = NetworkView()
    for at in (1, 2):
        big = {"told_in": at * 123_456_789, "told_out": at * 999_999, "uptime": at * 1000}
        wide = link("n" * 100, "router", waiting=999_600_000, dropped=123_456_789)
        nodes = [node(0, "r" * 100, wide, nodes=99_999, **big)]
        nodes += [node(1, "n" * 100, link("a" * 100), nodes=10**12, **big)]
        view.feed(report(*nodes, *(node(depth, "deep") for depth in range(2, 10))))
    shown = lines(view.draw())
    assert max(map(len, shown)) <= 80
    assert shown[4].split()[2:] == ["99,999", "0", "1.0", "M"]
    row = "1.0 T  123 M  1.0 M  1.0 GB  123 M"
    assert " ".join(shown[5].split()[3:]) == " ".join(row.split())
    assert len([line for line in shown if "deep" in line]) == 8


def test_names_can_not_steer_a_terminal() -> None:
    view = NetworkView()
    view.feed(report(node(0, "\x1b[2Jroot"), node(1, "[bold]x[/]"), node(2, "a\nb")))
    text = "\n".join(lines(view.draw()))
    assert "\x1b" not in text
    assert "·[2Jroot" in text
    assert "[bold]x[/]" in text
    assert "a·b" in text


def test_what_is_expected_is_shown_without_a_report() -> None:
    view = NetworkView(expected=[("root", None), ("west", "root"), ("coast", "west")])
    shown = lines(view.draw({"west": "again in 2 s"}))
    assert shown[0] == "3 nodes  0 agents"
    assert [line[:11].rstrip() for line in shown[4:]] == ["root", "└─ west", "   └─ coast"]
    assert "again in 2 s" in shown[5]
    places = {"west": "127.0.0.1:7, preprocessor"}
    assert places["west"] in lines(view.draw({}, places))[5]
    assert places["west"] not in "".join(lines(view.draw({"west": "starting"}, places)))
    view.feed(report(node(0, "root"), node(1, "coast"), node(1, "other")))
    assert sum("coast" in line for line in lines(view.draw())) == 1
    assert sum("west" in line for line in lines(view.draw())) == 1


def test_the_record_has_seconds_and_links() -> None:
    view = NetworkView()
    view.feed(report(node(0, "root", link("a", heard=1500), uptime=2500), node(1, "b", age=500)))
    root, b = view.record()["nodes"]
    assert (root["name"], root["above"], root["uptime"]) == ("root", None, 2.5)
    assert (b["above"], b["age"], b["in_per_second"]) == ("root", 0.5, None)
    (only,) = root["links"]
    assert (only["direction"], only["kind"], only["heard"]) == ("below", "agent", 1.5)


def test_fields_that_a_root_does_not_declare() -> None:
    view = NetworkView()
    view.feed(report(node(0, "root", uptime=2000, serial=7, undeclared=1234), node(1, "edge")))
    title = "2 nodes  0 agents  up 0:00:02  serial 7  1,234 undeclared fields"
    assert lines(view.draw())[0] == title
    assert [one["undeclared"] for one in view.record()["nodes"]] == [1234, 0]


def test_bytes_that_were_sent_early() -> None:
    view = NetworkView()
    view.feed(report(node(0, "root", early=6000, early_used=5000), node(1, "edge", early=2000)))
    assert "sent early 8.0 KB, 62% needed" in lines(view.draw(), 120)[0]


def test_places_from_preprocessors() -> None:
    view = NetworkView()
    view.feed(report(node(0, "root"), node(1, "edge", located=2), node(1, "other", located=1)))
    assert "3 places from preprocessors" in lines(view.draw(), 120)[0]
    assert [one["located"] for one in view.record()["nodes"]] == [0, 2, 1]


def test_predicates_that_are_switched_off() -> None:
    view = NetworkView()
    root = m.NodeStatus(0, "root", "rendezvous", "127.0.0.1:1", switched_off="angrier, odd")
    view.feed(report(root))
    assert "predicates switched off: angrier, odd" in lines(view.draw(), 120)[0]


def _with_rows(status: m.NodeStatus, *rows: m.ChannelStatus | m.PreprocessorStatus) -> m.NodeStatus:
    return msgspec.structs.replace(
        status,
        carried=tuple(one for one in rows if isinstance(one, m.ChannelStatus)),
        preprocessors=tuple(one for one in rows if isinstance(one, m.PreprocessorStatus)),
    )


def test_preprocessors() -> None:
    """Their rates come from their own clocks; `behind` is what the rendezvous point counted."""
    view = NetworkView()
    address = "tidings://127.0.0.1:7410/"
    for tagged, uptime in ((100, 1000), (100, 1000), (1100, 3000)):
        tagger = m.PreprocessorStatus("tagger", address, tagged, 812, 3, uptime, 1500)
        view.feed(report(_with_rows(node(0, "root", uptime=uptime), tagger)))
    assert lines(view.draw())[-3:] == [
        "preprocessor  where           tags/s  version  behind",
        "─────────────────────────────────────────────────────",
        "tagger        127.0.0.1:7410     500      812       3",
    ]
    assert view.record()["preprocessors"] == [
        {"name": "tagger", "address": address, "above": "root", "tagged": 1100,
         "tags_per_second": 500.0, "version": 812, "behind": 3, "uptime": 3.0, "heard": 1.5},
    ]  # fmt: skip
    again = m.PreprocessorStatus("tagger", address, 7, 812, 0, 10, 0)  # it was started again
    view.feed(report(_with_rows(node(0, "root", uptime=4000), again)))
    assert view.record()["preprocessors"][0]["tags_per_second"] is None
    assert not view.record()["channels"]


def test_channels() -> None:
    """Subscriptions are added up; nodes and rates are those of the highest node that has the
    channel."""
    view = NetworkView()
    for at in (1, 2):
        upper = [
            m.ChannelStatus("fx", 40, 2, 1000 * at, kind="topics", followers=3),
            m.ChannelStatus("tea", 7, 0, 10),
        ]
        lower = [m.ChannelStatus("tea", 3, 5, 10), m.ChannelStatus("ha", 1, 1, 0, True)]
        view.feed(
            report(
                _with_rows(node(0, "upper", uptime=1000 * at), *upper),
                _with_rows(node(1, "lower", uptime=1000 * at), *lower),
            )
        )
    assert lines(view.draw())[-5:] == [
        "channel  kind    nodes  subscriptions  followers  notifications/s",
        "─────────────────────────────────────────────────────────────────",
        "fx       topics     40              2          3            1,000",
        "tea                  7              5          0                0",
        "ha       asleep      1              1          0                0",
    ]
    assert view.record()["channels"][0] == {
        "name": "fx", "nodes": 40, "subscriptions": 2, "per_second": 1000.0, "asleep": False,
        "kind": "topics", "followers": 3,
    }  # fmt: skip
    many = [m.ChannelStatus(f"c{n}") for n in range(m.MOST_CARRIED)]
    view.feed(report(_with_rows(node(0, "upper", uptime=3000), *many)))
    assert lines(view.draw())[-1] == "and 40 more"
    view.every = True
    assert lines(view.draw())[-1].startswith("c9 ")


def test_pipelines_and_names() -> None:
    """Their last batches and how far they lag, in 100 columns, even with the longest names."""
    view = NetworkView()
    long = "n" * m.MOST_NAME
    for at in (1, 2):
        sources = (
            m.SourceStatus("flights", "1f0c22aa", 1204, 2, True, 5000 * at, 3000),
            m.SourceStatus(long, "77aa01b2", 7, 1, False, 10, 200_000),
            m.SourceStatus("", "c0ffee00", None),
        )
        names = (m.NameStatus("desk", "mine", 7_000, 850), m.NameStatus(long, long, 2**63 - 1, 0))
        root = msgspec.structs.replace(
            node(0, "root", uptime=1000 * at, refused=1200, strangers=1),
            sources=sources, pipelines=5, names=names, named=2,
        )  # fmt: skip
        view.feed(report(root))
    shown = lines(view.draw(), 100)
    assert shown[0].endswith("serial 0  1,200 refused for missing rights  1 stranger refused")
    assert shown[-11:] == [
        "pipeline                        stream    batch     parts  notifications/s      heard",
        "─────────────────────────────────────────────────────────────────────────────────────",
        "flights                         1f0c22aa  1,204         2            5,000    3 s ago",
        f"{'n' * 29}…  77aa01b2      7  1 so far                0  3 min ago",
        "(not seen yet)                  c0ffee00      -         -                0          -",
        "and 2 more",
        "",
        "named subscription              owner                                     confirmed up to"
        "  behind",
        "─" * 97,
        "mine                            desk                                                7,000"
        "     850",
        f"{'n' * 29}…  {'n' * 29}…  9,223,372,036,854,775,807       0",
    ]
    assert view.record()["pipelines"][1]["whole"] is False
    assert view.record()["names"][0] == {
        "owner": "desk", "name": "mine", "above": "root", "serial": 7000, "behind": 850,
    }  # fmt: skip
    assert "sources" not in view.record()["nodes"][0]


def test_a_single_channel_without_a_name_needs_no_table() -> None:
    view = NetworkView()
    view.feed(report(_with_rows(node(0, "root"), m.ChannelStatus("", 7, 1))))
    assert not any("subscriptions" in line for line in lines(view.draw()))
