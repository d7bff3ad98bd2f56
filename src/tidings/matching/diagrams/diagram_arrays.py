"""The arrays of compiled diagrams, immutable, and the state of one evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.array_fields import Int64, UInt32
from tidings.matching.diagrams.class_edges import Edges
from tidings.matching.diagrams.classes import NONE, Classes
from tidings.matching.diagrams.plan import Plan

Array = npt.NDArray[Any]
NO_UNIT = 0xFFFFFFFF  # in group_unit: several units
END = 0xFFFFFFFF  # the end of a list of groups


class DiagramArrays(NamedTuple):
    """Everything the kernels need (T tests, G groups, K classes, N things, F outputs)."""

    test_column: UInt32  # [T]: the column of the test's term
    test_sets: UInt32  # [T + 1]: where the intervals of a test begin
    set_low: UInt32
    set_high: UInt32
    group_test: UInt32  # [G]: the groups of class 0 come first, then those of class 1 ...
    group_high: UInt32  # [G]: the class that is reached if the test passes
    group_low: UInt32  # [G]
    group_unit: UInt32  # [G]: the only unit of a group; NO_UNIT if there are several
    class_groups: UInt32  # [K + 1]: where the groups of a class begin
    class_leaves: UInt32  # [K + 1]: where the leaves of a class begin
    leaves: UInt32  # twice the unit, plus its result
    class_edges: UInt32  # [K + 1]: where the edges of a class begin
    edges: UInt32  # twice the group, plus its outcome
    thing_gates: UInt32  # [N + 1]: where the gates begin that a thing is a part of
    gates: UInt32  # things
    thing_outputs: UInt32  # [N + 1]: where the slots of a thing begin
    outputs: UInt32  # slots
    gate_parts: UInt32  # [N]: twice the number of parts, plus the outcome of a part that decides it
    root_heads: UInt32  # [T]: the first group that waits for a test at the start, or END
    root_next: UInt32  # [groups of class 0]: the next group that waits for the same test
    root_bits: Int64  # bit t: a group waits for test t at the start

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


class Counts(NamedTuple):
    """What was done, summed over events: see COUNTED."""

    counts: Int64
    passed: Int64  # [T]: how often each test passed
    seen: Int64  # [T]: how often each test was evaluated


COUNTED = ("tests", "node_steps", "inferred", "skipped", "touched", "counted", "events")


class Work(NamedTuple):
    """The state of an evaluation. Stamps mark what belongs to the current event."""

    codes: Int64  # [C]
    heads: UInt32  # [T]
    bits: Int64
    next_group: UInt32  # [G]
    group_state: Int64  # [G]: 4 * stamp, plus WAITING, DONE, KNOWN_LOW or KNOWN_HIGH
    class_stamp: UInt32  # [K]
    thing_state: Int64  # [N]: the stamp in the upper half, the number of open parts in the lower
    stack: UInt32  # classes to visit
    decided: UInt32  # things to decide, doubled, plus their results
    now: Int64  # [3]: the stamp, the next word of bits, the results so far
    results: UInt32  # twice the slot, plus the result, in the order of decisions


def freeze(plan: Plan, found: Classes, edges: Edges | None) -> DiagramArrays:
    """The arrays of a plan and its classes."""
    order = [group for one in found.classes for group in one.groups]
    number = np.zeros(len(order), np.int64)
    number[order] = np.arange(len(order))
    groups = [found.groups[at] for at in order]
    things = len(plan.units) + len(plan.gates)
    gates_of: list[list[int]] = [[] for _ in range(things)]
    parts = np.full(things, 2, np.uint32)
    for gate, (absorbing, items) in enumerate(plan.gates, len(plan.units)):
        parts[gate] = 2 * len(items) + absorbing
        for item in items:
            gates_of[item].append(gate)
    outputs: list[list[int]] = [[] for _ in range(things)]
    for slot, thing in plan.outputs:
        outputs[thing].append(slot)
    set_starts, ends = _lists(
        [[end for pair in one for end in pair] for one in plan.tests.intervals]
    )
    leaves = ([2 * unit + value for unit, value in one.leaves] for one in found.classes)
    numbered = ([2 * int(number[g]) + value for g, value in one] for one in edges or ())
    class_edges, edge = _lists(numbered if edges is not None else [()] * len(found.classes))
    class_leaves, leaf = _lists(leaves)
    thing_gates, gate_list = _lists(gates_of)
    thing_outputs, output = _lists(outputs)
    roots = groups[: len(found.classes[0].groups)]
    heads, after, bits = _queue_roots([one.test for one in roots], len(plan.tests.tests))
    return DiagramArrays(
        test_column=np.array(plan.tests.term_of, np.uint32) + np.uint32(1),
        test_sets=set_starts // np.uint32(2),
        set_low=ends[::2].copy(),
        set_high=ends[1::2].copy(),
        group_test=_numbers(one.test for one in groups),
        group_high=_numbers(one.high for one in groups),
        group_low=_numbers(one.low for one in groups),
        group_unit=_numbers(NO_UNIT if one.unit == NONE else one.unit for one in groups),
        class_groups=_starts([len(one.groups) for one in found.classes]),
        class_leaves=class_leaves,
        leaves=leaf,
        class_edges=class_edges,
        edges=edge,
        thing_gates=thing_gates,
        gates=gate_list,
        thing_outputs=thing_outputs,
        outputs=output,
        gate_parts=parts,
        root_heads=heads,
        root_next=after,
        root_bits=bits,
    )


def new_work(arrays: DiagramArrays, columns: int) -> Work:
    """The state for an evaluation of these arrays."""
    groups, classes, things = (
        len(arrays.group_test),
        len(arrays.class_groups) - 1,
        len(arrays.gate_parts),
    )
    next_group = np.full(groups, END, np.uint32)
    next_group[: len(arrays.root_next)] = arrays.root_next
    return Work(
        codes=np.zeros(columns + 1, np.int64),
        heads=np.full(len(arrays.root_heads), END, np.uint32),
        bits=np.zeros(len(arrays.root_bits), np.int64),
        next_group=next_group,
        group_state=np.zeros(groups, np.int64),
        class_stamp=np.zeros(classes, np.uint32),
        thing_state=np.zeros(things, np.int64),
        stack=np.zeros(classes + 1, np.uint32),
        decided=np.zeros(len(arrays.gates) + things + 1, np.uint32),
        now=np.zeros(3, np.int64),
        results=np.zeros(max(1, len(arrays.outputs)), np.uint32),
    )


def new_counts(tests: int) -> Counts:
    return Counts(
        np.zeros(len(COUNTED), np.int64), np.zeros(tests, np.int64), np.zeros(tests, np.int64)
    )


def _queue_roots(tests: Sequence[int], size: int) -> tuple[Array, Array, Array]:
    """The lists of the groups that wait at the start."""
    heads = np.full(size, END, np.uint32)
    after = np.full(len(tests), END, np.uint32)
    bits = np.zeros((size + 63) // 64 or 1, np.uint64)
    for group in range(len(tests) - 1, -1, -1):
        test = tests[group]
        after[group] = heads[test]
        heads[test] = group
        bits[test >> 6] |= np.uint64(1) << np.uint64(test & 63)
    return heads, after, bits.view(np.int64)


def _numbers(values: Iterable[int]) -> Array:
    return np.array(list(values), np.uint32)


def _starts(sizes: Sequence[int]) -> Array:
    starts = np.zeros(len(sizes) + 1, np.uint32)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _lists(lists: Iterable[Sequence[int]]) -> tuple[Array, Array]:
    """Where each list begins, and the items of all lists."""
    given = list(lists)
    flat = [item for one in given for item in one]
    return _starts([len(one) for one in given]), np.array(flat, np.uint32)
