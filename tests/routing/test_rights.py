"""Neighbours whose right to subscribe is limited by filters: what a router and a rendezvous point
grant them, and what they refuse."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest
from tests.repeats import rounds
from tests.routing.sent import to
from tests.routing.world import Disk, Sets, encode

from tidings.filters import parse
from tidings.routing.clients import Phase
from tidings.routing.clients.subscriber import Delivery, Lost, Subscriber
from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.downstream import Downstream
from tidings.routing.forwarding.neighbours import SIGNED, Name, Signed, rights
from tidings.routing.forwarding.router import Router
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.times import Times
from tidings.routing.root.rendezvous import Rendezvous

UP = "up"
HALF = (encode({0, 1, 2, 3}).hex(),)
LESS = (encode({0}).hex(),)
MORE = (encode({0, 1, 2, 3, 4}).hex(),)


class Door:
    """Who is limited to what; routers name the owners of questions."""

    def __init__(self, **limits: m.Within) -> None:
        self.limits = limits

    def guard(self, machine: Downstream) -> None:
        machine.context.within_of = self.within_of
        machine.context.owner_of = lambda name: "" if name == "router" else str(name)

    def within_of(self, name: Name) -> m.Within:
        return self.limits.get(str(name), ())


def a_root(door: Door) -> Rendezvous:
    disk = Disk()
    disk.begin_life(1)
    root = Rendezvous("root", Sets(disk), disk, disk.memory())
    door.guard(root)
    return root


def a_router(door: Door) -> Router:
    router = Router("r", UP, Times(), Cache(1000))
    door.guard(router)
    router.receive(UP, m.Which(1), 0.0)
    return router


def ask(root: Rendezvous, who: str, points: set[int], within: m.Within = ()) -> m.Answer:
    sent = root.receive(who, m.Ask(1, encode(points), within=within), 0.0)
    found = [*sent, *root.mark_stored(root.written, 0.0)]
    (answer,) = (one for one in to(found, who) if isinstance(one, m.Answer))
    return answer


def tell(root: Rendezvous, point: int, stamp: int) -> None:
    root.receive("writer", m.Publish("writer", stamp, 1, bytes([point]), b"%d" % point), 0.0)
    root.mark_stored(root.written, 0.0)


def test_only_what_the_limits_cover_is_placed() -> None:
    root = a_root(Door(eve=HALF))
    assert ask(root, "eve", {1, 4}).refusal == "found points outside"
    assert ask(root, "eve", {1, 2}).node
    assert ask(root, "other", {1, 4}).node
    assert root.beyond["outside"] == 1


def test_limits_of_a_router_and_of_its_clients_add_up() -> None:
    root = a_root(Door(router=HALF))
    assert ask(root, "router", {0}, LESS).node
    assert ask(root, "router", {1}, LESS).refusal
    assert ask(root, "router", {4}).refusal


def test_a_router_that_names_too_many_limits_gets_nothing() -> None:
    """With those of its token, there are more than a message may have."""
    router = a_router(Door(router=HALF))
    for many, expected in ((7, HALF + LESS * 7), (8, SIGNED)):
        sent = router.receive("router", m.Ask(many, encode({0}), within=LESS * many), 0.0)
        (passed,) = [one for _, one in sent if isinstance(one, m.Ask)]
        assert passed.within == expected
        assert frames.decode_from_below(frames.encode(passed)) == passed


def test_nobody_but_a_router_names_limits() -> None:
    root = a_root(Door(eve=HALF))
    assert ask(root, "eve", {1}, LESS).node  # what it says itself is ignored, and so
    assert ask(root, "eve", {4}, (encode({4}).hex(),)).refusal  # it can't widen its rights


def test_nodes_that_others_obtained_are_refused() -> None:
    root = a_root(Door(eve=HALF))
    theirs, mine = ask(root, "other", {1, 2, 3, 4}).node, ask(root, "eve", {1}).node
    sent = to(root.receive("eve", m.Subscribe(root.epoch, (theirs, mine)), 0.0), "eve")
    assert m.Refuse(root.epoch, (theirs,)) in sent
    assert root.neighbours["eve"].nodes == {mine}
    root.receive("eve", m.Wanted(root.epoch, (theirs, mine)), 0.0)
    assert root.neighbours["eve"].nodes == {mine}
    count = m.Count(root.epoch, 7, theirs)
    assert to(root.receive("eve", count, 0.0), "eve") == [m.Refuse(root.epoch, (theirs,))]
    (counted,) = to(root.receive("eve", m.Count(root.epoch, 8, mine), 0.0), "eve")
    assert isinstance(counted, m.Counted)


def test_only_notifications_within_the_limits_are_sent_again() -> None:
    """Also those marked with nodes of others below one's own, even when these are gone."""
    root = a_root(Door(eve=HALF))
    mine, inside = ask(root, "eve", {0, 1}).node, ask(root, "other", {1}).node
    outside, wide = ask(root, "other", {5}).node, ask(root, "other", {1, 2, 6}).node
    root.receive("eve", m.Subscribe(root.epoch, (mine,)), 0.0)
    for stamp, point in enumerate((0, 1, 5, 6), 1):
        tell(root, point, stamp)

    def recover(*nodes: int) -> list[bytes]:
        ranges = tuple(m.Range(node, 1, 1) for node in nodes)
        sent = to(root.receive("eve", m.Recover(root.epoch, 9, ranges), 0.0), "eve")
        found = [one for one in sent if isinstance(one, m.Recovered)]
        return [one.payload for answer in found for one in answer.notifications]

    assert sorted(recover(mine, inside, outside, wide)) == [b"0", b"1"]
    for node in (inside, outside, wide):
        root.nodes.makers.pop(node, None)
        root.nodes.unwanted[node] = float("-inf")
    root.tick(1e6)
    assert inside not in root.graph
    assert recover(inside, outside, wide) == [b"1"]


