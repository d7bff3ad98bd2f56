"""Ids that every room accepts, and the messages for all others."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.model import TidingsError, id_pairs, need_id


@pytest.mark.parametrize("good", ["", "ana", "é", 0, -(2**63), 2**63 - 1])
def test_ids(good: str | int) -> None:
    need_id(good)


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (2**63, "an integer of more than 64 bits"),
        (-(2**63) - 1, "an integer of more than 64 bits"),
        ("\ud800", "a string that is not valid Unicode"),
        (True, "bool"),
        (None, "NoneType"),
        (1.0, "float"),
    ],
)
def test_what_is_no_id(bad: object, found: str) -> None:
    with pytest.raises(TidingsError) as caught:
        need_id(bad)
    expected = f"found {found} as an id, expected a string or a 64-bit integer"
    assert str(caught.value) == expected


def test_pairs() -> None:
    assert list(id_pairs({1: "x"})) == list(id_pairs([(1, "x")])) == [(1, "x")]


@pytest.mark.parametrize("bad", ["abc", ("a", "x > 1", 3), 7, None])
def test_what_is_no_pair(bad: Any) -> None:
    with pytest.raises(TidingsError, match=r"^found .*, expected an \(id, filter\) pair$"):
        list(id_pairs([bad]))
