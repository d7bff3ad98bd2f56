"""The type-based preprocessor: classes and objects of them."""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from typing import Any

import pytest
from tests.graph import definition

from tidings import GraphError, NotificationError, Preprocessor, TypePreprocessor


class Event:
    pass


class Quote(Event):
    pass


class Trade(Event):
    pass


class Cross(Quote, Trade):
    pass


class Other:
    pass


def test_a_class_is_covered_by_what_it_inherits_from() -> None:
    desk = TypePreprocessor(Event)
    cross, event, quote, trade = (desk.subscribe(c) for c in (Cross, Event, Quote, Trade))
    assert desk.graph.children(event) == [quote, trade]
    assert desk.graph.parents(cross) == [quote, trade]
    assert desk.subscribe(Quote) is quote
    assert desk.tag(Cross()) == [cross]
    assert desk.tag(Quote()) == [quote]
    assert desk.tag(Event()) == [event]
    assert repr(quote) == "Node(3, Quote)"


def test_only_classes_that_someone_wants_are_nodes() -> None:
    desk = TypePreprocessor(Event)
    quote, trade = desk.subscribe(Quote), desk.subscribe(Trade)
    assert desk.tag(Cross()) == [quote, trade]
    assert desk.tag(Event()) == []


def test_classes_and_objects_outside_the_root_are_refused() -> None:
    desk = TypePreprocessor(Event)
    with pytest.raises(GraphError, match="the class Other does not inherit from Event"):
        desk.subscribe(Other)
    with pytest.raises(NotificationError, match="found an object of Other, expected an object"):
        desk.tag(Other())
    with pytest.raises(NotificationError, match="found the class Quote, expected an object"):
        desk.tag(Quote)
    not_classes: list[Any] = [Quote(), "Quote", list[int], None]
    for wrong in not_classes:
        with pytest.raises(GraphError, match="expected a class"):
            desk.subscribe(wrong)
        with pytest.raises(GraphError, match="expected a class as the root"):
            TypePreprocessor(wrong)
    assert len(desk.graph) == 0


def test_abstract_classes_cover_what_inherits_and_not_what_is_registered() -> None:
    class Priced(ABC):
        @abstractmethod
        def price(self) -> float: ...

    class Bond(Priced):
        def price(self) -> float:
            return 1.0

    @Priced.register
    class Share:
        def price(self) -> float:
            return 2.0

    assert issubclass(Share, Priced)
    for order in itertools.permutations([Priced, Bond, Share]):
        desk = TypePreprocessor()
        nodes = {cls: desk.subscribe(cls) for cls in order}
        assert desk.graph.children(nodes[Priced]) == [nodes[Bond]]
        assert desk.tag(Share()) == [nodes[Share]]
        assert desk.tag(Bond()) == [nodes[Bond]]


def test_metaclasses_and_lying_objects_change_nothing() -> None:
    class Meta(type):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(cls, other: object) -> bool:
            return True

        def __subclasscheck__(cls, other: type) -> bool:
            return True

    class Odd(Event, metaclass=Meta):
        pass

    class Liar(Event):
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            return Quote

    for order in itertools.permutations([Odd, Quote, Liar]):
        desk = TypePreprocessor(Event)
        nodes = [desk.subscribe(cls) for cls in order]
        assert desk.graph.roots() == nodes
        assert [desk.tag(cls()) for cls in order] == [[node] for node in nodes]


def test_classes_of_one_name_are_two_nodes() -> None:
    def made() -> type[Event]:
        class Twin(Event):
            pass

        return Twin

    desk = TypePreprocessor(Event)
    assert desk.subscribe(made()) is not desk.subscribe(made())


def test_it_has_the_interface_of_every_kind() -> None:
    desk: Preprocessor[type[Any], Event] = TypePreprocessor(Event)
    assert [desk.subscribe(Quote).id] == [node.id for node in desk.tag(Quote())]


def random_classes(rng: random.Random) -> list[type[Any]]:
    classes: list[type[Any]] = [Event]
    while len(classes) < 25:
        bases = tuple(rng.sample(classes, min(len(classes), rng.choice([1, 1, 2, 3]))))
        try:
            classes.append(type(f"C{len(classes)}", bases, {}))
        except TypeError:  # no order of their bases is consistent
            continue
    return classes


def test_random_trees_keep_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        desk = TypePreprocessor(Event)
        classes = random_classes(rng)

        def covers(a: Any, b: Any) -> bool:
            return issubclass(b.interest, a.interest)

        for _ in range(40):
            if len(desk.graph) and rng.random() < 0.3:
                desk.graph.remove(rng.choice(list(desk.graph)))
            else:
                desk.subscribe(rng.choice(classes))
        definition.check(desk.graph, covers)
        for cls in classes:
            matched = {node for node in desk.graph if isinstance(cls(), node.interest)}
            assert set(desk.graph.matching(cls())) == matched
            assert desk.tag(cls()) == definition.lowest(desk.graph, matched, covers)
