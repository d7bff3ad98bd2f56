"""Lineages, and what clients conclude from them."""

from __future__ import annotations

import random

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.lineage import (
    MOST_LEFT,
    MOST_LIVES,
    Lineage,
    LineageState,
    LineageVerdict,
    is_lineage,
)
from tidings.routing.protocol.times import Times

TIMES = Times(retry=3, silent=12)
A, B, C, D = 11, 7, 900, 3  # neither grows nor falls


def lives(*pairs: tuple[int, int]) -> tuple[m.Life, ...]:
    return tuple(m.Life(*pair) for pair in pairs)


def answer(standing: LineageState, now: float, *pairs: tuple[int, int]) -> LineageVerdict:
    """Ask, and be answered."""
    trace = standing.next_question(now, anyway=True)
    assert trace is not None
    return standing.judge(m.Lineage(pairs[-1][0], trace.request, lives(*pairs)), now)


def in_life(life: int, serial: int) -> LineageState:
    standing = LineageState(TIMES)
    assert standing.accepts(life, 0)
    standing.note_serial(serial)
    return standing


def test_what_is_held() -> None:
    lineage = Lineage(lives((A, 1), (B, 61), (C, 61), (D, 80)))
    held = {(A, 0), (A, 60), (B, 60), (C, 60), (C, 79), (D, 79), (D, 2**62)}
    lost = {(A, 61), (B, 61), (C, 80), (5, 0), (0, 0)}
    assert all(lineage.holds(*one) for one in held)
    assert not any(lineage.holds(*one) for one in lost)


def test_a_lineage_against_a_model(seed: int) -> None:
    """A journal is lists of (life, serial) that are put back at random; held is what is in it."""
    chance = random.Random(seed)
    journal: list[tuple[int, int]] = []
    started: list[m.Life] = []
    backups: list[tuple[list[tuple[int, int]], list[m.Life]]] = [([], [])]
    heard: set[tuple[int, int]] = set()
    for _ in range(200):
        if chance.random() < 0.5:
            kept, before = chance.choice(backups)
            journal, started = [*kept], [*before]
        last = journal[-1][1] if journal else 0
        life = m.Life(chance.randrange(1, 2**63), last + 1)
        started.append(life)
        for serial in range(life.first, life.first + chance.randrange(4)):
            journal.append((life.life, serial))
            heard.add((life.life, serial))
        backups.append(([*journal], [*started]))
        lineage = Lineage(started)
        assert is_lineage(lineage.lives)
        for one in chance.sample(sorted(heard), min(len(heard), 40)):
            assert lineage.holds(*one) == (one in journal)


def test_no_more_than_so_many_lives() -> None:
    lineage = Lineage([m.Life(life, life) for life in range(1, MOST_LIVES + 2)])
    assert len(lineage.lives) == MOST_LIVES
    assert not lineage.holds(1, 1)
    assert lineage.holds(2, 2)


def test_nodes_of_each_life_have_numbers_of_their_own() -> None:
    assert Lineage(lives((A, 1))).first_node(0) == 0
    assert Lineage(lives((A, 1))).first_node(7) >= 1 << 24  # there were nodes: this is after a loss
    after = [Lineage(lives((A, 1), (life, 1))).first_node(7) for life in (B, B + 1, 5 << 40)]
    assert len(set(after)) == 3
    assert all(one >= 1 << 24 for one in after)
    assert Lineage(lives((A, 1), (B, 1))).first_node(after[0] + 3) > after[0] + 3


def test_what_is_no_lineage() -> None:
    for pairs in ((), ((0, 1),), ((A, 5), (A, 6)), ((A, 5), (B, 4))):
        assert not is_lineage(lives(*pairs))
    standing = in_life(A, 5)
    trace = standing.next_question(0, anyway=True)
    assert trace is not None
    bad = m.Lineage(C, trace.request, lives((A, 1), (B, 6)))  # another life than its last
    assert standing.judge(bad, 0) is LineageVerdict.NOTHING


def test_the_first_life_and_those_after_it() -> None:
    standing = LineageState(TIMES)
    assert standing.accepts(0, 0)
    assert standing.accepts(A, 0)
    assert standing.next_question(0) is None
    standing.note_serial(50)
    assert not standing.accepts(B, 1)
    assert standing.next_question(1) is not None
    assert standing.next_question(2) is None  # it was asked
    assert standing.next_question(4) is not None
    assert answer(standing, 4, (A, 1), (B, 51)) is LineageVerdict.HELD
    assert (standing.life, standing.serial) == (B, 50)
    assert answer(standing, 5, (A, 1), (B, 51), (C, 51)) is LineageVerdict.HELD
    standing.note_serial(60)
    assert answer(standing, 6, (A, 1), (B, 51), (D, 52)) is LineageVerdict.BROKEN
    assert (standing.life, standing.serial) == (D, 0)


def test_who_hands_lineages_on_asks_for_the_first() -> None:
    standing = LineageState(TIMES, hands_on=True)
    standing.accepts(A, 0)
    assert standing.next_question(0) is not None
    assert answer(standing, 1, (A, 1)) is LineageVerdict.NOTHING
    assert standing.lineage.lives == lives((A, 1))
    assert standing.next_question(9) is None


def test_answers_that_were_under_way_for_long() -> None:
    """Of a point that has gone by now, and of which nobody heard otherwise."""
    standing = in_life(A, 5)
    old = standing.next_question(0, anyway=True)
    assert old is not None
    assert answer(standing, 1, (A, 1), (C, 6)) is LineageVerdict.HELD
    assert standing.judge(m.Lineage(B, old.request, lives((B, 1))), 2) is LineageVerdict.NOTHING
    assert standing.life == C


def test_lives_that_were_left() -> None:
    standing = in_life(A, 5)
    assert answer(standing, 0, (A, 1), (B, 6)) is LineageVerdict.HELD
    assert answer(standing, 0, (C, 1)) is LineageVerdict.BROKEN
    for left in (A, B):
        for now in range(1, 11):
            assert not standing.accepts(left, now)
            assert standing.next_question(now) is None
        assert answer(standing, 11, (left, 1)) is LineageVerdict.NOTHING
        assert standing.accepts(C, 11)
    # one above that keeps to it was put back with its memory: that is a break, however it looks
    for now in range(20, 32):
        assert not standing.accepts(B, now)
        assert standing.next_question(now) is None
    assert not standing.accepts(B, 32)
    assert standing.next_question(32) is not None
    assert answer(standing, 32, (A, 1), (B, 6)) is LineageVerdict.BROKEN
    assert standing.accepts(B, 33)


def test_what_is_remembered_of_lives_is_bounded() -> None:
    standing = in_life(1, 0)
    for life in range(2, 2 * MOST_LEFT):
        assert answer(standing, 0, (life, 1)) is LineageVerdict.BROKEN
    assert len(standing._left) == MOST_LEFT
