"""The filters of a segment that don't fit columns of given types; see filters/misfits.py.

If all cuts of a term lie in the family of its column, the term has no misfits; two bisections check
this. For other terms, the tests are reconstructed from the arrays and checked together. So the
usual answer, "none", costs one step per term and residual, however many filters test them: 0.1 ms
for 200,000 filters with four tests each. For the same filters, a search that finds misfits takes
1.1 s (on two busy cores).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters import Misfit, domain_of, misfit_of_term, misfit_of_test, misfits_of
from tidings.filters.canonical import is_opaque
from tidings.filters.language import Attribute, Expression, Types, attributes_of, program_of
from tidings.filters.values import Cut, ValueSet, sets
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments.assembly import disassemble
from tidings.matching.segments.segment import Segment, Tests

Array = npt.NDArray[Any]
Path = tuple[str, ...]
Found = dict[Misfit, list[Array]]  # slots
Slots = dict[Path, set[int]]
_NULL_CUTS = set(sets.NULL.cuts)


def find_misfits(segments: Iterable[Segment], types: Types) -> dict[Misfit, Array]:
    """Find the misfits, and for each the slots of the filters that have it, in ascending order."""
    found: Found = {}
    for segment in segments:
        here: Found = {}
        wrong = _find_indexed(segment, types, here)
        wrong_rest = _find_rest(segment, types, here)
        programs = _program_slots(segment) if here else {}
        fitting = _fitting_slots(segment, programs, wrong, wrong_rest) if programs else {}
        wide, wide_found = _find_wide(segment, types)
        for one, slots in here.items():
            kept = np.concatenate(slots)
            kept = kept[~np.isin(kept, [*wide, *fitting.get(one.path, ())])]
            if len(kept):
                found.setdefault(one, []).append(kept)
        for one, slots in wide_found.items():
            found.setdefault(one, []).extend(slots)
    return {one: np.unique(np.concatenate(slots)) for one, slots in found.items()}


def _find_wide(segment: Segment, types: Types) -> tuple[set[int], Found]:
    """The slots of the wide filters, and the misfits of these filters. The index contains only some
    tests of a wide filter, so the whole form is checked."""
    wide: set[int] = set()
    found: Found = {}
    for box, rest in segment.rest.items():
        if rest.form is not None:
            slot = segment.arrays.box_slot[box : box + 1]
            wide.add(int(slot[0]))
            for one in misfits_of(rest.form, types):
                found.setdefault(one, []).append(slot)
    return wide, found


def _program_slots(segment: Segment) -> Slots:
    """The filters with programs of another dialect, by the columns that these programs read. Such a
    filter fits a column if one of its tests fits; see filters/misfits.py."""
    reads = {
        text: attributes_of(node)
        for text, node in segment.opaque.items()
        if program_of(node) is not None
    }
    found: Slots = {}
    if reads:
        for box, rest in segment.rest.items():
            for text, _ in rest.tests:
                for path in reads.get(text, ()):
                    found.setdefault(path, set()).add(int(segment.arrays.box_slot[box]))
    return found


def _fitting_slots(
    segment: Segment,
    programs: Slots,
    wrong: Mapping[int, Array | None],
    wrong_rest: Mapping[str, set[int] | None],
) -> Slots:
    """The filters that have a program and a test that fits, by the column of this test.

    `wrong` has, for each column, the slots with a test that does not fit (None: all slots);
    `wrong_rest` has the same for each term of the residuals."""
    apart = disassemble(segment)
    element_boxes: dict[int, list[int]] = {}
    for element in apart.elements:
        element_boxes.setdefault(element[1], []).append(element[0])
    found: Slots = {path: set() for path in programs}
    for column, term in enumerate(segment.terms, 1):
        paths = attributes_of(term.node) & programs.keys()
        misfits = wrong.get(column, _NO_SLOTS)
        if not paths or misfits is None:
            continue
        slots = np.concatenate(
            [
                apart.slots[apart.tests.box[apart.tests.column == column]],
                apart.slots[element_boxes.get(column, [])],
            ]
        )
        fitting = set(np.setdiff1d(slots, misfits).tolist())
        for path in paths:
            found[path] |= fitting & programs[path]
    for box, rest in segment.rest.items():
        slot = int(segment.arrays.box_slot[box])
        for text, _ in rest.tests:
            node, misfit_slots = segment.opaque[text], wrong_rest.get(text, set())
            if misfit_slots is None or slot in misfit_slots or program_of(node) is not None:
                continue
            for path in attributes_of(node) & programs.keys():
                if slot in programs[path]:
                    found[path].add(slot)
    return found


_NO_SLOTS: Array = np.zeros(0, np.uint32)


def find_readers(segments: Iterable[Segment], path: Path) -> Array:
    """The slots of the filters that read an attribute, in ascending order."""
    out: list[Array] = [np.zeros(0, np.uint32)]
    for segment in segments:
        columns = [
            number
            for number, term in enumerate(segment.terms, 1)
            if path in attributes_of(term.node)
        ]
        apart = disassemble(segment)
        boxes = set(apart.tests.box[np.isin(apart.tests.column, columns)].tolist())
        boxes |= {one[0] for one in apart.elements if one[1] in columns}
        for box, rest in segment.rest.items():
            terms = [segment.opaque[text] for text, _ in rest.tests]
            terms += [] if rest.form is None else rest.form.terms.values()
            if any(path in attributes_of(term) for term in terms):
                boxes.add(box)
        out.append(segment.arrays.box_slot[sorted(boxes)])
    return np.unique(np.concatenate(out))


def _find_indexed(segment: Segment, types: Types, found: Found) -> dict[int, Array | None]:
    """Find the misfits of indexed tests. Return, by column, the slots of the filters with a test
    that does not fit and that also fails for an absent value; None stands for all slots."""
    wrong: dict[int, Misfit] = {}  # by column: for these terms, every test is a misfit
    # by column: for these terms, a test is a misfit if it allows none of these values
    doubtful: dict[int, ValueSet] = {}
    for column, term in enumerate(segment.terms, 1):
        one = _misfit_of_list(term.node, types) if term.elements else None
        one = one or (None if type(term.node) is Attribute else misfit_of_term(term.node, types))
        domain = None if term.elements else domain_of(term.node, types)
        if one is not None:
            wrong[column] = one
        elif domain is not None and not _all_inside(term.ranks.cuts, domain):
            doubtful[column] = domain
    out: dict[int, Array | None] = dict.fromkeys(wrong)
    if not wrong and not doubtful:
        return out
    apart = disassemble(segment)
    for column, one in wrong.items():
        boxes = apart.tests.box[apart.tests.column == column].tolist()
        boxes += [element[0] for element in apart.elements if element[1] == column]
        found.setdefault(one, []).append(apart.slots[boxes])
    for column, domain in doubtful.items():
        term = segment.terms[column - 1]
        for slots, values in _find_excluded(apart.tests, apart.slots, column, term.ranks, domain):
            one = misfit_of_test(term.node, values, types)
            if one is not None:
                found.setdefault(one, []).append(slots)
                if not values & sets.NULL:
                    out[column] = np.concatenate([out.get(column, _NO_SLOTS), slots])
    return out


def _misfit_of_list(node: Expression, types: Types) -> Misfit | None:
    """The misfit of `array_contains`; the term of such a test is the list."""
    domain = domain_of(node, types)
    if domain is None or domain == sets.LISTS:
        return None
    return Misfit(min(attributes_of(node)), "a list", "array_contains")


def _all_inside(cuts: list[Cut], domain: ValueSet) -> bool:
    """Whether all cuts, apart from those around null, lie within the family `domain`."""
    first, last = domain.cuts[0], domain.cuts[1] if len(domain.cuts) > 1 else (sets.OTHER + 1,)
    before, after = bisect_left(cuts, first), bisect_right(cuts, last)
    return after == len(cuts) and all(cut in _NULL_CUTS for cut in cuts[:before])


def _find_excluded(
    tests: Tests, slot_of: Array, column: int, ranks: Ranks, domain: ValueSet
) -> Iterable[tuple[Array, ValueSet]]:
    """The filters whose tests of a term allow no value of `domain`, grouped by the families that
    they do allow: (slots, values)."""
    rows = np.flatnonzero(tests.column == column)
    if not len(rows):
        return
    owner, low, high = _intervals(tests, rows)
    slots, place = np.unique(slot_of[tests.box[rows]], return_inverse=True)
    allowed = np.zeros(len(slots), np.int64)  # bit f: a value of family f is allowed
    for family in range(sets.OTHER + 1):
        first = bisect_right(ranks.cuts, (family,))
        last = bisect_left(ranks.cuts, (family + 1,))
        hits = (low <= last) & (high >= first)
        np.bitwise_or.at(allowed, place[owner[hits]], 1 << family)
    for bits in np.unique(allowed).tolist():
        families = [family for family in range(sets.OTHER + 1) if bits >> family & 1]
        values = sets.unite([_FAMILY[family] for family in families] or [sets.NOTHING])
        if not values & domain:
            yield slots[allowed == bits], values


_FAMILY = [
    ValueSet(((family,), (family + 1,)) if family < sets.OTHER else ((family,),))
    for family in range(sets.OTHER + 1)
]


def _intervals(tests: Tests, rows: Array) -> tuple[Array, Array, Array]:
    """All intervals of some tests, each with the index of its row, its low and its high code."""
    several = tests.several[rows]
    one = np.flatnonzero(several < 0)
    many = np.flatnonzero(several >= 0)
    starts = tests.set_starts[several[many]]
    sizes = tests.set_starts[several[many] + 1] - starts
    inside = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
    return (
        np.concatenate([one, np.repeat(many, sizes)]),
        np.concatenate([tests.low[rows[one]], tests.set_low[inside]]),
        np.concatenate([tests.high[rows[one]], tests.set_high[inside]]),
    )


def _find_rest(segment: Segment, types: Types, found: Found) -> dict[str, set[int] | None]:
    """Find the residuals with operands whose types do not fit. Return, by term, the slots of the
    filters with a test that does not fit and that also fails for an absent value; None stands for
    all slots."""
    wrong = {
        text: one
        for text, node in segment.opaque.items()
        if (one := misfit_of_term(node, types)) is not None
    }
    slot_of = segment.arrays.box_slot
    # only for terms that could have a column, but for which no column was left
    allowed: dict[tuple[int, str], ValueSet] = {}
    for box, rest in segment.rest.items():
        for one in {wrong[text] for text, _ in rest.tests if text in wrong}:
            found.setdefault(one, []).append(slot_of[box : box + 1])
        for text, values in rest.tests:
            if text not in wrong and not is_opaque(segment.opaque[text]):
                place = int(slot_of[box]), text
                allowed[place] = allowed.get(place, sets.NOTHING) | values
    some: dict[str, set[int]] = {}
    for (slot, text), values in allowed.items():
        misfit = misfit_of_test(segment.opaque[text], values, types)
        if misfit is not None:
            found.setdefault(misfit, []).append(np.array([slot], slot_of.dtype))
            if not values & sets.NULL:
                some.setdefault(text, set()).add(slot)
    return {**dict.fromkeys(wrong), **some}
