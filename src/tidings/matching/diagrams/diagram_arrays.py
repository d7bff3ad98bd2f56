"""Compiled diagrams: immutable arrays, which are also saved as files. Tests are in their global
order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.matching.array_fields import Int64, UInt32
from tidings.matching.diagrams.class_edges import Edges
from tidings.matching.diagrams.node_classes import Classes
from tidings.matching.diagrams.planning.plan import DiagramPlan
from tidings.matching.segments.segment import TermColumn

Array = npt.NDArray[Any]
NO_UNIT = 0xFFFFFFFF  # the value in group_unit that means: the group has several units
END = 0xFFFFFFFF  # the end of a list of groups


class DiagramArrays(NamedTuple):
    """Everything that the kernels need (T tests, G groups, K classes, F outputs, and N signals:
    units and gates)."""

    test_column: UInt32  # [T]: the column of the test's term
    test_sets: UInt32  # [T + 1]: where the intervals of a test begin
    set_low: UInt32
    set_high: UInt32
    group_test: UInt32  # [G]: the groups of class 0 come first, then those of class 1, ...
    group_high: UInt32  # [G]: the class that is reached if the test passes
    group_low: UInt32  # [G]
    group_unit: UInt32  # [G]: the only unit of a group; NO_UNIT if there are several
    class_groups: UInt32  # [K + 1]: where the groups of a class begin
    class_leaves: UInt32  # [K + 1]: where the leaves of a class begin
    leaves: UInt32  # twice the unit, plus its result
    class_edges: UInt32  # [K + 1]: where the edges of a class begin
    edges: UInt32  # twice the number of a group, plus the group's outcome
    signal_gates: UInt32  # [N + 1]: where the gates that a signal is a part of begin
    gates: UInt32  # signals
    signal_outputs: UInt32  # [N + 1]: where the slots of a signal begin
    outputs: UInt32  # slots
    gate_parts: UInt32  # [N]: twice the gate's part count, plus the outcome that decides the gate
    root_heads: UInt32  # [T]: the first group that waits for a test at the start, or END
    root_next: UInt32  # [groups of class 0]: the next group that waits for the same test
    root_bits: Int64  # bit t: a group waits for test t at the start

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


class Members(NamedTuple):
    """The units of each group, which are needed only to remove filters."""

    group_units: UInt32  # [G + 1]: where the units of a group begin
    units: UInt32


class CompiledDiagrams(msgspec.Struct, frozen=True):
    """Diagrams as they are evaluated and saved."""

    terms: Sequence[TermColumn]  # the terms of columns 1, 2, ...
    arrays: DiagramArrays
    members: Members
    decided: Array  # uint32: filters that need no test, each as twice its slot plus its result
    is_linked: bool = False  # whether the edges were searched for

    def __len__(self) -> int:
        """The number of filters."""
        return len(self.arrays.outputs) + len(self.decided)

    @property
    def slots(self) -> Array:
        """The slots of all filters, ascending."""
        return np.sort(np.concatenate([self.arrays.outputs, self.decided >> 1]))

    @property
    def always(self) -> Array:
        """The slots of the filters that match every event."""
        found: Array = (self.decided >> 1)[self.decided & 1 == 1].astype(np.intp)
        return found

    @property
    def nbytes(self) -> int:
        return self.arrays.nbytes + sum(array.nbytes for array in self.members)

    def renumber(self, number: Array) -> CompiledDiagrams:
        """The same diagrams, with `number[slot]` in place of each slot."""
        outputs = number[self.arrays.outputs].astype(np.uint32)
        decided = 2 * number[self.decided >> 1].astype(np.uint32) + self.decided % 2
        arrays = self.arrays._replace(outputs=outputs)
        return msgspec.structs.replace(self, arrays=arrays, decided=decided.astype(np.uint32))


def compile_plan(plan: DiagramPlan, found: Classes) -> CompiledDiagrams:
    """The arrays of a plan and its classes, without edges."""
    groups = [found.groups[at] for at in _group_order(found)]
    signals = len(plan.units) + len(plan.gates)
    gates_of: list[list[int]] = [[] for _ in range(signals)]
    parts = np.full(signals, 2, np.uint32)
    for gate, (absorbing, items) in enumerate(plan.gates, len(plan.units)):
        parts[gate] = 2 * len(items) + absorbing
        for item in items:
            gates_of[item].append(gate)
    outputs: list[list[int]] = [[] for _ in range(signals)]
    for slot, signal in plan.outputs:
        outputs[signal].append(slot)
    set_starts, ends = pack_lists(
        [[end for pair in one for end in pair] for one in plan.tests.intervals]
    )
    class_leaves, leaf = pack_lists(
        [2 * unit + value for unit, value in one.leaves] for one in found.classes
    )
    class_edges, edges = pack_edges(found, [[] for _ in found.classes])
    signal_gates, gate_list = pack_lists(gates_of)
    signal_outputs, output = pack_lists(outputs)
    group_test = _numbers(one.test for one in groups)
    roots = queue_roots(group_test[: len(found.classes[0].groups)], len(plan.tests.tests))
    arrays = DiagramArrays(
        test_column=np.array(plan.tests.term_of, np.uint32) + np.uint32(1),
        test_sets=set_starts // np.uint32(2),
        set_low=ends[::2].copy(),
        set_high=ends[1::2].copy(),
        group_test=group_test,
        group_high=_numbers(one.high for one in groups),
        group_low=_numbers(one.low for one in groups),
        group_unit=_numbers(one.units[0] if len(one.units) == 1 else NO_UNIT for one in groups),
        class_groups=starts_of([len(one.groups) for one in found.classes]),
        class_leaves=class_leaves,
        leaves=leaf,
        class_edges=class_edges,
        edges=edges,
        signal_gates=signal_gates,
        gates=gate_list,
        signal_outputs=signal_outputs,
        outputs=output,
        gate_parts=parts,
        **roots,
    )
    members = Members(*pack_lists(one.units for one in groups))
    decided = _numbers(2 * slot + value for slot, value in plan.decided)
    return CompiledDiagrams(plan.tests.terms, arrays, members, decided)


def link_classes(compiled: CompiledDiagrams, found: Classes, edges: Edges) -> CompiledDiagrams:
    """The same diagrams, with the edges of their classes."""
    starts, packed = pack_edges(found, edges)
    arrays = compiled.arrays._replace(class_edges=starts, edges=packed)
    return msgspec.structs.replace(compiled, arrays=arrays, is_linked=True)


def pack_edges(found: Classes, edges: Edges) -> tuple[Array, Array]:
    order = _group_order(found)
    number = np.zeros(len(order), np.int64)
    number[order] = np.arange(len(order))
    return pack_lists([2 * int(number[group]) + value for group, value in one] for one in edges)


def _group_order(found: Classes) -> list[int]:
    """The groups, class by class."""
    return [group for one in found.classes for group in one.groups]


def queue_roots(tests: Array, size: int) -> dict[str, Array]:
    """Linked lists of the groups that wait at the start of an event; `tests` has the test of each
    group."""
    heads = np.full(size, END, np.uint32)
    after = np.full(len(tests), END, np.uint32)
    bits = np.zeros((size + 63) // 64 or 1, np.uint64)
    for group in range(len(tests) - 1, -1, -1):
        test = int(tests[group])
        after[group] = heads[test]
        heads[test] = group
        bits[test >> 6] |= np.uint64(1) << np.uint64(test & 63)
    return {"root_heads": heads, "root_next": after, "root_bits": bits.view(np.int64)}


def _numbers(values: Iterable[int]) -> Array:
    return np.array(list(values), np.uint32)


def starts_of(sizes: Sequence[int] | Array) -> Array:
    """The positions at which lists of these sizes begin, and at which the last one ends."""
    starts = np.zeros(len(sizes) + 1, np.uint32)
    np.cumsum(sizes, out=starts[1:])
    return starts


def pack_lists(lists: Iterable[Sequence[int]]) -> tuple[Array, Array]:
    """The positions at which lists begin, and the items of all lists."""
    given = list(lists)
    flat = [item for one in given for item in one]
    return starts_of([len(one) for one in given]), np.array(flat, np.uint32)
