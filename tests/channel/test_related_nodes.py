"""Related nodes at a rendezvous point: many publications at a time against one by one, parts, tags
made elsewhere, followers, rights, shares, and restarts with other settings."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.broker.parts import Root, make_part
from tests.broker.test_runs import say_runs
from tests.channel.related_world import SETTINGS, Clause, Want, draw_event, draw_want
from tests.repeats import rounds

from tidings.channel.interests import ArrayInterests, tagging
from tidings.channel.related import RelatedArrayInterests
from tidings.preprocessing import Kind, KindDefinition, declare, make_kind
from tidings.relations import RelationSettings
from tidings.routing.protocol import (
    About,
    Limits,
    decode_found,
    frames,
    messages as m,
    open_body,
    pack_tag,
    relate_dialect,
    wrap,
)
from tidings.routing.root import Record, Rendezvous
from tidings.store.journal import FileJournal

NEAR = Want((Clause(city=("Chicago",), late=60),), 0.7)
LIMITS = Limits()


class RelatedRoot(Root):
    """A rendezvous point with relations, unless `settings` is None."""

    def __init__(self, folder: Path, settings: RelationSettings | None = SETTINGS) -> None:
        self.settings = settings
        super().__init__(folder)

    def open(self) -> None:
        self.lives += 1
        self.journal = FileJournal(self.path)
        self.journal.begin_life(1000 + self.lives)
        stored = self.journal.interests()
        last = max(self.journal.history.base, self.journal.history.version)
        if self.settings is None:
            self.interests = ArrayInterests(None, stored, last)
        else:
            self.interests = RelatedArrayInterests(
                self.settings, stored, last, LIMITS, None, None, Kind()
            )
        memory = self.journal.memory(self.interests.all_placed())
        self.machine = Rendezvous(
            "root", self.interests, self.journal, memory, relating=self.interests.relating
        )

    def want(self, want: Want) -> int:
        """Subscribe; return the node."""
        dialect = "sql" if want.least is None else relate_dialect("sql", want.least)
        answer = self.ask(m.Ask(1, want.write().encode(), dialect=dialect))
        assert isinstance(answer, m.Answer)
        assert not answer.refusal, answer
        self.say(m.Subscribe(self.machine.epoch, (answer.node,)))
        return answer.node

    def publish(self, stamp: int, event: dict[str, Any], tag: bytes = b"") -> list[m.Message]:
        content = msgspec.json.encode(event)
        return self.say(m.Publish("p", stamp, 1, content, b"%d" % stamp, tag=tag))


def told(records: list[Record]) -> list[tuple[bytes, list[int], dict[int, Any], bytes]]:
    found = []
    for one in records:
        said, body = open_body(one.payload)
        nodes = [mark.node for mark in one.marks]
        found.append((body, nodes, decode_found(said.found), said.context))
    return found


def test_runs_are_like_single_publications(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tagging, "MOST", 8)
    chance = random.Random(seed)
    for number in rounds(2, 10):
        roots = []
        for name in ("alone", "together"):
            (tmp_path / f"{name}{number}").mkdir()
            roots.append(RelatedRoot(tmp_path / f"{name}{number}"))
        wants = [draw_want(chance) for _ in range(12)]
        for want in wants:
            if want.least is None or any(one.named() for one in want.clauses):
                assert roots[0].want(want) == roots[1].want(want)
        events = [draw_event(chance) for _ in range(60)]
        for at, event in enumerate(events, 1):
            roots[0].publish(at, event)
        contents = [msgspec.json.encode(event) for event in events]
        if chance.random() < 0.5:  # as a client that tags
            life, version = roots[1].life, roots[1].version
            tag = roots[1].interests.tag
            tags = [pack_tag(life, version, sorted(tag(one))) for one in contents]
        else:
            tags = [b""] * len(events)
        say_runs(roots[1], b"".join(
            frames.encode(m.Publish("p", at, 1, content, b"%d" % at, tag=tag))
            for at, (content, tag) in enumerate(zip(contents, tags, strict=True), 1)
        ))  # fmt: skip
        for one in roots:
            one.sync()
        assert told(roots[0].records()) == told(roots[1].records())
        assert roots[0].machine.counts.totals == roots[1].machine.counts.totals
        for one in roots:
            one.journal.close()


def test_parts_get_related_nodes_if_their_attributes_are_there(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    exact = root.interests.relations.bases[related]  # type: ignore[attr-defined]
    near = b'{"city": "Evanston", "late": 90}'
    row = wrap(About(None, "", 0, None, {}), near)  # as a pipeline sends rows
    there = b'{"city": "Chicago", "late": 90}'
    rows = [((), row), ((), near), ((exact,), wrap(About(content=there), b"x")), ((), b"")]
    before = root.version
    later = root.want(Want((Clause(city=("Evanston",), late=60),), 0.7))
    part = make_part("s", (0, 0), rows, root.life, before)
    root.say(part.message())
    root.sync()
    found = told(root.records())
    assert [(nodes, [*why]) for _, nodes, why, _ in found] == [
        ([related], [related]),  # a row is also its attributes; the later filter is newer than it
        ([exact], []),
    ]
    assert found[0][0] == row
    assert all(context for *_, context in found)
    assert later not in {node for _, nodes, *_ in found for node in nodes}
    root.journal.close()


def test_tags_made_elsewhere(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    tag = pack_tag(root.life, root.version, ())
    root.publish(1, {"city": "Evanston", "late": 90}, tag)
    root.say(m.Publish("p", 2, 1, b"", b"2", tag=tag))  # without attributes, nothing is related
    root.sync()
    assert [nodes for _, nodes, *_ in told(root.records())] == [[related]]
    root.journal.close()


def test_followers_get_exact_nodes_only(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    exact = root.interests.relations.bases[related]  # type: ignore[attr-defined]
    answer = root.ask(m.Follow(1))
    assert isinstance(answer, m.Changed)
    assert [(one.node, one.filter) for one in answer.changes] == [
        (exact, "(city IN ('Chicago') AND late > 60)")
    ]
    root.journal.close()


def test_an_exact_node_stays_as_long_as_its_related_node(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    exact = root.interests.relations.bases[related]  # type: ignore[attr-defined]
    expire = root.machine.times.expire

    def pass_time() -> None:
        for _ in range(6):
            root.now += expire
            root.say(m.Trace(1))
            root.machine.tick(root.now)

    assert {exact, related} <= {*root.machine.graph}
    root.machine.nodes.unwanted[exact] = -1e9
    root.machine.nodes.retire_unwanted()
    assert exact in root.machine.graph
    root.say(m.Unsubscribe(root.machine.epoch, (related,)))
    pass_time()
    root.sync()
    assert not {exact, related} & {*root.machine.graph}
    root.restart()
    assert len(root.machine.graph) == 0
    assert len(root.interests.relations.chains) == 0  # type: ignore[attr-defined]
    root.journal.close()


class TypedRoot(RelatedRoot):
    """A rendezvous point of a channel of types, in which notifications add nodes."""

    def open(self) -> None:
        super().open()
        definition = KindDefinition("types", "type", {"trip": (), "flight": ("trip",)})
        kind = make_kind(declare(None, definition), definition)
        stored, last = self.journal.interests(), self.journal.history.base
        assert self.settings is not None
        interests = RelatedArrayInterests(self.settings, stored, last, LIMITS, None, None, kind)
        memory = self.journal.memory(interests.all_placed())
        self.interests = interests
        self.machine = Rendezvous(
            "root", interests, self.journal, memory, relating=interests.relating, nodes_for_types=5
        )


def test_nodes_for_types_beside_related_nodes(tmp_path: Path) -> None:
    """A related node is no node of a type, and goes with its exact node."""
    root = TypedRoot(tmp_path)
    related = root.want(NEAR)
    exact = root.interests.relations.bases[related]  # type: ignore[attr-defined]
    event = {"type": "flight", "city": "Chicago", "late": 70}
    root.say(m.Publish("p", 1, 1, msgspec.json.encode(event), b"x"))
    root.sync()
    (kept,) = root.machine.nodes.kept
    assert root.interests.type_at(kept) == "flight"
    assert root.interests.type_at(related) == root.interests.type_at(exact) == ""
    root.machine.counts.counts[related] = 1  # as if a notification had been related
    root.say(m.Unsubscribe(root.machine.epoch, (related,)))
    for _ in range(6):
        root.now += root.machine.times.expire
        root.say(m.Trace(1))
        root.machine.tick(root.now)
    root.sync()
    assert {*root.machine.graph} == root.machine.nodes.kept == {kept}
    root.restart()
    assert {*root.machine.graph} == root.machine.nodes.kept == {kept}
    root.journal.close()


def test_rights_that_are_limited_by_a_context_allow_nothing_related(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    text, dialect = b"city = 'Chicago' AND late > 60", relate_dialect("sql", 0.7)
    refused = root.ask(m.Ask(1, text, within=("city = 'Chicago'",), dialect=dialect))
    assert isinstance(refused, m.Answer)
    assert "tests attributes of a context (city)" in refused.refusal
    allowed = root.ask(m.Ask(2, text, within=("late > 30",), dialect=dialect))
    assert isinstance(allowed, m.Answer)
    assert allowed.node
    assert root.interests.lies_within(allowed.node, ("late > 30",))
    assert not root.interests.lies_within(allowed.node, ("city = 'Chicago'",))
    outside = root.ask(m.Ask(3, text, within=("late > 90",), dialect=dialect))
    assert isinstance(outside, m.Answer)
    assert "not covered" in outside.refusal
    root.journal.close()


def test_related_nodes_are_set_aside_with_their_filter(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    exact = root.interests.relations.bases[related]  # type: ignore[attr-defined]
    root.machine.set_aside.lighten({exact: "somebody"})
    assert [*root.machine.set_aside.aside] == [related, exact]
    root.publish(1, {"city": "Evanston", "late": 90})
    root.sync()
    assert not root.records()
    root.machine.set_aside.retire(10)
    assert len(root.machine.graph) == 0
    root.journal.close()


def test_a_channel_that_has_no_relations_any_more(tmp_path: Path) -> None:
    root = RelatedRoot(tmp_path)
    related = root.want(NEAR)
    root.settings = None
    root.restart()
    (aside,) = root.interests.refused.values()
    assert aside.reason == "related=0.7 needs a channel with relations, but this channel has none"
    root.settings = SETTINGS
    root.restart()
    assert not root.interests.refused
    assert related in root.machine.graph
    root.publish(1, {"city": "Evanston", "late": 90})
    root.sync()
    assert [nodes for _, nodes, *_ in told(root.records())] == [[related]]
    root.journal.close()
