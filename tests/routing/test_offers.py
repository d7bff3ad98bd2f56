"""Offers of links that bypass the tree: made where few are interested, and nowhere else."""

from __future__ import annotations

import random

from tests.repeats import draws
from tests.routing.world import POINTS, ROOT, World

from tidings.routing.clients.subscriber import Phase, Subscriber
from tidings.routing.forwarding import Router, Sent
from tidings.routing.protocol import frames, messages as m
from tidings.routing.root import name_direct


def below(world: World, name: str) -> set[str]:
    """A router or subscriber with everything beneath it."""
    found = {name}
    for one, above in world.parents.items():
        if above == name:
            found |= below(world, one)
    return found


def count_by_definition(world: World, router: str, agent: str, node: int) -> int:
    """On the way from a router to the root, the neighbours beside the way beneath which somebody
    wants the notifications of a node: who has the node, or one above it."""
    points = world.disk.nodes
    wanting = {
        name: str(one.router)
        for name, one in world.subscribers.items()
        if one.phase is Phase.ON and points[one.node] >= points[node] and name != agent
    }
    count, came, here = 0, "", router
    while True:
        routers = [one for one, above in world.parents.items() if above == here and one != came]
        under = [below(world, one) for one in routers]
        count += sum(any(at in one for at in wanting.values()) for one in under)
        count += sum(at == here for at in wanting.values())
        if here == ROOT:
            return count
        came, here = here, world.parents[here]


def apply_for(world: World, one: Subscriber, most: int) -> tuple[list[m.Offered], list[m.Apply]]:
    """What a subscriber is answered, and the questions for which a ticket was issued."""
    answers, given = list[m.Offered](), list[m.Apply]()

    def issue(message: m.Apply) -> tuple[str, str]:
        given.append(message)
        return "host:1", "ticket"

    def receive(message: m.Message, now: float) -> list[Sent]:
        if isinstance(message, m.Offered):
            answers.append(message)
        return before(message, now)

    world.root.offers.most, world.root.offers.issue = most, issue
    before, one.receive = one.receive, receive  # type: ignore[method-assign]
    apply = m.Apply(one.epoch, 7, str(one.name), (one.node,))
    world.send(one.name, [(one.router, apply)])
    world.run(2)
    one.receive = before  # type: ignore[method-assign]
    return answers, given


def test_who_is_offered_a_link(seed: int) -> None:
    offered = refused = 0
    for round_ in draws(15, lambda: offered > 10 and refused > 10):
        chance = random.Random(f"{seed} {round_} offers")
        world = World(chance, chance.randrange(1, 8))
        for number in range(chance.randrange(1, 10)):
            size = chance.randrange(1, POINTS)
            world.subscribe(f"s{number}", chance.sample(range(POINTS), size))
        world.run(60)
        for agent, one in world.subscribers.items():
            router, node = str(one.router), one.node
            if router == ROOT:
                continue
            others = count_by_definition(world, router, agent, node)
            for most in (0, others, others + 1):
                answers, given = apply_for(world, one, most)
                (answer,) = answers
                assert answer.request == 7
                is_offered = most > others
                assert bool(answer.address) is is_offered, (agent, most, others)
                assert [message.others for message in given] == [
                    # the root counts its own neighbours beside those of the routers
                    others - world.root.count_others({_first(world, router)}, (node,))
                ] * is_offered
                offered += is_offered
                refused += not is_offered
    assert offered > 10
    assert refused > 10


def _first(world: World, router: str) -> str:
    """The neighbour of the root on the way to a router."""
    while world.parents[router] != ROOT:
        router = world.parents[router]
    return router


def test_an_agent_that_counts_very_many_others() -> None:
    """A router adds to the count of an agent; the node above must be able to read the sum."""
    router = Router("r", "up")
    router.receive("up", m.Beat(1, 0, {}, m.Digest(), 0), 0.0)
    for name in ("a", "b"):
        router.receive(name, m.Subscribe(1, (5,)), 0.0)
    router.receive("up", m.Setup(1, 5, (), (), 0, 0), 0.0)
    assert router.count_others({"a"}, (5,)) == 1
    sent = router.receive("a", m.Apply(1, 7, "a", (5,), others=2**63 - 1), 0.0)
    (passed,) = [one for _, one in sent if isinstance(one, m.Apply)]
    assert frames.decode_from_below(frames.encode(passed)) == passed


def test_names_of_second_links() -> None:
    """Agents of the same name behind different routers have different links."""
    names = {
        name_direct(agent, owner) for agent in ("a", "b") for owner in ("r0/a", "r1/a", "r0/b")
    }
    assert len(names) == 6
