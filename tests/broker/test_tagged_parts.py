"""Parts that others tagged, at a rendezvous point: against notifications that it tags by itself,
and against `Filter.matches` where nodes came and went since they were tagged."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import msgspec
import pytest
from tests.broker.parts import Root, Row, make_part
from tests.channel.test_interests import WORDS, lowest, random_filter
from tests.repeats import draws

from tidings.filters import parse
from tidings.routing.protocol import About, Piece, messages as m, unwrap, wrap
from tidings.routing.protocol.limits import Limits
from tidings.routing.root import node_history
from tidings.routing.root.handover import part_columns, row_pieces


def an_event(chance: random.Random) -> dict[str, object]:
    return {"n": chance.randrange(-1, 9), "word": chance.choice([*WORDS, None])}


def test_the_same_as_if_they_were_published(tmp_path: Path, seed: int) -> None:
    """Marks, matched nodes and numbers, also where both take turns."""
    chance = random.Random(seed)
    mine, others = Root(tmp_path / "mine"), Root(tmp_path / "others")
    texts = [random_filter(chance) for _ in range(40)]
    for text in texts:
        assert mine.place(text) == others.place(text)
    stamp = 0
    for batch in range(20):
        rows: list[Row] = []
        for _ in range(chance.randrange(30)):
            stamp += 1
            content, payload = msgspec.json.encode(an_event(chance)), chance.randbytes(5)
            others.say(m.Publish("p", stamp, 1, content, payload))
            rows.append((sorted(mine.interests.tag(content)), payload))
        mine.say(make_part("p", (batch, 0), rows, mine.life, mine.version, last=True).message())
        content = msgspec.json.encode(an_event(chance))
        for root in (mine, others):  # one that both publish
            root.say(m.Publish("q", batch + 1, 1, content, b"both"))
            if chance.random() < 0.5:
                root.sync()
    for root in (mine, others):
        root.sync()
    found, expected = (
        [msgspec.structs.replace(one, matched=tuple(sorted(one.matched))) for one in root.records()]
        for root in (mine, others)
    )
    assert found == expected
    for counts in ("counts", "totals", "latest", "given_counts"):
        assert getattr(mine.machine.counts, counts) == getattr(others.machine.counts, counts)
    mine.restart()
    others.restart()
    for counts in ("counts", "totals", "latest"):
        assert getattr(mine.machine.counts, counts) == getattr(others.machine.counts, counts)


def test_pieces_of_rows_get_the_stamp_of_the_first(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a part is repeated, and wherever the root stopped within it."""
    monkeypatch.setattr(row_pieces, "LEAST", 10)
    monkeypatch.setattr(part_columns, "ROWS", 2)
    chance = random.Random(f"{seed} pieces")
    root = Root(tmp_path)
    node = root.place("n > 3")
    expected: list[bytes] = []
    for batch in range(20):
        rows: list[Row] = []
        for _ in range(chance.randrange(5)):
            many = chance.choice((1, 1, 2, 5))
            payloads = [chance.randbytes(chance.choice((3, 30))) for _ in range(many)]
            about = About(time=batch + 1)
            if many == 1:
                rows.append(((node,), wrap(about, payloads[0])))
            for at, one in enumerate(payloads if many > 1 else ()):
                told = msgspec.structs.replace(about, piece=Piece(0, at, many))
                rows.append(((node,), wrap(told, one)))
            expected.append(b"".join(payloads))
        cut = sorted({0, len(rows), *(chance.randrange(len(rows) + 1) for _ in range(2))})
        some = [rows[one:two] for one, two in itertools.pairwise(cut)] or [[]]
        for number, part in enumerate(some):
            message = make_part(
                "s", (batch, number), part, root.life, root.version, last=number == len(some) - 1
            ).message()
            if chance.random() < 0.5:  # it stops before the whole part is on the disk
                for piece in root.machine.split(message)[: chance.randrange(3)]:
                    root.say(piece)
                if chance.random() < 0.5:
                    root.sync()
                root.restart()
            life = msgspec.structs.replace(message, life=root.life)
            answer = root.ask(life)
            assert isinstance(answer, m.Taken)
            assert not answer.refusal, answer
    found: list[bytes] = []
    held: list[bytes] = []
    for record in root.records():
        about, payload = unwrap(record.payload)
        if about.piece is not None:
            assert about.piece.first == record.stamp - about.piece.at
            assert about.piece.at == len(held)
            held.append(payload)
            if len(held) < about.piece.of:
                continue
        found.append(b"".join(held) if held else payload)
        held = []
    assert found == expected


