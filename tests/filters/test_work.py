"""Computations on a notification count towards the limit on its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tidings.filters import parse
from tidings.filters.canonical.cover_index import HullIndex
from tidings.filters.language.evaluation import evaluate
from tidings.filters.values.work_limit import WORTH, WorkError, limit_work, look

LONG: dict[str, Any] = {
    "s": "a." * WORTH,
    "subject": "a." * WORTH,
    "l": list(range(WORTH)),
    "m": [[]] * WORTH,
    "n": [{"k": 1}] * WORTH,
}
SHORT = {name: value[:3] for name, value in LONG.items()}


@contextmanager
def looks_allowed(count: int) -> Iterator[list[None]]:
    """A clock that goes on by one with each look, and the looks that were taken."""
    looks: list[None] = []

    def clock() -> float:
        looks.append(None)
        return float(len(looks))

    with limit_work(clock, count + 0.5):
        looks.clear()
        yield looks


@pytest.mark.parametrize(
    "text",
    [
        "reverse(s) = 'a'", "reverse(l) = array(1)", "substring(s, 2) = 'a'", "lower(s) = 'a'",
        "get(leaves(l), 0) = 1", "subject_field(s, 1) = 'a'",
        "subject_length(s) = 1", "subject('a.*')", "array_contains(l, 1)",
        "arrays_overlap(l, m)", "l = array(1)", "l IN (array(1), array(2))", "size(n.k) = 3",
    ],
)  # fmt: skip
def test_functions_of_long_values_look_before_they_begin(text: str) -> None:
    node = parse(text).expression
    with limit_work(lambda: 1.0, -1.0):
        with pytest.raises(WorkError):
            evaluate(node, LONG)
        if "overlap" not in text:
            evaluate(node, SHORT)


def test_a_form_looks_before_each_term_that_it_computes() -> None:
    box = parse(" AND ".join(f"subject_field(s, {k}) = 'a'" for k in range(9))).form
    tree = parse(" AND ".join(f"(a{k} = 1 OR subject_field(s, {k}) = 'a')" for k in range(9))).form
    assert box.boxes is not None
    assert tree.tree is not None
    for form in (box, tree):
        with looks_allowed(5), pytest.raises(WorkError):
            form.holds({"s": "a.a.a.a.a.a.a.a.a"})


def test_an_index_looks_before_each_term_that_it_computes() -> None:
    index: HullIndex[int] = HullIndex()
    for k in range(9):
        index.add(k, parse(f"subject_field(s, {k}) = 'a'").form)
    with looks_allowed(5), pytest.raises(WorkError):
        list(index.may_hold({"s": "a"}, {}))


def test_attributes_are_read_without_a_look() -> None:
    index: HullIndex[int] = HullIndex()
    forms = [parse(f"a{k} = 1 AND b.c > 2").form for k in range(9)]
    for k, form in enumerate(forms):
        index.add(k, form)
    event = {"a1": 1, "b": {"c": 3}}
    with looks_allowed(0) as looks:
        values: dict[str, Any] = {}
        assert [k for k in index.may_hold(event, values) if forms[k].holds(event, values)] == [1]
    assert not looks


def test_a_nested_pattern_looks_at_each_leaf() -> None:
    one = parse('{"l": ["x"]}', dialect="eventbridge")
    with looks_allowed(50), pytest.raises(WorkError):
        one.matches({"l": ["y"] * 100})


def test_the_slow_clock_is_read_only_if_the_quick_one_says_that_it_may_be_late() -> None:
    slow = quick = 0.0
    reads: list[float] = []

    def clock() -> float:
        reads.append(slow)
        return slow

    with limit_work(clock, 10.0, lambda: quick):
        reads.clear()
        look()
        assert not reads
        slow, quick = 4.0, 10.0  # the thread waited for six seconds
        look()
        assert reads == [4.0]
        quick = 15.9  # at least 0.1 are left
        look()
        assert reads == [4.0]
        slow, quick = 10.1, 16.1
        with pytest.raises(WorkError):
            look()
    look()
