"""The journal of a rendezvous point against one in memory, opened again at any moment."""

from __future__ import annotations

import itertools
import logging
import os
import random
import shutil
import sqlite3
import stat
import time
from pathlib import Path

import pytest
from tests.routing.definition import memory_of

from tidings.model import EnvironmentProblem
from tidings.routing.protocol.limits import work_of
from tidings.routing.protocol.lineage import Lineage
from tidings.routing.protocol.marks import Marks
from tidings.routing.protocol.messages import Life, Mark, Range
from tidings.routing.root.interests import Placed
from tidings.routing.root.journal import Memory
from tidings.routing.root.node_history import History, RemovedNode
from tidings.routing.root.records import Record
from tidings.store.groups import GroupLog, RecordPlace
from tidings.store.journal import (
    FileJournal,
    Retention,
    checkpoint,
    journal as module,
    log_segments,
    record_lookup,
)
from tidings.store.journal.upkeep import upkeep
from tidings.store.owner import change_requests

BEFORE = Path(__file__).parent / "before" / "journal.db"  # as the format before was written


def write(journal: FileJournal) -> None:
    batch = journal.take()
    if batch is not None:
        journal.write(batch)


def ready(journal: FileJournal) -> FileJournal:
    """One that has found out where its older notifications are."""
    while True:
        try:
            journal.find([])
            return journal
        except EnvironmentProblem:
            time.sleep(0.001)


def opened(path: Path, life: int = 1, retention: Retention | None = None) -> FileJournal:
    journal = ready(FileJournal(path, retention))
    journal.begin_life(life)
    return journal


def record(serial: int, node: int = 7, payload: bytes = b"x" * 100) -> Record:
    """The only notifications of a node, by a publisher."""
    return Record(serial, "p", serial, (Mark(node, serial, (node,)),), (node,), payload)


def test_against_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 500)
    monkeypatch.setattr(module, "SEGMENT_BYTES", 700)
    monkeypatch.setattr(log_segments, "LINGER", 0.0)
    chance = random.Random(seed)
    journal = opened(tmp_path / "j" / "journal.db", 77)
    lives, owners = [Life(77, 1)], dict[int, tuple[str, ...]]()
    nodes: dict[int, bytes] = {}
    counts: dict[int, int] = {}
    kept: list[Record] = []
    pruned, next_node, stamps = 0, 1, dict[str, int]()
    past = History()
    past.begin_life(77, 0, broken=False)
    for _ in range(300):
        what = chance.random()
        if what < 0.1 or not nodes:
            nodes[next_node] = chance.randbytes(3)
            owners[next_node] = (chance.choice("ab"),)
            journal.add_node(next_node, nodes[next_node], owners[next_node][0])
            past.add(next_node)
            next_node += 1
        elif what < 0.11:
            node = chance.choice(list(nodes))
            owners[node] = tuple(chance.sample("abc", chance.randrange(1, 3)))
            journal.set_owners(node, owners[node])
        elif what < 0.13:
            node = chance.choice(list(nodes))
            del nodes[node]
            counts.pop(node, None)
            gone = RemovedNode(next_node, (), tuple(chance.sample(list(nodes), min(2, len(nodes)))))
            journal.drop_node(node, gone)
            past.drop(node, gone)
            next_node += 1
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
            journal = ready(FileJournal(tmp_path / "j" / "journal.db"))
            assert not journal.losses
            assert journal.lineage == tuple(lives)
            lives.append(Life(chance.randrange(1 << 62), len(kept) + 1))
            journal.begin_life(lives[-1].life)
            assert journal.last_node == past.version
            past.begin_life(lives[-1].life, journal.history.base, broken=False)
            assert past.base == Lineage(lives).first_node(past.version)
            assert journal.interests() == sorted(nodes.items())
            placed = [Placed(node, (), ()) for node in sorted(nodes)]
            expected = memory_of(kept, Memory(tuple(lives)), {one.node: one for one in placed})
            expected.owners = {node: owners[node] for node in sorted(nodes)}
            expected.sizes = {node: work_of(one) for node, one in sorted(nodes.items())}
            expected.history = past
            assert journal.memory(placed) == expected
            next_node = past.base + 1
    write(journal)
    check_finding(journal, kept, pruned, chance)


