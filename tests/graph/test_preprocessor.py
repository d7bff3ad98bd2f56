"""The dynamic preprocessor: two verbs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidings import Attributes, DynamicPreprocessor, FilterError, Preprocessor, parse
from tidings.graph import Vertex


def test_subscribe_gives_equal_filters_one_node() -> None:
    desk = DynamicPreprocessor()
    node = desk.subscribe("origin = 'EWR'")
    assert desk.subscribe(parse("'EWR' = origin")) is node


def test_tag_gives_the_lowest_nodes() -> None:
    desk = DynamicPreprocessor()
    desk.subscribe("origin = 'EWR'")
    desk.subscribe("delay > 30")
    both = desk.subscribe("origin = 'EWR' AND delay > 60")
    late = desk.subscribe("delay > 90")
    assert desk.tag({"origin": "EWR", "delay": 100}) == [both, late]
    assert desk.tag({"origin": "JFK", "delay": 10}) == []


def test_declared_attributes_are_checked() -> None:
    desk = DynamicPreprocessor(Attributes({"origin": "string", "delay": "integer"}))
    with pytest.raises(FilterError, match="did you mean origin"):
        desk.subscribe("orign = 'EWR'")
    assert desk.subscribe("delay > 10") is desk.subscribe("delay >= 11")


def test_it_has_the_interface_of_every_kind() -> None:
    def told(desk: Preprocessor[str, dict[str, int]]) -> Sequence[Vertex]:
        desk.subscribe("x > 1")
        return desk.tag({"x": 2})

    assert len(told(DynamicPreprocessor())) == 1
