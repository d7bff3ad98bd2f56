"""The merits of publications, as subscriptions come and go: against a plain list of the subscribers
of each topic, with a least number of subscriptions, ageing, and another state machine."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
from tests.channel.related_world import SETTINGS
from tests.channel.test_related_nodes import RelatedRoot
from tests.repeats import rounds

from tidings.channel.related import PublicationMerits
from tidings.network.forwarding import Forwarder
from tidings.preprocessing import Kind
from tidings.relations import (
    ClusterStore,
    Reading,
    RelationSettings,
    SemanticStore,
    StoreSettings,
    encode_terms,
)
from tidings.relations.merit import Postings
from tidings.routing.learning import EarlySettings, Learning
from tidings.routing.protocol import frames, make_front, messages as m, relate_dialect

TOPICS = ("rose", "fog", "hail", "oak")
NAMES = ("client", "other", "third")


class MeritRoot(RelatedRoot):
    """A rendezvous point that computes merits. Tags are not related to each other."""

    def __init__(self, folder: Path, store: StoreSettings | None = None) -> None:
        self.stamp = 0
        reading = Reading(tag="topic", place="city")
        settings = RelationSettings(SETTINGS.semantic, reading, store=store or StoreSettings())
        self.merits = PublicationMerits(settings, 10_000, lambda: self.now)
        self.merits.use_kind(Kind())
        super().__init__(folder, settings)

    def open(self) -> None:
        super().open()
        relating = self.machine.tagger.relating
        assert relating is not None
        self.machine.tagger.relating = self.merits.listen(relating)
        self.merits.use_machine(self.machine)

    def node(self, topic: str, least: float | None = None, owner: str = "somebody") -> int:
        dialect = "sql" if least is None else relate_dialect("sql", least)
        answer = self.ask(m.Ask(1, f"topic = '{topic}'".encode(), owner, dialect=dialect))
        assert isinstance(answer, m.Answer)
        assert not answer.refusal
        return answer.node

    def want(self, name: str, node: int, *, wants: bool = True) -> None:  # type: ignore[override]
        kind = m.Subscribe if wants else m.Unsubscribe
        self.machine.receive(name, kind(self.machine.epoch, (node,)), self.now)

    def tell(self, topic: str) -> None:
        self.stamp += 1
        self.say(self.message(topic))
        self.sync()

    def message(self, topic: str) -> m.Publish:
        return m.Publish("p", self.stamp, 1, msgspec.json.encode({"topic": topic}), b"")

    def merit(self, topic: str) -> float:
        return self.merits.merit(self.message(topic))

    def learn(self) -> None:
        assert not self.merits.work(1000)


def test_merits_of_topics_as_subscriptions_come_and_go(tmp_path: Path, seed: int) -> None:
    """A topic has merit if it was forwarded since its present subscriptions began, and only to
    enough of them."""
    chance = random.Random(seed)
    for number in rounds(3, 20):
        folder = tmp_path / str(number)
        folder.mkdir()
        least = chance.choice([1, 1, 2, 3])
        root = MeritRoot(folder, StoreSettings(least=least))
        nodes = {topic: root.node(topic) for topic in TOPICS}
        wanted: dict[str, set[str]] = {topic: set() for topic in TOPICS}
        has_merit = dict.fromkeys(TOPICS, False)
        for _ in range(120):
            topic, name = chance.choice(TOPICS), chance.choice(NAMES)
            step = chance.randrange(5)
            if step == 0:
                root.want(name, nodes[topic])
                wanted[topic].add(name)
            elif step == 1:
                root.want(name, nodes[topic], wants=False)
                wanted[topic].discard(name)
                has_merit[topic] = has_merit[topic] and bool(wanted[topic])
            else:
                root.tell(topic)
                if chance.random() < 0.5:
                    root.learn()
                    root.tell(topic)
                root.learn()
                has_merit[topic] = has_merit[topic] or len(wanted[topic]) >= least
            assert {one for one in TOPICS if root.merit(one)} == {
                one for one in TOPICS if has_merit[one]
            }


def test_what_is_cancelled_before_it_is_learnt(tmp_path: Path) -> None:
    root = MeritRoot(tmp_path)
    node = root.node("rose")
    root.want("client", node)
    root.tell("rose")
    root.want("client", node, wants=False)
    root.learn()
    assert not root.merit("rose")


def test_related_subscribers_count_too(tmp_path: Path) -> None:
    root = MeritRoot(tmp_path, StoreSettings(least=2))
    related = root.node("rose", 0.5)
    root.want("client", related)
    root.tell("rose")
    root.learn()
    assert not root.merit("rose")
    root.want("other", related)
    root.tell("rose")
    root.learn()
    assert root.merit("rose") == 1.0
    for name in ("client", "other"):
        root.want(name, related, wants=False)
    assert not root.merit("rose")


def test_owners_behind_a_router_count(tmp_path: Path) -> None:
    """Here, `client` is a router. The rendezvous point knows the owners that asked for a node
    through it; both its stores count them, and count a router with one owner once."""
    root = MeritRoot(tmp_path, StoreSettings(least=2))
    long = "x" * 300  # the name of this owner is shortened
    node = root.node("rose", owner="alice")
    root.want("client", node)
    root.want("other", node)
    assert [root.machine.count_behind(name, node) for name in ("client", "other")] == [1, 1]
    assert root.machine.count_subscriptions(node) == 2
    serving = EarlySettings(SETTINGS.semantic, store=StoreSettings(least=2))
    forwarder = Forwarder(root.machine)
    learning = forwarder.learning = Learning(root.machine, serving, 0.0)
    term = SETTINGS.semantic.term("tag", "rose")
    assert term is not None
    told = m.Notification(1, 1, (m.Mark(node, 1, (node,)),), make_front(encode_terms([term])))
    buffer = frames.encode(told)
    for owners in (("alice",), ("alice", "bob"), ("alice", "bob", long)):
        assert root.node("rose", owner=owners[-1]) == node
        assert root.machine.count_behind("client", node) == len(owners)
        assert root.machine.count_behind("other", node) == 1
        assert root.machine.count_subscriptions(node) == 1 + len(owners)
        forwarder.forward(buffer, [0], [len(buffer)])
        while learning.work(0.0):
            pass
        learnt = {learning.hop_name(one.hop) for one in learning.store}
        assert learnt == (set() if len(owners) == 1 else {"client"})


def test_named_subscriptions_count_while_nobody_is_linked(tmp_path: Path) -> None:
    root = MeritRoot(tmp_path)
    node = root.node("rose")
    root.want("client", node)
    interest = b"topic = 'rose'"
    answer = root.ask(m.Resume(root.machine.epoch, 2, "name", node, interest, "somebody"))
    assert isinstance(answer, m.Resumption)
    assert not answer.refusal
    root.tell("rose")
    root.learn()
    root.want("client", node, wants=False)
    assert root.merit("rose") == 1.0


def test_merits_age(tmp_path: Path) -> None:
    root = MeritRoot(tmp_path, StoreSettings(keep=100.0))
    for topic in ("rose", "fog"):
        root.want("client", root.node(topic))
        root.tell(topic)
        root.learn()
    root.now += 90
    root.tell("fog")
    root.learn()
    root.now += 30
    root.learn()
    assert not root.merit("rose")
    assert root.merit("fog")


def test_another_state_machine(tmp_path: Path) -> None:
    """Merits stay while the subscribers may come back, and end when the node does."""
    root = MeritRoot(tmp_path)
    nodes = {topic: root.node(topic) for topic in ("rose", "fog")}
    for topic, node in nodes.items():
        root.want("client", node)
        root.tell(topic)
    root.learn()
    root.restart()
    root.want("client", nodes["rose"])
    assert root.merit("rose")
    assert root.merit("fog")
    root.drop(nodes["fog"])
    assert root.merit("rose")
    assert not root.merit("fog")


def test_hops_that_come_and_go_leave_no_room_behind() -> None:
    """The arrays of merits are as long as the most hops at one time."""
    semantic = SemanticStore()
    store = ClusterStore(semantic)
    postings = Postings(store, lambda _: None)
    term = semantic.term("tag", "rose")
    assert term is not None
    for hop in range(500):
        node = store.learn([term], hop, [hop], 0.0)
        assert node is not None
        store.learn([term], "always", [1], 0.0)
        assert postings.score([term]) == {hop: 1.0, "always": 1.0}
        assert postings.total([term]) == 2.0
        store.forget(node)
    assert len(postings._scores) < 20
