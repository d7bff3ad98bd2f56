"""Which filters are set aside, so that no owner makes notifications expensive for all others.

    nodes of a notification, counted by owner      share
    a  ▇▇▇                                           │
    b  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇│▇▇▇▇▇▇  b loses its newest
    c  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇                            │

A node with several owners is charged to each of them. If one of these owners has too many nodes,
that owner loses the node, and the others keep it. So no client can harm an owner by asking for the
same filter. If all owners together have too many nodes, the owners with the most nodes lose nodes
first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from tidings.routing.root.ownership.claims import Claims


class ShareVerdict(msgspec.Struct):
    """What to do about the nodes of one notification."""

    aside: dict[int, tuple[str, str]] = {}  # nodes to set aside, with the owner and the reason
    less: dict[int, tuple[str, ...]] = {}  # nodes that stay, with their remaining owners
    doubts: list[int] = []  # nodes whose owners must be confirmed first


def judge(
    claims: Claims,
    nodes: tuple[int, ...],
    share: int,
    most: int,
    is_wanted: Callable[[int], bool],
    what: str,
) -> ShareVerdict:
    """Judge the nodes of a notification: no owner may have more than `share` of them, and all
    owners together may have at most `most`. Cost: almost nothing if the nodes fit into one
    share."""
    verdict = ShareVerdict({}, {}, [])
    if len(nodes) <= min(share, most):
        return verdict
    counts = claims.count(nodes)
    for owner, count in counts.most_common():
        if count <= share:
            break
        mine = [node for node in claims.of(owner, nodes) if node not in verdict.aside]
        # nodes that nobody wants can be removed without asking routers
        doubts = [node for node in mine if not claims.is_sure(node) and is_wanted(node)]
        if owner and len(mine) - len(doubts) > share:
            why = (
                f"{count:,} filters of {describe(owner)} {what} one notification, expected at most "
                f"{share:,}: the newest were set aside, including this one; drop other filters "
                "first"
            )
            sure = [*{*mine} - {*doubts}]
            _shed(claims, verdict, owner, sure, share, is_wanted, why)
        # ask about all nodes at once; otherwise the first answers would expire before the last ones
        # come
        elif doubts:
            verdict.doubts += filter(is_wanted, mine)
    left = len(nodes) - len(verdict.aside)
    if left > most:
        _level(claims, verdict, nodes, most, is_wanted)
    return verdict


def lighten(claims: Claims, over: Mapping[int, str]) -> ShareVerdict:
    """Set aside filters that need more computing time than any of their owners has left. `over`
    maps each of these nodes to the one of its owners that had the most time left."""
    counts = Counter(over.values())
    verdict = ShareVerdict({}, {}, [])
    for node, owner in over.items():
        why = (
            f"the filters of {describe(owner)} take too long on one notification: "
            f"{counts[owner]:,} of them were set aside, including this one; use fewer filters, or "
            "filters that take less time"
        )
        verdict.aside[node] = owner, why
    return verdict


def describe(owner: str) -> str:
    """A name for an owner, for use in a message to that owner."""
    if not owner:
        return "unknown owners"
    return "this token" if "*/" in owner else repr(owner.rpartition("/")[2])


def _shed(
    claims: Claims,
    verdict: ShareVerdict,
    owner: str,
    mine: list[int],
    most: int,
    is_wanted: Callable[[int], bool],
    why: str,
) -> None:
    """Take nodes from an owner until at most `most` of its nodes (`mine`) are left: first the nodes
    that nobody wants, then the newest ones."""
    mine.sort(key=lambda node: (is_wanted(node), -node))
    for node in mine[: len(mine) - most]:
        others = tuple(one for one in verdict.less.get(node, claims.owners(node)) if one != owner)
        if others:
            verdict.less[node] = others
        else:
            verdict.less.pop(node, None)
            verdict.aside[node] = owner, why


def _level(
    claims: Claims,
    verdict: ShareVerdict,
    nodes: Iterable[int],
    most: int,
    is_wanted: Callable[[int], bool],
) -> None:
    """Take nodes from the owners with the most nodes, until at most `most` nodes remain in total.
    In this calculation, a node is charged to only one of its owners: the one with the most nodes.
    When that owner loses the node, the node is charged to the next of its owners; when it has no
    owner left, it is set aside."""
    left = [node for node in nodes if node not in verdict.aside]
    while len(left) > most:
        owners = {node: verdict.less.get(node) or claims.owners(node) or ("",) for node in left}
        counts = Counter(owner for some in owners.values() for owner in some)
        mine: dict[str, list[int]] = {}
        for node in left:
            most_of_all = max(owners[node], key=lambda one: (counts[one], one))
            mine.setdefault(most_of_all, []).append(node)
        level = level_of(Counter({owner: len(some) for owner, some in mine.items()}), most)
        for owner, some in mine.items():
            if len(some) > level:
                why = (
                    f"one notification has more than {most:,} marks, and {len(some):,} of them are "
                    f"for filters of {describe(owner)}, more than for other owners: the newest "
                    "were set aside, including this one; drop other filters first"
                )
                _shed(claims, verdict, owner, some, level, is_wanted, why)
        left = [node for node in left if node not in verdict.aside]


def level_of(counts: Counter[str], most: int) -> int:
    """The largest limit per owner at which all owners together have at most `most` nodes."""
    left = len(counts)
    for count in sorted(counts.values()):
        if count * left > most:
            return most // left
        most -= count
        left -= 1
    return max(counts.values(), default=0)
