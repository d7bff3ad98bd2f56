"""Channels without traffic. While a channel sleeps, a router keeps only what is needed to recreate
the same state machine: the lives of the rendezvous point, and the nodes with their parents, totals
and neighbours. The data of a sleeping channel takes about a twentieth of the memory of a state
machine.

The state machine is recreated from messages that it got before: the lineage, the subscriptions of
each neighbour, the graph and the last beat. The cache of notifications is not kept: a neighbour
that still misses a notification gets it from a node further up.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.routing.forwarding.neighbours import Name
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.transitions import NodeState
from tidings.routing.protocol import messages as m

MOST_NODES = 1000  # channels with more nodes than this do not sleep


class Asleep(msgspec.Struct, frozen=True):
    """The data of a channel's state machine that is kept while the channel sleeps."""

    lives: tuple[m.Life, ...]
    seen: int  # the highest serial that was seen
    nodes: tuple[tuple[int, int, m.Label], ...]  # number, total, parents; parents come first
    wanted: tuple[tuple[Name, tuple[int, ...]], ...]  # by neighbour


def may_sleep(router: Router) -> bool:
    """Is a state machine settled, and its data small enough to keep? If filters limit the rights of
    a neighbour, the channel stays awake, because the granted nodes are not kept."""
    lives = router.standing.lineage.lives
    return (
        bool(lives)
        and lives[-1].life == router.epoch
        and len(router.held) <= MOST_NODES
        and not router.questions.open
        and not router.sums.counted
        and not router.sums.lagging
        and not router.sums.is_behind
        and all(one.state is NodeState.ACTIVE for one in router.held.values())
        and not any(
            one.unknown or one.left_out or one.granted for one in router.neighbours.values()
        )
    )


def put_to_sleep(router: Router) -> Asleep:
    """The data of a state machine that is kept while its channel sleeps."""
    graph = router.graph
    nodes = tuple(
        [(node, router.total(node), graph.parents(node)) for node in graph.in_order([*router.held])]
    )
    wanted = tuple([(name, tuple(one.nodes)) for name, one in router.neighbours.items()])
    return Asleep(router.standing.lineage.lives, router.standing.serial, nodes, wanted)


def wake(
    asleep: Asleep, router: Router, beat: m.Message | None, done: Iterable[tuple[Name, m.Message]],
    now: float,
) -> None:  # fmt: skip
    """Give a new state machine the state that the channel had before it slept. `beat` is the last
    beat from above, and `done` has the last Resubscribe of each neighbour. The messages that the
    state machine returns are dropped, because all neighbours know their content."""
    life = asleep.lives[-1].life
    up = router.upstream
    (trace,) = [one for _, one in router.join_upstream(now) if isinstance(one, m.Trace)]
    router.receive(up, m.Lineage(life, trace.request, asleep.lives), now)
    for name, nodes in asleep.wanted:
        router.receive(name, m.Subscribe(life, nodes), now)
    parents = {node: above for node, _, above in asleep.nodes}
    totals = {node: total for node, total, _ in asleep.nodes}
    router.receive(up, m.Graph(life, asleep.seen, parents, totals, asleep.seen), now)
    if beat is not None:
        router.receive(up, beat, now)
    for name, message in done:
        router.receive(name, message, now)
    router.locating.lacked = 0  # the places of these nodes are known