def test_a_router_grants_what_the_root_answered() -> None:
    door = Door(eve=HALF)
    router = a_router(door)
    (asked,) = to(router.receive("eve", m.Ask(5, b"x"), 0.0), UP)
    assert isinstance(asked, m.Ask)
    assert asked.within == HALF
    router.receive(UP, m.Answer(1, asked.request, 7), 0.0)
    assert to(router.receive("eve", m.Subscribe(1, (7,)), 0.0), UP) == [m.Subscribe(1, (7,))]
    sent = router.receive("eve", m.Subscribe(1, (8,)), 0.0)
    assert (to(sent, UP), to(sent, "eve")) == ([], [m.Refuse(1, (8,))])
    (passed,) = to(router.receive("eve", m.Recover(1, 6, (m.Range(8, 1, 1),)), 0.0), UP)
    assert isinstance(passed, m.Recover)
    assert passed.within == HALF


def test_other_rights_take_away_what_was_granted() -> None:
    door = Door(eve=HALF)
    router = a_router(door)
    (asked,) = to(router.receive("eve", m.Ask(5, b"x"), 0.0), UP)
    assert isinstance(asked, m.Ask)
    router.receive(UP, m.Answer(1, asked.request, 7), 0.0)
    router.receive("eve", m.Subscribe(1, (7,)), 0.0)
    assert router.renew_rights("eve", 0.0) == []
    door.limits["eve"] = LESS
    assert to(router.renew_rights("eve", 0.0), "eve") == [m.Refuse(1, (7,))]
    assert router.neighbours["eve"].nodes == set()
    del door.limits["eve"]
    assert router.renew_rights("eve", 0.0) == []


def test_a_grant_that_comes_after_the_rights_changed_is_void() -> None:
    door = Door(eve=HALF)
    router = a_router(door)
    (asked,) = to(router.receive("eve", m.Ask(5, b"x"), 0.0), UP)
    assert isinstance(asked, m.Ask)
    door.limits["eve"] = LESS
    router.receive(UP, m.Answer(1, asked.request, 7), 0.0)
    sent = router.receive("eve", m.Subscribe(1, (7,)), 0.0)
    assert to(sent, "eve") == [m.Refuse(1, (7,))]


def test_grants_are_bounded() -> None:
    door = Door(eve=HALF)
    router = a_router(door)
    router.context.limits = msgspec.structs.replace(router.limits, nodes=3)
    router.hear("eve")
    for node in range(1, 10):
        router.rights.grant("eve", node, HALF)
    assert [*router.neighbours["eve"].granted] == [7, 8, 9]


@pytest.mark.parametrize("within", [("a" * 5000,), ("a",) * 9])
def test_limits_on_the_wire_are_bounded(within: m.Within) -> None:
    encoded = msgspec.msgpack.encode(m.Ask(1, b"x", "o", within))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(encoded, type=m.Ask)


