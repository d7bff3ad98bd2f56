"""`tidings bench route`: tables, JSON, and bad values in one sentence."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Run

from tidings.studies.network import route_bench, route_lookup, route_mixed
from tidings.studies.network.channels import idle_channels
from tidings.studies.network.direct import DirectWay, TwoWays
from tidings.studies.network.route_interests import AskLatencies, InterestsRun
from tidings.studies.network.route_parts import PartRun
from tidings.studies.network.route_preprocessors import Tagged

pytestmark = pytest.mark.usefixtures("forked")

QUICK = [
    "--no-peers", "--seconds", "0.1", "--rounds", "1", "--interests", "200", "--channels", "20",
]  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_lookup, "NOTIFICATIONS", 20)
    monkeypatch.setattr(route_bench, "HOPS", (1,))
    monkeypatch.setattr(route_bench, "CASES", route_bench.CASES[:1])
    monkeypatch.setattr(route_bench, "SIZES", (10, 100))
    monkeypatch.setattr(route_mixed, "FILTERS", 50)
    monkeypatch.setattr(idle_channels, "SETTLING", 0.5)
    monkeypatch.setattr(idle_channels, "MEASURED", 1.5)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stand-ins for the parts that take longest; tests/studies/test_route_bench.py measures them.
    Gives the numbers of interests that were asked for."""
    asked = AskLatencies(500.0, 20_000.0, 100, 1.5, 2.5, 3.5, 0.5, 4.5, 5.5)
    parts = PartRun([61_000.0], [62_000.0], 63_000.0, 50, 16_384, 1.5, 49_152)
    tagged = Tagged(50, 71.0, 72.0, 0.73, [74_000.0, 75_000.0], 3000)
    ways = TwoWays(3, 999, 500.0, [DirectWay("tree", 1.25, 2.5, 91.0, 92.0, 1000)])
    interests = list[int]()

    def measure_interests(_: object, __: float, count: int, **___: object) -> InterestsRun:
        interests.append(count)
        return InterestsRun(count, 81.0, 82.0, 830.0, 84.0, [asked])

    monkeypatch.setattr(route_bench, "measure_direct", lambda *_: ways)
    monkeypatch.setattr(route_bench, "measure_parts", lambda *_, **__: parts)
    monkeypatch.setattr(route_bench, "measure_preprocessors", lambda *_, **__: tagged)
    monkeypatch.setattr(route_bench, "measure_interests", measure_interests)
    return interests


def test_tables(run: Run, measured: list[int]) -> None:
    result = run("bench", "route", *QUICK)
    assert result.code == 0
    assert measured == [200]
    for word in (
        "1 label",
        "Latency: milliseconds",
        "steady",
        "agent per s",
        "received per s",
        "traffic",
        "20 channels without traffic",
        "Direct: ",
        "1.25",
        "over labels",
        "were received",
    ):
        assert word in result.out


def test_json_of_one_part(run: Run) -> None:
    (report,) = run("bench", "route", *QUICK, "--only", "lookup", "--json").records
    assert report["forward"] == report["latency"] == []
    assert report["durable"] is None
    assert {one["scenario"] for one in report["lookup"]} == {"baseball", "traffic", "attributes"}


def test_channels(run: Run) -> None:
    (report,) = run("bench", "route", *QUICK, "--only", "channels", "--json").records
    found = report["channels"]
    assert found["channels"] == 20
    assert [one["name"] for one in found["routers"]] == ["upper", "lower"]
    assert all(one["bytes_in"] > 0 and one["bytes_out"] > 0 for one in found["routers"])
    assert found["pulses"] > 0  # each of them stands for all 20 channels


def test_bad_parts_are_refused(run: Run) -> None:
    result = run("bench", "route", "--only", "sideways")
    assert result.code == 2
    assert (
        "--only is 'sideways', expected one of forward, latency, durable, parts, preprocessors, "
        "interests, channels, direct, lookup, modes" in result.err
    )
