"""`tidings relations` and `tidings demo --related`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import Run

from tidings.cli.demo.demo_related import draw_deliveries, find_deliveries

FILTERS = [
    {"id": "a", "subscriber": "ana", "filter": "city = 'Chicago' AND topic = 'delay'"},
    {"id": "b", "subscriber": "ben", "filter": "city = 'Paris' AND day = 'Christmas'"},
    {"id": "c", "subscriber": "ben", "filter": "topic = 'flower'"},
    {"id": "d", "subscriber": "cyd", "filter": "price > 5"},
]
EVENTS = [
    {"city": "Chicago", "topic": "delay", "day": "2013-12-24", "price": 9},
    {"city": "Evanston", "topic": "delay", "day": "2013-12-25", "price": 1},
    {"city": "Paris", "topic": "rose", "day": "2013-12-25", "price": 1},
    {"city": "Chicago", "topic": "delay", "day": "2013-12-26", "price": 1},
    {"city": "Boston", "topic": "flower", "day": "2014-01-02", "price": 7},
]
ATTRIBUTES = ("--place", "city", "--time", "day", "--tag", "topic")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    for name, rows in (("filters", FILTERS), ("events", EVENTS)):
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    return ("--filters", str(tmp_path / "filters.jsonl"), "--events",
            str(tmp_path / "events.jsonl"))  # fmt: skip


def test_what_was_learnt_is_shown(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    picture = tmp_path / "clusters.svg"
    done = run("relations", *files, *ATTRIBUTES, "--related", "0.7", "--svg", str(picture))
    assert done.code == 0
    assert "place     Chicago" in done.out
    assert "5 events: 5 exact matches, 3 related" in done.out
    assert "1 filter without a test that names values: exact matches only" in done.out
    drawn = ElementTree.fromstring(picture.read_text())
    texts = [one.text for one in drawn.iter() if one.tag.endswith("text")]
    assert {"ana", "Chicago", "Boston", "2013-12-24", "2014-01-02"} <= set(texts)


def test_words_of_texts_are_tags(run: Run, tmp_path: Path) -> None:
    """They are stemmed as English words with --text, and not stemmed with an empty language."""
    (tmp_path / "filters.jsonl").write_text('{"id": "a", "filter": "topic = 1"}\n')
    events = [{"topic": 1, "title": "Flights were delayed"}]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in events))
    files = ("--filters", str(tmp_path / "filters.jsonl"), "--events",
             str(tmp_path / "events.jsonl"), "--text", "title", "--json")  # fmt: skip
    for more, expected in (
        ((), {"flight", "delay"}),
        (("--language", "german"), {"flight", "wer", "delayed"}),
        (("--language", ""), {"flights", "delayed"}),
    ):
        done = run("relations", *files, *more)
        assert done.code == 0, done.err
        assert {one["value"] for one in json.loads(done.out)["topics"]} == expected
    assert "expected one of" in run("relations", *files, "--language", "klingon").err


def test_the_same_as_json(run: Run, files: tuple[str, ...]) -> None:
    done = run("relations", *files, *ATTRIBUTES, "--related", "0.7", "--json")
    found = json.loads(done.out)
    assert found["traffic"]["exact"] == 5
    assert found["traffic"]["related"] == 3
    assert found["nodes"] == 5
    assert found["clusters"] == {"place": 2, "time": 2, "tag": 2, "person": 0}
    merits = [one["merit"] for one in found["topics"]]
    assert merits == sorted(merits, reverse=True)


def test_without_related_only_exact_matches(run: Run, files: tuple[str, ...]) -> None:
    found = json.loads(run("relations", *files, *ATTRIBUTES, "--json").out)
    assert found["traffic"]["related"] == 0
    assert found["traffic"]["exact"] == 5


def test_wrong_options(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    assert "expected at least one" in run("relations", *files).err
    both = run("relations", "--filters", "-", "--events", "-", *ATTRIBUTES)
    assert "are both stdin" in both.err
    bad = run("relations", *files, *ATTRIBUTES, "--svg", str(tmp_path / "none" / "x.svg"))
    assert "the picture can't be written" in bad.err
    assert "expected ADDRESS, or both --filters and --events" in run("relations", *ATTRIBUTES).err
    here = run("relations", "tidings://127.0.0.1:1", *files)
    assert "found ADDRESS with --filters or --events" in here.err
    assert "can't connect to 127.0.0.1:1" in run("relations", "tidings://127.0.0.1:1").err
    assert "found --svg without --related" in run("demo", "--svg", "x.svg").err


def test_delays_near_chicago_around_christmas() -> None:
    airports = {
        "ORD": {"faa": "ORD", "name": "Chicago Ohare Intl", "lat": 41.979, "lon": -87.904,
                "alt": 668},
        "MKE": {"faa": "MKE", "name": "General Mitchell Intl", "lat": 42.947, "lon": -87.897,
                "alt": 723},
        "BOS": {"faa": "BOS", "name": "Logan", "lat": 42.364, "lon": -71.005, "alt": 19},
    }  # fmt: skip
    flights = [
        {"year": 2013, "month": 12, "day": day, "dest": dest, "dep_delay": delay, "carrier": "UA",
         "flight": 1, "origin": "EWR"}
        for day, dest, delay in (
            (25, "ORD", 90), (22, "ORD", 90), (25, "MKE", 90), (25, "BOS", 90), (25, "ORD", 5),
            (10, "ORD", 90), (25, "ORD", None), (25, "XYZ", 90),
        )
    ]  # fmt: skip
    exact, related = find_deliveries(iter(flights), airports)
    assert [(one.day, one.dest) for one in exact] == [("2013-12-25", "Chicago")]
    assert [(one.day, one.dest) for one in related] == [
        ("2013-12-22", "Chicago"), ("2013-12-25", "General Mitchell Intl"),
    ]  # fmt: skip
    assert [round(one.weight or 0, 2) for one in related] == [0.79, 0.8]
    assert related[0].reasons == {"place": "exact 1.00", "time": "near 0.57"}
    assert related[1].reasons["time"] == "exact 1.00"
    drawn = ElementTree.fromstring(draw_deliveries(exact, related, airports))
    texts = [one.text for one in drawn.iter() if one.tag.endswith("text")]
    assert {
        "matches the filter: 1", "related in place or time: 2", "Chicago: 1 match, 1 related",
        "General Mitchell Intl: 1 related", "2013-12-22", "2013-12-25",
    } <= set(texts)  # fmt: skip
    assert len(texts) == len({*texts} - {"1", "2"}) + texts.count("1") + texts.count("2")
