"""Turn segments back into tests, merge segments, and rebuild them with better access tests.

This module works only on arrays: no filter is parsed again, and no form is kept. A test is
recovered from one of three places: from an entry (or from several, if its set has several
intervals); from a row of tests; or, if that row has only coarse codes, from an extra, which has the
exact ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.language import Expression
from tidings.filters.values import ValueSet, points
from tidings.matching.rank_space.ranks import Ranks, merge_ranks
from tidings.matching.segments import segment as segments
from tidings.matching.segments.access import ElementTest, choose_access
from tidings.matching.segments.segment import ELEMENT, INTERVALS, Rest, Segment, TermColumn, Tests

Array = npt.NDArray[Any]


class DisassembledSegment(msgspec.Struct):
    """The tests from which a segment is built."""

    terms: list[TermColumn]
    tests: Tests
    slots: Array
    elements: list[ElementTest]
    rest: dict[int, Rest]
    opaque: dict[str, Expression]
    moves: list[dict[int, Array]] = []
    """For each merged segment: column -> the positions that the cuts of its term have now."""


def disassemble(segment: Segment) -> DisassembledSegment:
    """Recover the tests of a segment from its arrays. Boxes keep their numbers."""
    arrays, terms = segment.arrays, segment.terms
    entries: Array = arrays.group_end - arrays.group_start
    columns = np.repeat(arrays.group_column, entries)
    is_list = np.zeros(len(terms) + 1, bool)
    for number, term in enumerate(terms, 1):
        is_list[number] = term.elements
    extra_box = _owners(arrays.box_extras)
    exact = arrays.extra_kind == INTERVALS
    known = extra_box[exact] << 16 | arrays.extra_column[exact]
    plain = (columns > 0) & ~is_list[columns]
    plain &= ~np.isin(arrays.entry_box.astype(np.int64) << 16 | columns, known)

    # collect the intervals of access tests and of exact extras, then group them into sets
    counts: Array = (arrays.extra_b - arrays.extra_a)[exact].astype(np.int64)
    inside = _expand_ranges(arrays.extra_a[exact].astype(np.int64), counts)
    box = np.concatenate([arrays.entry_box[plain], np.repeat(extra_box[exact], counts)])
    column = np.concatenate([columns[plain], np.repeat(arrays.extra_column[exact], counts)])
    low = np.concatenate([arrays.entry_low[plain], arrays.set_low[inside]])
    high = np.concatenate([arrays.entry_high[plain], arrays.set_high[inside]])
    sets = _as_sets(box.astype(np.int64), column.astype(np.int64), low, high)

    owner = _owners(arrays.box_tests)
    keys = owner << 16 | arrays.test_column
    rough = np.isin(keys, known)
    kept = ~rough
    tests = Tests(
        box=np.concatenate([sets.box, owner[kept].astype(np.uint32)]),
        column=np.concatenate([sets.column, arrays.test_column[kept].astype(np.uint32)]),
        low=np.concatenate([sets.low, arrays.test_low[kept].astype(np.uint32)]),
        high=np.concatenate(
            [sets.high, arrays.test_low[kept].astype(np.uint32) + arrays.test_width[kept]]
        ),
        several=np.concatenate([sets.several, np.full(int(kept.sum()), -1, np.int64)]),
        set_starts=sets.set_starts,
        set_low=sets.set_low,
        set_high=sets.set_high,
    )
    elements = _elements(segment, columns, is_list, extra_box)
    return DisassembledSegment(
        list(terms), tests, arrays.box_slot, elements, dict(segment.rest), dict(segment.opaque)
    )


def _owners(starts: Array) -> Array:
    """For each row, the number of the box that the row belongs to."""
    sizes: Array = starts[1:].astype(np.int64) - starts[:-1].astype(np.int64)
    return np.repeat(np.arange(len(sizes)), sizes)


def _expand_ranges(starts: Array, sizes: Array) -> Array:
    """starts[i], starts[i] + 1, ... for each i, concatenated."""
    total = int(sizes.sum())
    ends = np.cumsum(sizes)
    out: Array = np.arange(total) - np.repeat(ends - sizes, sizes) + np.repeat(starts, sizes)
    return out


def _as_sets(box: Array, column: Array, low: Array, high: Array) -> Tests:
    """Group intervals into tests: all intervals of one box and column form one set."""
    order = np.lexsort((low, column, box))
    box, column, low, high = box[order], column[order], low[order], high[order]
    first = np.ones(len(box), bool)
    first[1:] = (box[1:] != box[:-1]) | (column[1:] != column[:-1])
    starts = np.nonzero(first)[0]
    ends = np.append(starts[1:], len(box))[: len(starts)]
    many = ends - starts > 1
    several = np.full(len(starts), -1, np.int64)
    several[many] = np.arange(int(many.sum()))
    sizes = (ends - starts)[many]
    rows = _expand_ranges(starts[many], sizes)
    last = ends - 1
    set_starts = np.zeros(int(many.sum()) + 1, np.int64)
    np.cumsum(sizes, out=set_starts[1:])
    return Tests(
        box=box[starts].astype(np.uint32),
        column=column[starts].astype(np.uint32),
        low=low[starts].astype(np.uint32),
        high=high[last].astype(np.uint32),
        several=several,
        set_starts=set_starts,
        set_low=low[rows].astype(np.uint32),
        set_high=high[rows].astype(np.uint32),
    )


def _elements(
    segment: Segment, columns: Array, is_list: Array, extra_box: Array
) -> list[ElementTest]:
    arrays, terms = segment.arrays, segment.terms
    out: list[ElementTest] = []
    for entry in np.nonzero(is_list[columns])[0]:
        column = int(columns[entry])
        ranks = terms[column - 1].ranks
        place = _place_of(ranks, int(arrays.entry_low[entry]))
        out.append((int(arrays.entry_box[entry]), column, ranks, place, 4))
    for extra in np.nonzero(arrays.extra_kind == ELEMENT)[0]:
        column = int(arrays.extra_column[extra])
        ranks = terms[column - 1].ranks
        place = _place_of(ranks, int(arrays.extra_a[extra]))
        out.append((int(extra_box[extra]), column, ranks, place, int(arrays.extra_b[extra]) & 7))
    return out


def _place_of(ranks: Ranks, code: int) -> Any:
    """The only position on the line of values that has this code; an element is a single point."""
    found = ValueSet((ranks.cuts[code - 1], ranks.cuts[code])).points()
    assert found is not None
    return found[0]


def assemble(source: DisassembledSegment, histograms: Mapping[str, Array] | None = None) -> Segment:
    """Build a segment from these tests; the histograms determine the access tests."""
    arrays, number = choose_access(
        source.tests,
        source.slots,
        source.terms,
        source.elements,
        set(source.rest),
        histograms or {},
    )
    rest = {int(number[box]): one for box, one in source.rest.items()}
    count = int(source.slots.max()) + 1 if len(source.slots) else 0
    many = (np.bincount(source.slots, minlength=count) > 1).astype(np.uint8)
    return Segment(tuple(source.terms), arrays, rest, source.opaque, count, many)


def merge_segments(given: Sequence[Segment], dead: Array) -> DisassembledSegment:
    """Merge the filters of several segments. Dead filters are dropped, and with them the terms that
    no other filter tests."""
    parts = [_drop_dead(disassemble(segment), dead) for segment in given]
    parts = _limit_terms(parts)
    by_name: dict[tuple[bool, str], list[tuple[int, int]]] = {}  # term -> (part, column)
    for number, part in enumerate(parts):
        for at, term in enumerate(part.terms, 1):
            by_name.setdefault((term.elements, term.text), []).append((number, at))
    terms: list[TermColumn] = []
    columns = [np.zeros(len(part.terms) + 1, np.uint32) for part in parts]
    places: list[dict[int, Array]] = [{} for _ in parts]
    for name in sorted(by_name):
        same = [parts[number].terms[at - 1] for number, at in by_name[name]]
        ranks, found = merge_ranks([term.ranks for term in same])
        terms.append(TermColumn(same[0].text, same[0].node, ranks, same[0].elements))
        for (number, at), place in zip(by_name[name], found, strict=True):
            columns[number][at] = len(terms)
            places[number][at] = place
    whole = _concatenate(
        terms, [_move_tests(part, terms, columns[n], places[n]) for n, part in enumerate(parts)]
    )
    # if a term lost cuts in the merge, its counts no longer apply, so it gets no moves
    for number, (part, segment) in enumerate(zip(parts, given, strict=True)):
        before = {id(term): at for at, term in enumerate(segment.terms, 1)}
        whole.moves.append(
            {before[id(term)]: places[number][at] for at, term in enumerate(part.terms, 1)
             if id(term) in before}
        )  # fmt: skip
    return whole


def _drop_dead(source: DisassembledSegment, dead: Array) -> DisassembledSegment:
    """Drop the boxes of dead slots, and renumber the others."""
    alive = dead[source.slots] == 0
    if alive.all():
        return source
    number = np.cumsum(alive) - 1
    tests = _choose_tests(source.tests, alive[source.tests.box])
    tests.box = number[tests.box].astype(np.uint32)
    left = DisassembledSegment(
        source.terms,
        tests,
        source.slots[alive],
        [(int(number[e[0]]), *e[1:]) for e in source.elements if alive[e[0]]],
        {int(number[box]): one for box, one in source.rest.items() if alive[box]},
        source.opaque,
    )
    used = {text for one in left.rest.values() for text, _ in one.tests}
    left.opaque = {text: node for text, node in left.opaque.items() if text in used}
    return _prune(left)


def _choose_tests(tests: Tests, kept: Array) -> Tests:
    """The tests that `kept` selects, with their sets of intervals."""
    several = tests.several[kept]
    has = several >= 0
    sizes = np.diff(tests.set_starts)[several[has]]
    rows = _expand_ranges(tests.set_starts[several[has]], sizes)
    several[has] = np.arange(len(sizes))
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return Tests(
        tests.box[kept], tests.column[kept], tests.low[kept], tests.high[kept], several, starts,
        tests.set_low[rows], tests.set_high[rows],
    )  # fmt: skip


def _prune(source: DisassembledSegment) -> DisassembledSegment:
    """Drop terms that no test uses, and the unused cuts of a term if fewer than half of its cuts
    are used."""
    used = _used_cuts(source)
    terms: list[TermColumn] = []
    columns = np.zeros(len(source.terms) + 1, np.uint32)
    places: dict[int, Array] = {}
    tested = {*np.unique(source.tests.column).tolist(), *(e[1] for e in source.elements)}
    for at, term in enumerate(source.terms, 1):
        cuts, here = term.ranks.cuts, used[at - 1]
        places[at] = np.arange(len(cuts))
        if at not in tested:
            continue
        if 2 * int(here.sum()) < len(cuts):
            places[at] = np.cumsum(here) - 1
            left = [cuts[number] for number in np.nonzero(here)[0].tolist()]
            term = TermColumn(term.text, term.node, Ranks(left, term.ranks.ordered), term.elements)
        terms.append(term)
        columns[at] = len(terms)
    if len(terms) == len(source.terms) and all(map(is_, terms, source.terms)):
        return source
    return _move_tests(source, terms, columns, places)


def _used_cuts(source: DisassembledSegment) -> list[Array]:
    """For each term, a Boolean for each cut: whether the cut is an end point of some test."""
    tests = source.tests
    sizes = [len(term.ranks.cuts) for term in source.terms]
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    owner = np.zeros(len(tests.set_starts) - 1, np.int64)
    has = tests.several >= 0
    owner[tests.several[has]] = tests.column[has]
    column = np.concatenate([tests.column, np.repeat(owner, np.diff(tests.set_starts))])
    column = column.astype(np.int64) - 1
    within = int(tests.set_starts[-1])
    low = np.concatenate([tests.low, tests.set_low[:within]]).astype(np.int64)
    high = np.concatenate([tests.high, tests.set_high[:within]]).astype(np.int64)
    used = np.zeros(int(starts[-1]), bool)
    used[(starts[column] + low - 1)[low > 0]] = True
    used[(starts[column] + high)[high < np.array(sizes, np.int64)[column]]] = True
    for _, at, ranks, place, _ in source.elements:
        for cut in points([place]).cuts:
            used[starts[at - 1] + ranks.place[cut]] = True
    return [used[starts[at] : starts[at + 1]] for at in range(len(sizes))]


def _limit_terms(parts: list[DisassembledSegment]) -> list[DisassembledSegment]:
    """Limit the terms to the available columns. If there are too many terms, those with the fewest
    tests are evaluated instead of indexed."""
    count: dict[str, int] = {}
    lists = {term.text for part in parts for term in part.terms if term.elements}
    for part in parts:
        tested = np.bincount(part.tests.column, minlength=len(part.terms) + 1)
        for at, term in enumerate(part.terms, 1):
            if not term.elements:
                count[term.text] = count.get(term.text, 0) + int(tested[at])
    surplus = len(count) + len(lists) - segments.MOST_TERMS
    if surplus <= 0:
        return parts
    least = set(sorted(count, key=lambda text: count[text])[:surplus])
    return [_evaluate_terms(part, least) for part in parts]


def _evaluate_terms(source: DisassembledSegment, texts: set[str]) -> DisassembledSegment:
    """Take the tests of some terms out of the index, so that they are evaluated row by row."""
    tests, terms = source.tests, source.terms
    named = np.array([False, *(term.text in texts and not term.elements for term in terms)])
    taken = named[tests.column]
    rest, opaque = dict(source.rest), dict(source.opaque)
    for row in np.nonzero(taken)[0].tolist():
        term = terms[int(tests.column[row]) - 1]
        opaque[term.text] = term.node
        box = int(tests.box[row])
        one = rest.get(box, Rest())
        if one.form is None:
            rest[box] = Rest(tests=(*one.tests, (term.text, _values(tests, row, term.ranks))))
    left = DisassembledSegment(
        terms, _choose_tests(tests, ~taken), source.slots, source.elements, rest, opaque
    )
    return _prune(left)


def _values(tests: Tests, row: int, ranks: Ranks) -> ValueSet:
    """The set of values with which the test passes."""
    lows, highs = tests.low[row : row + 1], tests.high[row : row + 1]
    if tests.several[row] >= 0:
        first, last = tests.set_starts[tests.several[row] : tests.several[row] + 2]
        lows, highs = tests.set_low[first:last], tests.set_high[first:last]
    return ranks.values(zip(lows.tolist(), highs.tolist(), strict=True))


def _move_tests(
    source: DisassembledSegment,
    terms: list[TermColumn],
    columns: Array,
    places: Mapping[int, Array],
) -> DisassembledSegment:
    """Move tests to other columns, and translate their codes to new positions of the cuts."""
    tests = source.tests
    # a low code is the index of a cut plus 1; a high code is the index of a cut, or the highest
    # code, which remains the highest code
    starts = np.zeros(len(source.terms) + 2, np.int64)
    lows, highs = [np.zeros(1, np.uint32)], [np.zeros(1, np.uint32)]
    starts[1] = 1
    for at in range(1, len(source.terms) + 1):
        lows.append(np.append(0, places[at] + 1).astype(np.uint32))
        last = len(terms[columns[at] - 1].ranks) - 1 if columns[at] else 0
        highs.append(np.append(places[at], last).astype(np.uint32))
        starts[at + 1] = starts[at] + len(lows[-1])
    new_low, new_high = np.concatenate(lows), np.concatenate(highs)
    first = starts[tests.column]
    low, high = new_low[first + tests.low], new_high[first + tests.high]
    owner = np.zeros(len(tests.set_starts) - 1, np.int64)
    has = tests.several >= 0
    owner[tests.several[has]] = starts[tests.column[has]]
    used = int(tests.set_starts[-1])
    inner = np.repeat(owner, np.diff(tests.set_starts))
    set_low, set_high = tests.set_low.copy(), tests.set_high.copy()
    set_low[:used] = new_low[inner + tests.set_low[:used]]
    set_high[:used] = new_high[inner + tests.set_high[:used]]
    return DisassembledSegment(
        terms,
        Tests(tests.box, columns[tests.column], low, high, tests.several, tests.set_starts,
              set_low, set_high),
        source.slots,
        [(box, int(columns[column]), terms[columns[column] - 1].ranks, place, outcomes)
         for box, column, _, place, outcomes in source.elements],
        source.rest,
        source.opaque,
    )  # fmt: skip


def _concatenate(terms: list[TermColumn], parts: list[DisassembledSegment]) -> DisassembledSegment:
    boxes, sets, intervals = 0, 0, 0
    rows: list[tuple[Array, ...]] = []
    starts = [np.zeros(1, np.int64)]
    elements: list[ElementTest] = []
    rest: dict[int, Rest] = {}
    opaque: dict[str, Expression] = {}
    for part in parts:
        tests = part.tests
        several = np.where(tests.several >= 0, tests.several + sets, -1)
        rows.append((tests.box + np.uint32(boxes), tests.column, tests.low, tests.high, several))
        starts.append(tests.set_starts[1:] + intervals)
        elements += [(box + boxes, *more) for box, *more in part.elements]
        rest.update({box + boxes: one for box, one in part.rest.items()})
        opaque.update(part.opaque)
        boxes += len(part.slots)
        sets += len(tests.set_starts) - 1
        intervals += int(tests.set_starts[-1])
    used = [slice(0, int(part.tests.set_starts[-1])) for part in parts]
    box, column, low, high, several = (np.concatenate(c) for c in zip(*rows, strict=True))
    return DisassembledSegment(
        terms,
        Tests(
            box,
            column,
            low,
            high,
            several,
            np.concatenate(starts),
            np.concatenate([p.tests.set_low[u] for p, u in zip(parts, used, strict=True)]),
            np.concatenate([p.tests.set_high[u] for p, u in zip(parts, used, strict=True)]),
        ),
        np.concatenate([part.slots for part in parts]),
        elements,
        rest,
        opaque,
    )
