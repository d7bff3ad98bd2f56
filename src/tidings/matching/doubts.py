"""The coverings that hulls alone do not decide, and the filters that turn out to be equal.

A filter that is its hull, over plain attributes, covers whatever lies in that: it is *certain*.
The others, which have several boxes, computed terms or a tree, are asked about each filter in
their hull, box by box where that decides it (decider.py), else one by one. What they are found to
cover is a list of pairs.

Who covers whom has the wider hull on attributes, or the same. So filters that cover each other, and
whatever order there is beside that of the hulls, are among those of one hull; and among these a
certain one covers all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.covering import covers
from tidings.filters.form import Form
from tidings.matching.cover_join import CoverJoin, Found
from tidings.matching.cover_kernels import MAYBE, YES
from tidings.matching.decider import Decider
from tidings.matching.hulls import Boxes, Hulls

Array = npt.NDArray[Any]
BLOCK = 1 << 15
ROOM = 1 << 22


class Settled(msgspec.Struct, frozen=True):
    """What is left to say of n forms when hulls have said all they can."""

    above: Array  # int64: above[i] covers below[i], and above[i] is not certain
    below: Array
    first: Array  # int64 [n]: the first of those that are equal
    certain: Array  # uint8 [n]: itself, or what is equal to it
    rank: Array  # int64 [n]: among those of one hull, lower ranks cover higher ones
    candidates: int


def settle(forms: Sequence[Form], hulls: Hulls, boxes: Boxes, never: Array) -> Settled:
    """Ask whatever has to be asked, one by one."""
    certain = ((hulls.one_box != 0) & (hulls.computed == hulls.starts[1:])).astype(np.uint8)
    asked = (certain == 0) & ~never
    found: list[Array] = []
    seen = 0
    if asked.any():
        join = CoverJoin(hulls, asked)
        bare = asked & (hulls.computed == hulls.starts[:-1])
        looked = chain(_in_hulls(join), map(join.held_by, np.nonzero(bare)[0].tolist()))
        decide = Decider(boxes).decide
        found = [_confirmed(forms, one, decide(one)) for one in looked]
        seen = join.seen
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *found])
    pairs = pairs[~never[pairs[:, 1]]]
    sizes = np.stack(hulls.sizes())
    alike = (sizes[:, pairs[:, 0]] == sizes[:, pairs[:, 1]]).all(axis=0)
    first, rank = np.arange(len(forms)), np.zeros(len(forms), np.int64)
    for place, group in enumerate(_groups(pairs[alike].tolist(), certain)):
        rank[group] = -place
        first[group] = min(group)
        certain[min(group)] = certain[group].any()
    above, below = first[pairs[:, 0]], first[pairs[:, 1]]
    real = above != below
    return Settled(above[real], below[real], first, certain, rank, seen)


def _in_hulls(join: CoverJoin) -> Iterator[Found]:
    """What lies in the hulls of those that test attributes."""
    count = len(join.hulls)
    blocks = [(at, min(at + BLOCK, count)) for at in range(0, count, BLOCK)]
    while blocks:
        first, last = blocks.pop()
        found = join.pairs(first, last, ROOM, False)
        if found is not None:
            yield found
            continue
        middle = (first + last) // 2
        blocks += [(first, middle), (middle, last)]


def _confirmed(forms: Sequence[Form], found: Found, answers: Array) -> Array:
    """The pairs that are coverings, one row each: where boxes leave it open, forms are asked."""
    kept = answers == YES
    for at in np.nonzero(answers == MAYBE)[0].tolist():
        kept[at] = covers(forms[found.above[at]], forms[found.below[at]])
    return np.stack([found.above[kept], found.below[kept]], axis=1).astype(np.int64)


def _groups(pairs: Iterable[tuple[int, int]], certain: Array) -> Iterator[list[int]]:
    """The forms of these pairs, all within one hull, in groups that are equal; a group comes after
    all that it covers. (Tarjan's strongly connected components, without recursion.)"""
    below: dict[int, list[int]] = {}
    above: dict[int, list[int]] = {}
    for one, other in pairs:
        below.setdefault(one, []).append(other)
        below.setdefault(other, [])
        above.setdefault(other, []).append(one)
    for one in [number for number in above if certain[number]]:
        below[one] += _reach(one, above)
    index: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_: dict[int, None] = {}
    for root, under in below.items():
        if root in index:
            continue
        work = [(root, iter(under))]
        index[root] = lowest[root] = len(index)
        open_[root] = None
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in index:
                    index[child] = lowest[child] = len(index)
                    open_[child] = None
                    work.append((child, iter(below[child])))
                    break
                if child in open_:
                    lowest[node] = min(lowest[node], index[child])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == index[node]:
                    group: list[int] = []
                    while not group or group[-1] != node:
                        group.append(open_.popitem()[0])
                    yield group


def _reach(one: int, above: dict[int, list[int]]) -> list[int]:
    """All that lead to this one: they have its hull, so that it covers them if it is certain."""
    seen = {one}
    stack = [one]
    while stack:
        for other in above.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return sorted(seen - {one})
