"""Publications that were tagged elsewhere, at a rendezvous point: against the tag that it would
give by itself, while nodes come and go, tags are stale or wrong, and the root is restarted."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.broker.parts import Root
from tests.broker.test_runs import say_runs
from tests.broker.test_tagged_parts import an_event
from tests.channel.test_interests import lowest, random_filter
from tests.repeats import draws, runs

from tidings.channel.interests import tagging as interests_module
from tidings.filters import parse
from tidings.routing.protocol import body_of, frames, messages as m, pack_tag
from tidings.routing.protocol.limits import Limits
from tidings.routing.root import Block, Record, Rendezvous, node_history
from tidings.routing.root.handover import correcting

Nodes = dict[int, str]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs are matched as batches too."""
    monkeypatch.setattr(interests_module, "MOST", 8)


class Tagging:
    """Past versions of the nodes of a root, and tags of them by definition."""

    def __init__(self, root: Root, chance: random.Random) -> None:
        self.root = root
        self.chance = chance
        self.there: Nodes = {}
        self.past: list[tuple[int, Nodes]] = []
        self.stamp = 0
        self.refused = 0

    def change(self) -> None:
        chance = self.chance
        for _ in range(chance.choice([0, 1, 1, 2, 20])):
            if len(self.there) > 14 or (self.there and chance.random() < 0.45):
                node = chance.choice(sorted(self.there))
                self.root.drop(node)
                del self.there[node]
            else:
                text = random_filter(chance)
                self.there.setdefault(self.root.place(text), text)
        self.root.sync()
        self.past.append((self.root.version, dict(self.there)))

    def tag(self, event: dict[str, object], version: int, known: Nodes) -> bytes:
        there = {node: parse(text) for node, text in known.items()}
        matched = {node for node, one in there.items() if one.matches(event)}
        return pack_tag(self.root.life, version, sorted(lowest(there, matched)))

    def publication(self, version: int, known: Nodes) -> m.Publish:
        """Mostly with a tag of a version that there was; some wrong, some without attributes."""
        chance = self.chance
        event = an_event(chance)
        content = msgspec.json.encode(event)
        tag = self.tag(event, version, known)
        odd = chance.random()
        if odd < 0.03:
            tag = chance.choice([b"", b"x", tag[:-1], pack_tag(1, version, ())])
        elif odd < 0.06:  # of a version that there never was, or with nodes from after it
            tag = chance.choice([pack_tag(self.root.life, version + 1_000_000, ()),
                                 pack_tag(self.root.life, version, (version + 1,))])  # fmt: skip
        self.stamp += 1
        return m.Publish("p/1", self.stamp, self.stamp, content, b"%d" % self.stamp, tag=tag)


def fresh(root: Root, content: bytes) -> tuple[int, ...]:
    """The lowest nodes that the root finds by itself."""
    return root.machine.graph.lowest(root.interests.tag(content))


def waiting(root: Root) -> Iterator[Record]:
    """The notifications that are not on the disk yet."""
    for one in root.machine.queue.records:
        yield from one.records() if isinstance(one, Block) else (one,)


def change_or_restart(root: Root, tagging: Tagging, chance: random.Random) -> tuple[int, Nodes]:
    """Change nodes, and sometimes restart; return a version of which a tag may be."""
    tagging.change()
    if chance.random() < 0.2:
        root.restart()
    return chance.choice(tagging.past[-6:])


