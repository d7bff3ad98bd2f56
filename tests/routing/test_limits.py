"""What neighbours can make a router keep or do is bounded; well-behaved neighbours are served."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from tests.routing.sent import to
from tests.routing.world import Disk, Sets

from tidings.network.frame_cache import FrameCache
from tidings.routing.forwarding.cache import Cache, cost_of
from tidings.routing.forwarding.neighbours.accounts import Accounts
from tidings.routing.forwarding.router import Router
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.limits import Limits, work_of
from tidings.routing.protocol.message_merging import merge_messages
from tidings.routing.protocol.times import Times
from tidings.routing.root.rendezvous import Rendezvous

UP = "up"


def a_router(**limits: int) -> Router:
    router = Router("r", UP, Times(), Cache(1000), limits=Limits(**limits))
    router.receive(UP, m.Which(1), 0.0)  # it is in an epoch
    return router


def a_root(**limits: int) -> Rendezvous:
    disk = Disk()
    disk.begin_life(1)
    return Rendezvous("root", Sets(disk), disk, disk.memory(), limits=Limits(**limits))


def stored(root: Rendezvous, now: float = 0.0) -> list[m.Message]:
    return [message for _, message in root.mark_stored(root.written, now)]


def told(router: Router, nodes: Iterable[int], now: float = 0.0) -> None:
    for node in nodes:
        router.receive(UP, m.Setup(1, node, (), (), 0, 0), now)


# -- nodes -----------------------------------------------------------------------------------------


def test_unknown_nodes_are_asked_for_in_one_message() -> None:
    router = a_router()
    nodes = tuple(range(1, 501))
    assert to(router.receive("a", m.Subscribe(1, nodes), 0.0), UP) == [m.Subscribe(1, nodes)]
    assert to(router.receive(UP, m.Refuse(1, nodes), 0.0), "a") == [m.Refuse(1, nodes)]
    assert (router.held, router.wants, router.neighbours["a"].unknown) == ({}, {}, set())


def test_a_neighbour_waits_for_so_many_unknown_nodes() -> None:
    router = a_router(unknown=10)
    (asked,) = to(router.receive("a", m.Subscribe(1, tuple(range(1, 101))), 0.0), UP)
    assert asked == m.Subscribe(1, tuple(range(1, 11)))
    assert router.beyond["unknown"] == 90
    assert len(router.held) == 10
    router.receive("b", m.Subscribe(1, (200,)), 0.0)  # another has its own
    assert 200 in router.held
    assert to(router.tick(0.1), "a") == []  # there is no room yet
    told(router, range(1, 11))
    assert to(router.tick(0.2), "a") == [m.Which(1)]  # now it is to say it again
    (more,) = to(router.receive("a", m.Wanted(1, tuple(range(1, 101))), 0.3), UP)
    assert more == m.Subscribe(1, tuple(range(11, 21)))


def test_all_wait_for_so_many_unknown_nodes() -> None:
    router = a_router(unknown=10, all_unknown=25)
    for name in "abcdef":
        first = 100 * ord(name)
        router.receive(name, m.Subscribe(1, tuple(range(first, first + 50))), 0.0)
        router.receive(name, m.Unsubscribe(1, tuple(range(first, first + 50))), 0.0)
    assert len(router.held) == 25  # those that leave are not forgotten yet
    router.receive(UP, m.Gone(1, tuple(router.held)), 0.0)
    router.receive("g", m.Subscribe(1, (5,)), 0.0)
    assert list(router.held) == [5]


def test_a_neighbour_wants_so_many_nodes() -> None:
    router = a_router(nodes=5)
    router.receive("a", m.Subscribe(1, (1, 2, 3)), 0.0)
    told(router, (1, 2, 3))
    router.receive("a", m.Wanted(1, tuple(range(1, 20))), 0.0)
    assert router.neighbours["a"].nodes == {1, 2, 3, 4, 5}
    assert router.beyond["nodes"] == 14
    router.receive("a", m.Wanted(1, (1, 2)), 0.0)
    assert router.neighbours["a"].nodes == {1, 2}


def test_a_rendezvous_point_keeps_nothing_of_unknown_nodes() -> None:
    root = a_root()
    nodes = tuple(range(1000, 3000))
    assert root.receive("a", m.Subscribe(1, nodes), 0.0) == [("a", m.Refuse(1, nodes))]
    assert root.receive("a", m.Wanted(1, nodes), 0.0) == [("a", m.Refuse(1, nodes))]
    assert (root.wants, root.neighbours["a"].nodes) == ({}, set())
    assert root.beyond["no such node"] == 4000


def test_what_is_wanted_is_said_in_slices_that_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """All even: of two slices one had all of them."""
    monkeypatch.setattr("tidings.routing.forwarding.router.WANTED", 50)
    router = a_router()
    nodes = range(0, 240 * 6, 6)
    router.receive("a", m.Subscribe(1, tuple(nodes)), 0.0)
    told(router, nodes)
    said = [one for one in to(router.receive(UP, m.Which(1), 0.0), UP) if isinstance(one, m.Wanted)]
    assert max(len(one.nodes) for one in said) <= 100
    assert sorted(node for one in said for node in one.nodes) == [*nodes]
    assert [one.slice for one in said] == [m.Slice(at, len(said)) for at in range(len(said))]


def test_new_nodes_that_nobody_wants() -> None:
    root = a_root(new_nodes=2, all_new_nodes=3)
    for at in range(4):
        root.receive("a", m.Ask(at, bytes([at])), 0.0)
    answers = [one for one in stored(root) if isinstance(one, m.Answer)]
    assert [one.request for one in answers] == [0, 1]
    assert root.beyond["new_nodes"] == 2
    root.receive("b", m.Ask(1, bytes([5])), 0.0)
    root.receive("c", m.Ask(1, bytes([6])), 0.0)
    assert len(root.graph) == 3
    root.receive("a", m.Subscribe(1, tuple(one.node for one in answers)), 0.0)  # there is room
    root.receive("a", m.Ask(9, bytes([7])), 0.0)
    assert len(root.graph) == 4
    root.tick(1000.0)  # nobody came for the rest
    root.tick(2000.0)
    assert len(root.nodes.makers) == 0
    assert len(root.graph) == 0


def asked(root: Rendezvous, sender: str, owner: str, which: int) -> bool:
    """Was a question of an owner answered with a node? There are 255 to ask for."""
    interest = bytes(point for point in range(8) if which >> point & 1)
    root.receive(sender, m.Ask(7, interest, owner), 0.0)
    return any(isinstance(one, m.Answer) and one.node for one in stored(root))


def test_one_owner_makes_no_others_wait_behind_the_same_router() -> None:
    """Who asks for filters and never subscribes had everybody behind its router ignored."""
    root = a_root(new_nodes=10, all_new_nodes=100)
    assert asked(root, "edge", "honest", 1)
    assert sum(asked(root, "edge", "mallory", 10 + number) for number in range(30)) == 10
    assert asked(root, "edge", "honest", 2)
    assert asked(root, "edge", "mallory", 1)  # which is there
    names = [f"m{number // 10}" for number in range(150)]
    many = sum(asked(root, "edge", who, 50 + at) for at, who in enumerate(names))
    assert 10 < many < 50  # one router has no more than half of them
    assert asked(root, "side", "honest", 255)


def test_guests_with_one_token_are_one_to_pay() -> None:
    root = a_root(new_nodes=20, all_new_nodes=60)
    root.context.owner_of = lambda name: "*/guests" if str(name).startswith("guest") else str(name)
    made = [asked(root, f"guest{number}", "", 100 + number) for number in range(100)]
    assert sum(made) == 20
    assert asked(root, "honest", "", 1)


def test_work_for_one_owner_is_not_charged_to_others_behind_its_router() -> None:
    root = a_root(burst=1000, work=1)
    root.receive("edge", m.Subscribe(1, (99,)), 0.0)
    answered = [asked(root, "edge", "mallory", 1 + number) for number in range(20)]
    assert answered[0]
    assert not answered[-1]
    assert asked(root, "edge", "honest", 50)
    assert to(root.receive("edge", m.Count(1, 5, 99), 0.0), "edge") == [m.Refuse(1, (99,))]
    answered = [asked(root, "evil", f"x{number}", 55 + number) for number in range(199)]
    assert answered[0]
    assert not answered[-1]  # owners that a router makes up have something in common
    assert root.neighbours["evil"].behind.spent < 17 * 1000
    assert asked(root, "edge", "honest", 255)


def test_questions_of_one_owner_are_not_those_of_others_behind_its_router() -> None:
    router = a_router(questions=3, all_questions=20)
    for number in range(10):
        router.receive("below", m.Ask(number, b"x", "mallory"), 0.0)
    assert len(router.questions.open) == 3
    assert to(router.receive("below", m.Ask(11, b"y", "honest"), 0.0), UP)
    assert to(router.receive("below", m.Count(1, 12, 7), 0.0), UP)
    for number in range(50):
        router.receive("below", m.Ask(number, b"x", f"m{number}"), 0.0)
    assert len(router.questions.open) <= 12
    assert to(router.receive("a", m.Count(1, 12, 7), 0.0), UP)


def test_accounts_are_forgotten_when_nothing_is_left_to_pay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidings.routing.forwarding.neighbours.accounts.MOST", 10)
    accounts = Accounts(Limits(work=10))
    for number in range(50):
        accounts.of(f"o{number}", 0.0).spent += 100
    assert len(accounts) == 11  # one for all that there is no room for
    assert accounts.of("o49", 0.0) is accounts.of("", 0.0)
    accounts.of("o1", 0.0).questions = 1
    accounts.close(1000.0)
    assert len(accounts) == 1
    assert accounts.of("o1", 1000.0).questions == 1


def test_filters_and_nodes_that_are_refused() -> None:
    root = a_root(filter_bytes=5, all_nodes=1)
    (answer,) = root.receive("a", m.Ask(1, b"x" * 6), 0.0)
    assert isinstance(answer[1], m.Answer)
    assert answer[1].refusal == "found a filter of 6 bytes, expected at most 5"
    root.receive("a", m.Ask(2, bytes([1])), 0.0)
    (answer,) = root.receive("a", m.Ask(3, bytes([2])), 0.0)
    assert isinstance(answer[1], m.Answer)
    assert answer[1].refusal == (
        "found 1 filters in the channel, expected fewer than 1; try again later"
    )


def test_nodes_of_a_life_before_that_nobody_wants() -> None:
    disk = Disk()
    disk.begin_life(1)
    disk.add_node(1, bytes([1]))
    root = Rendezvous("root", Sets(disk), disk, disk.memory())
    assert len(root.graph) == 1
    for now in (0.0, 10.0, 39.0):
        root.tick(now)
        assert len(root.graph) == 1
    root.tick(50.0)
    assert len(root.graph) == 0


# -- questions -------------------------------------------------------------------------------------


def test_questions_that_were_passed_on() -> None:
    router = a_router(questions=3, all_questions=5)
    for number in range(10):
        for name in ("a", "b"):
            router.receive(name, m.Count(1, number, 7), 0.0)
    assert len(router.questions.open) == 5
    assert router.beyond["questions"] == 15
    for number in list(router.questions.open):
        router.receive(UP, m.Counted(1, number, 7, 0, 0, {}), 0.0)
    assert to(router.receive("a", m.Count(1, 99, 7), 1.0), UP)
    router.tick(1000.0)  # nobody answers
    assert len(router.questions.open) == 0
    assert router.neighbours.get("a") is None  # nor said a word


def test_answers_that_were_had() -> None:
    """Whoever had much is not answered for a while; others are."""
    router = a_router(burst=100, work=10)
    router.receive("a", m.Subscribe(1, tuple(range(200))), 0.0)
    told(router, range(200))
    assert to(router.receive("a", m.Redraw(1), 1.0), "a") == []
    assert router.beyond["work"] == 1
    router.receive("b", m.Subscribe(1, (1,)), 1.0)
    (graph,) = to(router.receive("b", m.Redraw(1), 1.0), "b")
    assert isinstance(graph, m.Graph)
    (graph,) = to(router.receive("a", m.Redraw(1), 20.0), "a")
    assert isinstance(graph, m.Graph)
    assert len(graph.parents) == 200


def test_the_answers_that_pass_are_charged_to_whoever_asked() -> None:
    router = a_router(burst=100, work=10)
    ((_, asked),) = router.receive("a", m.Count(1, 1, 7), 0.0)
    assert isinstance(asked, m.Count)
    counts = dict.fromkeys(range(1000), 1)
    router.receive(UP, m.Counted(1, asked.request, 7, 0, 0, counts), 0.0)
    assert router.receive("a", m.Count(1, 2, 7), 1.0) == []
    assert router.receive("b", m.Count(1, 2, 7), 1.0) != []


def test_a_top_node_that_is_counted_again_and_again() -> None:
    root = a_root(burst=100, work=10)
    for at in range(8):
        root.receive("other", m.Ask(at, bytes([at])), 20.0 * at)
    root.receive("a", m.Ask(1, bytes(range(8))), 0.0)
    node = set(root.graph) - set(range(1, 9))
    stored(root)
    asked = [root.receive("a", m.Count(1, at, *node), 0.0) for at in range(100)]
    assert sum(bool(sent) for sent in asked) < 15
    assert root.beyond["work"] > 85


def test_whoever_does_not_read_is_not_answered() -> None:
    router = a_router(unread_bytes=1000)
    waiting = {"a": 2000, "b": 0}
    router.context.queued_bytes = lambda name: waiting[str(name)]
    for name in waiting:
        router.receive(name, m.Resubscribe(1, digest(())), 0.0)
        answered = router.receive(name, m.Redraw(1), 0.0)
        assert bool(answered) == (name == "b")
        answered = router.receive(name, m.Recover(1, 1, (m.Range(1, 1, 2),)), 0.0)
        assert bool(answered) == (name == "b")
        answered = router.receive(name, m.Redraw(7), 0.0)  # of an epoch that is not this
        assert bool(answered) == (name == "b")
    assert router.beyond["unread_bytes"] == 3


def test_long_filters_are_dear() -> None:
    assert work_of(b"price > 90") < 20
    assert work_of(b"x" * 65_536) > 400_000


# -- what was lost ---------------------------------------------------------------------------------


def notifications(count: int, size: int) -> list[m.Notification]:
    marks = [(m.Mark(1, number, (1,)),) for number in range(1, count + 1)]
    return [m.Notification(1, at, one, b"x" * size) for at, one in enumerate(marks, start=1)]


def test_an_answer_has_so_many_bytes() -> None:
    router = a_router(answer_bytes=10 * cost_of(100, 1))
    for one in notifications(50, 100):
        router.receive(UP, one, 0.0)
    sent = to(router.receive("a", m.Recover(1, 5, (m.Range(1, 1, 50),)), 0.0), "a")
    recovered = [one for one in sent if isinstance(one, m.Recovered)]
    assert [n.serial for one in recovered for n in one.notifications] == list(range(1, 11))
    assert sent[-1] == m.Settled(1, 5)  # nothing is lost: the rest is asked for again


def test_notifications_with_many_marks_are_dear() -> None:
    """One question gave as many as fit by their payloads, each with hundreds of marks."""
    for cache in (Cache(), FrameCache()):
        router = Router("r", UP, Times(), cache, limits=Limits(answer_bytes=20 * cost_of(9, 500)))
        router.receive(UP, m.Which(1), 0.0)
        for serial in range(1, 101):
            marks = tuple(m.Mark(node, serial, (node,)) for node in range(1, 501))
            one = m.Notification(1, serial, marks, b"x" * 9)
            cache.put_frames(frames.encode(one)) if isinstance(cache, FrameCache) else cache.put(
                one
            )
        sent = to(router.receive("a", m.Recover(1, 5, (m.Range(1, 1, 100),)), 0.0), "a")
        found = [n for one in sent if isinstance(one, m.Recovered) for n in one.notifications]
        assert len(found) == 20  # the rest is asked for again
        assert router.neighbours["a"].own.spent > 20 * 250


def test_large_payloads_are_in_messages_of_their_own() -> None:
    router = a_router(answer_bytes=8 << 20)
    for one in notifications(3, 3 << 20):
        router.receive(UP, one, 0.0)
    sent = to(router.receive("a", m.Recover(1, 5, (m.Range(1, 1, 2),)), 0.0), "a")
    assert [len(one.notifications) for one in sent if isinstance(one, m.Recovered)] == [1, 1]


def test_ranges_of_numbers_that_there_are_none_of() -> None:
    root = a_root(burst=1000)
    root.counts.counts[7] = 5000
    asked = [m.Range(7, 4500, 2**62), m.Range(8, 1, 2**62), m.Range(7, 0, 2**62)]
    # of a node that is not known, the journal may have something
    assert root.nodes.existing(asked) == [m.Range(7, 4500, 5000), m.Range(8, 1, 499)]
    # and the cache, which would be looked through in vain, has not
    assert root.split_ranges(asked) == ([m.Range(7, 4500, 5000)], [m.Range(8, 1, 499)])


def test_ranges_that_are_passed_on() -> None:
    router = a_router()
    router.cache.most = 1 << 60
    for number in range(1, 20_000, 2):
        router.cache.put(m.Notification(1, number, (m.Mark(1, number, (1,)),), b""))
    sent = to(router.receive("a", m.Recover(1, 5, (m.Range(1, 1, 20_000),)), 0.0), UP)
    assert isinstance(sent[0], m.Recover)
    assert 0 < len(sent[0].ranges) <= m.MOST_RANGES


# -- publishers ------------------------------------------------------------------------------------


def test_nobody_takes_the_acknowledgments_of_another() -> None:
    """One below the same router repeated an old publication, and had them all from then on."""
    router = a_router()
    for stamp in (1, 2):
        router.receive("edge", m.Publish("writer/1", stamp, 1, b"", b""), 0.0)
    for _ in range(10):
        router.receive("evil", m.Publish("writer/1", 1, 1, b"", b""), 0.0)
    said = m.Published(1, "writer/1", 2, since=1, serial=2)
    assert to(router.receive(UP, said, 0.0), "edge") == [said]
    for number in range(10):  # a publisher that moves about
        router.receive(f"edge{number}", m.Publish("writer/1", 3, 1, b"", b""), 0.0)
    sent = router.receive(UP, said, 0.0)
    assert ("edge9", said) in sent
    assert len(sent) == 4


def test_the_ways_back_to_publishers() -> None:
    router = a_router(publishers=10)
    for number in range(50):
        router.receive("bad", m.Publish(f"p{number}", 1, 1, b"", b""), 0.0)
        if number % 8 == 0:
            router.receive("good", m.Publish("ours", number, 1, b"", b""), 0.0)
    assert len(router.return_paths.known) == 10
    assert to(router.receive(UP, m.Published(1, "ours", 48), 0.0), "good")


def test_the_stamps_of_publishers() -> None:
    forgotten: list[str] = []

    class Kept(Disk):
        def forget_publishers(self, names: Iterable[str]) -> None:
            forgotten.extend(names)

    disk = Kept()
    disk.begin_life(1)
    root = Rendezvous("root", Sets(disk), disk, disk.memory(), limits=Limits(publishers=10))
    for number in range(50):
        root.receive("bad", m.Publish(f"p{number}", 1, 1, bytes([1]), b""), 0.0)
        root.receive("good", m.Publish("ours", number + 1, 1, bytes([1]), b""), 0.0)
    root.tick(1.0)
    assert len(root.publishers) == 10
    assert root.publishers["ours"] == 50
    assert forgotten == [f"p{number}" for number in range(41)]
    assert len(root.return_paths.known) == 10


def test_publications_that_wait_for_the_disk_are_counted() -> None:
    root = a_root()
    for stamp in range(1, 4):
        root.receive("a", m.Publish("p", stamp, 1, bytes([1]), b"x" * 99), 0.0)
    root.receive("a", m.Publish("p", 9, 1, bytes([1]), b"x" * 99), 0.0)  # one before it is missing
    assert root.unsynced_bytes == 300
    root.mark_stored(2, 0.0)
    assert root.unsynced_bytes == 100
    root.mark_stored(3, 0.0)
    assert root.unsynced_bytes == 0


def test_one_that_is_behind_does_not_fill_the_disk() -> None:
    root = a_root(kept=10)
    root.receive("a", m.Ask(1, bytes([1])), 0.0)
    stored(root)
    root.receive("a", m.Subscribe(1, (1,)), 0.0)  # and it never says that it needs nothing
    for stamp in range(1, 31):
        root.receive("p", m.Publish("p", stamp, 1, bytes([1]), b""), 0.0)
    stored(root)
    root.tick(1.0)
    disk = root.journal
    assert isinstance(disk, Disk)
    assert disk.kept == 20


# -- merging ---------------------------------------------------------------------------------------


def test_the_order_of_merged_messages() -> None:
    sent: list[tuple[object, m.Message]] = [
        ("a", m.Subscribe(1, (1,))), ("b", m.Subscribe(1, (9,))), ("a", m.Subscribe(1, (2,))),
        ("a", m.Unsubscribe(1, (1,))), ("a", m.Subscribe(1, (3,))), ("a", m.Which(1)),
        ("a", m.Subscribe(1, (4,))), ("a", m.Subscribe(2, (5,))), ("a", m.Subscribe(2, (6,))),
    ]  # fmt: skip
    assert merge_messages(sent) == [
        ("a", m.Subscribe(1, (1, 2))), ("b", m.Subscribe(1, (9,))), ("a", m.Unsubscribe(1, (1,))),
        ("a", m.Subscribe(1, (3,))), ("a", m.Which(1)), ("a", m.Subscribe(1, (4,))),
        ("a", m.Subscribe(2, (5, 6))),
    ]  # fmt: skip


SHARES = {"guest_percent", "bound_percent", "router_percent", "long_percent"}


@pytest.mark.parametrize("name", sorted({*Limits.__struct_fields__} - SHARES))
def test_limits_are_of_one_at_least(name: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=name):
        msgspec.convert({name: 0}, Limits)


@pytest.mark.parametrize("name", sorted(SHARES))
@pytest.mark.parametrize("value", [-1, 101])
def test_shares_are_of_a_hundred(name: str, value: int) -> None:
    assert msgspec.convert({name: 0}, Limits) != msgspec.convert({name: 100}, Limits)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({name: value}, Limits)
