"""Asking a dictionary later, against a store that had all entries from the start."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.repeats import rounds

from tidings.filters import parse
from tidings.relations import (
    ClusterStore,
    Entry,
    Reading,
    SemanticStore,
    TableDictionary,
    Term,
    Weights,
)
from tidings.relations.merit import Postings, RelatedInterests, TermReader
from tidings.relations.semantic import Context, Growth, NameLookup, join_dictionaries, name_lookups

PLACES = [
    Entry("Chicago", ("Illinois",), ("Windy City",), 41.878, -87.63, 181.0),
    Entry("OHare", ("Chicago",), ("ORD",), 41.979, -87.904, 204.0),
    Entry("Illinois", ("America",)),
    Entry("Paris", ("France",), ("Lutetia",), 48.857, 2.352),
]
TAGS = [
    Entry("rose", ("flower",), ("roses",)),
    Entry("flower", ("plant",)),
    Entry("fog", ("weather",), ("mist",)),
]
PEOPLE = [Entry("Anna", also=("Annie",), links=(("Ben", "friend"),))]
NAMES: dict[Context, tuple[str, ...]] = {
    "place": ("Chicago", "windy city", "ORD", "ohare", "Illinois", "America", "Lutetia", "Oz"),
    "tag": ("rose", "ROSES", "flower", "plant", "mist", "fog", "weather", "other"),
    "person": ("Annie", "anna", "Ben", "Zoe"),
}
ATTRIBUTES = {"place": "city", "tag": "topic", "person": "who"}


def join() -> Any:
    return join_dictionaries(
        {
            "place": TableDictionary("place", PLACES), "tag": TableDictionary("tag", TAGS),
            "person": TableDictionary("person", PEOPLE),
        }
    )  # fmt: skip


class Node:
    """What a node has: a reader, a store, merits, related interests."""

    def __init__(self, semantic: SemanticStore, asked: NameLookup | None) -> None:
        self.semantic, self.asking = semantic, asked
        reading = Reading(**ATTRIBUTES)  # type: ignore[arg-type]
        self.reader = TermReader(semantic, reading, asked)
        self.store = ClusterStore(semantic)
        self.postings = Postings(self.store, lambda _: None)
        self.related = RelatedInterests(semantic, Weights(), self.reader)
        if asked is not None:
            asked.tell(self)

    def take_growth(self, grown: Sequence[Growth]) -> None:
        self.reader.forget()
        for old, new in grown:
            self.store.replace(old, new)
        self.postings.take_growth(grown)
        self.related.take_growth(grown)

    def found(self, event: dict[str, Any]) -> tuple[Any, ...]:
        terms = self.reader.terms(event)
        matches = {one.id: round(one.weight, 6) for one in self.related.find(event, terms)}
        hits = {(hit.node.hop, round(hit.merit, 6), frozenset(hit.node.ids), hit.node.uses)
                for hit in self.store.find(terms)}  # fmt: skip
        scores = {hop: round(score, 6) for hop, score in self.postings.score(terms).items()}
        return matches, hits, scores


def draw_event(chance: random.Random) -> dict[str, str]:
    contexts = chance.sample(sorted(NAMES), chance.randint(1, 3))
    return {ATTRIBUTES[one]: chance.choice(NAMES[one]) for one in contexts}


def test_later_answers_lead_to_the_same_store(seed: int) -> None:
    """Whenever the dictionary is asked, in the end everything is found as by a node that knew all
    entries when the first name came."""
    chance = random.Random(seed)
    for _ in rounds(15, 200):
        grown = SemanticStore()
        asked = NameLookup(grown, join())
        late = Node(grown, asked)
        whole = SemanticStore()
        for context, names in NAMES.items():
            for name in names:
                whole.grow(context, name, join())
        early = Node(whole, None)
        for at in range(40):
            event = draw_event(chance)
            step = chance.randrange(5)
            if step == 0:
                text = " AND ".join(f"{name} = '{value}'" for name, value in event.items())
                for node in (late, early):
                    node.related.add(at, parse(text), "B", 0.3 + 0.1 * (at % 7))
            elif step == 1:
                late.found(event)  # fills caches
            elif step == 2 and chance.random() < 0.5:
                asked.work()
            else:
                for node in (late, early):
                    node.store.learn(node.reader.terms(event), "BC"[at % 2], [at], at)
        for context, names in NAMES.items():  # a notification with each of the names
            for name in names:
                late.reader.terms({ATTRIBUTES[context]: name})
        while asked.work():
            pass
        for _ in range(60):
            event = draw_event(chance)
            assert late.found(event) == early.found(event), event


def test_contexts_of_other_nodes_are_read_with_new_values() -> None:
    """A node above may lack the dictionary: its contexts have the old value for good."""
    semantic = SemanticStore()
    asked = NameLookup(semantic, join())
    old = semantic.term("place", "ORD")
    day = semantic.term("time", "2013-12-25")
    assert old is not None
    assert day is not None
    assert asked.renew((old, day)) == (old, day)
    assert asked.pending == 1
    assert not asked.work()
    new, same = asked.renew((old, day))
    assert (new, same) == (semantic.term("place", "ORD"), day)
    assert new != old
    assert not asked.pending


def test_each_name_is_asked_about_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(name_lookups, "MOST_WAITING", 3)
    monkeypatch.setattr(name_lookups, "MOST_ASKED", 5)
    calls: list[str] = []
    semantic = SemanticStore()
    asked = NameLookup(semantic, lambda _, name: calls.append(name))
    for name in ("a", "A", "b", "c", "d", "x" * 300):
        asked.note(Term("tag", name.lower()), name)
    assert asked.pending == 3
    while asked.work():
        pass
    asked.note(Term("tag", "a"), "a")
    asked.note(Term("tag", "d"), "d")
    assert asked.pending == 1
    asked.work()
    assert calls == ["a", "b", "c", "d"]
    for name in "efgh":
        asked.note(Term("tag", name), name)
        asked.work()
    assert len(asked._unknown) == 5  # names are forgotten, the oldest first
    asked.note(Term("tag", "a"), "a")
    assert asked.pending == 1


def test_indexes_that_are_gone_are_not_told() -> None:
    semantic = SemanticStore()
    asked = NameLookup(semantic, join())
    node = Node(semantic, asked)
    assert len(asked._indexes) == 1
    del node
    assert not len(asked._indexes)
