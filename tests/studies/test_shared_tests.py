"""Counting the tests that an event costs: against plain loops over the forms of filters."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.filters.strategies import Writer, event, schema

from tidings import Filter, FilterError, parse
from tidings.filters import canonical
from tidings.filters.canonical import AllOf, Form, Node
from tidings.filters.language import term_value
from tidings.filters.values import key
from tidings.matching import Matcher
from tidings.studies.engine.matching_bench import measure
from tidings.studies.engine.shared_tests import NumberedTests, count_tests
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.workloads import make_workload

WIDE = " AND ".join(f"(a{n} = 1 OR b{n} = 1 OR c = 1)" for n in range(9))
Made = list[tuple[str, Any]]


def evaluated(form: Form, event: dict[str, Any]) -> tuple[Made, bool]:
    """The tests of one filter up to its result, and the result."""
    made: Made = []

    def passes(term: str, values: Any) -> bool:
        made.append((term, values))
        return key(term_value(form.terms[term], event)) in values

    def inside(node: Node) -> bool:
        if isinstance(node, canonical.Test):
            return passes(node.term, node.values)
        if isinstance(node, AllOf):
            return all(inside(item) for item in node.items)
        return any(inside(item) for item in node.items)

    if form.boxes is None:
        assert form.tree is not None
        return made, inside(form.tree)
    for box in form.boxes:
        if all(passes(term, values) for term, values in box.items()):
            return made, True
    return made, False


def check(filters: list[Filter], events: list[dict[str, Any]]) -> None:
    forms = [one.form for one in filters]
    table = NumberedTests(forms)
    for one in events:
        runs = [evaluated(form, one) for form in forms]
        made = [test for tests, _ in runs for test in tests]
        matches = sum(is_match for _, is_match in runs)
        assert table.count(one) == (len(made), len(set(made)), matches)
        assert matches == sum(filter_.matches(one) for filter_ in filters)


def test_equal_tests_are_counted_once() -> None:
    texts = [
        "a = 1 AND b > 5 AND c = 1",
        "b > 5 AND a = 1",
        "a = 1 OR c = 2",  # two boxes; the second is not needed if the first passes
        "a = 2",
        "TRUE",
        "FALSE",
        WIDE,
    ]
    filters = [parse(text) for text in texts]
    assert filters[-1].form.boxes is None
    check(filters, [{"a": 1, "b": 9, "c": 2}, {"a": 2, "c": 2}, {"a1": 1, "b0": 1}, {}])
    table = NumberedTests([one.form for one in filters[:4]])
    assert (table.tests, len(table.numbers)) == (8, 5)
    # a = 1, b > 5, c = 1; a = 1, b > 5; a = 1; a = 2
    assert table.count({"a": 1, "b": 9, "c": 2}) == (7, 4, 2)
    assert table.count({"a": 2}) == (5, 3, 1)  # a = 1; a = 1; a = 1, c = 2; a = 2


def test_random_filters(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(8):
        of = schema(chance)
        write = Writer(chance, of, spark=False)
        filters: list[Filter] = []
        while len(filters) < 60:
            try:
                filters.append(parse(write.filter()))
            except FilterError:
                continue
        check(filters, [event(chance, of) for _ in range(10)])


@pytest.mark.parametrize("name", ["mixed", "flights", "prefix"])
def test_a_workload(name: str) -> None:
    workload = make_workload(name, 300, 20)
    (run,) = measure(Matcher(), workload, batch=20, repeats=1, sample=5, tests=12)
    found = run.tests
    assert found is not None
    assert found.events == 12
    events = workload.events.slice(0, 12).to_pylist()
    forms = [parse(text).form for _, text in workload.texts()]
    made = [[test for form in forms for test in evaluated(form, one)[0]] for one in events]
    assert found.one_by_one == sum(map(len, made)) / 12
    assert found.shared == sum(len(set(tests)) for tests in made) / 12
    assert found.tests == sum(len(box) for form in forms for box in form.boxes or ())
    assert found.shared <= found.one_by_one
    assert 0 < found.compared_different <= found.compared
    assert found.evaluated <= found.asked
    assert found.compared < found.one_by_one


def test_an_engine_that_disagrees_is_not_counted() -> None:
    matcher = Matcher()
    matcher.add(1, "a = 1")
    forms = [parse("a = 1").form, parse("a > 0").form]
    with pytest.raises(WrongMatches, match="found 2 matches when counting tests, but 1 in"):
        count_tests(forms, [{"a": 1}], matcher.effort)