# -- signed grants -------------------------------------------------------------------------------


def a_grant(agent: str = "eve", within: m.Within = HALF, ends: float = 100.0) -> Signed:
    return Signed(b"key", agent, 1, within, ends)


def test_a_signed_grant_is_enough_until_it_ends() -> None:
    door = Door(eve=SIGNED, ann=HALF)
    router = a_router(door)
    assert router.present("eve", 7, a_grant(), 0.0) == ""
    assert to(router.receive("eve", m.Subscribe(1, (7,)), 1.0), UP) == [m.Subscribe(1, (7,))]
    assert to(router.receive("eve", m.Subscribe(1, (8,)), 1.0), "eve") == [m.Refuse(1, (8,))]
    (passed,) = to(router.receive("eve", m.Count(1, 3, 7), 1.0), UP)
    assert isinstance(passed, m.Count)
    assert router.revoke(99.0) == []
    sent = router.revoke(100.0)
    assert to(sent, "eve") == [m.Refuse(1, (7,))]
    assert router.neighbours["eve"].nodes == set()
    assert router.present("eve", 7, a_grant(ends=200.0), 101.0) == ""
    router.receive("eve", m.Subscribe(1, (7,)), 101.0)
    assert to(router.revoke(102.0, lambda one: one.key == b"key"), "eve") == [m.Refuse(1, (7,))]


def test_a_grant_of_another_life_agent_or_limit_is_void() -> None:
    door = Door(eve=SIGNED, ann=HALF)
    router = a_router(door)
    router.present("eve", 7, msgspec.structs.replace(a_grant(), life=2), 0.0)
    router.present("eve", 8, a_grant("ann"), 0.0)
    sent = router.receive("eve", m.Subscribe(1, (7, 8)), 1.0)
    assert to(sent, "eve") == [m.Refuse(1, (7, 8))]
    assert "which limits your right" in router.present("ann", 7, a_grant("ann", LESS), 0.0)
    assert router.present("ann", 7, a_grant("ann"), 0.0) == ""
    door.limits["ann"] = LESS  # the rights at the router changed: the grant does not prove this
    assert to(router.receive("ann", m.Subscribe(1, (7,)), 1.0), "ann") == [m.Refuse(1, (7,))]


def test_the_root_is_asked_within_the_filters_of_the_grants() -> None:
    router = a_router(Door(eve=SIGNED))
    ranges = (m.Range(9, 1, 1),)
    (asked,) = to(router.receive("eve", m.Recover(1, 1, ranges), 0.0), UP)
    assert isinstance(asked, m.Recover)
    assert asked.within == SIGNED  # which covers nothing
    router.present("eve", 7, a_grant(within=("a = 1", "b = 2")), 0.0)
    router.present("eve", 8, a_grant(within=("c = 3",)), 0.0)
    (asked,) = to(router.receive("eve", m.Recover(1, 2, ranges), 0.0), UP)
    assert isinstance(asked, m.Recover)
    (text,) = asked.within
    joined = parse(text)
    for inside in ("a = 1 AND b = 2 AND d = 4", "c = 3"):
        assert joined.covers(parse(inside))
    for outside in ("a = 1", "b = 2", "d = 4"):
        assert not joined.covers(parse(outside))


def test_signed_grants_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    router = a_router(Door(eve=SIGNED))
    long = a_grant(within=("x" * 2100,))
    assert router.present("eve", 1, long, 0.0) == ""
    other = a_grant(within=("y" * 2100,))
    assert "4,212 characters together, expected at most 4,096" in router.present(
        "eve", 2, other, 0.0
    )
    monkeypatch.setattr(rights, "MOST_SIGNED", 2)
    assert router.present("eve", 3, long, 0.0) == ""
    assert "found 3 grants of one agent" in router.present("eve", 4, long, 0.0)


