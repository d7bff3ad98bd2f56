"""Tests that are run several times, each time with other values, and the rounds of random tests.

`make test` runs a few, and draws other random values each time it is run; `make soak` runs the
rest. It also runs all tests that take the fixture `seed`, with many more rounds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import pytest

SOAKS = os.environ.get("TIDINGS_PROFILE") == "soak"


def runs(few: int, many: int) -> list[Any]:
    """The numbers of the runs, for `parametrize`: those after the first `few` are slow."""
    slow = [pytest.param(number, marks=pytest.mark.slow) for number in range(few, many)]
    return [*range(few), *slow]


def slow_but(few: Collection[str], names: Iterable[str]) -> list[Any]:
    """The names of cases, for `parametrize`: all but `few` are slow."""
    names = list(names)
    assert set(few) <= set(names), set(few) - set(names)
    return [one if one in few else pytest.param(one, marks=pytest.mark.slow) for one in names]


def amount(few: int, many: int) -> int:
    """How many values a random test draws: `few` in `make test`, `many` in `make soak`."""
    return many if SOAKS else few


def rounds(few: int, many: int) -> range:
    """The numbers of the rounds of a random test: `few` in `make test`, `many` in `make soak`."""
    return range(amount(few, many))


def draws(few: int, enough: Callable[[], object]) -> Iterator[int]:
    """The numbers of the rounds of a random test: `few`, and more until what it is about has
    happened often enough. So no seed fails because it drew too little of it; a test that never
    sees it fails after fifty times as many rounds, by its own assertion."""
    few = amount(few, 4 * few)
    for number in range(50 * few):
        if number >= few and enough():
            return
        yield number