def check_finding(
    journal: FileJournal, kept: list[Record], pruned: int, chance: random.Random
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
        life = journal.lineage[-1].life
        for one in found:
            assert all(one == there[mark[:2]].notification(life) for mark in one.marks)


def test_records_with_many_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """They are kept as columns; every number is found, and counted."""
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 3_000)
    chance = random.Random(seed)
    journal = opened(tmp_path / "journal", 77)
    lives = [Life(77, 1)]
    for node in range(1, 31):
        journal.add_node(node, b"x")
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
            lives.append(Life(chance.randrange(1 << 62), len(kept) + 1))
            journal = opened(tmp_path / "journal", lives[-1].life)
    write(journal)
    for _ in range(5):
        check_finding(journal, kept, 100, chance)
    placed = [Placed(node, (), ()) for node in range(1, 31)]
    expected = memory_of(kept, Memory(tuple(lives)), {one.node: one for one in placed})
    journal.close()
    expected.sizes = {node: work_of(b"x") for node in range(1, 31)}
    journal = FileJournal(tmp_path / "journal")
    expected.history = journal.history
    assert journal.memory(placed) == expected


def test_a_machine_counts_from_what_the_journal_was_given(tmp_path: Path) -> None:
    """Or it takes for stored what waits behind something that was given before."""
    journal = opened(tmp_path / "journal")
    write(journal)
    before = journal.memory([]).written
    journal.set_owners(7, ("a",))
    assert journal.memory([]).written == before + 1
    journal.set_owners(7, ("b",))
    batch = journal.take()
    assert batch is not None
    assert batch.upto == before + 2
    journal.close()


def test_a_range_without_end(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal.db")
    journal.append(Record(1, "p", 1, (Mark(5, 3, (5,)),), (5,), b"x"))
    write(journal)
    found, lost = journal.find([Range(5, 1, 2**64 - 1), Range(6, 0, 4)])
    assert [one.serial for one in found] == [1]
    assert lost == [Range(5, 1, 2), Range(5, 4, 2**64 - 1), Range(6, 0, 4)]


def test_what_can_not_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_requests, "PATIENCE", 0.5)
    path = tmp_path / "journal.db"
    path.write_text("no database, and longer than the head of one" * 30)
    with pytest.raises(EnvironmentProblem, match=r"journal\.db is a file, but not a journal"):
        FileJournal(path)
    path.unlink()
    journal = FileJournal(path)
    with pytest.raises(EnvironmentProblem, match=r"another rendezvous point is using the journal"):
        FileJournal(path)
    journal.close()


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    journal = opened(tmp_path / "new" / "folders" / "journal")
    journal.append(record(1))
    write(journal)
    journal.close()
    for path in (tmp_path / "new").rglob("*"):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_new_folders_above_it_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in the folder above, before the journal is there: after a power cut its name is too."""
    synced: list[Path] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    path = tmp_path / "new" / "folders" / "journal"
    opened(path).close()
    assert synced[:3] == [tmp_path, tmp_path / "new", tmp_path / "new" / "folders"]
    synced.clear()
    opened(path, 2).close()
    assert tmp_path not in synced  # they are there


def test_what_nobody_was_told_of_has_no_payload(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal")
    journal.append(Record(1, "p", 1, (), (), b"nobody wanted this" * 100))
    journal.append(Record(2, "p", 2, (Mark(5, 1, (5,)),), (5,), b"somebody wanted this"))
    write(journal)
    data = b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("*.log"))
    assert b"somebody wanted this" in data
    assert b"nobody wanted this" not in data


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing half done stays, and when there is room again it goes on from what is there."""
    journal = opened(tmp_path / "journal")
    journal.add_node(7, b"x")
    journal.append(record(1))
    write(journal)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        patch.setattr(os, "fsync", fail)
        journal.append(record(2))
        with pytest.raises(EnvironmentProblem, match="can't be written: No space left on device"):
            write(journal)
        journal.append(record(3))  # it waits, in vain
        with pytest.raises(EnvironmentProblem, match="No space left on device"):
            journal.revive()
    journal.revive()
    assert journal.take() is None
    assert not journal.losses
    journal.begin_life(2)
    memory = journal.memory([Placed(7, (), ())])
    assert (memory.serial, memory.counts, memory.totals) == (1, {7: 1}, {7: 1})
    assert memory.publishers == {"p": 1}
    assert [one.life for one in memory.lineage] == [1, 2]
    journal.append(record(2))
    write(journal)
    assert len(ready(journal).find([Range(7, 1, 9)])[0]) == 2