def test_any_sequence_of_grants_and_times(seed: int) -> None:
    """Against a model: a node is wanted only while a grant for it holds."""
    chance = random.Random(seed)
    for _ in range(200):
        router = a_router(Door(eve=SIGNED))
        ends: dict[int, float] = {}
        now = 0.0
        for _ in range(40):
            now += chance.random() * 5
            node = chance.randrange(1, 5)
            if chance.random() < 0.4:
                ends[node] = now + chance.random() * 10
                router.present("eve", node, a_grant(ends=ends[node]), now)
            elif chance.random() < 0.5:
                sent = to(router.receive("eve", m.Subscribe(1, (node,)), now), "eve")
                is_refused = any(isinstance(one, m.Refuse) for one in sent)
                assert is_refused == (ends.get(node, 0.0) <= now)
            else:
                router.hear("eve")
                router.revoke(now)
                assert all(ends[one] > now for one in router.neighbours["eve"].nodes)


class Line:
    """A root, perhaps a router, an ordered subscriber whose rights change, and another subscriber
    with a narrower interest. Each link keeps the order; which link is next is drawn."""

    def __init__(self, chance: random.Random, *, with_router: bool, loses: bool) -> None:
        self.chance, self.loses, self.now = chance, loses, 0.0
        self.door = Door(eve=HALF)
        self.nodes: dict[str, Rendezvous | Router] = {"root": a_root(self.door)}
        self.edge = "root"
        if with_router:
            self.edge = "router"
            self.nodes["router"] = Router("router", "root", Times(), Cache(1000))
            self.door.guard(self.nodes["router"])
        times = Times()
        self.clients = {
            name: Subscriber(name, self.edge, encode(points), times, ordered=True)
            for name, points in (("eve", {0, 1}), ("other", {1}))
        }
        self.links: dict[tuple[str, str], list[m.Message]] = {}
        self.published: list[bytes] = []
        for one in self.clients.values():
            self.put(str(one.name), one.start(0.0))

    def put(self, sender: str, sent: Iterable[tuple[Name, m.Message]]) -> None:
        for to_, message in sent:
            lost = self.loses and isinstance(message, m.Refuse) and self.chance.random() < 0.7
            if not lost:
                self.links.setdefault((sender, str(to_)), []).append(message)

    def step(self) -> bool:
        """Deliver one message; False if there is none."""
        ready = [key for key, waiting in self.links.items() if waiting]
        if not ready:
            return False
        sender, to_ = self.chance.choice(ready)
        message = self.links[sender, to_].pop(0)
        if to_ in self.clients:
            self.put(to_, self.clients[to_].receive(message, self.now))
        elif to_ in self.nodes:
            self.put(to_, self.nodes[to_].receive(sender, message, self.now))
            self.store()
        return True

    def store(self) -> None:
        root = self.nodes["root"]
        assert isinstance(root, Rendezvous)
        self.put("root", root.mark_stored(root.written, self.now))

    def settle(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            while self.step():
                pass
            self.now += 0.5
            for name, one in (*self.nodes.items(), *self.clients.items()):
                self.put(name, one.tick(self.now))
            self.store()

    def publish(self) -> None:
        point, stamp = self.chance.randrange(2), len(self.published) + 1
        self.published.append(b"%d" % stamp)
        said = m.Publish("writer", stamp, 1, bytes([point]), self.published[-1])
        self.put("root", self.nodes["root"].receive("writer", said, self.now))
        self.store()

    def change_rights(self) -> None:
        """All these rights cover what eve wants, but what was granted under others is void."""
        self.door.limits["eve"] = self.chance.choice((HALF, MORE))
        self.put(self.edge, self.nodes[self.edge].renew_rights("eve", self.now))


@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize("with_router", [False, True])
def test_rights_that_are_renewed_lose_nothing(seed: int, with_router: bool, loses: bool) -> None:
    """While rights are taken away and given back, also if no word of it arrives, an ordered
    subscriber gets everything once and in order."""
    chance, refused = random.Random(f"{seed} {with_router} {loses}"), 0
    for _ in rounds(12, 200):
        line = Line(chance, with_router=with_router, loses=loses)
        line.settle(5)
        eve = line.clients["eve"]
        assert eve.phase is Phase.ON
        for _ in range(60):
            what = chance.choice((line.publish, line.publish, line.change_rights, line.step, None))
            if what is not None:
                what()
            elif chance.random() < 0.2:
                line.settle(chance.choice((0.5, 2)))
            while chance.random() < 0.7 and line.step():
                pass
        line.loses = False
        line.settle(40)
        refused += line.nodes[line.edge].beyond["not granted"]
        assert [one.payload for one in eve.inbox if isinstance(one, Delivery)] == line.published
        assert not [one for one in eve.inbox if isinstance(one, Lost)]
    assert refused
