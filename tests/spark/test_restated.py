"""Which number a filter of a log has under the columns of a pipeline."""

from __future__ import annotations

import pytest

from tidings import Attributes, parse
from tidings.spark.loading.restated import BEYOND, Clash, PendingChanges, Unfit, Written, numbers_of
from tidings.store import Change

WHOLE, BROKEN = Attributes({"x": "integer"}), Attributes({"x": "double"})


def key(text: str, attributes: Attributes | None = None) -> bytes:
    return parse(text, attributes=attributes).key


def numbered(
    filters: dict[str, int], then: Attributes | None, now: Attributes | None
) -> dict[str, int]:
    """The numbers of texts that were put with some columns, under others."""
    first = {node: text for text, node in reversed(filters.items())}
    identities = {node: key(first[node], then) for node in sorted(first)}
    found = numbers_of(
        [Written(text, key(text, now), node) for text, node in filters.items()], identities
    )
    return {text: found[key(text, now)] for text in filters}


def test_a_filter_that_is_the_same_keeps_its_number() -> None:
    filters = {"x > 1": 1, "x IN (1, 2)": 2}
    for then, now in ((WHOLE, WHOLE), (None, WHOLE), (None, BROKEN), (BROKEN, WHOLE)):
        assert numbered(filters, then, now) == filters


def test_filters_that_were_one_and_are_two() -> None:
    found = numbered({"x > 1": 1, "x >= 2": 1}, WHOLE, BROKEN)
    assert found["x >= 2"] == 1  # it is what the log numbered
    assert BEYOND <= found["x > 1"] < 2**53


def test_a_number_of_its_own_depends_on_nobody_else() -> None:
    identities = {1: key("x > 1", WHOLE), 2: key("x > 5", WHOLE)}
    gone = numbers_of([Written("x > 1", key("x > 1", BROKEN), 1)], identities)
    both = numbers_of(
        [
            Written("x >= 2", key("x >= 2", BROKEN), 1),
            Written("x > 1", key("x > 1", BROKEN), 1),
        ],
        identities,
    )
    assert gone[key("x > 1", BROKEN)] == both[key("x > 1", BROKEN)] >= BEYOND


def test_filters_that_were_two_and_are_one_share_the_lower_number() -> None:
    assert numbered({"x >= 2": 2, "x > 1": 1}, BROKEN, WHOLE) == {"x >= 2": 1, "x > 1": 1}


def test_two_that_keep_one_number() -> None:
    """It would take a filter that is under the columns what another is without them."""
    logged = key("x > 1")
    kept, other = Written("x >= 7", logged, 1), Written("x > 1", b"2" * 16, 1)
    for filters in ([kept, other], [other, kept]):
        found = numbers_of(filters, {1: logged})
        assert found[logged] == 1
        assert found[b"2" * 16] >= BEYOND
    found = numbers_of([other, Written("x > 1", b"3" * 16, 1)], {1: logged})
    assert found[b"2" * 16] == 1
    assert found[b"3" * 16] >= BEYOND


def travelling(now: Attributes, **compiled: bytes) -> PendingChanges:
    return PendingChanges(
        now, lambda node: key("x > 1", WHOLE) if node == 1 else None,
        lambda number: compiled.get(f"n{number}"),
    )  # fmt: skip


def test_changes_are_numbered_like_a_compilation() -> None:
    read = travelling(BROKEN).read(
        [
            (Change(1, "a", "x > 1", 1), None),
            (Change(2, "b", "x >= 2", 1), None),
            (Change(3, "c", "x > 1", 2), key("x > 1", BROKEN)),
            (Change(4, "b", None, 0), None),
        ]
    )
    assert [one.version for one in read] == [1, 2, 3, 4]
    assert read[0].node >= BEYOND
    assert [one.node for one in read[1:]] == [1, 2, 0]


def test_what_does_not_go_with_the_columns_is_named_until_it_is_changed() -> None:
    changes = [
        (Change(1, "ana", "x > 1", 1), None),
        (Change(2, "ben", "y > 1", 2), key("y > 1")),
        (Change(3, "ben", None, 0), None),
    ]
    one = travelling(WHOLE)
    with pytest.raises(Unfit, match=r"^the filter of the subscription 'ben' does not fit"):
        one.read(changes[:2])
    read = one.read(changes)
    assert [(change.id, change.filter) for change in read] == [
        ("ana", "x > 1"), ("ben", None), ("ben", None),
    ]  # fmt: skip


def test_a_number_that_the_snapshot_has_for_another_filter() -> None:
    with pytest.raises(Clash):
        travelling(WHOLE, n1=b"?" * 16).read([(Change(1, "a", "x > 1", 1), None)])
