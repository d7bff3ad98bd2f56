"""Kernels that scan the fronts of frames. They return the same results as `frames.scan` and
`Forwarder._runs`, but faster.

Known labels are in a hash table with open addressing. Each place in the table has three numbers:
the offset of the labels in `arena`, their size in bytes (-1 for a free place), and the number of
their plan (-1 if the plan was dropped).

Shapes (the table has Q places, a power of two; there are n frames): data uint8, the bytes of frames
or of labels; table int64 [3, Q], whose rows are places, sizes and plans; arena uint8. Other
arguments are integers.

Constants from other modules are passed as arguments, because a cached kernel would keep their old
values: Numba only checks whether this file has changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit import short_kernel

DONE, UNKNOWN, SHORT = 0, 1, 2
NO_PLAN = -1
_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a


@short_kernel
def scan_frames(
    data: Any, first: int, version: int, largest: int, shortest: int, starts: Any
) -> Any:  # fmt: skip
    """Count the complete frames from the offset `first` on, until an early body, a reference, or a
    switch to another channel. Return how many there are, or -1 if a frame is invalid, and where
    they end.

    starts int64, with one element for each 6 bytes of data and one more; receives the offset of
    each frame.
    """
    at: Any = first
    count, size = 0, len(data)
    while at + 6 <= size:
        length = (
            np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16
            | np.int64(data[at + 3]) << 24
        )  # fmt: skip
        kind = data[at + 4]
        is_known = data[at + 5] == version and length <= largest
        if not is_known or kind < 1 or kind > 2 or length < 2:
            is_switch = kind == 3 and length == 6
            is_early = 4 <= kind <= 5 and shortest <= length + 4
            if is_known and (is_switch or is_early):
                break
            return -1, at
        if at + 4 + length > size:
            break
        starts[count] = at
        count += 1
        at += 4 + length
    return count, at


@short_kernel
def find_place(data: Any, first: int, size: int, places: Any, sizes: Any, arena: Any) -> Any:
    """The place of the labels data[first : first + size] in the table, or the free place where they
    belong. `places` and `sizes` (int64 [Q]) are rows of the table.
    """
    mixed = _OFFSET
    for at in range(first, first + size):
        mixed = (mixed ^ np.uint64(data[at])) * _PRIME
    mask = len(sizes) - 1
    place = np.int64(mixed & np.uint64(mask))
    while sizes[place] >= 0:
        if sizes[place] == size:
            begin, at = places[place], 0
            while at < size and arena[begin + at] == data[first + at]:
                at += 1
            if at == size:
                return place
        place = (place + 1) & mask
    return place


@short_kernel
def find_runs(
    data: Any, start: int, end: int, done: int, last: int, table: Any, arena: Any, firsts: Any,
    found: Any,
) -> Any:  # fmt: skip
    """From `start` on, find runs of frames with the same plan: their first frames and plans. `done`
    frames came before these; the plan of the last of them is `last`. Return how many runs there
    are, how many frames were processed, where the next frame begins, and why the scan ended there.

    `firsts` and `found` (int64 [n] or more) receive the first frames and the plans.
    """
    places, sizes, plans = table[0], table[1], table[2]
    at: Any = start
    runs = 0
    while at < end:
        length = (
            np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16
            | np.int64(data[at + 3]) << 24
        )  # fmt: skip
        if length < 36:
            return runs, done, at, 2
        marks = np.int64(data[at + 6]) | np.int64(data[at + 7]) << 8
        size = (
            np.int64(data[at + 8]) | np.int64(data[at + 9]) << 8 | np.int64(data[at + 10]) << 16
            | np.int64(data[at + 11]) << 24
        )  # fmt: skip
        first = at + 40 + 16 * marks
        if first + size > at + 4 + length:
            return runs, done, at, 2
        place = find_place(data, first, size, places, sizes, arena)
        if sizes[place] < 0 or plans[place] == NO_PLAN:
            return runs, done, at, 1
        if plans[place] != last:
            last = plans[place]
            firsts[runs] = done
            found[runs] = last
            runs += 1
        done += 1
        at += 4 + length
    return runs, done, at, 0
