"""The journal of a rendezvous point against one in memory, opened again at any moment."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
from tests.routing.definition import memory_of

from tidings.model import EnvironmentProblem
from tidings.routing.limits import work_of
from tidings.routing.marks import Marks
from tidings.routing.messages import Mark, Range
from tidings.routing.rendezvous import Memory, Placed, Record
from tidings.store import journal as module
from tidings.store.journal import SqliteJournal


def write(journal: SqliteJournal) -> None:
    batch = journal.take()
    if batch is not None:
        journal.write(batch)


def test_against_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(module, "CHECKPOINT", 7)
    monkeypatch.setattr(module, "KEEP", 20)
    chance = random.Random(seed)
    journal = SqliteJournal(tmp_path / "j" / "journal.db", epoch=77)
    nodes: dict[int, bytes] = {}
    owners: dict[int, tuple[str, ...]] = {}
    counts: dict[int, int] = {}
    kept: list[Record] = []
    pruned, next_node, stamps = 0, 1, dict[str, int]()
    for _ in range(300):
        what = chance.random()
        if what < 0.1 or not nodes:
            nodes[next_node] = chance.randbytes(3)
            owners[next_node] = (chance.choice("ab"),)
            journal.add_node(next_node, nodes[next_node], *owners[next_node])
            next_node += 1
        elif what < 0.12:
            one = chance.choice(list(nodes))
            owners[one] = tuple(chance.sample("abc", chance.randrange(3)))
            journal.set_owners(one, owners[one])
        elif what < 0.15:
            gone = chance.choice(list(nodes))
            del nodes[gone]
            counts.pop(gone, None)
            journal.drop_node(gone)
        elif what < 0.9:
            marked = chance.sample(list(nodes), chance.randrange(min(3, len(nodes)) + 1))
            for node in marked:
                counts[node] = counts.get(node, 0) + 1
            matched = sorted({*marked, *chance.sample(list(nodes), min(2, len(nodes)))})
            who = chance.choice("pq")
            stamps[who] = stamps.get(who, 0) + 1
            marks = tuple(Mark(node, counts[node], (node,)) for node in marked)
            serial = len(kept) + 1
            kept.append(Record(serial, who, stamps[who], marks, tuple(matched), b"%d" % serial))
            journal.append(kept[-1])
        elif what < 0.95:
            write(journal)
            pruned = max(pruned, len(kept) // 2)
            journal.prune(pruned)
        else:
            write(journal)
            journal.close()
            journal = SqliteJournal(tmp_path / "j" / "journal.db", epoch=1)
            assert journal.epoch == 77
            assert journal.last_node == next_node - 1
            assert journal.interests() == sorted(nodes.items())
            placed = [Placed(node, (), ()) for node in sorted(nodes)]
            expected = memory_of(kept, Memory(77), {one.node: one for one in placed})
            expected.owners = {node: owners[node] for node in nodes if owners[node]}
            expected.sizes = {node: work_of(interest) for node, interest in nodes.items()}
            assert journal.memory(placed) == expected
    write(journal)
    check_finding(journal, kept, pruned, chance)


def check_finding(
    journal: SqliteJournal, kept: list[Record], pruned: int, chance: random.Random
) -> None:
    there = {(mark.node, mark.number): one for one in kept for mark in one.marks}
    for node in {node for node, _ in there}:
        first = chance.randrange(1, max(4, *(n for one, n in there if one == node)) + 1)
        asked = Range(node, first, first + chance.randrange(10))
        found, lost = journal.find([asked])
        wanted = {(node, number) for number in range(asked.first, asked.last + 1)}
        missing = {(r.node, n) for r in lost for n in range(r.first, r.last + 1)}
        have = {(mark.node, mark.number) for one in found for mark in one.marks} & wanted
        assert have | missing == wanted
        assert not have & missing
        for key in missing & there.keys():
            assert there[key].serial <= pruned
        assert all(one == there[key].notification(77) for one in found for key in
                   [(mark.node, mark.number) for mark in one.marks])  # fmt: skip


def test_records_with_many_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """They have few rows of their own; every number is found all the same, and counted."""
    monkeypatch.setattr(module, "NEAR", 5)
    monkeypatch.setattr(module, "KEEP", 60)
    monkeypatch.setattr(module, "CHECKPOINT", 30)
    chance = random.Random(seed)
    journal = SqliteJournal(tmp_path / "journal.db", 77)
    counts: dict[int, int] = {}
    kept: list[Record] = []
    headers = [
        tuple(sorted(chance.sample(range(1, 31), chance.randrange(1, 25)))) for _ in range(6)
    ]
    for serial in range(1, 301):
        nodes = chance.choice(headers)
        numbers = tuple(counts.get(node, 0) + 1 for node in nodes)
        counts.update(zip(nodes, numbers, strict=True))
        marks = Marks(nodes, numbers) if len(nodes) > 3 else tuple(Marks(nodes, numbers))
        kept.append(Record(serial, "p", serial, marks, nodes, b"%d" % serial))
        journal.append(kept[-1])
        if chance.random() < 0.2:
            write(journal)
            journal.prune(serial // 3)
        if chance.random() < 0.02:
            write(journal)
            journal.close()
            journal = SqliteJournal(tmp_path / "journal.db", 77)
    write(journal)
    for _ in range(5):
        check_finding(journal, kept, 100, chance)
    placed = [Placed(node, (), ()) for node in range(1, 31)]
    expected = memory_of(kept, Memory(77), {one.node: one for one in placed})
    journal.close()
    assert SqliteJournal(tmp_path / "journal.db", 1).memory(placed) == expected


def test_a_range_without_end(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db", 1)
    journal.append(Record(1, "p", 1, (Mark(5, 3, (5,)),), (5,), b"x"))
    write(journal)
    found, lost = journal.find([Range(5, 1, 2**64 - 1), Range(6, 0, 4)])
    assert [one.serial for one in found] == [1]
    assert lost == [Range(5, 1, 2), Range(5, 4, 2**64 - 1), Range(6, 0, 4)]


def test_what_can_not_be_opened_or_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_text("no database, and longer than the head of one" * 30)
    with pytest.raises(EnvironmentProblem, match=r"journal\.db can't be opened: file is not"):
        SqliteJournal(path, 1)
    path.unlink()
    journal = SqliteJournal(path, 1)
    journal.append(Record(1, "p", 1, (), (), b""))
    write(journal)
    journal.append(Record(1, "p", 1, (), (), b""))
    with pytest.raises(EnvironmentProblem, match="can't be written: UNIQUE"):
        write(journal)
    journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET value = 9 WHERE key = 'format'")
    with pytest.raises(EnvironmentProblem, match="is of format 9, expected 1"):
        SqliteJournal(path, 1)


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing half done stays, and when there is room again it goes on from what is there."""
    monkeypatch.setattr(module, "KEEP", 5)
    monkeypatch.setattr(module, "CHECKPOINT", 10)
    pages = 100
    opened = SqliteJournal._opened

    def limited(journal: SqliteJournal, epoch: int) -> sqlite3.Connection:
        connection = opened(journal, epoch)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(SqliteJournal, "_opened", limited)
    journal = SqliteJournal(tmp_path / "journal.db", 1)
    journal.add_node(5, b"x")
    serial, written = 0, 0
    full = "can't be written: database or disk is full"

    def fill() -> None:
        nonlocal serial, written
        while True:
            for _ in range(10):
                serial += 1
                mark = Mark(5, serial, (5,))
                journal.append(Record(serial, "p", serial, (mark,), (5,), bytes(1000)))
            write(journal)
            written = serial

    with pytest.raises(EnvironmentProblem, match=full):
        fill()
    journal.append(Record(serial + 1, "p", serial + 1, (), (), b""))  # it waits, in vain
    with pytest.raises(EnvironmentProblem, match=full):
        journal.revive()
    monkeypatch.setattr(journal, "_about_locked", lambda _: 1 / 0)
    journal.prune(written)  # that it can't is no reason to end
    monkeypatch.undo()
    journal.revive()
    assert journal.take() is None
    memory = journal.memory([Placed(5, (), ())])
    assert (memory.serial, memory.counts, memory.totals) == (written, {5: written}, {5: written})
    assert memory.publishers == {"p": written}
    journal.append(Record(written + 1, "p", written + 1, (Mark(5, written + 1, (5,)),), (5,), b""))
    write(journal)
    assert len(journal.find([Range(5, 1, serial + 9)])[0]) == written + 1


def test_what_nobody_needs_goes_with_later_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECKPOINT", 10)
    monkeypatch.setattr(module, "KEEP", 20)
    journal = SqliteJournal(tmp_path / "journal.db", epoch=1)
    for number in range(1, 1001):
        mark = Mark(7, number, (7,))
        journal.append(Record(number, "p", number, (mark,), (7,), b"x"))
        if number % 50 == 0:
            journal.prune(number)
            write(journal)
    found, lost = journal.find([Range(7, 1, 1000)])
    assert [one.serial for one in found] == [*range(found[0].serial, 1001)]
    assert 20 <= len(found) < 200
    assert lost == [Range(7, 1, found[0].serial - 1)]
    journal.forget_publishers(["p"])
    journal.append(Record(1001, "q", 1, (), (), b""))
    write(journal)
    assert journal.memory([]).publishers == {"q": 1}
    journal.close()
