"""Reduce the nodes that match an event to the lowest ones; or list the members of matching nodes.

Shapes, for n events, m matches and N nodes:

    starts int64 [n + 1], places int64 [m]    the matches, event by event
    parent_starts int64 [N + 1], parents uint32    node p has parents[parent_starts[p] : ...[p + 1]]
    member_starts int64 [N + 1]               the members of a node, likewise
    alive uint8 [N]                           whether a node has subscriptions
    out_starts int64 [n + 1]                  output; the caller sets out_starts[0] to 0
"""

from __future__ import annotations

import numpy as np

from tidings.matching.jit.kernel_compiler import kernel


@kernel
def keep_lowest(starts, places, parent_starts, parents, alive, covered, out_starts, out):  # type: ignore[no-untyped-def]
    """Keep the living matches that cover no other living match of their event; return how many.

    Every node between two matches matches too. So it is enough to drop the parents of every living
    match; where a parent is dead, its own parents are dropped too, and so on. Cost: one step for
    each edge between two matches. `covered`, int64 [N], is working memory and filled with negative
    values; `out` is int64 [m].
    """
    count = 0
    stack = np.empty(64, np.int64)
    for event in range(starts.shape[0] - 1):
        first, last = starts[event], starts[event + 1]
        for at in range(first, last):
            if alive[places[at]] == 0:
                continue
            stack[0] = places[at]
            depth = 1
            while depth > 0:
                depth -= 1
                place = stack[depth]
                for edge in range(parent_starts[place], parent_starts[place + 1]):
                    parent = parents[edge]
                    if covered[parent] == event:
                        continue
                    covered[parent] = event
                    if alive[parent] == 0:
                        if depth == stack.shape[0]:
                            stack = np.append(stack, np.empty_like(stack))
                        stack[depth] = parent
                        depth += 1
        for at in range(first, last):
            if alive[places[at]] != 0 and covered[places[at]] != event:
                out[count] = places[at]
                count += 1
        out_starts[event + 1] = count
    return count


@kernel
def sort_lists(starts, values):  # type: ignore[no-untyped-def]
    """Sort the values (int64 [m]) of each event in place.

    No other kernel may use one of Numba's sorts. Numba's sorts are closures. Two of them may call
    different functions and still have the same name, because the names contain a counter that
    starts again in every process. If two processes compile and cache two kernels, both kernels may
    get the same name, and a third process that loads both would run the sort of one in the other.
    """
    for event in range(starts.shape[0] - 1):
        values[starts[event] : starts[event + 1]].sort()


@kernel
def count_members(starts, places, member_starts, out_starts):  # type: ignore[no-untyped-def]
    """Write to `out_starts` how many members all matches have up to each event; the arrays are
    described at the top of the module."""
    count = 0
    for event in range(starts.shape[0] - 1):
        for at in range(starts[event], starts[event + 1]):
            count += member_starts[places[at] + 1] - member_starts[places[at]]
        out_starts[event + 1] = count


@kernel
def put_members(places, member_starts, out):  # type: ignore[no-untyped-def]
    """Write the numbers of the members of all matches to out (int64), which has room for the total
    that `count_members` computes."""
    count = 0
    for at in range(places.shape[0]):
        for member in range(member_starts[places[at]], member_starts[places[at] + 1]):
            out[count] = np.int64(member)
            count += 1


@kernel
def sink(child_starts, children, waiting, depths):  # type: ignore[no-untyped-def]
    """For each node, compute how many nodes the longest path down to it has; return how many edges
    were visited.

    A node is visited after all its parents, so each edge is visited once. Arrays:

        child_starts, children   int64 [N + 1], int64
        waiting                  int64 [N]: the number of parents of each node, overwritten
        depths                   int64 [N], output
    """
    ready = np.empty(depths.shape[0], np.int64)
    count = 0
    for node in range(depths.shape[0]):
        depths[node] = 1
        if waiting[node] == 0:
            ready[count] = node
            count += 1
    at, edges = 0, 0
    while at < count:
        node = ready[at]
        at += 1
        for edge in range(child_starts[node], child_starts[node + 1]):
            edges += 1
            child = children[edge]
            depths[child] = max(depths[child], depths[node] + 1)
            waiting[child] -= 1
            if waiting[child] == 0:
                ready[count] = child
                count += 1
    return edges
