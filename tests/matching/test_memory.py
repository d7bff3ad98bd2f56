"""Memory that is reused: two live arrays never share it, and little is kept."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidings.matching.jit.array_pool import LEAST, ArrayPool

MANY = LEAST  # bytes


def address(array: Any) -> int:
    return int(array.ctypes.data)


def test_memory_is_used_again_once_nobody_holds_it() -> None:
    shelf = ArrayPool()
    first = shelf.empty(MANY, np.uint8)
    place = address(first)
    del first
    assert shelf.nbytes >= MANY
    second = shelf.empty(MANY // 8, np.int64)
    assert address(second) == place
    assert shelf.nbytes == 0
    assert second.dtype == np.int64
    assert second.shape == (MANY // 8,)


@pytest.mark.parametrize(
    "look",
    [
        lambda array: array[3:9],
        lambda array: array.view(np.uint8)[5:],
        lambda array: array.reshape(2, -1).T[4],
        memoryview,
        pa.array,
        lambda array: pa.py_buffer(array).slice(8),
    ],
    ids=["slice", "view", "transposed", "memoryview", "arrow", "arrow buffer"],
)
def test_whatever_looks_into_memory_keeps_it(look: Callable[[Any], Any]) -> None:
    shelf = ArrayPool()
    array = shelf.empty(MANY // 8, np.int64)
    array[:] = 7
    seen = look(array)
    del array
    gc.collect()
    other = shelf.empty(MANY // 8, np.int64)
    other[:] = 9
    assert set(np.asarray(seen).ravel().tolist()) <= {7, 0}
    del seen
    gc.collect()
    assert shelf.nbytes >= MANY


def test_small_arrays_and_objects_are_plain() -> None:
    shelf = ArrayPool()
    assert shelf.empty(10, np.int64).flags.owndata
    assert shelf.empty(MANY, object).flags.owndata


def test_a_slightly_smaller_array_fits_where_a_larger_one_was_but_a_tiny_one_does_not() -> None:
    shelf = ArrayPool()
    place = address(shelf.empty(16 * MANY, np.uint8))
    small = shelf.empty(MANY, np.uint8)
    assert address(small) != place
    assert address(shelf.empty(15 * MANY, np.uint8)) == place


def test_at_most_so_much_is_kept_and_what_was_asked_for_longest_ago_goes_first() -> None:
    shelf = ArrayPool(most=10 * MANY)
    held = [shelf.empty(size * MANY, np.uint8) for size in (6, 4, 3)]
    held.clear()
    assert shelf.nbytes == 7 * MANY
    shelf.empty(11 * MANY, np.uint8)  # larger than all that may be kept
    assert shelf.nbytes == 7 * MANY


def test_threads_never_get_the_same_memory() -> None:
    shelf = ArrayPool(most=8 * MANY)
    wrong: list[int] = []

    def work(mark: int) -> None:
        rng = np.random.default_rng(mark)
        for _ in range(300):
            array = shelf.empty(int(rng.integers(MANY, 3 * MANY)), np.uint8)
            array[::4096] = mark
            if (array[::4096] != mark).any():
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert shelf.nbytes <= 8 * MANY