@pytest.mark.parametrize("run", runs(1, 30))
@pytest.mark.parametrize("many", [False, True])
def test_any_interleaving_gives_the_tags_of_a_fresh_one(
    many: bool, run: int, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(f"{seed} {many} {run}")
    root = Root(tmp_path)
    tagging = Tagging(root, chance)
    stale = 0
    for _ in draws(50, lambda: stale > 10):
        version, known = change_or_restart(root, tagging, chance)
        messages = [tagging.publication(version, known) for _ in range(30 if many else 6)]
        expected = {one.payload: fresh(root, one.content) for one in messages}
        if many:
            answers = say_runs(root, b"".join(map(frames.encode, messages)))
        else:
            answers = [answer for one in messages for answer in root.say(one)]
        found = {one.payload: tuple(mark.node for mark in one.marks) for one in waiting(root)}
        assert found == expected
        answers += root.sync()
        assert not [one for one in answers if isinstance(one, m.Published) and one.refusal]
        stale += version < root.version
    assert stale > 10


@pytest.mark.parametrize("run", runs(1, 30))
def test_fast_publications_get_the_tags_of_a_fresh_one(
    run: int, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no stamps, and are sent at once to whoever is linked."""
    chance = random.Random(f"{seed} {run} fast")
    sent: dict[bytes, tuple[int, ...]] = {}

    def release(self: Rendezvous, record: Record, nodes: tuple[int, ...]) -> None:
        assert record.serial == 0
        assert all(mark.number == 0 for mark in record.marks)
        sent[record.payload] = tuple(nodes)

    monkeypatch.setattr(Rendezvous, "release", release)
    root = Root(tmp_path)
    tagging = Tagging(root, chance)
    stale = 0
    for _ in draws(50, lambda: stale > 10):
        version, known = change_or_restart(root, tagging, chance)
        for _ in range(6):
            given = tagging.publication(version, known)
            message = msgspec.structs.replace(given, stamp=0, first=0, fast=True)
            due = fresh(root, message.content)
            assert root.say(message) == []  # no answer
            assert sent == ({body_of(message): due} if due else {})
            sent.clear()
        stale += version < root.version
    assert stale > 10
    assert not root.records()


def test_a_fast_publication_with_a_tag_is_not_matched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(tmp_path)
    old, newer = root.place("n > 1"), root.place("n > 3")
    found: list[tuple[int, ...]] = []
    monkeypatch.setattr(root.machine, "release", lambda _, nodes: found.append(tuple(nodes)))
    monkeypatch.setattr(root.interests, "tag", None)
    tag = pack_tag(root.life, old, (old,))
    root.say(m.Publish("p/1", 0, 0, b'{"n": 5}', b"a", fast=True, tag=tag))
    root.say(m.Publish("p/1", 0, 0, b'{"n": 2}', b"b", fast=True, tag=tag))
    assert found == [(newer,), (old,)]


def test_only_newer_nodes_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(tmp_path)
    old = root.place("n > 1")
    tag = pack_tag(root.life, root.version, (old,))
    asked: list[list[int]] = []
    among = root.interests.among
    monkeypatch.setattr(root.interests, "tag", None)

    def note(content: bytes, nodes: Sequence[int]) -> list[int]:
        asked.append([*nodes])
        return among(content, nodes)

    monkeypatch.setattr(root.interests, "among", note)
    root.say(m.Publish("p/1", 1, 1, b'{"n": 5}', b"a", tag=tag))
    root.sync()
    newer = [root.place(f"n > {at}") for at in (3, 4, 7)]
    root.say(m.Publish("p/1", 2, 2, b'{"n": 5}', b"b", tag=tag))
    root.sync()
    assert asked == [newer]
    assert [[mark.node for mark in one.marks] for one in root.records()] == [[old], [newer[1]]]


def test_many_newer_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the root tags by itself, as it does for filters that may take long."""
    root = Root(tmp_path)
    tag = pack_tag(root.life, root.place("n > 100"), ())
    nodes = [root.place(f"n = {at}") for at in range(correcting.FEW + 1)]
    monkeypatch.setattr(root.interests, "among", None)
    root.say(m.Publish("p/1", 1, 1, b'{"n": 5}', b"a", tag=tag))
    root.sync()
    monkeypatch.undo()
    tag = pack_tag(root.life, root.version, (nodes[5],))
    slow = root.place("array_contains(l, 5)")
    root.say(m.Publish("p/1", 2, 2, b'{"n": 5, "l": [5]}', b"b", tag=tag))
    root.sync()
    assert [[mark.node for mark in one.marks] for one in root.records()] == [
        [nodes[5]], [nodes[5], slow],
    ]  # fmt: skip


# -- without attributes ----------------------------------------------------------------------------


def limited(tmp_path: Path, most: int) -> Root:
    root = Root(tmp_path)
    root.machine.tagger.correcting._limits = Limits(tag_changes=most)  # type: ignore[union-attr]
    return root


def test_without_attributes(tmp_path: Path) -> None:
    """Newer nodes are not looked for, removed ones are replaced, and old tags are refused with the
    version to fetch. The stamp of one that was refused can be used again."""
    root = limited(tmp_path, 4)
    wide, narrow = root.place("n > 1"), root.place("n > 5")
    version = root.version
    tag = pack_tag(root.life, version, (narrow,))
    root.say(m.Publish("p/1", 1, 1, b"", b"a", tag=tag))
    root.sync()
    root.place("n > 4 AND n < 100")
    root.drop(narrow)
    root.say(m.Publish("p/1", 2, 2, b"", b"b", tag=tag))
    root.sync()
    for at in range(3):
        root.place(f"word = '{at}'")
    (answer,) = root.say(m.Publish("p/1", 3, 3, b"", b"c", tag=tag))
    assert isinstance(answer, m.Published)
    assert answer.version == root.version
    assert answer.refusal == (
        f"found a tag of version {version}, which is too old to correct without attributes: the "
        "nodes changed more than 4 times after that version; tag the notification again at version "
        f"{root.version}"
    )
    again = pack_tag(root.life, root.version, (wide,))
    root.say(m.Publish("p/1", 3, 3, b"", b"d", tag=again))
    root.sync()
    tags = {one.payload: [mark.node for mark in one.marks] for one in root.records()}
    assert tags == {b"b": [wide], b"d": [wide]}  # nobody can ask for the first any more


def test_repetitions_without_attributes(tmp_path: Path) -> None:
    """One that was accepted is acknowledged again, also if its tag became too old meanwhile."""
    root = limited(tmp_path, 4)
    node = root.place("n > 1")
    message = m.Publish("p/1", 1, 1, b"", b"a", tag=pack_tag(root.life, root.version, (node,)))
    root.say(message)
    root.sync()
    for at in range(9):
        root.place(f"word = '{at}'")
    for _ in range(2):
        (answer,) = [*root.say(message), *root.sync()]
        assert isinstance(answer, m.Published)
        assert (answer.refusal, answer.stamp) == ("", 1)
        root.restart()
        root.machine.tagger.correcting._limits = Limits(tag_changes=4)  # type: ignore[union-attr]
    assert len(root.records()) == 1


@pytest.mark.parametrize("run", runs(1, 20))
def test_runs_without_attributes(run: int, tmp_path: Path, seed: int) -> None:
    """The same as one by one: what is refused, and what is marked."""
    chance = random.Random(f"{seed} {run} bare")
    one, many = limited(tmp_path / "one", 6), limited(tmp_path / "many", 6)
    mine, others = Tagging(one, random.Random(run)), Tagging(many, random.Random(run))
    stamp = 1
    for _ in range(30):
        mine.change()
        others.change()
        version, known = chance.choice(mine.past[-4:])
        messages = []
        for at in range(20):
            event = an_event(chance)
            content = chance.choice([b"", msgspec.json.encode(event)])
            tag = mine.tag(event, version, known)
            messages.append(m.Publish("p/1", stamp + at, stamp, content, b"%d" % at, tag=tag))
        expected = [answer for message in messages for answer in one.say(message)]
        assert say_runs(many, b"".join(map(frames.encode, messages))) == expected
        assert many.sync() == one.sync()
        stamp = one.machine.stamps.known.get("p/1", 0) + 1
    records = [
        [msgspec.structs.replace(row, matched=tuple(sorted(row.matched))) for row in root.records()]
        for root in (one, many)
    ]
    assert records[0] == records[1]


def test_a_history_that_is_too_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(tmp_path)
    nodes = [root.place(f"n = {at}") for at in range(6)]
    tag = pack_tag(root.life, root.version, (nodes[0],))
    monkeypatch.setattr(node_history, "MOST_AROUND", 2)
    for node in nodes[:4]:
        root.drop(node)
    (answer,) = root.say(m.Publish("p/1", 1, 1, b"", b"a", tag=tag))
    assert isinstance(answer, m.Published)
    assert "which is unknown or too old" in answer.refusal
    root.say(m.Publish("p/1", 1, 1, b'{"n": 5}', b"b", tag=tag))  # it is tagged here
    root.sync()
    assert [[mark.node for mark in one.marks] for one in root.records()] == [[nodes[5]]]
