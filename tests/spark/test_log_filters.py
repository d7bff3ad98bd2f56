"""How the filters of a log are numbered as its channel declares attributes."""

from __future__ import annotations

import pytest

from tidings import Attributes, parse
from tidings.spark.loading.log_filters import Clash, PendingChanges, Unfit, Written, numbers_of
from tidings.store import Change

WHOLE, BROKEN = Attributes({"x": "integer"}), Attributes({"x": "double"})


def key(text: str, attributes: Attributes | None = None) -> bytes:
    return parse(text, attributes=attributes).key


def numbered(
    filters: dict[str, int], then: Attributes | None, now: Attributes | None
) -> dict[str, int]:
    """The numbers of texts that were put with some attributes, under others."""
    first = {node: text for text, node in reversed(filters.items())}
    identities = {node: key(first[node], then) for node in sorted(first)}
    found = numbers_of(
        [Written(text, text, key(text, now), node) for text, node in filters.items()], identities
    )
    return {text: found[key(text, now)] for text in filters}


def test_a_filter_keeps_its_number() -> None:
    filters = {"x > 1": 1, "x IN (1, 2)": 2}
    for then in (None, WHOLE, BROKEN):
        for now in (None, WHOLE, BROKEN):
            assert numbered(filters, then, now) == filters


def test_filters_that_were_one_and_are_two() -> None:
    """Only in a log of before: the one that the log numbered keeps the node."""
    with pytest.raises(Clash) as caught:
        numbered({"x > 1": 1, "x >= 2": 1}, WHOLE, BROKEN)
    assert caught.value.again == ["x > 1"]
    two = [Written("a", "x > 1", b"1" * 16, 7), Written("b", "x > 2", b"2" * 16, 7)]
    with pytest.raises(Clash) as caught:
        numbers_of(two, {})
    assert caught.value.again == ["b"]  # the first keeps it
    node = two[1]._replace(is_node=True)
    with pytest.raises(Clash) as caught:
        numbers_of([two[0], node], {})
    assert caught.value.again == ["a"]  # agents use the other one


def test_filters_that_were_two_and_are_one_share_the_lower_number() -> None:
    assert numbered({"x >= 2": 2, "x > 1": 1}, BROKEN, WHOLE) == {"x >= 2": 1, "x > 1": 1}


def pending(now: Attributes, **compiled: bytes) -> PendingChanges:
    return PendingChanges(now, lambda number: compiled.get(f"n{number}"))


def test_changes_have_the_numbers_of_the_log() -> None:
    read = pending(BROKEN).read(
        [
            Change(1, "a", "x > 1", 1),
            Change(2, "b", "x >= 2", 2),
            Change(3, "c", "x > 1", 1),
            Change(4, "b", None, 0),
        ]
    )
    assert [(one.version, one.node) for one in read] == [(1, 1), (2, 2), (3, 1), (4, 0)]


def test_what_does_not_fit_is_named_until_it_is_changed() -> None:
    changes = [
        Change(1, "ana", "x > 1", 1),
        Change(2, "ben", "y > 1", 2),
        Change(3, "ben", None, 0),
    ]
    one = pending(WHOLE)
    with pytest.raises(Unfit, match=r"^the filter of the subscription 'ben' does not fit"):
        one.read(changes[:2])
    read = one.read(changes)
    assert [(change.id, change.filter) for change in read] == [
        ("ana", "x > 1"), ("ben", None), ("ben", None),
    ]  # fmt: skip


def test_a_number_that_the_snapshot_has_for_another_filter() -> None:
    with pytest.raises(Clash):
        pending(WHOLE, n1=b"?" * 16).read([Change(1, "a", "x > 1", 1)])