def test_a_journal_that_somebody_took_away_is_not_written_to(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal")
    (tmp_path / "journal").rename(tmp_path / "elsewhere")
    journal.append(record(1))
    with pytest.raises(EnvironmentProblem, match="the folder of the journal was removed or"):
        write(journal)


def test_older_files_that_are_put_in_place_while_it_runs_are_noticed(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal")
    journal.append(record(1))
    write(journal)
    shutil.copytree(tmp_path / "journal", tmp_path / "copy")
    journal.append(record(2))
    write(journal)
    for path in (tmp_path / "copy").iterdir():
        (tmp_path / "journal" / path.name).write_bytes(path.read_bytes())
    journal.append(record(3))
    with pytest.raises(EnvironmentProblem, match="changed by another process"):
        write(journal)
    journal.revive()
    journal.begin_life(2)
    assert journal.memory([]).lineage == (Life(1, 1), Life(2, 2))


def filled(path: Path, count: int, retention: Retention | None = None) -> FileJournal:
    journal = opened(path, retention=retention)
    for serial in range(1, count + 1):
        journal.append(record(serial))
        if serial % 50 == 0:
            write(journal)
    write(journal)
    return journal


def kept(journal: FileJournal) -> list[int]:
    found, lost = ready(journal).find([Range(7, 1, 1000)])
    serials = [one.serial for one in found]
    assert serials == [*range(1001 - len(serials), 1001)]
    assert lost == ([Range(7, 1, 1000 - len(serials))] if len(serials) < 1000 else [])
    return serials


@pytest.fixture
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES", 10_000)
    monkeypatch.setattr(log_segments, "SMALL", 1_000)


@pytest.mark.usefixtures("_small_segments")
def test_what_nobody_needs_goes_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = filled(tmp_path / "journal", 1000)
    journal.prune(1000)
    assert journal.take() is None  # it stays for a while: who was cut off may come back
    monkeypatch.setattr(log_segments, "LINGER", 0.0)
    write(journal)
    assert kept(journal) == []
    assert sum(path.stat().st_size for path in (tmp_path / "journal").iterdir()) < 5_000
    journal.close()
    journal = opened(tmp_path / "journal", 2)
    assert not journal.losses
    assert journal.memory([]).serial == 1000
    assert journal.memory([]).publishers == {"p": 1000}


@pytest.mark.usefixtures("_small_segments")
def test_what_is_too_much_or_too_old_goes_though_somebody_needs_it(tmp_path: Path) -> None:
    journal = filled(tmp_path / "few", 1000, Retention(bytes=50_000))
    assert 100 < len(kept(journal)) < 500
    journal = filled(tmp_path / "marked", 1000, Retention(marks=300))
    assert 100 < len(kept(journal)) < 500
    journal = filled(tmp_path / "old", 1000, Retention(seconds=0.0))
    assert len(kept(journal)) < 200
    journal = filled(tmp_path / "all", 1000)
    assert len(kept(journal)) == 1000


@pytest.mark.usefixtures("_small_segments")
def test_the_budget_of_the_disk_is_a_clear_refusal(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal", retention=Retention(disk_bytes=30_000))

    def fill() -> None:
        for serial in range(1, 1000):
            journal.append(record(serial))
            write(journal)

    with pytest.raises(EnvironmentProblem, match="expected at most 30,000, the limit"):
        fill()
    files = sorted((tmp_path / "journal").iterdir())
    for _ in range(3):
        with pytest.raises(EnvironmentProblem, match="expected at most 30,000"):
            journal.revive()
    assert sorted((tmp_path / "journal").iterdir()) == files
    journal.retention = Retention()
    journal.revive()
    journal.begin_life(2)
    assert not journal.losses


@pytest.mark.usefixtures("_small_segments")
def test_the_budget_of_the_disk_holds_while_older_segments_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = filled(tmp_path / "journal", 1000)
    journal._keep(journal._catch_up())
    journal.close()
    monkeypatch.setattr(record_lookup.RecordLookup, "read_older", lambda *_: None)
    journal = FileJournal(tmp_path / "journal", Retention(disk_bytes=30_000))
    journal.begin_life(2)
    journal.append(record(1001))
    with pytest.raises(EnvironmentProblem, match="expected at most 30,000"):
        write(journal)
    with pytest.raises(EnvironmentProblem, match="expected at most 30,000"):
        journal.revive()


def test_older_segments_are_not_read_on_once_it_was_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = filled(tmp_path / "journal", 1000)
    journal._keep(journal._catch_up())
    added: list[object] = []
    monkeypatch.setattr(log_segments.LogSegment, "add", lambda _, *group: added.append(group))
    journal._lookup.is_over = True
    journal._lookup.read_older(journal._log.end)
    assert added == []


@pytest.mark.usefixtures("_small_segments")
@pytest.mark.parametrize("problem", [OSError(5, "Input/output error"), ValueError("whatever")])
def test_older_segments_that_can_not_be_read_are_lost_and_said_to_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    problem: Exception,
) -> None:
    journal = filled(tmp_path / "journal", 1000)
    journal._keep(journal._catch_up())
    journal.close()
    add, calls = log_segments.LogSegment.add, itertools.count(1)

    def fail(
        self: log_segments.LogSegment, records: list[bytes], places: list[RecordPlace]
    ) -> None:
        if next(calls) > 10:
            raise problem
        add(self, records, places)

    monkeypatch.setattr(log_segments.LogSegment, "add", fail)
    journal = ready(FileJournal(tmp_path / "journal"))
    found, lost = journal.find([Range(7, 1, 1000)])
    assert lost == [Range(7, len(found) + 1, 1000)]
    assert "can't read the older notifications of the journal" in caplog.text
    assert str(problem) in caplog.text


def test_publishers_are_forgotten(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal")
    journal.append(record(1))
    journal.forget_publishers(["p"])
    journal.append(Record(2, "q", 1, (), (), b""))
    write(journal)
    assert journal.memory([]).publishers == {"q": 1}


# -- damage ----------------------------------------------------------------------------------------


def damaged(path: Path, chance: random.Random) -> str:
    """Flip a bit, cut, zero or remove something of a journal that is closed; what was done."""
    others = {"channel", "lock", "owner"}
    files = sorted(one for one in path.iterdir() if one.is_file() and one.name not in others)
    one = chance.choice(files)
    data = bytearray(one.read_bytes())
    at = chance.randrange(len(data))
    kind = chance.choice(["flip", "flip", "flip", "cut", "zero", "unlink"])
    if kind == "flip" or (kind == "zero" and not any(data[at : at + 512])):
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del data[at:]
    elif kind == "zero":
        data[at : at + 512] = bytes(len(data[at : at + 512]))
    one.write_bytes(data)
    if kind == "unlink":
        one.unlink()
    return f"{kind} {one.name} at {at}"


def test_whatever_is_altered_is_lost_or_a_break_and_never_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 6_000)
    monkeypatch.setattr(module, "SEGMENT_BYTES", 4_000)
    chance = random.Random(seed)
    journal = opened(tmp_path / "journal")
    for serial in range(1, 101):
        journal.append(record(serial, payload=b"%d;" % serial * 30))
        if serial % 3 == 0:
            write(journal)
    write(journal)
    journal.close()
    for life in range(2, 62):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "journal", tmp_path / "copy")
        what = damaged(tmp_path / "copy", chance)
        caplog.clear()
        journal = ready(FileJournal(tmp_path / "copy"))
        losses = journal.losses
        journal.begin_life(life)
        if not losses:  # all that was acknowledged is known of
            memory = journal.memory([])
            assert (memory.serial, memory.publishers) == (100, {"p": 100}), what
        lives = [one.life for one in journal.lineage]
        assert lives == ([life] if losses else [1, life]), what
        found, lost = journal.find([Range(7, 1, 100)])
        for one in found:
            assert one.payload == b"%d;" % one.serial * 30, what
            assert one.marks == (Mark(7, one.serial, (7,)),), what
        numbers = {one.serial for one in found}
        assert numbers | {n for r in lost for n in range(r.first, r.last + 1)} == {*range(1, 101)}
        if "end" not in what and "checkpoint" not in what:
            # where it is before the checkpoint, and no notification, somebody is told at least
            is_said = "has lost notifications" in caplog.text
            assert losses or len(numbers) < 100 or is_said, what
        journal.append(record(101))
        write(journal)
        journal.close()
        journal = FileJournal(tmp_path / "copy")
        assert not journal.losses, f"it is told once: {what}"
        journal.close()


def test_an_altered_payload_is_lost_with_its_number_and_said_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = opened(tmp_path / "journal")
    for serial in (1, 2, 3):
        journal.append(record(serial, payload=b"payload of %d" % serial))
    write(journal)
    journal.begin_life(2)
    (path,) = (tmp_path / "journal").glob("*.log")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"payload of 2", b"payload of 9"))
    with caplog.at_level(logging.ERROR):
        found, lost = journal.find([Range(7, 1, 3)])
    assert [one.serial for one in found] == [1, 3]
    assert lost == [Range(7, 2, 2)]
    assert "lost number 2 of node 7" in caplog.text


