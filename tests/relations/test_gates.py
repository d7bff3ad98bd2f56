"""Gates of related subscriptions: what they find against a scan of all alternatives, through
changes, and what a message takes if many subscriptions differ only by another test."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.repeats import rounds

from tidings.filters import parse
from tidings.relations import Reading, SemanticStore, Term, Weights, load_relations
from tidings.relations.clusters.full_scan import relate
from tidings.relations.merit import RelatedInterests, TermReader

CITIES = ("Chicago", "Evanston", "Paris")
VALUES: tuple[Any, ...] = ("u1", "u2", 7, 7.0, 7.5, None, True, ["u1"], 2**70, "")
TESTS: dict[str, Callable[[Any], bool]] = {
    "who = 'u1'": lambda v: v == "u1",
    "who IN ('u1', 'u2')": lambda v: v in ("u1", "u2"),
    "who = 7": lambda v: v == 7 and v is not True,
    "who IN (7, 8)": lambda v: v == 7 and v is not True,
    "who = 7.5": lambda v: v == 7.5,
    "who IS NULL": lambda v: v is None,
    "who = ''": lambda v: v == "",
    "who > 6": lambda v: type(v) in (int, float) and v > 6,
}


@pytest.fixture(scope="module")
def store() -> SemanticStore:
    return load_relations(language=None)


def test_gates_against_a_scan(store: SemanticStore, seed: int) -> None:
    chance, weights = random.Random(seed), Weights()
    reader = TermReader(store, Reading(place="city"))
    places = {name: store.term("place", name) for name in CITIES}
    found_some = 0
    for _ in rounds(10, 100):
        index = RelatedInterests(store, weights, reader)
        wanted: dict[int, tuple[str, dict[str, str]]] = {}
        for number in range(40):
            if wanted and chance.random() < 0.3:
                gone = chance.choice([*wanted])
                index.cancel(gone)
                del wanted[gone]
            city = chance.choice(CITIES)
            names = chance.sample(["who", "what"], chance.choice([0, 1, 1, 2]))
            tests = {name: chance.choice([*TESTS]) for name in names}
            texts = [test.replace("who", name) for name, test in tests.items()]
            text = " AND ".join([f"city = '{city}'", *texts])
            index.add(number, parse(text), None, 0.5)
            wanted[number] = city, tests
        for _ in range(30):
            event: dict[str, Any] = {"city": chance.choice(CITIES)}
            event |= {name: chance.choice(VALUES) for name in ("who", "what")}
            event = {name: value for name, value in event.items() if chance.random() < 0.9}
            terms = reader.terms(event)
            expected = {
                number
                for number, (city, tests) in wanted.items()
                if all(TESTS[test](event.get(name)) for name, test in tests.items())
                and any(_is_near(store, weights, one, places[city]) for one in terms)
            }
            found = index.find(event, terms)
            assert {one.id for one in found} == expected
            assert len(found) == len(expected)
            found_some += len(found)
        for number in wanted:
            index.cancel(number)
        assert not index._wanting
        assert not index._gates._used
    assert found_some


def _is_near(store: SemanticStore, weights: Weights, one: Term, other: Term | None) -> bool:
    assert other is not None
    return relate(store, weights, one, other) >= 0.5


@pytest.mark.bench
def test_a_message_does_not_look_at_all_who_are_near(store: SemanticStore) -> None:
    reader = TermReader(store, Reading(place="city"))
    times = []
    for many in (1_000, 8_000):
        index = RelatedInterests(store, Weights(), reader)
        for number in range(many):
            filter_ = parse(f"city = 'Chicago' AND kind = 'delay' AND who = 'u{number}'")
            index.add(number, filter_, None, 0.5)
        event = {"city": "Evanston", "kind": "delay", "who": "u500"}
        terms = reader.terms(event)
        assert [one.id for one in index.find(event, terms)] == [500]
        begun = time.process_time()
        for _ in range(300):
            index.find(event, terms)
        times.append(time.process_time() - begun)
    assert times[1] < 3 * times[0], times