def test_nodes_that_came_and_went_since(tmp_path: Path, seed: int) -> None:
    """Everyone whose node was there then, and is there now, gets what it matches; nobody else whose
    node was there. Restarts in between do not matter."""
    chance = random.Random(seed)
    root = Root(tmp_path)
    there: dict[int, str] = {}
    past: list[tuple[int, dict[int, str]]] = []
    replaced = 0
    for batch in draws(25, lambda: replaced > 5):
        for _ in range(chance.randrange(1, 5)):
            if len(there) > 12 or (there and chance.random() < 0.4):
                node = chance.choice(sorted(there))
                root.drop(node)
                del there[node]
            else:
                text = random_filter(chance)
                there.setdefault(root.place(text), text)
        root.sync()
        past.append((root.version, dict(there)))
        if chance.random() < 0.2:
            root.restart()
        version, known = chance.choice(past[-8:])
        events = [an_event(chance) for _ in range(8)]
        matched = [
            {node: one for node, text in known.items() if (one := parse(text)).matches(event)}
            for event in events
        ]
        rows = [
            (sorted(lowest(one, {*one})), b"%d %d" % (batch, at)) for at, one in enumerate(matched)
        ]
        part = make_part("out", (batch, 0), rows, root.life, version, last=True)
        assert not root.hand_over(part).refusal
        found = {one.payload: one for one in root.records()}
        for event, (tag, payload) in zip(events, rows, strict=True):
            record = found.get(payload)
            reached = {node for node, text in there.items() if parse(text).matches(event)}
            must = {node for node in reached if node <= version}
            assert must <= set(() if record is None else record.matched) <= reached
            marked = [] if record is None else [mark.node for mark in record.marks]
            assert marked == sorted(root.machine.graph.lowest(marked))
            replaced += marked != list(tag)
    assert replaced > 5


def test_nodes_that_are_set_aside(tmp_path: Path) -> None:
    """They are left out, and what covers them is not."""
    root = Root(tmp_path)
    wide, narrow, other = root.place("n > 1"), root.place("n > 5"), root.place("word = 'a'")
    root.machine.set_aside.aside[narrow] = 0
    root.interests.set_aside([narrow])
    root.machine.caches.clear()
    rows = [((narrow,), b"1"), ((other, narrow), b"2"), ((wide,), b"3"), ((narrow, narrow), b"4")]
    root.machine.set_aside.retire = lambda most: None  # type: ignore[method-assign]
    root.hand_over(make_part("out", (1, 0), rows, root.life, root.version))
    tags = {one.payload: {mark.node for mark in one.marks} for one in root.records()}
    assert tags == {b"1": {wide}, b"2": {wide, other}, b"3": {wide}, b"4": {wide}}


def test_filters_beyond_a_share_are_set_aside(tmp_path: Path) -> None:
    root = Root(tmp_path)
    root.machine.context.limits = limits = Limits(marks=4)
    resolving = root.machine.take_over._resolving
    resolving._limits = resolving._tagger._limits = limits
    nodes = [root.place(f"array_contains(l, {at})") for at in range(10)]
    for node in nodes:
        root.say(m.Subscribe(root.machine.epoch, (node,)))
    part = make_part("out", (1, 0), [(nodes, b"x"), (nodes[:2], b"y")], root.life, root.version)
    root.say(part.message())
    root.sync()
    wide, few = root.records()
    assert len(wide.marks) == 4
    assert [mark.node for mark in few.marks] == nodes[:2]


# -- the order of parts ----------------------------------------------------------------------------


def test_each_part_is_taken_once_and_in_order(tmp_path: Path, seed: int) -> None:
    """Against a list, through restarts and parts that come again."""
    chance = random.Random(seed)
    root = Root(tmp_path)
    node = root.place("n > 1")
    root.sync()
    keys = [(7, 0), (7, 1), (7, 2), (8, 0), (9, 0), (9, 1)]
    last = {(7, 2), (8, 0), (9, 1)}
    parts = [
        make_part("out", key, [((node,), b"%d.%d.%d" % (*key, at)) for at in range(key[1] * 3)],
                  root.life, root.version, last=key in last)
        for key in keys
    ]  # fmt: skip
    taken = 0
    while taken < len(parts):
        at = chance.randrange(len(parts))
        answer = root.hand_over(parts[at])
        if at <= taken:
            assert not answer.refusal
            taken = max(taken, at + 1)
        elif taken:
            batch, part = keys[taken]
            expected = f"expected part {part} of batch {batch}"
            assert answer.refusal.endswith(expected)
            assert not answer.later
        if chance.random() < 0.3:
            root.restart()
        if not taken and at and keys[at][1] == 0:  # a source may begin with any batch
            taken = at + 1
            del parts[:at], keys[:at]
            taken = 1
    payloads = [one.payload for one in root.records()]
    assert payloads == [b"%d.%d.%d" % (*key, at) for key in keys for at in range(key[1] * 3)]
    stamps = [one.stamp for one in root.records()]
    assert stamps == [*range(1, len(stamps) + 1)]


def test_a_part_of_which_some_pieces_were_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_columns, "ROWS", 10)
    root = Root(tmp_path)
    node = root.place("n > 1")
    rows = [((node,), b"%d" % at) for at in range(35)]
    part = make_part("out", (0, 0), rows, root.life, root.version, last=True).message()
    pieces = root.machine.split(part)
    assert len(pieces) == 4
    for piece in pieces[:2]:
        root.say(piece)
    root.sync()
    root.say(pieces[2])  # it is not on the disk when the process is killed
    root.restart()
    assert root.ask(part) == m.Taken(root.machine.epoch, "out", 0, 0)
    assert [one.payload for one in root.records()] == [b"%d" % at for at in range(35)]


