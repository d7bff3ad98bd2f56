"""Kernels that add up the counters of nodes in a hash table.

Shapes (Q places, a power of two; n nodes): keys int64 [Q]: node numbers, 0 for a free place; table
int64 [Q, len(Counted)]: the counters of each key; nodes int64 [n], distinct.
"""

from __future__ import annotations

from typing import Any

from tidings.matching.jit import find_place, kernel
from tidings.store.journal.upkeep.counter_columns import Counted


@kernel
def add_times(nodes: Any, times: Any, keys: Any, table: Any) -> Any:
    """Add the number of notifications that matched each node: times int64 [n]. Returns how many
    nodes are new."""
    new = 0
    for at in range(len(nodes)):
        place = find_place(nodes[at], keys)
        new += keys[place] == 0
        keys[place] = nodes[at]
        table[place, Counted.TIMES] += times[at]
    return new


@kernel
def set_last(nodes: Any, numbers: Any, rows: Any, first: int, keys: Any, table: Any) -> Any:
    """Set the last number of each node, and the serial of that number: numbers int64 [n]; rows
    int64 [n]: the serial is `first` plus the row. Returns how many nodes are new."""
    new = 0
    for at in range(len(nodes)):
        place = find_place(nodes[at], keys)
        new += keys[place] == 0
        keys[place] = nodes[at]
        table[place, Counted.NUMBER] = numbers[at]
        table[place, Counted.SERIAL] = first + rows[at]
    return new


@kernel
def clear(node: int, keys: Any, table: Any) -> None:
    """Set the counters of a node to 0, if it is in the table. For the arrays, see the top
    of the module."""
    place = find_place(node, keys)
    if keys[place] == node:
        table[place] = 0


@kernel
def move(keys: Any, table: Any, new_keys: Any, new_table: Any) -> None:
    """Copy all nodes to an empty table, which has the arrays new_keys and new_table."""
    for at in range(len(keys)):
        if keys[at] != 0:
            place = find_place(keys[at], new_keys)
            new_keys[place] = keys[at]
            new_table[place] = table[at]