# -- the format before -----------------------------------------------------------------------------


def check_before(journal: FileJournal) -> None:
    assert not journal.losses
    assert [*journal.lineage] == [Life(1234567890, 1)]
    journal.begin_life(5)
    assert [*journal.lineage] == [Life(1234567890, 1), Life(5, 51)]
    assert journal.interests() == [
        (1, b"price > 90"), (2, b"price > 95"), (4, b"s RLIKE '(?=a)b'")
    ]  # fmt: skip
    memory = journal.memory([Placed(1, (), ()), Placed(2, (1,), ())])
    assert memory.serial == 50
    assert memory.counts == {1: 25, 2: 25}
    assert memory.totals == {1: 50, 2: 25}
    assert memory.latest == {1: 49, 2: 50}
    assert memory.publishers == {"p0/life": 16, "p1/life": 17, "p2/life": 17}
    found, lost = ready(journal).find([Range(1, 1, 25), Range(2, 1, 26)])
    assert [one.payload for one in found] == [b"payload %d" % n for n in range(1, 51)]
    assert lost == [Range(2, 26, 26)]
    assert journal.last_node == 4


def test_a_journal_of_the_format_before_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    shutil.copy(BEFORE, path)
    journal = FileJournal(path)
    check_before(journal)
    journal.close()
    assert path.is_dir()
    assert (tmp_path / "journal.db.before").read_bytes()[:15] == b"SQLite format 3"
    again = FileJournal(path)
    assert [one.life for one in again.lineage] == [1234567890, 5]


