"""Nodes for the types of notifications at a rendezvous point with its journal, however
notifications arrive: one by one, in runs, tagged elsewhere, or in parts of a pipeline. Against the
ontology, and against the same channel without such nodes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.broker.parts import Root, make_part
from tests.broker.test_runs import say_runs
from tests.filters.test_revision import a_graph, lies_under
from tests.repeats import draws, runs

from tidings.channel.interests import ArrayInterests
from tidings.preprocessing import Kind, KindDefinition, declare, make_kind
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.contents.bodies import body_of, unwrap
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.tags import pack_tag
from tidings.routing.root import CHANNEL, Rendezvous
from tidings.routing.root.interests import TaggedMany
from tidings.routing.root.nodes import AT_ONCE

Types = dict[str, list[str]]
PATIENT = Limits(match_millis=60_000)  # on a busy machine, no node is set aside as too slow


def a_kind(types: Types, **synonyms: str) -> Kind:
    parents = {name: tuple(above) for name, above in types.items()}
    definition = KindDefinition("types", "type", parents, synonyms, columns={"a": {"n": "integer"}})
    return make_kind(declare(None, definition), definition)


class TypedRoot(Root):
    """A rendezvous point of a channel of types."""

    def __init__(self, folder: Path, kind: Kind, most: int) -> None:
        self.kind, self.most = kind, most
        folder.mkdir(exist_ok=True)
        super().__init__(folder)

    def open(self) -> None:
        super().open()
        stored, base = self.journal.interests(), self.journal.history.base
        self.interests = ArrayInterests(None, stored, base, kind=self.kind)
        memory = self.journal.memory(self.interests.all_placed())
        self.machine = Rendezvous(
            "root", self.interests, self.journal, memory, limits=PATIENT, nodes_for_types=self.most
        )

    def subscribe(self, text: str) -> int:
        answer = self.ask(m.Ask(1, text.encode(), "somebody", dialect="types"))
        assert isinstance(answer, m.Answer), answer
        assert not answer.refusal, answer
        self.say(m.Subscribe(self.machine.epoch, (answer.node,)))
        return answer.node

    def type_nodes(self) -> dict[str, int]:
        """The nodes of the channel itself in the journal, by type."""
        owners = self.journal.memory(self.interests.all_placed()).owners
        return {
            self.interests.type_at(node): node for node, who in owners.items() if who == (CHANNEL,)
        }

    def publish(self, how: str, events: list[tuple[bytes, bytes]], stamp: int, batch: int) -> None:
        """Publish contents with payloads from a stamp on."""
        if how == "part":
            bodies = [body_of(m.Publish("q", 1, 1, *one, shares=True)) for one in events]
            tags = [sorted(self.interests.tag(content)) for content, _ in events]
            rows = [*zip(tags, bodies, strict=True)]
            part = make_part(f"q{batch}", (0, 0), rows, self.life, self.version, last=True)
            answers = [*self.say(part.message()), *self.sync()]
            (taken,) = (one for one in answers if isinstance(one, m.Taken))
            assert not taken.refusal
            return
        messages = []
        for at, (content, payload) in enumerate(events):
            tag = b""
            if how == "tagged":  # by one that knows the nodes that were there before
                tag = pack_tag(self.life, self.version, sorted(self.interests.tag(content)))
            messages.append(m.Publish("p", stamp + at, 1, content, payload, tag=tag))
        if how == "single":
            for message in messages:
                self.say(message)
        else:
            say_runs(self, b"".join(map(frames.encode, messages)))


def any_event(chance: random.Random, types: Types) -> dict[str, object]:
    """An event of a type, or of its synonym `z`; only `a` and the types below it have `n`."""
    type_ = chance.choice([*types, "z"])
    has_n = type_ != "z" and lies_under(types, type_, "a")
    return {"type": type_, "n": chance.randrange(9)} if has_n else {"type": type_}


def is_due(types: Types, text: str, event: dict[str, object]) -> bool:
    wanted, _, condition = text.partition(" WHERE ")
    names = {"z": "b"}
    type_ = str(event["type"])
    is_below = lies_under(types, names.get(type_, type_), names.get(wanted, wanted))
    return is_below and (not condition or int(str(event.get("n", 0))) > 4)


@pytest.mark.parametrize("run", runs(3, 30))
def test_every_way_to_publish(seed: int, run: int, tmp_path: Path) -> None:
    added = 0
    for round_ in draws(2, lambda: added > 5):
        chance = random.Random(f"{seed} {run} {round_}")
        types = a_graph(chance, "abcdefghij")
        below_a = [one for one in types if lies_under(types, one, "a")]
        kind, most = a_kind(types, z="b"), chance.choice([1, 3, 6, 100])
        typed, plain = (TypedRoot(tmp_path / f"{round_} {n}", kind, n) for n in (most, 0))
        wanted: dict[str, tuple[int, int]] = {}  # the nodes at both, by text
        since: dict[str, int] = {}  # how many had been published when it was first asked for
        published: list[dict[str, object]] = []
        stamp, occurred = 1, set[str]()
        for batch in range(16):
            if chance.random() < 0.6:
                text = chance.choice([*types, "z"])
                if text in below_a and chance.random() < 0.4:
                    text += " WHERE n > 4"
                before = typed.type_nodes()
                wanted[text] = typed.subscribe(text), plain.subscribe(text)
                since.setdefault(text, len(published))
                if text in before:
                    assert wanted[text][0] == before[text]
                    assert text not in typed.type_nodes()
            how = chance.choice(["single", "run", "tagged", "part"])
            events, now = list[tuple[bytes, bytes]](), set[str]()
            for _ in range(chance.choice([1, 5, 40])):
                event = any_event(chance, types)
                encode = chance.choice([msgspec.json.encode, msgspec.msgpack.encode])
                events.append((encode(event), b"%d" % len(published)))
                published.append(event)
                now.add("b" if event["type"] == "z" else str(event["type"]))
            for root in (typed, plain):
                root.publish(how, events, stamp, batch)
                root.sync()
            stamp += len(events) if how != "part" else 0
            occurred |= now
            kept = typed.type_nodes()
            assert {*kept.values()} == typed.machine.nodes.kept
            assert len(kept) <= most
            assert kept.keys() <= occurred
            if len(kept) < most:
                assert all(typed.interests.find_type(one)[1] for one in now)
            assert not plain.type_nodes()
            added = max(added, len(kept))
            if chance.random() < 0.3:
                for at, root in enumerate((typed, plain)):
                    root.restart()
                    for nodes in wanted.values():
                        root.say(m.Subscribe(root.machine.epoch, (nodes[at],)))
                assert typed.type_nodes() == kept
                assert typed.machine.nodes.kept == {*kept.values()}
        for at, root in enumerate((typed, plain)):
            records = {int(unwrap(one.payload)[1]): one for one in root.records()}
            for number, event in enumerate(published):
                asked = {text: n[at] for text, n in wanted.items() if number >= since[text]}
                due = {node for text, node in asked.items() if is_due(types, text, event)}
                matched = {*records[number].matched} if number in records else set()
                assert matched & {*asked.values()} == due, (number, event)
        counts = Counter(mark.node for one in typed.records() for mark in one.marks)
        for node in typed.type_nodes().values():
            assert typed.machine.counts.counts.get(node, 0) == counts[node]
    assert added > 5


def test_refused_notifications_add_no_node(tmp_path: Path) -> None:
    root = TypedRoot(tmp_path, a_kind({"a": [], "b": []}), 10)
    wrong = [b'{"type": "b", "n": 3}', b'{"type": "c"}', b'{"n": 3}', b"3", b""]
    root.publish("single", [(one, b"") for one in wrong], 1, 0)
    root.publish("run", [(one, b"") for one in wrong * 10], 1 + len(wrong), 0)
    root.sync()
    assert not root.type_nodes()
    root.publish("run", [(b'{"type": "b"}', b"")] * 20, 1 + 11 * len(wrong), 0)
    root.sync()
    assert [*root.type_nodes()] == ["b"]
    assert len(root.records()) == 20


def test_a_run_with_many_new_types(tmp_path: Path) -> None:
    """Each notification is counted at the node of its own type, the first ones too. Only a few
    nodes are added in a turn."""
    types: Types = {"all": [], **{f"t{at}": ["all"] for at in range(300)}}
    root = TypedRoot(tmp_path, a_kind(types | {"a": []}), 200)
    everything = root.subscribe("all")
    events = [(b'{"type": "t%d"}' % at, b"%d" % at) for at in range(300)]
    assert root.machine.type_nodes.add(content for content, _ in events) == AT_ONCE
    root.sync()
    assert len(root.type_nodes()) == AT_ONCE
    for batch in range(20):
        before = len(root.type_nodes())
        root.publish("run", events, 1 + 300 * batch, 0)
        root.sync()
        kept = root.type_nodes()
        assert before < len(kept) or len(kept) == 200
    assert len(kept) == 200
    counts, marks = (
        root.machine.counts,
        Counter(mark.node for one in root.records() for mark in one.marks),
    )
    assert {node: counts.counts[node] for node in kept.values()} == {
        node: marks[node] for node in kept.values()
    }
    assert min(marks[node] for node in kept.values()) >= 7
    assert counts.counts[everything] == marks[everything]
    assert counts.totals[everything] == 20 * 300


def test_a_run_that_is_tagged_further_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If tagging takes long, it stops early; rows that are tagged only later add nodes too."""
    types: Types = {f"t{at}": [] for at in range(AT_ONCE)}
    root = TypedRoot(tmp_path, a_kind(types | {"a": []}), 100)
    tag_many, reach = root.interests.tag_many, iter([2, 2, 7])

    def stop_early(contents: Sequence[bytes]) -> TaggedMany:
        return tag_many(contents[: next(reach, None)])

    monkeypatch.setattr(root.interests, "tag_many", stop_early)
    root.publish("run", [(b'{"type": "t%d"}' % at, b"") for at in range(AT_ONCE)], 1, 0)
    root.sync()
    assert len(root.type_nodes()) == AT_ONCE


def test_unreadable_contents_of_a_part_spoil_no_numbers(tmp_path: Path) -> None:
    """A part was in the journal, but its numbers were given again if a type could not be read."""
    root = TypedRoot(tmp_path, a_kind({"a": [], "b": []}), 10)
    wanted = root.subscribe("a")
    bad = b'<?xml version="1.0" encoding="foo"?><a/>'
    bodies = [
        body_of(m.Publish("q", 1, 1, one, b"x", shares=True)) for one in (bad, b'{"type":"b"}')
    ]
    part = make_part(
        "q", (0, 0), [([wanted], one) for one in bodies], root.life, root.version, last=True
    )
    (taken,) = (
        one for one in (*root.say(part.message()), *root.sync()) if isinstance(one, m.Taken)
    )
    assert not taken.refusal
    root.publish("single", [(b'{"type": "a"}', b""), (bad, b"")], 1, 0)
    root.sync()
    marks = [
        (one.serial, mark.number)
        for one in root.records()
        for mark in one.marks
        if mark.node == wanted
    ]
    assert marks == [(1, 1), (2, 2), (3, 3)]
    assert [*root.type_nodes()] == ["b"]
