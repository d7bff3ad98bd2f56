"""Compares coverings with brute force: filters on few attributes with few values, and all events.

The filters test `aN = 1`, `b < 1`, `b < 2` and `b >= 1`. So the events in which each aN is 1 or
absent, and b is 0, 1, 2 or absent, represent all events: brute force decides exactly which filter
covers which. Brute force evaluates the drawn clauses themselves, and does not read the filters that
are made from them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters import parse
from tidings.filters.canonical import covers_among

# Enough for seven clauses of two tests each. Such a filter has 2**7 boxes, so it is wide.
ATTRIBUTES = 14
ON_B = {"b < 1": (True, False, False, False), "b < 2": (True, True, False, False),
        "b >= 1": (False, True, True, False)}  # fmt: skip  # for b = 0, 1, 2 and absent
Array = npt.NDArray[Any]
Clause = frozenset[str]
Clauses = frozenset[Clause]  # an AND of ORs of tests


class SmallDomain(msgspec.Struct, frozen=True):
    """Coverings among filters on a small domain, compared with brute force."""

    filters: int
    wide: int
    """Filters that have too many boxes."""
    events: int
    """All events of the domain."""
    pairs: int
    """Ordered pairs of filters: all of them are compared."""
    coverings: int
    """Pairs in which brute force finds a covering."""
    found: int
    """How many of the pairs that brute force finds are also found without it."""
    refuted: int
    """Pairs that are found as coverings although an event matches the lower filter and not the
    upper one."""


def compare_with_brute_force(rng: random.Random, count: int) -> SmallDomain:
    """Compare all pairs among about `count` filters."""
    drawn: dict[Clauses, None] = {}
    while len(drawn) < count:
        drawn |= dict.fromkeys(draw_relatives(rng))
    filters = list(drawn)
    forms = [parse(write_filter(one)).form for one in filters]
    matched = _match_all(filters)
    coverings = found = refuted = 0
    for below, inner in enumerate(forms):
        is_covered = ~(matched[below] & ~matched).any(axis=1)
        for above, outer in enumerate(forms):
            if above != below:
                coverings += bool(is_covered[above])
                if covers_among(outer, inner):
                    found += bool(is_covered[above])
                    refuted += not is_covered[above]
    return SmallDomain(
        len(filters), sum(form.tree is not None for form in forms), 4 << ATTRIBUTES,
        len(forms) * (len(forms) - 1), coverings, found, refuted,
    )  # fmt: skip


def draw_relatives(rng: random.Random) -> list[Clauses]:
    """A filter of nine clauses, and four filters that cover it. One of the four has a resolvent in
    place of two clauses, so that the covering follows from both clauses together."""
    some = [f"a{at} = 1" for at in rng.sample(range(ATTRIBUTES), ATTRIBUTES)]
    pairs = [frozenset(pair) for pair in zip(some[::2], some[1::2], strict=True)]
    one, other = rng.sample(some, 2)
    first, second = frozenset([one, "b < 1"]), frozenset([other, "b >= 1"])
    whole = frozenset([*pairs, first, second])
    dropped = whole - {rng.choice(pairs)}
    widened = whole - {pairs[0]} | {pairs[0] | {rng.choice(some)}}
    resolved = whole - {first, second} | {frozenset([one, other])}
    weaker = whole - {first} | {frozenset([one, "b < 2"])}
    return [whole, dropped, widened, resolved, weaker]


def write_filter(clauses: Clauses) -> str:
    """A filter in the filter language."""
    return " AND ".join(sorted(f"({' OR '.join(sorted(one))})" for one in clauses))


def _match_all(filters: Sequence[Clauses]) -> Array:
    """For each filter, the events of the domain that match: bits, uint8 [filters, events / 8]."""
    events = np.arange(4 << ATTRIBUTES)
    passing = {f"a{at} = 1": (events >> at & 1).astype(bool) for at in range(ATTRIBUTES)}
    passing |= {text: np.array(values)[events >> ATTRIBUTES] for text, values in ON_B.items()}
    packed = {text: np.packbits(one) for text, one in passing.items()}
    return np.stack([
        np.bitwise_and.reduce([
            np.bitwise_or.reduce([packed[test] for test in clause]) for clause in clauses
        ])
        for clauses in filters
    ])  # fmt: skip
