"""Kernels that evaluate signals. The result of a unit goes to the gates that it is a part of, and
the results of gates are the results of filters.

The kernels change these arrays:

    signal_state   the stamp of the event, and how many parts of a signal are open (0: decided)
    results        the slots of filters with their results, in the order of decisions

`table` is the pointer table of TABLE; the definitions of its named tuples give the dtype and shape
of each array. Units, slots and counts are integers; `dead` is a uint8 for each slot; `found` is
intp.
"""

from __future__ import annotations

import numpy as np

from tidings.matching.diagrams.diagram_arrays import DiagramArrays
from tidings.matching.diagrams.diagram_work import RESULTS, STAMP, DiagramCounts, DiagramWork
from tidings.matching.jit.kernel_compiler import kernel
from tidings.matching.jit.pointer_table import views_of
from tidings.matching.rank_space.event_coder import IntegerCodes

TESTS, STEPS, INFERRED, SKIPPED, TOUCHED, COUNTED, EVENTS = range(7)
TABLE = (DiagramArrays, DiagramWork, DiagramCounts, IntegerCodes)
views = views_of(*TABLE)


@kernel
def is_needed(table, unit):  # type: ignore[no-untyped-def]
    """Whether some filter still depends on a unit."""
    arrays, work, _, _ = views(table)
    if arrays.signal_outputs[unit] != arrays.signal_outputs[unit + 1]:
        return True
    decided = work.now[STAMP] << 32
    for at in range(np.int64(arrays.signal_gates[unit]), np.int64(arrays.signal_gates[unit + 1])):
        if work.signal_state[arrays.gates[at]] != decided:
            return True
    return False


@kernel
def decide_unit(table, first):  # type: ignore[no-untyped-def]
    """Decide a unit (`first` is twice its number, plus its result), and all gates that are thereby
    decided; append the results of filters to `results`."""
    arrays, work, counts, _ = views(table)
    decided = work.now[STAMP] << 32  # the state of a decided signal: none of its parts is open
    size = 1
    work.decided[0] = first
    touched, counted = 0, 0
    while size > 0:
        size -= 1
        signal, value = np.int64(work.decided[size]) >> 1, np.int64(work.decided[size]) & 1
        if work.signal_state[signal] == decided:
            continue
        work.signal_state[signal] = decided
        place = work.now[RESULTS]
        last = np.int64(arrays.signal_outputs[signal + 1])
        for at in range(np.int64(arrays.signal_outputs[signal]), last):
            work.results[place] = 2 * arrays.outputs[at] + value
            place += 1
        # only units count here; a gate counted when its first part was decided
        if arrays.gate_parts[signal] >> 1 == 1:
            touched += place - work.now[RESULTS]
        work.now[RESULTS] = place
        last = np.int64(arrays.signal_gates[signal + 1])
        for at in range(np.int64(arrays.signal_gates[signal]), last):
            gate = np.int64(arrays.gates[at])
            state = work.signal_state[gate]
            if state == decided:
                continue
            parts = np.int64(arrays.gate_parts[gate])
            counted += 1
            if state < decided:
                state = decided + (parts >> 1)
                touched += 1
            state -= 1
            if value == parts & 1 or state == decided:
                work.decided[size] = 2 * gate + value
                size += 1
                state = decided + 1  # the gate stays open until it is taken from the stack
            work.signal_state[gate] = state
    counts.counts[TOUCHED] += touched
    counts.counts[COUNTED] += counted


@kernel
def take_matches(work, dead, found, count):  # type: ignore[no-untyped-def]
    """Append the slots of filters that match and are not dead to `found`, which already has `count`
    slots; return the new number."""
    for at in range(work.now[RESULTS]):
        slot = np.int64(work.results[at]) >> 1
        if work.results[at] & 1 and not dead[slot]:
            found[count] = slot
            count += 1
    return count
