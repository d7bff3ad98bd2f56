"""Ontologies: numbers, intervals, what is refused; against the plain way on random graphs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from tests.repeats import draws

from tidings.filters.values.topics import Ontology
from tidings.model import AttributesError

TREE = {"baseball": "ballgames", "mlb": "baseball", "football": "ballgames", "ballgames": "sports"}
DAG = {"b": ["a"], "c": ["a"], "d": ["c", "b"], "e": "d", "f": "c"}


@pytest.mark.parametrize(
    ("parents", "numbers"),
    [
        ({}, {}),
        ({"a": None}, {"a": 0}),
        ({"b": [], "a": ()}, {"a": 0, "b": 1}),
        (TREE, {"sports": 0, "ballgames": 1, "baseball": 2, "mlb": 3, "football": 4}),
        (DAG, {"a": 0, "b": 1, "d": 2, "e": 3, "c": 4, "f": 5}),
        ({"c": ["a", "a"]}, {"a": 0, "c": 1}),
    ],
)
def test_numbers(
    parents: Mapping[str, str | Iterable[str] | None], numbers: dict[str, int]
) -> None:
    made = Ontology(parents)
    assert {name: made.number(name) for name in numbers} == numbers
    assert len(made) == len(numbers)
    assert all(name in made for name in numbers)


@pytest.mark.parametrize(
    ("parents", "topic", "spans"),
    [
        (TREE, "sports", [(0, 4)]),
        (TREE, "ballgames", [(1, 4)]),
        (TREE, "baseball", [(2, 3)]),
        (TREE, "mlb", [(3, 3)]),
        (DAG, "a", [(0, 5)]),
        (DAG, "b", [(1, 3)]),
        (DAG, "c", [(2, 5)]),
        ({"b": "a", "c": ["a", "z"]}, "z", [(2, 3)]),
        ({"b": "a", "c": ["a", "z"], "d": "z"}, "z", [(2, 4)]),
        ({"b": ["a", "z"], "c": "a"}, "z", [(1, 1), (3, 3)]),
    ],
)
def test_spans(parents: Mapping[str, Any], topic: str, spans: list[tuple[int, int]]) -> None:
    made = Ontology(parents)
    assert made.spans(topic) == spans
    assert made.spans(topic) == spans  # remembered


@pytest.mark.parametrize(
    ("topic", "above", "expected"),
    [
        ("mlb", "sports", True),
        ("mlb", "mlb", True),
        ("sports", "mlb", False),
        ("football", "baseball", False),
        ("chess", "sports", None),
        ("mlb", "chess", None),
    ],
)
def test_isa(topic: str, above: str, expected: bool | None) -> None:
    assert Ontology(TREE).isa(topic, above) is expected


@pytest.mark.parametrize("topic", ["chess", "", None, 5, ["mlb"]])
def test_what_is_no_topic_has_no_number(topic: object) -> None:
    assert Ontology(TREE).number(topic) is None


@pytest.mark.parametrize(
    ("parents", "loop"),
    [
        ({"a": "a"}, "'a' lies under itself"),
        ({"a": "b", "b": "a"}, "'a' lies under 'b', which lies under 'a'"),
        ({"a": "a", "x": None, "y": None, "z": None}, "'a' lies under itself"),
        (
            {"a": "r", "b": ["r", "d"], "c": "b", "d": "c"},
            "'b' lies under 'd', which lies under 'c', which lies under 'b'",
        ),
        ({"a": "b", "b": "c", "c": "b"}, "'b' lies under 'c', which lies under 'b'"),
    ],
)
def test_loops_are_refused_and_named(parents: Mapping[str, Any], loop: str) -> None:
    with pytest.raises(AttributesError, match=f"^the ontology has a cycle: {loop}$"):
        Ontology(parents)


def test_of_a_long_loop_the_ends_are_named() -> None:
    with pytest.raises(AttributesError) as refused:
        Ontology({f"t{n}": f"t{(n + 1) % 1000}" for n in range(1000)})
    assert str(refused.value).startswith("the ontology has a cycle: 't0' lies under 't1', which")
    assert str(refused.value).endswith("which lies under …, which lies under 't0'")
    assert len(str(refused.value)) < 300


def test_a_deep_ontology() -> None:
    deep = Ontology({str(n + 1): str(n) for n in range(20_000)})
    assert deep.spans("0") == [(0, 20_000)]
    assert deep.isa("20000", "0") is True


def test_the_fingerprint_is_of_the_edges() -> None:
    mark = Ontology(DAG).fingerprint
    assert len(mark) == 16
    reordered = {"f": "c", "e": ["d"], "d": ["b", "c", "b"], "c": "a", "b": "a", "a": None}
    assert Ontology(reordered).fingerprint == mark
    for changed in ({**DAG, "f": "b"}, {**DAG, "g": None}, {**DAG, "f": ["c", "b"]}):
        assert Ontology(changed).fingerprint != mark


@pytest.mark.parametrize(
    ("word", "near"), [("basebal", "baseball"), ("footbal", "football"), ("zzz", None)]
)
def test_near(word: str, near: str | None) -> None:
    assert Ontology(TREE).near(word)[:1] == ([near] if near else [])


def random_parents(rng: random.Random) -> dict[str, list[str]]:
    """A DAG: the parents of each topic come from those before it; names are shuffled."""
    names = [f"t{number}" for number in range(rng.randint(1, 30))]
    rng.shuffle(names)
    most = rng.choice((1, 2, 4))
    rows = [
        (name, rng.sample(names[:at], k=min(at, rng.randint(0, most))))
        for at, name in enumerate(names)
    ]
    rng.shuffle(rows)
    return dict(rows)


def all_under(parents: Mapping[str, list[str]], topic: str) -> set[str]:
    """The plain way: add children until nothing is added."""
    under = {topic}
    while more := {n for n, above in parents.items() if n not in under and under & {*above}}:
        under |= more
    return under


def test_spans_and_isa_agree_with_the_plain_way(seed: int) -> None:
    rng = random.Random(seed)
    several = 0
    for _ in draws(100, lambda: several > 0):
        parents = random_parents(rng)
        made = Ontology(parents)
        numbers = {name: made.number(name) or 0 for name in parents}
        assert sorted(numbers.values()) == list(range(len(parents)))
        for topic in parents:
            under = all_under(parents, topic)
            spans = made.spans(topic)
            covered = [n for first, last in spans for n in range(first, last + 1)]
            assert covered == sorted(numbers[name] for name in under)
            assert all(a[1] + 1 < b[0] for a, b in pairwise(spans))
            assert {name for name in parents if made.isa(name, topic)} == under
            several += len(spans) > 1
            if all(len(above) <= 1 for above in parents.values()):
                assert len(spans) == 1  # a subtree is contiguous
    assert several > 0
