"""Corrected tags of older copies always equal those of a fresh preprocessor."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.graph.test_classes import Event, Quote, Trade, random_classes
from tests.graph.test_content_graph import RINGS, cut_up, random_event, random_filter, spiral
from tests.graph.test_objects import Range

from tidings import (
    Attributes,
    Authority,
    DynamicPreprocessor,
    GraphError,
    ObjectPreprocessor,
    StatelessPreprocessor,
    StaticPreprocessor,
    Tag,
    TypePreprocessor,
)
from tidings.filters.canonical import covering
from tidings.graph import authority as module

COPIES = 4


def random_run(
    rng: random.Random,
    desk: Any,
    interest: Callable[[], Any],
    notification: Callable[[], Any],
    steps: int,
    most: int = 40,
) -> dict[str, int]:
    """Inserts and removals, with copies of many ages; after each step some tag, and the corrected
    tags are compared with a fresh one. What happened, to see that something did."""
    authority: Authority[Any, Any] = Authority(desk)
    copies = [authority.copy()]
    seen = {"stale": 0, "changed": 0, "dropped": 0}
    for _ in range(steps):
        graph = desk.graph
        if len(graph) > most or (len(graph) and rng.random() < 0.35):
            graph.remove(rng.choice(list(graph)))
        else:
            desk.subscribe(interest())
        if rng.random() < 0.3:
            copies.append(authority.copy())
            if len(copies) > COPIES:
                copies.pop(rng.randrange(COPIES))
        if rng.random() < 0.05:
            authority.forget(min(copy.version for copy in copies) + rng.choice([0, 0, 3]))
        content = notification()
        fresh = desk.tag(content)
        for copy in copies:
            tag = copy.tag(content)
            assert tag.version == copy.version
            if authority._history.knows(tag.version):
                desk.tag = None  # there is no need to tag anew
            assert authority.correct(tag, content) == fresh, (tag, desk.graph.version)
            vars(desk).pop("tag", None)
            seen["stale"] += tag.version < graph.version
            seen["changed"] += tag.nodes != tuple(node.id for node in fresh)
            seen["dropped"] += any(number not in graph._nodes for number in tag.nodes)
    return seen


def test_filters(seed: int) -> None:
    rng = random.Random(seed)
    desk = DynamicPreprocessor()
    seen = random_run(rng, desk, lambda: random_filter(rng), lambda: random_event(rng), 300)
    assert all(seen.values()), seen


def test_filters_whose_nodes_become_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering, "EFFORT", 30)
    rng = random.Random(seed)

    def point() -> dict[str, int]:
        return {name: rng.randrange(6) for name in "xyz"}

    seen = random_run(rng, DynamicPreprocessor(), lambda: cut_up(rng), point, 150)
    assert all(seen.values()), seen


def test_a_node_that_became_one_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering, "EFFORT", 150)
    desk: Any = DynamicPreprocessor()
    first, second = desk.subscribe(spiral(turned=False)), desk.subscribe(spiral(turned=True))
    authority = Authority(desk)
    inside = {"x": 2, "y": 2}
    tag = authority.copy().tag(inside)
    assert tag.nodes == (first.id, second.id)
    size = 2 * RINGS
    desk.subscribe(f"x >= 0 AND x < {size} AND y >= 0 AND y < {size}")
    assert second not in desk.graph
    desk.tag = None  # there is no need to tag anew
    assert authority.correct(tag, inside) == [first]


def test_ranges(seed: int) -> None:
    rng = random.Random(seed)

    def some_range() -> Range:
        low = rng.randint(0, 8)
        return Range(low, low + rng.randint(1, 8))

    seen = random_run(rng, ObjectPreprocessor(), some_range, lambda: rng.randint(-1, 17), 400, 20)
    assert all(seen.values()), seen


def test_classes(seed: int) -> None:
    rng = random.Random(seed)
    classes = random_classes(rng)
    desk = TypePreprocessor(Event)

    def some_object() -> Any:
        return rng.choice(classes)()

    seen = random_run(rng, desk, lambda: rng.choice(classes), some_object, 300, 15)
    assert all(seen.values()), seen


def test_a_removed_node_leaves_those_above_it() -> None:
    desk = DynamicPreprocessor()
    top, low = desk.subscribe("x > 1"), desk.subscribe("x > 5")
    authority = Authority(desk)
    tag = authority.copy().tag({"x": 7})
    assert tag == Tag(version=2, nodes=(low.id,))
    desk.graph.remove(low)
    middle = desk.subscribe("x > 3")
    desk.graph.remove(top)
    assert authority.correct(tag, {"x": 7}) == [middle]


def test_only_newer_nodes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = TypePreprocessor(Event)
    desk.subscribe(Event)
    authority = Authority(desk)
    tag = authority.copy().tag(Quote())
    quote, trade = desk.subscribe(Quote), desk.subscribe(Trade)
    asked: list[Any] = []
    plain = desk.graph.matching_of

    def listening(nodes: Any, notification: Any) -> Any:
        asked.extend(nodes)
        return plain(nodes, notification)

    monkeypatch.setattr(desk.graph, "matching_of", listening)
    monkeypatch.setattr(desk.graph, "matching", None)
    assert authority.correct(tag, Quote()) == [quote]
    assert asked == [quote, trade]


def test_what_can_not_be_explained_is_tagged_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = DynamicPreprocessor()
    authority = Authority(desk, life=2)
    one = desk.subscribe("x > 1")
    event = {"x": 3}
    for tag in (
        Tag(0, (), life=1),  # another life
        Tag(1, (), life=1),
        Tag(0, (77,), life=2),  # a node that never was
        Tag(9, (), life=2),  # a version to come
        Tag(-1, (), life=2),
    ):
        assert authority.correct(tag, event) == [one], tag
    old = authority.copy().tag({"x": 0})
    two = desk.subscribe("x = 3")
    authority.forget(authority.version)
    assert authority.correct(old, event) == [two]
    old = authority.copy().tag(event)
    three = desk.subscribe("x = 3 AND y IS NULL")
    monkeypatch.setattr(module, "MANY", 0)
    assert authority.correct(old, event) == [three]


def test_the_past_is_as_long_as_the_oldest_copy_needs() -> None:
    desk = DynamicPreprocessor()
    authority = Authority(desk)
    for n in range(50):
        desk.graph.remove(desk.subscribe(f"x > {n}"))
    history = authority._history
    assert len(history._gone) == 50
    authority.forget(90)
    assert (history.floor, len(history._gone), len(history._next)) == (90, 5, 11)
    authority.forget(91)  # a node came with 91, and went with 92
    assert len(history._gone) == 5
    authority.forget(92)
    assert len(history._gone) == 4
    authority.forget(40)  # it does not come back
    assert history.floor == 92


def test_a_copy_stays_as_it_is_and_takes_no_interests() -> None:
    desk = DynamicPreprocessor(Attributes({"day": "date"}))
    authority = Authority(desk)
    desk.subscribe("day >= '2013-02-01'")
    copy = authority.copy()
    desk.subscribe("day >= '2013-03-01'")
    assert copy.tag({"day": "2013-03-05"}) == Tag(1, (1,))
    assert [n.id for n in authority.correct(Tag(1, (1,)), {"day": "2013-03-05"})] == [2]
    with pytest.raises(GraphError, match="accepts no interests"):
        copy.subscribe("day IS NULL")
    with pytest.raises(GraphError, match="already has an authority"):
        Authority(desk)


def test_a_copy_can_travel() -> None:
    desk = DynamicPreprocessor()
    for n in range(400):
        desk.subscribe(f"x > {n}")  # one path
    copy: StatelessPreprocessor[Any] = pickle.loads(pickle.dumps(Authority(desk).copy()))
    assert copy.tag({"x": 300}) == Tag(400, (300,))
    types = TypePreprocessor(Event)
    types.subscribe(Quote)
    other: StatelessPreprocessor[Any] = pickle.loads(pickle.dumps(Authority(types).copy()))
    assert other.tag(Quote()) == Tag(1, (1,))


def test_static_preprocessors_are_never_behind() -> None:
    desk = StaticPreprocessor({"mlb": "baseball"})
    authority = Authority(desk)
    tag = authority.copy().tag("mlb")
    assert authority.correct(tag, "mlb") == [desk.subscribe("mlb")]
