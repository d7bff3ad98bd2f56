"""The application-defined preprocessor: whatever the objects say, the graph stays right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.graph import definition
from tests.repeats import draws

from tidings import GraphError, ObjectPreprocessor, Preprocessor


class Range:
    """Numbers from `low` up to `high`."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def covers(self, other: Range) -> bool:
        return self.low <= other.low and other.high <= self.high

    def matches(self, notification: int) -> bool:
        return self.low <= notification < self.high

    def key(self) -> tuple[int, int]:
        return self.low, self.high

    def __repr__(self) -> str:
        return f"{self.low}..{self.high}"


class Odd(Range):
    """A range that says whatever it is told to."""

    def __init__(self, low: int, high: int, **answers: Callable[..., Any]) -> None:
        super().__init__(low, high)
        self.__dict__.update(answers)


def shape(desk: ObjectPreprocessor) -> tuple[int, list[tuple[int, list[int]]]]:
    graph = desk.graph
    return graph.version, [(n.id, [c.id for c in graph.children(n)]) for n in graph]


def test_objects_are_put_in_order() -> None:
    desk = ObjectPreprocessor()
    low, whole, high, middle = (
        desk.subscribe(Range(*ends)) for ends in ((0, 4), (0, 9), (5, 9), (2, 7))
    )
    assert desk.graph.children(whole) == [low, high, middle]
    assert desk.tag(6) == [high, middle]
    assert desk.tag(20) == []


def test_equal_keys_are_one_node() -> None:
    desk = ObjectPreprocessor()
    node = desk.subscribe(Range(1, 2))
    assert desk.subscribe(Range(1, 2)) is node
    assert desk.graph.node(Range(1, 2)) is node
    assert desk.graph.node(Range(1, 3)) is None
    assert len(desk.graph) == 1


def test_objects_that_cover_each_other_are_one_node() -> None:
    desk = ObjectPreprocessor()
    top, node = desk.subscribe(Range(0, 9)), desk.subscribe(Range(1, 2))
    same = Odd(1, 2, key=lambda: "one to two")
    assert desk.subscribe(same) is node
    assert desk.graph.node(same) is node
    assert desk.graph.parents(node) == [top]
    desk.graph.remove(node)
    assert desk.graph.node(same) is None
    assert desk.subscribe(same) is not node


def test_coverings_that_are_no_order_are_refused() -> None:
    desk = ObjectPreprocessor()
    for ends in ((0, 9), (0, 5), (0, 2)):
        desk.subscribe(Range(*ends))
    before = shape(desk)
    upside_down = Odd(1, 2, covers=lambda other: other.high == 9)
    with pytest.raises(GraphError, match=r"not transitive: 1\.\.2 covers 0\.\.9, which covers 0"):
        desk.subscribe(upside_down)
    assert shape(desk) == before

    class Shy(Range):
        def covers(self, other: Range) -> bool:
            return super().covers(other) and other.high != 1

    desk = ObjectPreprocessor()
    for one in (Shy(0, 9), Range(0, 5)):
        desk.subscribe(one)
    before = shape(desk)
    told = "0..9 covers 0..5, which covers 0..1, but 0..9 does not cover 0..1"
    with pytest.raises(GraphError, match=told):
        desk.subscribe(Range(0, 1))
    assert shape(desk) == before


def test_a_new_object_between_two_that_are_apart_is_refused() -> None:
    desk = ObjectPreprocessor()
    desk.subscribe(Odd(0, 1, covers=lambda other: other.high == 5))
    desk.subscribe(Range(2, 3))
    before = shape(desk)
    with pytest.raises(GraphError, match=r"0\.\.1 covers 2\.\.5, which covers 2\.\.3, but 0"):
        desk.subscribe(Range(2, 5))
    assert shape(desk) == before


