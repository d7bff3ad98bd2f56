"""Kernels that visit every node of a piece: they look up codes, and number marks.

Known nodes are in a hash table with open addressing: `keys` has node numbers, and 0 in a free
place; `codes` has the code of each node, and -1 for a node that was forgotten.

Shapes (Q places, a power of two; n notifications with k nodes in total; c codes): keys, codes int64
[Q]; starts int64 [n + 1]; nodes int64 [k]; found int64 [k]. Codes count from 0.
"""

from __future__ import annotations

from typing import Any

from tidings.matching.jit import find_place, kernel


@kernel
def put_all(nodes: Any, new: Any, keys: Any, codes: Any) -> None:
    """Set the codes of nodes; `new` int64 [k] has the codes. Forgotten nodes keep their places."""
    for at in range(len(nodes)):
        place = find_place(nodes[at], keys)
        keys[place] = nodes[at]
        codes[place] = new[at]


@kernel
def look_up(nodes: Any, keys: Any, codes: Any, found: Any) -> Any:
    """Set `found` to the code of each node, -1 if it is unknown; return how many are unknown.
    For the arrays, see the top of the module."""
    unknown = 0
    for at in range(len(nodes)):
        place = find_place(nodes[at], keys)
        found[at] = codes[place] if keys[place] != 0 else -1
        unknown += found[at] < 0
    return unknown


@kernel
def find_odd(starts: Any, nodes: Any, codes: Any, plain: Any, most: int, odd: Any) -> Any:
    """Find the notifications that must be resolved one by one: those with a node that is not plain,
    with nodes that are not ascending, or with more than `most` nodes. Sets `odd` uint8 [n]; returns
    how many notifications are odd.

    codes int64 [k]; plain uint8 [c].
    """
    many = 0
    for row in range(len(starts) - 1):
        first, end = starts[row], starts[row + 1]
        is_odd = end - first > most
        for at in range(first, end):
            if not plain[codes[at]] or (at > first and nodes[at] <= nodes[at - 1]):
                is_odd = True
                break
        odd[row] = is_odd
        many += is_odd
    return many


@kernel
def count_above(codes: Any, above_starts: Any) -> Any:
    """The sum, over all given codes, of the number of nodes at or above the code.

    codes int64 [k]; above_starts int64 [c + 1].
    """
    total = 0
    for at in range(len(codes)):
        total += above_starts[codes[at] + 1] - above_starts[codes[at]]
    return total


@kernel
def list_matched(
    starts: Any, codes: Any, above_starts: Any, above: Any, numbers: Any, seen: Any, stamp: int,
    times: Any, matched_starts: Any, matched: Any, used: Any,
) -> Any:  # fmt: skip
    """List the nodes that each notification matches, the lowest and all above them, and count how
    many notifications match each node. Returns the length of the list, and how many nodes in it are
    distinct.

    codes int64 [k]; above_starts int64 [c + 1], above int64: the codes at and above each code;
    numbers int64 [c]: the numbers of the nodes; seen int64 [c], below `stamp` everywhere; times
    int64 [c], 0 everywhere. Sets matched_starts int64 [n + 1], matched int64, used int64 (the
    distinct codes) and times. `count_above` returns a sufficient size of matched and used.
    """
    done = 0
    distinct = 0
    for row in range(len(starts) - 1):
        matched_starts[row] = done
        for at in range(starts[row], starts[row + 1]):
            for one in range(above_starts[codes[at]], above_starts[codes[at] + 1]):
                code = above[one]
                if seen[code] != stamp + row:
                    seen[code] = stamp + row
                    matched[done] = numbers[code]
                    done += 1
                    if times[code] == 0:
                        used[distinct] = code
                        distinct += 1
                    times[code] += 1
    matched_starts[len(starts) - 1] = done
    return done, distinct


@kernel
def keep_lowest(
    starts: Any, nodes: Any, codes: Any, above_starts: Any, above: Any, seen: Any, stamp: int,
    kept_starts: Any, kept: Any,
) -> Any:  # fmt: skip
    """Keep the lowest nodes of each notification, in ascending order. Returns how many nodes were
    kept.

    codes int64 [k]; above_starts int64 [c + 1], above int64: each code, and the codes of its
    parents after it; seen int64 [c], below `stamp` everywhere. Sets kept_starts int64 [n + 1] and
    kept int64 [k].
    """
    done = 0
    for row in range(len(starts) - 1):
        kept_starts[row] = first = done
        for at in range(starts[row], starts[row + 1]):
            for one in range(above_starts[codes[at]] + 1, above_starts[codes[at] + 1]):
                seen[above[one]] = stamp + row
        for at in range(starts[row], starts[row + 1]):
            if seen[codes[at]] != stamp + row:
                place = done
                while place > first and kept[place - 1] > nodes[at]:
                    kept[place] = kept[place - 1]
                    place -= 1
                kept[place] = nodes[at]
                done += 1
    kept_starts[len(starts) - 1] = done
    return done


@kernel
def list_distinct(codes: Any, local: Any, which: Any, used: Any) -> Any:
    """List the distinct codes, in the order of first occurrence; returns how many there are.

    codes int64 [k]; local int64 [c], -1 everywhere before and after the call. Sets `which` int64
    [k], the position of each code among the distinct codes, and `used` int64 [k], the distinct
    codes.
    """
    many = 0
    for at in range(len(codes)):
        if local[codes[at]] < 0:
            local[codes[at]] = many
            used[many] = codes[at]
            many += 1
        which[at] = local[codes[at]]
    for at in range(many):
        local[used[at]] = -1
    return many


@kernel
def number_marks(starts: Any, which: Any, last: Any, numbers: Any, rows: Any) -> None:
    """Number the marks: each mark gets the next number of its node.

    `which` int64 [k]: positions among d distinct nodes; `last` int64 [d]: the last number of each
    node, which is updated. Sets `numbers` int64 [k], and `rows` int64 [d]: the position of the last
    notification of each node.
    """
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            last[which[at]] += 1
            numbers[at] = last[which[at]]
            rows[which[at]] = row
