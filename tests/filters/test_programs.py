"""The cache of programs is bounded in bytes, and filters that run in turn still find some of their
programs in it."""

from __future__ import annotations

import random
import threading
from collections.abc import Hashable

import pytest

from tidings.filters.values import like, regular
from tidings.filters.values.program_cache import ProgramCache


def test_no_more_bytes_are_kept_than_fit(seed: int) -> None:
    rng = random.Random(seed)
    sizes: dict[Hashable, int] = {key: rng.randrange(1, 40) for key in range(200)}
    programs: ProgramCache[int] = ProgramCache(500, lambda key: sizes[key])
    for _ in range(2_000):
        key = rng.randrange(200)
        assert programs.get(key, lambda key=key: key) == key  # type: ignore[misc]
        assert sum(sizes[one] for one in programs._kept) == programs._bytes <= 500
        assert set(programs._keys) == set(programs._kept)


def test_one_turn_too_many_finds_most(seed: int) -> None:
    made: list[int] = []
    programs: ProgramCache[int] = ProgramCache(100, lambda _: 1)

    def make(key: int) -> int:
        made.append(key)
        return key

    for _ in range(20):
        for key in range(110):
            programs.get(key, lambda key=key: make(key))  # type: ignore[misc]
    assert len(programs) == 100
    assert len(made) < 20 * 110 / 2  # the oldest going first, it would be all


def test_threads_that_make_the_same_keep_one() -> None:
    programs: ProgramCache[int] = ProgramCache(1_000, lambda _: 1)
    gate = threading.Barrier(4)

    def ask() -> None:
        programs.get("x", gate.wait)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(programs) == 1
    assert programs._bytes == 1


def test_what_is_refused_is_not_kept() -> None:
    regular.forget()
    for _ in range(2):
        with pytest.raises(regular.RegularError):
            regular.compile_pattern("(")
    assert len(regular._programs) == 0


def test_patterns_of_both_kinds_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regular, "_programs", ProgramCache(10 << 20, lambda one: one.bytes))
    for number in range(300):
        assert regular.compile_pattern(f"^a{number}$").search(f"a{number}")
        one = like.compile_pattern(f"%a_{number}%")
        assert one is not None
        assert one.holds(f"xab{number}")
        assert not one.holds("x")
    assert regular._programs._bytes <= 10 << 20
    assert len(regular._programs) > 100


def test_small_programs_take_less_and_large_ones_are_not_refused() -> None:
    assert regular.program_of("ab+c").bytes < regular.program_of("ab{200}c").bytes
    assert regular.program_of(r"\pL{3}\d\pL{3}").size > regular.SMALL