def boom(*_: object) -> bool:
    raise ValueError("broken")


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (Odd(0, 1, covers=boom), r"covers\(0\.\.9\) of 0\.\.1 raised ValueError: broken"),
        (Odd(0, 1, covers=lambda _: "yes"), "returned 'yes', expected True or False"),
        (Odd(0, 1, covers=lambda _: None), "returned None, expected True or False"),
        (Odd(0, 1, key=boom), r"key\(\) of 0\.\.1 raised ValueError: broken; expected a hashable"),
        (Odd(0, 1, key=list), "raised TypeError: .*; expected a hashable value"),
        (object(), r"expected an object with the methods covers\(\), matches\(\) and key\(\)"),
        (Range, r"expected an object with the methods covers\(\), matches\(\) and key\(\)"),
    ],
)
def test_methods_that_fail_leave_the_graph_as_it_was(odd: Any, told: str) -> None:
    desk = ObjectPreprocessor()
    desk.subscribe(Range(0, 9))
    before = shape(desk)
    with pytest.raises(GraphError, match=told):
        desk.subscribe(odd)
    assert shape(desk) == before


def test_matches_that_fails_or_contradicts_covers_is_told() -> None:
    desk = ObjectPreprocessor()
    desk.subscribe(Odd(0, 3, matches=boom))
    with pytest.raises(GraphError, match=r"matches\(\) of 0\.\.3 raised ValueError: broken"):
        desk.tag(1)
    desk = ObjectPreprocessor()
    for one in (Odd(0, 9, matches=lambda _: False), Range(-1, 5), Range(0, 5)):
        desk.subscribe(one)
    with pytest.raises(GraphError, match=r"matches 0\.\.5 but not 0\.\.9; expected both to match"):
        desk.tag(1)


def test_objects_may_not_change_the_graph_that_asks_them() -> None:
    desk = ObjectPreprocessor()
    first = desk.subscribe(Range(0, 9))
    calls: list[Callable[..., object]] = [
        lambda *_: desk.subscribe(Range(0, 5)),
        lambda *_: desk.graph.remove(first),
        lambda *_: desk.tag(1),
    ]
    for call in calls:
        with pytest.raises(GraphError, match=r"used while covers\(\) or matches\(\)"):
            desk.subscribe(Odd(1, 2, covers=call))
    assert [node.id for node in desk.graph] == [first.id]
    assert desk.tag(3) == [first]


def test_an_object_that_can_not_be_shown() -> None:
    class Mute(Range):
        def __repr__(self) -> str:
            raise ValueError

    desk = ObjectPreprocessor()
    desk.subscribe(Range(0, 9))
    mute: Any = Mute(0, 1)
    mute.covers = boom
    with pytest.raises(GraphError, match=r"covers\(0\.\.\d+\) of a Mute"):
        desk.subscribe(mute)


def test_it_has_the_interface_of_every_kind() -> None:
    desk: Preprocessor[Range, int] = ObjectPreprocessor()
    assert [desk.subscribe(Range(0, 3)).id] == [node.id for node in desk.tag(1)]


def covers(a: Any, b: Any) -> bool:
    return bool(a.interest.covers(b.interest))


def test_random_ranges_keep_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    desk = ObjectPreprocessor()
    for step in range(300):
        if len(desk.graph) > 25 or (len(desk.graph) and rng.random() < 0.3):
            desk.graph.remove(rng.choice(list(desk.graph)))
        else:
            low = rng.randint(0, 8)
            desk.subscribe(Range(low, low + rng.randint(1, 8)))
        if step % 3 == 0:
            definition.check(desk.graph, covers)
            number = rng.randint(-1, 17)
            matched = {node for node in desk.graph if node.interest.matches(number)}
            assert desk.graph.matching(number) == sorted(matched)
            assert desk.tag(number) == definition.lowest(desk.graph, matched, covers)


def test_random_relations_never_corrupt_the_graph(seed: int) -> None:
    """Objects that answer at random, though always the same: whatever was let in is an order."""
    rng = random.Random(seed)
    refused = 0
    for _ in draws(30, lambda: refused):
        said: dict[tuple[int, int], bool] = {}

        def answer(a: int, b: int, said: dict[tuple[int, int], bool] = said) -> bool:
            return said.setdefault((a, b), rng.random() < 0.25)

        desk = ObjectPreprocessor()
        for number in range(20):
            one = Odd(number, number, covers=lambda other, n=number: answer(n, other.low))
            before = shape(desk)
            try:
                desk.subscribe(one)
            except GraphError as problem:
                refused += "not transitive" in str(problem)
                same = shape(desk) == before
            else:
                same = shape(desk) != before
            assert same
        definition.check(desk.graph, covers)
    assert refused
