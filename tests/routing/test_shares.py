"""No owner exceeds its share of a notification, and none loses a filter because of another."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from tests.routing.world import POINTS, Disk, Sets, encode

from tidings.routing.forwarding.neighbours import name_owner_behind
from tidings.routing.forwarding.router import Router
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import Limits, work_of
from tidings.routing.protocol.times import Times
from tidings.routing.root.nodes.set_aside import MOST_NAMED
from tidings.routing.root.ownership.claims import MOST_OWNERS, REMEMBERED, Claims
from tidings.routing.root.ownership.shares import judge, level_of
from tidings.routing.root.records import Record
from tidings.routing.root.rendezvous import Rendezvous

Points = frozenset[int]


class Owners:
    """Agents with filters at a root, and what they know of them."""

    def __init__(self, **limits: int) -> None:
        self.disk = Disk()
        self.life = 0
        self.limits = Limits(**limits)
        self.now = 0.0
        self.request = self.stamp = 0
        self.nodes: dict[str, dict[Points, int]] = {}  # of each owner
        self.lost: list[tuple[str, Points]] = []  # refused, after they were there
        self.refusals: dict[tuple[str, Points], str] = {}
        self.restart()

    def restart(self) -> None:
        self.disk.synced = len(self.disk.log)
        self.life += 1
        self.disk.begin_life(self.life)
        self.root = Rendezvous("root", Sets(self.disk), self.disk, self.disk.memory(),
                               Times(), limits=self.limits)  # fmt: skip
        self.root.context.owner_of = str
        for name, nodes in self.nodes.items():
            if nodes:
                self.hear(
                    self.root.receive(name, m.Wanted(self.life, tuple(sorted(nodes.values()))), 0.0)
                )

    def hear(self, sent: list[tuple[object, m.Message]]) -> None:
        for to, message in sent:
            if isinstance(message, m.Refuse):
                mine = self.nodes[str(to)]
                for points in [one for one, node in mine.items() if node in message.nodes]:
                    del mine[points]
                    self.lost.append((str(to), points))

    def ask(self, owner: str, points: Points, pretended: str = "") -> m.Answer:
        self.request += 1
        self.refusals.pop((owner, points), None)
        sent = self.root.receive(owner, m.Ask(self.request, encode(points), pretended), self.now)
        sent += self.root.mark_stored(self.root.written, self.now)
        (answer,) = [one for to, one in sent if to == owner and isinstance(one, m.Answer)]
        if answer.refusal:
            self.refusals[owner, points] = answer.refusal
        else:
            self.nodes.setdefault(owner, {})[points] = answer.node
            self.hear(self.root.receive(owner, m.Subscribe(self.life, (answer.node,)), self.now))
        return answer

    def drop(self, owner: str, points: Points) -> None:
        node = self.nodes[owner].pop(points)
        if node not in self.nodes[owner].values():
            self.hear(self.root.receive(owner, m.Unsubscribe(self.life, (node,)), self.now))

    def publish(self, point: int) -> Record:
        self.stamp += 1
        publish = m.Publish("p", self.stamp, self.stamp, bytes([point]), b"")
        sent = self.root.receive("p", publish, self.now)
        sent += self.root.mark_stored(self.root.written, self.now)
        self.hear(sent)
        (said,) = [one for _, one in sent if isinstance(one, m.Published)]
        assert not said.refusal, "a publication is never refused because of filters"
        record = self.disk.log[-1][1]
        assert isinstance(record, Record)
        return record

    def wait(self, seconds: float) -> None:
        """Time passes, and everybody is heard of."""
        until = self.now + seconds
        while self.now < until:
            self.now += 0.5
            for name in self.nodes:
                if name in self.root.neighbours:
                    self.root.neighbours[name].heard = self.now
            self.hear(self.root.tick(self.now))
            self.hear(self.root.mark_stored(self.root.written, self.now))


def flat(number: int) -> Points:
    """Sets with the point 0, none of which is in another."""
    pairs = [(a, b) for a in range(1, POINTS) for b in range(a + 1, POINTS)]
    return frozenset((0, *pairs[number]))


def test_the_newest_filters_beyond_a_share_are_set_aside() -> None:
    one = Owners(marks=3)
    for number in range(10):
        one.ask("hostile", flat(number))
    one.ask("honest", flat(11))
    marks = {mark.node for mark in one.publish(0).marks}
    assert marks == {*one.nodes["hostile"].values(), *one.nodes["honest"].values()}
    assert [*one.nodes["hostile"]] == [flat(0), flat(1), flat(2)]  # the oldest stay
    assert [who for who, _ in one.lost] == ["hostile"] * 7
    refusal = one.ask("hostile", flat(5)).refusal
    assert refusal == (
        "10 filters of 'hostile' give marks to one notification, expected at most 3: the newest "
        "were set aside, including this one; drop other filters first"
    )
    assert one.root.beyond["marks"] == 8
    assert not one.ask("hostile", frozenset({7})).refusal  # which matches something else


def test_there_is_room_again_when_others_were_dropped() -> None:
    one = Owners(marks=3)
    for number in range(5):
        one.ask("a", flat(number))
    one.publish(0)
    assert one.ask("a", flat(4)).refusal
    one.drop("a", flat(0))
    assert not one.ask("a", flat(4)).refusal
    assert one.ask("a", flat(3)).refusal  # one was dropped, one came
    marks = {mark.node for mark in one.publish(0).marks}
    assert {flat(1), flat(2), flat(4)} == {*one.nodes["a"]}
    assert marks == {*one.nodes["a"].values()}  # what nobody wants went first


def test_a_filter_of_two_stays_for_the_one_that_has_room() -> None:
    one = Owners(marks=3)
    shared = [flat(number) for number in range(3)]
    for points in shared:
        one.ask("honest", points)
    for points in (*map(flat, range(3, 8)), *shared):
        one.ask("hostile", points)
    for _ in range(3):
        one.publish(0)
        one.wait(30)
    assert {*one.nodes["honest"]} == {*shared}
    assert not [who for who, _ in one.lost if who == "honest"]
    marks = {mark.node for mark in one.publish(0).marks}
    assert len(marks) <= 6
    own = marks - {*one.nodes["honest"].values()}
    assert len(own) <= 3


def test_nobody_pays_for_what_only_others_want() -> None:
    """Whoever keeps alive what another has dropped does not fill the share of that one."""
    one = Owners(marks=3)
    for number in range(9):
        answer = one.ask("honest", flat(number))
        one.nodes.setdefault("hostile", {})[flat(number)] = answer.node  # without asking
        one.root.receive("hostile", m.Subscribe(one.life, (answer.node,)), one.now)
        if number >= 2:
            one.drop("honest", flat(number - 2))
        one.wait(50)
        one.publish(0)
        one.wait(5)
        one.publish(0)
        assert not [who for who, _ in one.lost if who == "honest"]
    assert {*one.nodes["honest"]} == {flat(7), flat(8)}
    one.wait(50)
    one.publish(0)
    one.wait(5)
    assert len(one.publish(0).marks) <= 3 + 3  # a share of each


def test_what_only_a_router_still_wants_counts_for_somebody_behind_it() -> None:
    """It was nobody's, and of what is nobody's nothing is set aside."""
    one = Owners(marks=3)
    one.root.context.owner_of = lambda name: "" if name == "edge" else str(name)
    for number in range(8):
        answer = one.ask(f"guest{number}", flat(number))
        one.nodes.setdefault("edge", {})[flat(number)] = answer.node  # without asking
        one.root.receive("edge", m.Subscribe(one.life, (answer.node,)), one.now)
        one.drop(f"guest{number}", flat(number))
    assert {*one.root.claims.holdings} == {"edge/?"}
    one.publish(0)
    assert len(one.nodes["edge"]) == 8  # it is being asked
    one.wait(5)
    one.publish(0)
    assert [*one.nodes["edge"]] == [flat(0), flat(1), flat(2)]


def test_nobody_but_a_router_names_another_owner() -> None:
    one = Owners(marks=3)
    for number in range(8):
        one.ask("hostile", flat(number), pretended=f"other{number}")
    one.publish(0)
    assert len(one.nodes["hostile"]) == 3
    one.root.receive("hostile", m.Whose(1, "honest", tuple(one.nodes["hostile"].values())), 0.0)
    assert one.root.ignored == 1
    one.root.context.owner_of = lambda _: ""  # all are routers
    for number in range(8, 16):
        one.ask("router", flat(number), pretended=f"other{number}")
    one.publish(0)
    assert len(one.nodes["router"]) == 8


def test_a_router_that_does_not_say_whose_nodes_are_gets_no_more_of_them() -> None:
    """Nodes of which nobody said whose they are were counted for nobody, and stayed."""
    one = Owners(marks=3)
    one.root.context.owner_of = lambda _: ""  # all are routers
    for number in range(8):
        one.ask("router", flat(number), pretended="hostile")
    one.wait(50)  # so long that it must be asked
    one.publish(0)
    assert len(one.nodes["router"]) == 8
    one.wait(5)
    one.publish(0)
    assert [*one.nodes["router"]] == [flat(0), flat(1), flat(2)]


def test_routers_pass_on_whose_a_question_is() -> None:
    router = Router("r", "up")
    router.context.owner_of = lambda name: {"agent": "desk", "below": ""}[str(name)]
    router.receive("up", m.Which(1), 0.0)
    asked = [*router.receive("agent", m.Ask(1, b"x", "forged"), 0.0),
             *router.receive("below", m.Ask(1, b"x", "named below"), 0.0)]  # fmt: skip
    assert [message.owner for _, message in asked if isinstance(message, m.Ask)] == [
        "desk", "below/named below",
    ]  # fmt: skip
    for name in ("agent", "below"):
        router.receive(name, m.Subscribe(1, (5, 6)), 0.0)
    sent = router.receive("up", m.Who(1, (6, 7)), 0.0)
    assert sorted(sent, key=str) == [("below", m.Who(1, (6,))), ("up", m.Whose(1, "desk", (6,)))]
    assert router.receive("below", m.Whose(1, "far", (6,)), 0.0) == [
        ("up", m.Whose(1, "below/far", (6,)))
    ]
    assert router.receive("agent", m.Whose(1, "far", (6,)), 0.0) == []


def test_a_router_that_speaks_for_an_owner_elsewhere_takes_none_of_its_share() -> None:
    """It asked for all that matches in the name of another, who could have nothing new then."""
    one = Owners(marks=3)
    one.root.context.owner_of = lambda _: ""  # all are routers
    for number in range(8):
        one.ask("evil", flat(number), pretended="honest")
    one.publish(0)
    for number in range(10, 13):
        one.ask("edge", flat(number), pretended="honest")
    one.publish(0)
    assert len(one.nodes["edge"]) == 3
    assert len(one.nodes["evil"]) == 3
    assert {*one.root.claims.holdings} == {"edge/honest", "evil/honest"}


def test_owners_of_long_names_are_told_apart() -> None:
    names = {name_owner_behind("r" * 200, "o" * 200 + letter) for letter in "abc"}
    assert len(names) == 3
    assert max(map(len, names)) <= m.LONGEST_NAME


def test_nothing_is_given_to_a_journal_that_could_not_be_written() -> None:
    """The next machine began with it, and acknowledged what was not on the disk from then on."""
    one = Owners(marks=3)
    for owner in ("a", "b"):
        one.ask(owner, flat(1))
        one.ask(owner, flat(2))
    one.root.fail("the disk is full")
    before = one.root.written, len(one.disk.log)
    one.drop("a", flat(1))
    one.root.drop("b")  # who was silent for too long
    one.root.tick(one.now + 100)
    assert (one.root.written, len(one.disk.log)) == before


def test_a_machine_goes_on_from_what_its_journal_was_given() -> None:
    disk = Disk()
    disk.begin_life(1)
    memory = disk.memory()
    memory.written = 5  # by another, and not on the disk
    root = Rendezvous("root", Sets(disk), disk, memory)
    root.receive("p", m.Publish("p", 1, 1, bytes([0]), b""), 0.0)
    assert root.mark_stored(5, 0.0) == []
    assert [type(one) for _, one in root.mark_stored(6, 0.0)] == [m.Published]


def test_owners_are_there_after_a_restart() -> None:
    one = Owners(marks=3)
    for number in range(8):
        one.ask("hostile", flat(number))
        one.ask("honest", flat(number % 2))
    one.restart()
    assert one.root.claims.holding("hostile").nodes == 8
    assert one.root.claims.holding("honest").nodes == 2
    one.publish(0)
    one.wait(5)  # it was asked whose they are
    one.publish(0)
    assert len({*one.nodes["hostile"]} - {flat(0), flat(1)}) <= 3
    assert {*one.nodes["honest"]} == {flat(0), flat(1)}


def test_all_together_have_no_more_marks_than_fit() -> None:
    one = Owners(marks=10, all_marks=12)
    for number in range(8):
        one.ask("large", flat(number))
    for number in range(8, 15):
        one.ask(f"small{number}", flat(number))
    marks = one.publish(0).marks
    assert len(marks) == 12
    assert [*one.nodes["large"]] == [flat(number) for number in range(5)]
    assert "one notification has more than 12 marks" in one.ask("large", flat(7)).refusal


def test_filters_that_match_and_are_no_marks_have_a_share_too() -> None:
    one = Owners(marks=3, matches=5)
    one.ask("a", frozenset({0}))
    for number in range(10):
        one.ask("a", flat(number))
    record = one.publish(0)
    assert len(record.marks) == 1
    assert len(record.matched) == 5
    assert one.ask("a", flat(9)).refusal.startswith("11 filters of 'a' match one notification")


@pytest.mark.parametrize("old", ["silent", "restarted"])
def test_old_filters_that_match_have_a_share_too(old: str) -> None:
    """It was never asked whose those were that are no marks, so they were beyond it for good."""
    one = Owners(marks=3, matches=5)
    one.ask("a", frozenset({0}))
    for number in range(10):
        one.ask("a", flat(number))
    one.ask("b", flat(20))
    if old == "restarted":
        one.restart()
    one.wait(50)
    one.publish(0)
    one.wait(5)  # it was asked whose they are
    record = one.publish(0)
    assert len(record.marks) == 1
    assert len(record.matched) == 5 + 1
    assert flat(20) in one.nodes["b"]


def test_bytes_of_filters_of_an_owner() -> None:
    size = work_of(bytes(3))
    one = Owners(filters_bytes=4 * size)
    for number in range(4):
        assert not one.ask("a", flat(number)).refusal
    assert one.ask("a", flat(4)).refusal == (
        "found 20 bytes of filters for 'a', including this one, expected at most 16 (bytes beyond "
        "the first 1,024 of a filter count eightfold); drop other filters first"
    )
    assert not one.ask("a", flat(3)).refusal  # which it has
    assert not one.ask("b", flat(3)).refusal
    one.drop("a", flat(0))
    one.wait(60)
    assert not one.ask("a", flat(4)).refusal
    one.restart()
    assert one.root.claims.holding("a").size == 4 * size


def test_filters_of_an_owner_are_counted() -> None:
    one = Owners(nodes=2)
    assert not one.ask("a", flat(1)).refusal
    assert not one.ask("a", flat(2)).refusal
    refusal = one.ask("a", flat(3)).refusal
    assert "found 2 filters for 'a' besides this one, expected fewer than 2" in refusal


def test_a_million_filters_that_seldom_match_are_allowed() -> None:
    """By the limits as they are: what it takes to hold them is another matter."""
    limits, claims = Limits(), Claims()
    size = work_of(b"account = 1234567 AND kind IN ('transfer', 'payment') AND amount > 12500.00")
    for node in range(1, 1_000_001):
        claims.measure(node, size)
        claims.add(node, "bank")
    held = claims.holding("bank")
    assert held.nodes <= limits.nodes
    assert held.size <= limits.filters_bytes
    matching = tuple(range(1, limits.marks + 1))
    assert not judge(claims, matching, limits.marks, limits.all_marks, bool, "x").aside


@pytest.mark.parametrize("matches", [1 << 20, 4])
def test_random_owners(seed: int, matches: int) -> None:
    chance = random.Random(seed)
    share = 3
    one = Owners(marks=share, matches=matches, all_marks=1000)
    names = ["a", "b", "c", "d"]
    for _ in range(400):
        what = chance.random()
        owner = chance.choice(names)
        mine = one.nodes.get(owner, {})
        if what < 0.5:
            greedy = owner in "ab"  # the others have few, of which few match the same
            points = frozenset(chance.sample(range(POINTS), chance.randrange(1, 6)))
            if greedy or sum(not points.isdisjoint(other) for other in mine) < share:
                one.ask(owner, points)
        elif what < 0.6 and mine:
            one.drop(owner, chance.choice([*mine]))
        elif what < 0.65:
            one.wait(chance.choice([1, 5, 60]))
        elif what < 0.67:
            one.restart()
        else:
            check_publication(one, chance.randrange(POINTS), share, matches)
        assert not [who for who, _ in one.lost if who in "cd"], "within its share, and lost one"


def most_of(one: Owners, nodes: Iterable[int]) -> int:
    """How many of some nodes one owner has."""
    counts = Counter(who for node in nodes for who in one.root.claims.owners(node))
    return max(counts.values(), default=0)


def check_publication(one: Owners, point: int, share: int, matches: int) -> None:
    record = one.publish(point)
    interests = one.root.interests
    assert isinstance(interests, Sets)
    there = {p: n for p, n in interests.numbers.items() if n not in interests.aside}
    matched = {p: n for p, n in there.items() if point in p}
    lowest = {n for p, n in matched.items() if not any(other < p for other in matched)}
    assert {mark.node for mark in record.marks} == lowest  # exactly those of what is left
    assert {*record.matched} == {*matched.values()}
    assert most_of(one, filter(one.root.claims.is_sure, lowest)) <= share
    for _ in range(20):  # it is asked whose they are, and then of those above what went
        marked = most_of(one, [mark.node for mark in record.marks])
        matched_most = most_of(one, record.matched)
        if marked <= share and matched_most <= matches:
            break
        one.wait(4)
        record = one.publish(point)
    assert marked <= share
    assert matched_most <= matches
    there = {p: n for p, n in interests.numbers.items() if n not in interests.aside}
    for name, nodes in one.nodes.items():  # what they were not refused is there
        assert {*nodes.values()} <= {*there.values()}, name


def test_those_who_have_too_many_take_no_filter_from_a_ninth() -> None:
    """So many asked for the filter of another after more than a share that they alone were known
    to have it, and it went with their share."""
    one = Owners(marks=3)
    others = [f"hostile{number}" for number in range(MOST_OWNERS)]
    victim = flat(10)
    for name in others:
        for number in range(4):
            one.ask(name, flat(number))
        one.ask(name, victim)
    one.ask("honest", victim)
    for _ in range(3):
        one.publish(0)
        one.wait(30)
    assert {*one.nodes["honest"]} == {victim}
    assert not [who for who, _ in one.lost if who == "honest"]


def test_who_has_few_is_remembered_as_an_owner() -> None:
    claims = Claims()
    for node in range(10):
        for number in range(MOST_OWNERS):
            claims.add(node, f"a{number}")
    assert claims.add(5, "z")
    assert "z" in claims.owners(5)
    assert len(claims.owners(5)) == MOST_OWNERS
    names = [f"a{number}" for number in range(MOST_OWNERS)]
    claims.replace(7, [*names, "x", "y"])
    assert {"x", "y"} < {*claims.owners(7)}
    assert len(claims.owners(7)) == MOST_OWNERS


def test_where_all_have_too_many_a_shared_filter_stays_for_who_has_few() -> None:
    one = Owners(marks=10, all_marks=8)
    for number in range(6):
        one.ask("a", flat(number))
    victim = flat(9)
    one.ask("a", victim)  # newer than all others that it has
    one.ask("honest", victim)
    for number in range(10, 18):
        one.ask("b", flat(number))
    assert len(one.publish(0).marks) <= 8
    assert {*one.nodes["honest"]} == {victim}
    assert not [who for who, _ in one.lost if who == "honest"]


def test_levelled_verdicts(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        claims, names = Claims(), [f"o{number}" for number in range(6)]
        nodes = tuple(range(1, chance.randrange(2, 60)))
        for node in nodes:
            for name in chance.sample(names, chance.choice((0, 1, 1, 1, 2, 5))):
                claims.add(node, name)
        most = chance.randrange(1, 40)
        verdict = judge(claims, nodes, 1000, most, bool, "x")
        assert len(nodes) - len(verdict.aside) <= most or len(nodes) <= most
        assert not verdict.aside.keys() & verdict.less.keys()
        fair = most // (len(names) + 1)
        for name in names:
            mine = claims.of(name, nodes)
            if len(mine) <= fair:  # others' filters are no reason for it to lose one
                assert not verdict.aside.keys() & {*mine}
                assert all(name in verdict.less.get(node, (name,)) for node in mine)


def test_a_router_says_nothing_of_what_others_want() -> None:
    """It named owners of nodes that it does not want, as many as it liked, at no cost."""
    one = Owners(marks=3)
    one.root.context.owner_of = lambda name: "" if name == "evil" else str(name)
    for number in range(5):
        one.ask("honest", flat(number))
    one.ask("evil", flat(9), pretended="x")
    one.wait(50)
    one.publish(0)  # so that it is asked whose they are
    mine, theirs = one.nodes["evil"][flat(9)], [*one.nodes["honest"].values()]
    asked = {*one.root.set_aside.doubted}
    assert {*theirs} <= asked
    before = one.root.neighbours["evil"].own.spent
    for number in range(1000):
        one.root.receive("evil", m.Whose(1, f"x{number}", (*theirs, mine)), one.now)
    assert one.root.neighbours["evil"].own.spent > before + 1000
    assert all(one.root.set_aside.doubted[node] == {"honest"} for node in theirs)
    assert sum(map(len, one.root.set_aside.doubted.values())) <= len(theirs) + MOST_NAMED
    one.root.neighbours["evil"].own.spent = 10.0 * one.root.limits.burst
    one.root.receive("evil", m.Whose(1, "late", (mine,)), one.now)
    assert one.root.beyond["work"] == 1


def test_levels(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        counts = Counter({str(n): chance.randrange(1, 20) for n in range(chance.randrange(1, 8))})
        most = chance.randrange(1, 60)
        level = level_of(counts, most)
        assert sum(min(count, level) for count in counts.values()) <= most
        more = sum(min(count, level + 1) for count in counts.values())
        assert more > most or level >= max(counts.values())


def test_so_many_owners_of_a_node_are_remembered() -> None:
    claims = Claims()
    added = [claims.add(1, f"o{number}") for number in range(20)]
    assert added[:MOST_OWNERS] == [True] * MOST_OWNERS
    assert len(claims.owners(1)) == MOST_OWNERS
    claims.remove(1)
    assert not claims.holdings


def test_what_was_set_aside_is_remembered_when_its_owner_has_nothing_left() -> None:
    claims = Claims()
    claims.pass_time(0.0, 1, 1.0)
    claims.add(1, "o")
    claims.set_aside("o", b"key", "too much")
    claims.remove(1)
    claims.pass_time(REMEMBERED, 1, 1.0)
    assert claims.refusal_for("o", b"key") == "too much"
    assert claims.refusal_for("o", b"another") == ""
    claims.pass_time(REMEMBERED + 1, 1, 1.0)
    assert claims.refusal_for("o", b"key") == ""
    assert not claims.holdings


def test_who_dropped_one_may_ask_again_for_one() -> None:
    claims = Claims()
    for node in range(3):
        claims.add(node, "o")
        claims.set_aside("o", b"%d" % node, "too much")
    claims.make_room(2)
    for node in range(3):
        claims.remove(node)
    assert [claims.refusal_for("o", b"%d" % node) for node in range(3)] == ["", *["too much"] * 2]