def test_nothing_is_acknowledged_before_it_is_on_the_disk(tmp_path: Path) -> None:
    root = Root(tmp_path)
    node = root.place("n > 1")
    part = make_part("out", (0, 0), [((node,), b"x")], root.life, root.version).message()
    assert not root.say(part)
    assert not root.say(part), "a repetition waits too"
    follow = m.Follow(5)
    assert not root.say(follow)
    answers = [one for one in root.sync() if not isinstance(one, m.Notification)]
    assert [type(one) for one in answers] == [m.Taken, m.Taken, m.Changed]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    root = Root(tmp_path)
    node = root.place("n > 1")
    part = make_part("out", (0, 0), [((node,), b"x")], root.life, root.version)
    root.say(part.message())
    (answer,) = [one for _, one in root.machine.fail("the disk is full")]
    assert answer == m.Taken(root.machine.epoch, "out", 0, 0, "the disk is full", later=True)
    assert root.hand_over(part).later
    root.restart()
    assert not root.hand_over(part).refusal
    assert [one.payload for one in root.records()] == [b"x"]


# -- what is refused -------------------------------------------------------------------------------


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(tmp_path)
    node, gone = root.place("n > 1"), root.place("n > 2")
    before = root.version
    rows = [((node,), b"x")]

    def refused(part: object) -> m.Taken:
        answer = root.ask(part)  # type: ignore[arg-type]
        assert isinstance(answer, m.Taken)
        assert not answer.later
        return answer

    good = make_part("out", (3, 0), rows, root.life, root.version).message()
    replace = msgspec.structs.replace
    answer = refused(replace(good, life=5))
    assert "tagged in life 5 of the channel, expected life 1001" in answer.refusal
    assert not answer.version
    answer = refused(replace(good, version=root.version + 1))
    assert f"at version {before + 1}, which is unknown or too old" in answer.refusal
    assert answer.version == root.version
    answer = refused(make_part("out", (3, 0), [((99,), b"")], root.life, root.version).message())
    assert "found node 99 in a tag of version" in answer.refusal
    assert answer.version == root.version
    answer = refused(replace(good, node_starts=b"123"))
    assert answer.refusal == "node_starts: found 3 bytes, expected integers of 8 bytes each"
    answer = refused(replace(good, payload_starts=good.node_starts + bytes(8)))
    assert (
        "payload_starts: found 0 ... 0, expected increasing numbers from 0 to 1" in answer.refusal
    )
    answer = refused(replace(good, node_starts=bytes(16)))
    assert "node_starts: found 0 ... 0, expected increasing numbers from 0 to 1" in answer.refusal
    answer = refused(replace(good, node_starts=bytes(8), nodes=b""))
    assert "nodes of 0 notifications but payloads of 1, expected the same" in answer.refusal
    answer = refused(replace(good, payloads=bytes(5 << 20)))
    assert answer.refusal.endswith("bytes, expected at most 4,194,304")
    answer = refused(replace(good, nodes=bytes(8)))
    assert answer.refusal == "found node 0, expected positive numbers"
    assert not refused(good).refusal
    answer = refused(replace(good, part=2))
    assert answer.refusal == ("found part 2 of batch 3 of 'out', expected part 1 of batch 3")
    monkeypatch.setattr(node_history, "MOST_AROUND", 1)
    for number in range(3):
        root.drop(gone)
        gone = root.place(f"n > {number + 5}")
    answer = refused(replace(good, part=1, version=before))
    assert "which is unknown or too old" in answer.refusal
    assert answer.version == root.version
    root.machine.sources._most = 1
    assert "the limit `sources`" in refused(replace(good, source="other")).refusal


def test_a_journal_that_lost_data_begins_another_life(tmp_path: Path) -> None:
    root = Root(tmp_path)
    node = root.place("n > 1")
    part = make_part("out", (3, 0), [((node,), b"x")], root.life, root.version, last=True)
    assert not root.hand_over(part).refusal
    root.journal.close()
    (log,) = root.path.glob("*.log")
    log.write_bytes(log.read_bytes()[:-10])
    root.open()
    assert root.life == 1002
    assert "tagged in life 1001 of the channel, expected life 1002" in root.hand_over(part).refusal
    changed = root.ask(m.Follow(1, part.version, part.life))
    assert isinstance(changed, m.Changed)
    assert (changed.life, changed.whole) == (1002, True)
    node = root.place("n > 1")
    part = make_part("out", (9, 0), [((node,), b"y")], root.life, root.version, last=True)
    assert not root.hand_over(part).refusal, "a source may begin with any batch then"
    (record,) = [one for one in root.records() if one.payload == b"y"]
    assert record.stamp > 1 << 31 or record.stamp == 1
