"""Stamps that are accepted in any order: each of them once, and none is taken for another."""

from __future__ import annotations

import random

import pytest
from tests.repeats import rounds

from tidings.routing.root.publishing import UnorderedStamps, stamps as stamps_module


def test_any_order_once(seed: int) -> None:
    rng = random.Random(seed)
    for _ in rounds(20, 200):
        stamps = UnorderedStamps()
        unsettled: list[int] = []
        done: set[int] = set()
        accepted: dict[int, int] = {}  # what a late copy says as `first`
        last = 0
        for _ in range(200):
            first = min(unsettled, default=last + 1)
            step = rng.random()
            if step < 0.4:
                last += 1
                unsettled.append(last)
            elif step < 0.9 and unsettled:
                stamp = rng.choice(unsettled)
                expected = stamps.expect("p", first, stamp)
                assert expected == (stamp + 1 if stamp in done else stamp)
                if stamp not in done:
                    refused = rng.random() < 0.1
                    stamps.advance("p", stamp, refused=refused)
                    assert stamps.solid_since("p", stamp) == (None if refused else stamp)
                    done.add(stamp)
                    accepted[stamp] = first
                    if rng.random() < 0.05:  # it did not reach the disk
                        stamps.take_back("p", stamp)
                        done.discard(stamp)
            elif step < 0.93 and done:  # a copy that was under way for long
                stamp = rng.choice(sorted(done))
                assert stamps.expect("p", accepted[stamp], stamp) == stamp + 1
            elif done & set(unsettled):
                unsettled.remove(rng.choice(sorted(done & set(unsettled))))
        known = list(stamps.known)
        assert stamps.forget(1) == known
        assert not stamps._accepted
        assert not stamps._refused


def test_a_claim_of_somebody_else_loses_nothing() -> None:
    stamps = UnorderedStamps()
    stamps.advance("p", 5, refused=False)
    assert stamps.expect("p", 100, 100) == 100  # an impostor says that all before 100 are settled
    assert stamps.expect("p", 1, 3) == 3
    assert stamps.expect("p", 0, 3) is None
    assert stamps.expect("p", 4, 3) == 4


def test_late_copies_after_stamps_that_never_came() -> None:
    """They are known back to the last gap that the publisher says is settled."""
    stamps = UnorderedStamps()
    for stamp in (1, 2, 3, 5, 6, 8):
        stamps.advance("p", stamp, refused=False)
    assert stamps.expect("p", 7, 9) == 9  # the publisher gave up 4
    assert [stamps.expect("p", 1, stamp) for stamp in (4, 5, 6, 7, 8)] == [4, 6, 7, 7, 9]
    stamps.advance("p", 7, refused=False)
    assert not stamps._accepted["p"].gaps
    stamps.take_back("p", 6)
    assert [stamps.expect("p", 1, stamp) for stamp in (5, 6, 7, 8)] == [6, 6, 8, 9]
    other = UnorderedStamps()
    other.continue_from(stamps)
    assert [other.expect("p", 1, stamp) for stamp in (5, 6, 7, 8)] == [6, 6, 8, 9]


def test_late_copies_of_stamps_before_the_first_that_was_accepted() -> None:
    stamps = UnorderedStamps()
    for stamp in (4, 5, 1):
        stamps.advance("p", stamp, refused=False)
    assert stamps.expect("p", 2, 2) == 2  # 1 is settled; 2 and 3 are not
    assert [stamps.expect("p", 1, stamp) for stamp in (1, 2, 3, 4, 5)] == [2, 2, 3, 5, 6]


def test_late_copies_after_minutes_of_overload() -> None:
    """60,000 publications wait, with later ones accepted between them. Each may be repeated just
    before its acknowledgment arrives."""
    stamps = UnorderedStamps()
    last = 180_000
    for stamp in range(1, last + 1):
        assert stamps.expect("p", 1, stamp) == stamp
        if stamp % 3:
            stamps.advance("p", stamp, refused=False)
    assert all(stamps.expect("p", 1, one) == one + bool(one % 3) for one in range(1, last + 1))
    for stamp in range(last, 0, -3):
        stamps.advance("p", stamp, refused=False)
        assert stamps.expect("p", 1, stamp) == stamp + 1
    assert not stamps._accepted["p"].gaps
    assert all(stamps.expect("p", 1, one) == one + 1 for one in range(1, last + 1))


def test_the_memory_is_bounded_whatever_a_publisher_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps_module, "MOST_OPEN", 100)
    stamps = UnorderedStamps()
    for stamp in (1, 90, 170, 171, 260, 10**12, 10**12 - 3, 5, 2**48):
        stamps.advance("p", stamp, refused=False)
        assert stamps.expect("p", 1, stamp) in {stamp, stamp + 1}
        assert len(stamps._accepted["p"].gaps) <= 100
    assert stamps.expect("p", 1, 91) == 91  # it never came, so it is not lost
    assert stamps.expect("p", 1, 2**48) == 2**48 + 1
    for stamp in (300, 298, 301):  # the honest publisher goes on
        stamps.advance("p", stamp, refused=False)
    assert [stamps.expect("p", 1, one) for one in range(298, 302)] == [299, 299, 301, 302]
