"""Synonyms, and revised ontologies: against the plain way on random graphs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from tidings.filters import Attributes, parse
from tidings.filters.values import Ontology, revise
from tidings.model import AttributesError

SPORTS = {"baseball": "sports", "mlb": "baseball", "kbo": "baseball", "football": "sports"}


def test_a_synonym_is_another_name_of_its_topic() -> None:
    made = Ontology(SPORTS, {"soccer": "football"})
    assert made.number("soccer") == made.number("football")
    assert made.isa("soccer", "sports")
    assert made.isa("football", "soccer")
    assert made.spans("soccer") == made.spans("football")
    assert made.near("socer") == ["soccer"]
    assert made.fingerprint != Ontology(SPORTS).fingerprint
    declared = Attributes({"topic": made}).to_declared()
    assert Attributes.from_declared(declared).to_declared() == declared


def test_an_ontology_without_synonyms_has_the_fingerprint_of_before() -> None:
    assert Ontology({"b": "a"}).fingerprint == "b114182d598eebb6"


@pytest.mark.parametrize(
    ("synonyms", "retired", "reason"),
    [
        ({"mlb": "kbo"}, {}, "found the topic 'mlb' as a synonym, expected a name that is not a "
                            "topic"),
        ({"a": "b"}, {}, "found the synonym 'a' of 'b', which is not a topic"),
        ({}, {"x": ["mlb"]}, "found the retired topic 'x', which is not in the ontology; expected "
                             "a topic of the ontology"),
        ({}, {"mlb": ["x"]}, "found 'x' as a replacement of the retired topic 'mlb', expected a "
                             "topic of the ontology that is not retired"),
        ({}, {"mlb": ["kbo"], "kbo": []}, "found 'kbo' as a replacement of the retired topic "
                                          "'mlb', expected a topic of the ontology that is not "
                                          "retired"),
        ({}, {"baseball": ["sports"]}, "found the topic 'kbo' under a retired topic, expected no "
                                       "topic there"),
    ],
)  # fmt: skip
def test_what_is_refused(
    synonyms: dict[str, str], retired: dict[str, list[str]], reason: str
) -> None:
    with pytest.raises(AttributesError) as refused:
        Ontology(dict(sorted(SPORTS.items(), reverse=True)), synonyms, retired)
    assert str(refused.value) in (reason, reason.replace("kbo", "mlb"))


def test_a_removed_topic_stands_for_the_nearest_that_remains() -> None:
    found = revise(Ontology(SPORTS), Ontology({"baseball": "sports", "chess": "sports"}))
    assert found.added == ("chess",)
    assert found.moved == {"football": ("sports",), "kbo": ("baseball",), "mlb": ("baseball",)}
    assert found.ontology.isa("mlb", "baseball")
    assert found.ontology.isa("kbo", "mlb")  # an interest in mlb is now one in baseball
    declared = Attributes({"topic": found.ontology})
    wide, narrow = (
        parse(f"isa(topic, '{one}')", attributes=declared) for one in ("baseball", "mlb")
    )
    assert wide == narrow


def test_a_removed_top_stands_for_what_lay_below() -> None:
    found = revise(Ontology(SPORTS), Ontology({"mlb": None, "football": None}))
    assert found.moved == {"baseball": ("mlb",), "sports": ("football", "mlb")}
    assert found.dropped == ("kbo",)
    assert found.ontology.isa("sports", "mlb") is False
    assert found.ontology.isa("mlb", "sports") is True


def test_a_topic_for_which_nothing_stands_is_unknown() -> None:
    found = revise(Ontology(SPORTS), Ontology({"chess": None}))
    assert found.dropped == ("baseball", "football", "kbo", "mlb", "sports")
    assert "mlb" not in found.ontology


def test_a_topic_may_be_renamed() -> None:
    after = Ontology({**SPORTS, "soccer": "sports"} | {"football": "soccer"})
    renamed = Ontology({"soccer": "sports"}, {"football": "soccer"})
    assert revise(after, renamed).ontology.topic_of("football") == "soccer"


# -- on random graphs ------------------------------------------------------------------------------


def a_graph(chance: random.Random, names: str) -> dict[str, list[str]]:
    order = chance.sample(names, len(names))
    return {
        name: chance.sample(order[:at], min(at, chance.choice([0, 1, 1, 2])))
        for at, name in enumerate(order)
    }


def lies_under(parents: dict[str, list[str]], topic: str, above: str) -> bool:
    return topic == above or any(lies_under(parents, one, above) for one in parents[topic])


@given(st.integers(0, 2**32))
def test_revisions_lose_nothing(seed: int) -> None:
    """Between topics that remain, `isa` is that of the new ontology. An interest in a retired topic
    has what the topics that stand for it have, and so do its numbers."""
    chance = random.Random(seed)
    revised = Ontology(a_graph(chance, "abcdefgh"))
    for _ in range(3):
        after = a_graph(chance, "".join(chance.sample("abcdefghij", chance.randrange(1, 8))))
        revised = revise(revised, Ontology(after)).ontology
        for topic in after:
            for above in after:
                assert revised.isa(topic, above) == lies_under(after, topic, above)
        for name in revised.retired:
            stand, topics = revised.retired[name], revised.list_parents()
            expected = {one for one in topics if any(revised.isa(one, other) for other in stand)}
            expected.add(name)
            assert {one for one in topics if revised.isa(one, name)} == expected
            numbers = {n for low, high in revised.spans(name) for n in range(low, high + 1)}
            assert numbers == {revised.number(one) for one in expected}


@given(st.integers(0, 2**32))
def test_what_stands_for_a_removed_topic(seed: int) -> None:
    """One revision: every path up from a removed topic meets a topic that stands for it first."""
    chance = random.Random(seed)
    before = a_graph(chance, "abcdefgh")
    kept = set(chance.sample("abcdefgh", chance.randrange(8)))
    after = {name: [one for one in before[name] if one in kept] for name in kept}

    def paths(name: str) -> set[str]:
        return {found for one in before[name] for found in ({one} if one in kept else paths(one))}

    def down(name: str) -> set[str]:
        below = [one for one, parents in before.items() if name in parents]
        return {found for one in below for found in ({one} if one in kept else down(one))}

    found = revise(Ontology(before), Ontology(after))
    for name in set(before) - kept:
        stand = paths(name) or down(name)
        assert found.moved.get(name, ()) == tuple(sorted(stand))
        assert (name in found.dropped) == (not stand)
        assert all(found.ontology.isa(name, one) for one in paths(name))
