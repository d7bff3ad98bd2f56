"""The static preprocessor: topics, and no others."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.graph import definition

from tidings import GraphError, NotificationError, Ontology, Preprocessor, StaticPreprocessor

SPORTS = {
    "baseball": "sports",
    "american league": "baseball",
    "boston": ["american league", "massachusetts"],
    "new york": "american league",
    "cubs": "baseball",
}


def test_a_topic_is_a_node_under_its_parents() -> None:
    desk = StaticPreprocessor(SPORTS)
    boston = desk.subscribe("boston")
    above = [desk.subscribe("american league"), desk.subscribe("massachusetts")]
    assert desk.graph.parents(boston) == sorted(above)
    assert desk.subscribe("boston") is boston
    assert repr(boston) == f"Node({boston.id}, 'boston')"


def test_the_tag_is_the_lowest_of_the_topics() -> None:
    desk = StaticPreprocessor(SPORTS)
    boston, cubs = desk.subscribe("boston"), desk.subscribe("cubs")
    assert desk.tag("boston") == [boston]
    assert desk.tag(["cubs", "boston", "baseball", "boston"]) == sorted([boston, cubs])
    assert desk.tag([]) == []


def test_numbers_do_not_depend_on_the_order_of_the_file() -> None:
    one = StaticPreprocessor(SPORTS)
    other = StaticPreprocessor(dict(reversed(SPORTS.items())))
    assert one.fingerprint == other.fingerprint
    assert [(n.id, n.interest) for n in one.graph] == [(n.id, n.interest) for n in other.graph]
    assert StaticPreprocessor({"a": None}).fingerprint != one.fingerprint


def test_unknown_topics_are_refused_with_near_ones() -> None:
    desk = StaticPreprocessor(SPORTS)
    with pytest.raises(GraphError, match=r"no topic 'basebal'; did you mean 'baseball'\?"):
        desk.subscribe("basebal")
    with pytest.raises(NotificationError, match=r"no topic 'cub'; did you mean 'cubs'\?"):
        desk.tag(["boston", "cub"])
    with pytest.raises(GraphError, match="no topic 'zzz'; expected a known topic"):
        desk.subscribe("zzz")


@pytest.mark.parametrize("given", [None, 5, b"boston", {"boston": 1}])
def test_what_is_no_topic_is_refused(given: Any) -> None:
    desk = StaticPreprocessor(SPORTS)
    with pytest.raises(GraphError, match="expected the name of a topic"):
        desk.subscribe(given)
    with pytest.raises(NotificationError, match="expected a topic or several topics"):
        desk.tag(given)
    with pytest.raises(NotificationError, match="expected the name of a topic"):
        desk.tag([given])


def test_it_does_not_change() -> None:
    desk = StaticPreprocessor(SPORTS)
    with pytest.raises(GraphError, match="can't be removed"):
        desk.graph.remove(desk.subscribe("cubs"))


def test_it_has_the_interface_of_every_kind() -> None:
    desk: Preprocessor[str, list[str]] = StaticPreprocessor(SPORTS)
    assert [node.id for node in desk.tag(["cubs"])] == [desk.subscribe("cubs").id]


def random_ontology(rng: random.Random) -> Ontology:
    """Parents come before their children; many of the edges follow from others."""
    names = [f"t{n}" for n in rng.sample(range(100), rng.randint(1, 25))]
    most = rng.choice([1, 2, 4])
    return Ontology(
        {
            name: rng.sample(names[:at], min(at, rng.randint(0, most)))
            for at, name in enumerate(names)
        }
    )


def test_random_ontologies_keep_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        ontology = random_ontology(rng)
        desk = StaticPreprocessor(ontology)

        def covers(a: Any, b: Any, ontology: Ontology = ontology) -> bool:
            return ontology.isa(b.interest, a.interest) is True

        definition.check(desk.graph, covers)
        for _ in range(5):
            topics = rng.sample(
                [n.interest for n in desk.graph], rng.randint(0, min(4, len(desk.graph)))
            )
            matched = {n for n in desk.graph if any(ontology.isa(t, n.interest) for t in topics)}
            assert desk.graph.matching(topics) == sorted(matched)
            assert desk.tag(topics) == definition.lowest(desk.graph, matched, covers)