@pytest.mark.parametrize("at", range(4))
def test_rewriting_that_is_interrupted_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    path = tmp_path / "journal.db"
    shutil.copy(BEFORE, path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    renames: list[Path] = []
    rename = Path.rename

    def rename_some(self: Path, target: Path) -> Path:
        renames.append(self)
        if len(renames) == at - 1:
            die()
        return rename(self, target)

    with monkeypatch.context() as patch:
        if at < 2:
            owner, name = (GroupLog, "append") if at else (checkpoint, "write")
            patch.setattr(owner, name, die)
        else:
            patch.setattr(Path, "rename", rename_some)
        with pytest.raises(KeyboardInterrupt):
            FileJournal(path)
    check_before(FileJournal(path))


@pytest.mark.parametrize("at", range(3))
def test_what_only_the_wal_has_stays_until_the_journal_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    path, wal = tmp_path / "journal.db", tmp_path / "journal.db-wal"
    shutil.copy(BEFORE, path)
    other = sqlite3.connect(path)  # as long as it is open, no other one empties the file
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("UPDATE publishers SET stamp = 99 WHERE name = 'p0/life'")
    other.commit()
    other.execute("BEGIN")
    other.execute("SELECT * FROM about").fetchall()
    renames: list[Path] = []
    rename = Path.rename

    def rename_some(self: Path, target: Path) -> Path:
        renames.append(self)
        if len(renames) == at + 1:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_some)
        with pytest.raises(KeyboardInterrupt):
            FileJournal(path)
    assert wal.stat().st_size if at < 2 else not wal.exists()
    assert FileJournal(path).memory([]).publishers["p0/life"] == 99
    assert (tmp_path / "journal.db.before-wal").stat().st_size
    assert not wal.exists()
    other.close()


def test_a_damaged_journal_of_the_format_before_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    data = bytearray(BEFORE.read_bytes())
    data[4096:8192] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(EnvironmentProblem, match=r"in the previous format, is damaged: .*move it"):
        FileJournal(path)
    assert path.read_bytes() == data  # as it was, for whoever can mend it
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE about (key TEXT PRIMARY KEY, value INTEGER)")
        connection.execute("INSERT INTO about VALUES ('format', 9)")
    with pytest.raises(EnvironmentProblem, match="found a journal in format 9"):
        FileJournal(path)
