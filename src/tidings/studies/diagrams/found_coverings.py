"""Counts the coverings among many filters, and the edges of their content graph, without (before)
and with (after) the simultaneous walk down both filters.

An event that matches B and not A proves that A does not cover B. So only the pairs that no drawn
event separates are compared, and a covering that an event refutes is an error.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters import parse
from tidings.filters.canonical import Form, covers_among
from tidings.matching import Matcher
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.wide_filters import Event

EVENTS = 4096
REFUTED = 2_000  # how many of the pairs that an event separates are compared anyway, as a check

Array = npt.NDArray[Any]
Pair = tuple[int, int]  # the filter above, and the one below


class Coverings(msgspec.Struct, frozen=True):
    """The numbers of coverings, and of edges of the graph, which are the coverings that do not
    follow from others."""

    workload: str
    filters: int
    compared: int
    """Pairs that no drawn event separates: no event shows that the first does not cover the
    second."""
    refuted: int
    """Pairs that an event separates, compared as a check: none of them is a covering."""
    before: int
    after: int
    edges_before: int
    edges_after: int


def count_coverings(
    workload: str,
    texts: Sequence[str],
    draw_event: Callable[[random.Random], Event],
    rng: random.Random,
) -> Coverings:
    """Find the coverings among filters, with events that many of them match."""
    filters = [parse(text) for text in texts]
    forms = [one.form for one in filters]
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(filters))
    matcher.merge()
    rows, ids = matcher.match_pairs([draw_event(rng) for _ in range(EVENTS)])
    is_matched = np.zeros((EVENTS, len(forms)), bool)
    is_matched[rows, ids] = True
    pairs = [*_not_separated(is_matched)]
    after = {pair for pair in pairs if _covers(forms, pair, walk=True)}
    before = {pair for pair in pairs if _covers(forms, pair, walk=False)}
    known, refuted = set(pairs), 0
    for _ in range(REFUTED if len(forms) > 1 else 0):
        above, below = rng.sample(range(len(forms)), 2)
        if (above, below) not in known:
            refuted += 1
            if _covers(forms, (above, below), walk=True):
                raise WrongMatches(f"{texts[above]!r} does not cover {texts[below]!r}")
    edges = [len(_reduce(found, len(forms))) for found in (before, after)]
    return Coverings(
        workload, len(forms), len(pairs), refuted, len(before), len(after), edges[0], edges[1]
    )


def _covers(forms: Sequence[Form], pair: Pair, *, walk: bool) -> bool:
    return covers_among(forms[pair[0]], forms[pair[1]], walk=walk)


def _not_separated(is_matched: Array) -> Iterator[Pair]:
    """The pairs in which every event that matches the lower filter matches the upper one."""
    for below in range(is_matched.shape[1]):
        left = np.arange(is_matched.shape[1])
        for event in np.flatnonzero(is_matched[:, below]).tolist():
            left = left[is_matched[event, left]]
            if len(left) == 1:
                break
        yield from ((above, below) for above in left.tolist() if above != below)


def _reduce(found: set[Pair], count: int) -> set[Pair]:
    """The coverings that do not follow from others; of two filters that cover each other, the later
    one counts as the upper one."""
    order = {pair for pair in found if pair[0] > pair[1] or pair[::-1] not in found}
    above = [0] * count  # as bits
    for one, other in order:
        above[other] |= 1 << one
    further = [0] * count
    for one, other in order:
        further[other] |= above[one]
    return {pair for pair in order if not further[pair[1]] >> pair[0] & 1}
