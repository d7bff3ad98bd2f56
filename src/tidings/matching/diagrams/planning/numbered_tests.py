"""The distinct tests of many filters, numbered in their global order, with a rank space per term.

Here, a set of values is a bit mask over the codes of a rank space, whose cuts are the end points of
all sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidings.filters.canonical import Node, Test
from tidings.filters.language import Expression
from tidings.filters.values import sets
from tidings.matching.diagrams.planning.ranking import Rates, order_tests, tests_of
from tidings.matching.rank_space.ranks import Ranks, asks_order
from tidings.matching.segments.segment import TermColumn


class OrderedTests(msgspec.Struct, frozen=True):
    """All distinct tests in their global order; a test is identified by its position in that
    order."""

    terms: list[TermColumn]
    tests: list[Test]
    term_of: list[int]
    masks: list[int]  # the codes that pass, as bits
    intervals: list[list[tuple[int, int]]]
    full: list[int]  # for each term, the mask of all codes


def collect_tests(
    filters: Iterable[Node], terms: Mapping[str, Expression], rates: Rates | None = None
) -> OrderedTests:
    """Order the tests of some filters, and give each term a rank space."""
    order = order_tests(map(tests_of, filters), rates or {})
    cuts: dict[str, set[tuple[Any, ...]]] = {}
    ordered: dict[str, bool] = {}
    for test in order:
        cuts.setdefault(test.term, set()).update(test.values.cuts)
        ordered[test.term] = ordered.get(test.term, False) or asks_order(test.values)
    found = [
        TermColumn(text, terms[text], Ranks(sorted(cuts[text]), ordered[text])) for text in cuts
    ]
    number = {term.text: at for at, term in enumerate(found)}
    term_of = [number[test.term] for test in order]
    pairs = zip(term_of, order, strict=True)
    intervals = [found[at].ranks.intervals(test.values) for at, test in pairs]
    masks = [sum((2 << high) - (1 << low) for low, high in one) for one in intervals]
    # if any set has a cut at the start of the line of values, no value has the code 0
    full = [
        (1 << len(term.ranks)) - (2 if term.ranks.cuts[:1] == [(sets.NO_VALUE,)] else 1)
        for term in found
    ]
    return OrderedTests(found, order, term_of, masks, intervals, full)
