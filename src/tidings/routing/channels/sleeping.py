"""Channels without traffic. While a channel sleeps, a router keeps only what is needed to recreate
the same state machine: the lives of the rendezvous point, and the nodes with their parents, totals
and neighbours. That is about a twentieth of a state machine.

The state machine is created again from the same messages that it got before: the lineage, what each
neighbour subscribed to, the graph, the last beat. The cache of notifications is not kept: a
neighbour that still misses one gets it from further up.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.routing.forwarding.neighbours import Name
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.transitions import NodeState
from tidings.routing.protocol import messages as m

MOST_NODES = 1000  # channels with more nodes do not sleep


class Asleep(msgspec.Struct, frozen=True):
    """The data of a channel's state machine that is kept while the channel sleeps."""

    lives: tuple[m.Life, ...]
    seen: int  # the highest serial that was seen
    nodes: tuple[tuple[int, int, m.Label], ...]  # with total and parents, parents first
    wanted: tuple[tuple[Name, tuple[int, ...]], ...]  # by neighbour


def may_sleep(router: Router) -> bool:
    """Is the state of a state machine settled, and small enough to keep? A neighbour whose rights
    are limited by filters keeps a channel awake, because its granted nodes are not kept."""
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
    """The data to keep of a state machine."""
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
    """Bring a new state machine to the state of one that slept. `beat` is the last beat from above,
    and `done` has the last Resubscribe of each neighbour. All neighbours know what the state
    machine would send, so it is not sent."""
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
