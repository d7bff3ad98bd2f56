"""Take removed filters out of compiled diagrams.

Units that no filter needs any more lose their leaves, and groups are removed if only such units
wait in them. If an edge led from A to a removed group, and an edge led from there to C, A gets an
edge to C, unless another edge of A implies C. Classes, units and gates keep their numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.matching.diagrams.class_edges import MOST_EDGES
from tidings.matching.diagrams.diagram_arrays import (
    NO_UNIT,
    CompiledDiagrams,
    DiagramArrays,
    Members,
    pack_lists,
    queue_roots,
    starts_of,
)

Array = npt.NDArray[Any]


def remove_filters(
    compiled: CompiledDiagrams, slots: Array, most: int = MOST_EDGES
) -> CompiledDiagrams:
    """The diagrams without the filters of these slots; a class gets at most `most` edges."""
    arrays = compiled.arrays
    outputs = _Lists(arrays.signal_outputs, arrays.outputs)
    outputs = outputs.keep(~np.isin(outputs.items, slots))
    is_needed = _mark_needed(arrays, outputs)
    gates = _Lists(arrays.signal_gates, arrays.gates).keep(is_needed[arrays.gates])
    leaves = _Lists(arrays.class_leaves, arrays.leaves).keep(is_needed[arrays.leaves >> 1])
    members = _Lists(*compiled.members).keep(is_needed[compiled.members.units])
    stays = members.sizes > 0
    only = np.append(members.items, np.uint32(0))[members.starts[:-1]]
    owner = np.repeat(np.arange(len(arrays.class_groups) - 1), np.diff(arrays.class_groups))
    groups = np.bincount(owner[stays], minlength=len(arrays.class_groups) - 1)
    edges = _repair(arrays, stays, (groups > 0) | (leaves.sizes > 0), most)
    class_groups, group_test = starts_of(groups), arrays.group_test[stays]
    decided = compiled.decided[~np.isin(compiled.decided >> 1, slots)]
    return msgspec.structs.replace(
        compiled,
        arrays=arrays._replace(
            group_test=group_test,
            group_high=arrays.group_high[stays],
            group_low=arrays.group_low[stays],
            group_unit=np.where(members.sizes == 1, only, np.uint32(NO_UNIT))[stays],
            class_groups=class_groups,
            class_leaves=leaves.starts,
            leaves=leaves.items,
            class_edges=edges.starts,
            edges=edges.items,
            signal_gates=gates.starts,
            gates=gates.items,
            signal_outputs=outputs.starts,
            outputs=outputs.items,
            **queue_roots(group_test[: class_groups[1]], len(arrays.test_column)),
        ),
        members=Members(starts_of(members.sizes[stays]), members.items),
        decided=decided,
    )


class _Lists(NamedTuple):
    """Many lists: list i has items[starts[i] : starts[i + 1]]."""

    starts: Array
    items: Array

    @property
    def sizes(self) -> Array:
        return np.diff(self.starts.astype(np.int64))

    def keep(self, kept: Array) -> _Lists:
        """The same lists, with only the items that `kept` marks."""
        before = np.concatenate([[0], np.cumsum(kept)])
        return _Lists(before[self.starts].astype(np.uint32), self.items[kept])


def _mark_needed(arrays: DiagramArrays, outputs: _Lists) -> Array:
    """For each unit and gate, whether a filter depends on it: the filter is that unit or gate, or
    has it as a part."""
    is_needed = outputs.sizes > 0
    gates = _Lists(arrays.signal_gates, arrays.gates)
    part = np.repeat(np.arange(len(is_needed)), gates.sizes)
    before = -1
    while before != (before := int(is_needed.sum())):  # a gate may be a part of another gate
        is_needed[part[is_needed[gates.items]]] = True
    return is_needed


def _repair(arrays: DiagramArrays, stays: Array, is_alive: Array, most: int) -> _Lists:
    """The edges of all classes, with new numbers of groups; `stays` has an entry for each group,
    and `is_alive` for each class."""
    starts, packed = arrays.class_edges.tolist(), arrays.edges.tolist()
    old = [packed[first:last] for first, last in pairwise(starts)]

    def target(edge: int) -> int:
        """The class that an edge leads to, which depends on the outcome of the edge's group."""
        return int((arrays.group_high if edge & 1 else arrays.group_low)[edge >> 1])

    def bridge(owner: int) -> list[int]:
        """The edges of a class; an edge to a removed group is replaced by the edges that led away
        from that group."""
        found: dict[int, None] = {}
        passed: set[int] = set()
        stack = old[owner][::-1]
        while stack:
            edge = stack.pop()
            if stays[edge >> 1]:
                if target(edge) != owner:
                    found[edge] = None
            elif edge not in passed:
                passed.add(edge)
                stack += old[target(edge)][::-1]
        return sorted(found, key=lambda edge: int(arrays.group_test[edge >> 1]))

    lost = np.repeat(np.arange(len(old)), np.diff(starts))[~stays[arrays.edges >> 1]]
    changed = {owner: bridge(owner) for owner in np.unique(lost).tolist()}
    new = [changed.get(owner, own) for owner, own in enumerate(old)]
    for owner, own in changed.items():
        further = {edge for one in own for edge in new[target(one)]}
        old[owner] = [edge for edge in own if edge not in further][:most]
    # an edge of another class may now be implied by an edge that was added above
    for owner in _owners_above(arrays, changed) - changed.keys():
        further = {edge for one in old[owner] for edge in old[target(one)]}
        old[owner] = [edge for edge in old[owner] if edge not in further]
    number = np.cumsum(stays) - 1
    alive = (own if is_alive[owner] else [] for owner, own in enumerate(old))
    return _Lists(*pack_lists([2 * int(number[e >> 1]) + (e & 1) for e in own] for own in alive))


def _owners_above(arrays: DiagramArrays, classes: Collection[int]) -> set[int]:
    """The classes with an edge that leads to one of these classes."""
    group = arrays.edges >> 1
    targets = np.where(arrays.edges & 1, arrays.group_high[group], arrays.group_low[group])
    owner = np.repeat(np.arange(len(arrays.class_edges) - 1), np.diff(arrays.class_edges))
    return set(owner[np.isin(targets, list(classes))].tolist())
