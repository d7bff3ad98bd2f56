"""The hot loops over a graph that grows. Its edges are compiled; places that changed since then
have patches.

    places     0 ... N-1 | N ... N+D-1
    nodes      compiled  | added since
    parents    of a place without a patch: compiled; otherwise those of its patch, in a pool that
               only grows

Each place has a *mark*, and each search has a number of its own, its *stamp*. A place is marked if
its mark equals the current stamp, so marks need not be cleared between searches.

`edges` is `Edges`. `places`, `children`, `parents` and `below` are arrays of places of any length,
uint32 or int64. `marks`, `over`, `up`, `down` and `covered` are int64, with one element for each
place. Stamps, counts and single places are integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.matching.jit.kernel_compiler import kernel

Array = npt.NDArray[Any]


class Edges(NamedTuple):
    """The parents of all places. The arrays of patches may have unused room at the end."""

    starts: Array  # int64 [N + 1]: where the compiled parents of a place begin
    parents: Array  # uint32
    patch: Array  # int32 by place: the number of the patch of the place, or -1
    first: Array  # int64 by patch: where the parents of the place begin in the pool
    last: Array  # int64 by patch
    pool: Array  # uint32


@kernel
def span_of(edges, place):  # type: ignore[no-untyped-def]
    """Where the parents of a place are, as (whether the place has a patch, first, last)."""
    patch = edges.patch[place]
    if patch >= 0:
        return True, edges.first[patch], edges.last[patch]
    return False, edges.starts[place], edges.starts[place + 1]


@kernel
def mark_above(edges, marks, stamp, queue, count):  # type: ignore[no-untyped-def]
    """Mark all places above the places in a queue. At first, the queue has `count` places, which
    are already marked; newly marked places are appended. `queue` is uint32, with room for all
    places. Returns the end of the queue."""
    at = 0
    while at < count:
        is_patched, first, last = span_of(edges, np.int64(queue[at]))
        at += 1
        for edge in range(first, last):
            parent = edges.pool[edge] if is_patched else edges.parents[edge]
            if marks[parent] != stamp:
                marks[parent] = stamp
                queue[count] = parent
                count += 1
    return count


@kernel
def climb(places, edges, marks, stamp, out):  # type: ignore[no-untyped-def]
    """Mark these places and all places above them. `out` (uint32, with room for all places)
    receives the newly marked places; returns how many they are."""
    count = 0
    for at in range(places.shape[0]):
        if marks[places[at]] != stamp:
            marks[places[at]] = stamp
            out[count] = places[at]
            count += 1
    return mark_above(edges, marks, stamp, out, count)


@kernel
def find_lowest(places, edges, over, stamp, out):  # type: ignore[no-untyped-def]
    """Of the given places, those that are not a parent of another given place; `over` has marks.
    The places are written to `out`, which has the dtype of `places`; returns their number."""
    for at in range(places.shape[0]):
        is_patched, first, last = span_of(edges, np.int64(places[at]))
        for edge in range(first, last):
            over[edges.pool[edge] if is_patched else edges.parents[edge]] = stamp
    count = 0
    for at in range(places.shape[0]):
        if over[places[at]] != stamp:
            out[count] = places[at]
            count += 1
    return count


@kernel
def find_changed(below, edges, up, up_stamp, down, down_stamp, changed, is_child):  # type: ignore[no-untyped-def]
    """Find the places below a new node whose parents change; return how many there are, and an
    upper bound for the total number of their parents.

    Places above the new node are marked in `up`, and places below it in `down`. A place becomes a
    child of the new node if none of its parents is below the new node. The parents of a place that
    are above the new node are removed. `changed` is uint32, `is_child` uint8.
    """
    count, total = 0, 0
    for at in range(below.shape[0]):
        is_patched, first, last = span_of(edges, np.int64(below[at]))
        highest, loses = True, False
        for edge in range(first, last):
            parent = edges.pool[edge] if is_patched else edges.parents[edge]
            if down[parent] == down_stamp:
                highest = False
            if up[parent] == up_stamp:
                loses = True
        if highest or loses:
            changed[count] = below[at]
            is_child[count] = highest
            count += 1
            total += last - first + 1
    return count, total


@kernel
def rewrite(changed, is_child, node, edges, up, stamp, patches, filled):  # type: ignore[no-untyped-def]
    """Give the changed places their new parents: remove the parents that are marked in `up`, and
    add the new node to the places that are its children. The new patches have numbers from
    `patches` on, and the pool is filled from `filled` on; returns the new end of the filled part.
    `changed` and `is_child` come from `find_changed`."""
    for at in range(changed.shape[0]):
        is_patched, first, last = span_of(edges, np.int64(changed[at]))
        number = patches + at
        edges.first[number] = filled
        for edge in range(first, last):
            parent = edges.pool[edge] if is_patched else edges.parents[edge]
            if up[parent] != stamp:
                edges.pool[filled] = parent
                filled += 1
        if is_child[at] != 0:
            edges.pool[filled] = node
            filled += 1
        edges.last[number] = filled
        edges.patch[changed[at]] = number
    return filled


@kernel
def bridge(children, gone, parents, edges, marks, stamp, patches, filled, queue):  # type: ignore[no-untyped-def]
    """Remove a node. Each child of the node gets those parents of the node that it can't reach
    otherwise.

    The kernel uses one stamp for each child, from `stamp` on. `patches`, `filled` and the result
    are as in `rewrite`; `queue` is uint32, with room for all places.
    """
    for at in range(children.shape[0]):
        is_patched, first, last = span_of(edges, np.int64(children[at]))
        number, mark = patches + at, stamp + at
        edges.first[number] = filled
        count = 0
        for edge in range(first, last):
            parent = edges.pool[edge] if is_patched else edges.parents[edge]
            if parent != gone:
                edges.pool[filled] = parent
                filled += 1
                if marks[parent] != mark:
                    marks[parent] = mark
                    queue[count] = parent
                    count += 1
        mark_above(edges, marks, mark, queue, count)
        for i in range(parents.shape[0]):
            if marks[parents[i]] != mark:
                edges.pool[filled] = parents[i]
                filled += 1
        edges.last[number] = filled
        edges.patch[children[at]] = number
    return filled


@kernel
def keep_lowest(starts, places, edges, alive, covered, stamp, out_starts, out):  # type: ignore[no-untyped-def]
    """Keep the living matches that cover no other living match of their event; return their number.

    `starts` (int64 [n + 1]) and `places` (int64) contain the matches, event by event. If two nodes
    match, every node between them matches too. So it is enough to drop the parents of every living
    match; where a parent is not alive (uint8 by place), its own parents are dropped too, and so on.
    Event i writes the stamp `stamp + i` to `covered`. `out_starts` is int64 [n + 1], `out` int64.
    """
    count = 0
    stack = np.empty(64, np.int64)
    for event in range(starts.shape[0] - 1):
        mark = stamp + event
        for at in range(starts[event], starts[event + 1]):
            if alive[places[at]] == 0:
                continue
            stack[0] = places[at]
            depth = 1
            while depth > 0:
                depth -= 1
                is_patched, first, last = span_of(edges, stack[depth])
                for edge in range(first, last):
                    parent = np.int64(edges.pool[edge] if is_patched else edges.parents[edge])
                    if covered[parent] == mark:
                        continue
                    covered[parent] = mark
                    if alive[parent] == 0:
                        if depth == stack.shape[0]:
                            stack = np.append(stack, np.empty_like(stack))
                        stack[depth] = parent
                        depth += 1
        for at in range(starts[event], starts[event + 1]):
            if alive[places[at]] != 0 and covered[places[at]] != mark:
                out[count] = places[at]
                count += 1
        out_starts[event + 1] = count
    return count


@kernel
def check_edges(above, below, edges, out):  # type: ignore[no-untyped-def]
    """Whether above[i] is a parent of below[i]; out uint8."""
    for at in range(above.shape[0]):
        is_patched, first, last = span_of(edges, np.int64(below[at]))
        found = False
        for edge in range(first, last):
            if (edges.pool[edge] if is_patched else edges.parents[edge]) == above[at]:
                found = True
        out[at] = found
