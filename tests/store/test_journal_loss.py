"""A journal after a known loss: all clients get a break, and earlier data is not mistaken for
anything else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.damage import flip_bit
from tests.store.test_journal import BEFORE, opened, ready, record, write

from tidings.model import EnvironmentProblem
from tidings.routing.protocol.lineage import Lineage
from tidings.routing.protocol.messages import Life, Range, Step
from tidings.routing.root.cursors import Confirmation, Cursor
from tidings.routing.root.interests import Placed
from tidings.routing.root.node_history import RemovedNode
from tidings.store.journal import (
    FileJournal,
    Retention,
    checkpoint,
    journal as module,
    log_segments,
)
from tidings.store.journal.upkeep import summary, upkeep

pytestmark = pytest.mark.usefixtures("_small")


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES", 2_000)
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 4_000)
    monkeypatch.setattr(log_segments, "SMALL", 1_000)


def shortened(path: Path, node: int = 7) -> FileJournal:
    """A journal with one node, the first segments of which were dropped; it was started twice."""
    journal = opened(path, 1, Retention(bytes=6_000))
    journal.add_node(node, b"price > 90")
    for serial in range(1, 101):
        journal.append(record(serial, node))
        if serial % 5 == 0:
            write(journal)
        if serial == 80:
            journal.begin_life(2)
    assert journal._log.segments()[0] > 1
    return journal


# -- a checkpoint that is missing ------------------------------------------------------------------


def test_a_missing_checkpoint_is_a_loss_where_segments_were_dropped(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    shortened(path).close()
    (path / checkpoint.NAME).unlink()
    journal = FileJournal(path)
    assert journal.losses == [f"the checkpoint {path / checkpoint.NAME} is missing"]
    journal.begin_life(3)
    assert [one.life for one in journal.lineage] == [3]
    journal.close()
    again = FileJournal(path)
    assert not again.losses
    assert [one.life for one in again.lineage] == [3]


def test_a_missing_checkpoint_is_a_loss_where_it_was_of_the_format_before(tmp_path: Path) -> None:
    """Its nodes are in no group, though no segment was dropped."""
    path = tmp_path / "journal.db"
    shutil.copy(BEFORE, path)
    FileJournal(path).close()
    shutil.copytree(path, tmp_path / "unused")
    opened(path, 5).close()
    for folder in (path, tmp_path / "unused"):
        (folder / checkpoint.NAME).unlink()
        journal = FileJournal(folder)
        assert journal.losses == [f"the checkpoint {folder / checkpoint.NAME} is missing"]
        journal.begin_life(6)
        assert [one.life for one in journal.lineage] == [6]


def test_a_batch_that_is_taken_back_leaves_word_of_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.db"
    shutil.copy(BEFORE, path)
    journal = opened(path, 5)
    journal.append(record(51))

    def fail(*_: object) -> None:
        raise ValueError("whatever")

    with monkeypatch.context() as patch:
        patch.setattr(log_segments.LogSegment, "add", fail)
        with pytest.raises(EnvironmentProblem, match="whatever"):
            write(journal)
    journal.close()
    (path / checkpoint.NAME).unlink()
    assert FileJournal(path).losses


def test_a_checkpoint_that_goes_while_it_runs_is_not_written_anew_from_what_is_left(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    journal = shortened(path)
    (path / checkpoint.NAME).unlink()

    def fill() -> None:
        for serial in range(101, 201):
            journal.append(record(serial))
            write(journal)

    with pytest.raises(EnvironmentProblem, match="checkpoint is missing"):
        fill()
    assert not (path / checkpoint.NAME).exists()
    with pytest.raises(EnvironmentProblem, match="checkpoint is missing"):
        journal.interests()


def test_a_journal_without_a_checkpoint_yet_is_whole(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal")
    journal.append(record(1))
    write(journal)
    journal.close()
    assert not (tmp_path / "journal" / checkpoint.NAME).exists()
    assert not ready(FileJournal(tmp_path / "journal")).losses


# -- named subscriptions ---------------------------------------------------------------------------


@pytest.mark.parametrize("repairs", [False, True])
def test_after_a_loss_no_serial_and_no_number_counts_as_confirmed(
    tmp_path: Path, repairs: bool
) -> None:
    """The notifications 6 to 10 are lost, but what was confirmed of them is readable."""
    path = tmp_path / "journal"
    journal = opened(path, 1)
    journal.add_node(7, b"price > 90")
    step = Step(10, 7, 10, 10, {3: 4, 7: 10}, {7: 10})
    for key in ("pieces", "all", "none"):
        journal.set_cursor(key, Cursor(7, b"price > 90", 0, 0, {}))
    journal.set_cursor("revised", Cursor(7, b"price > 90", 4, 4, {3: 4}, steps=(step,)))
    for first in (1, 6):
        for serial in range(first, first + 5):
            journal.append(record(serial, 7, b"payload %d." % serial))
        write(journal)
    journal.confirm("pieces", Confirmation(4, 4, {7: 4}, 10, (5,)))
    journal.confirm("all", Confirmation(10, 10, {7: 10}, 10))
    write(journal)
    journal.close()
    (segment,) = path.glob("*.log")
    data = segment.read_bytes()
    for serial in range(6, 11):
        flip_bit(segment, data.index(b"payload %d." % serial))
    if repairs:
        journal = FileJournal(path)
        journal.repair()
        journal.close()
    journal = opened(path, 2)
    assert journal.lineage == (Life(2, 11),)
    memory = ready(journal).memory([Placed(7, (), ())])
    assert (memory.serial, memory.counts, memory.totals) == (10, {7: 5}, {7: 5})
    cursors = memory.cursors
    assert {key: one.counts for key, one in cursors.items()} == {
        "none": {}, "pieces": {7: 4}, "all": {7: 5}, "revised": {3: 4},
    }  # fmt: skip
    assert (cursors["pieces"].total, cursors["all"].total) == (4, 5)
    assert cursors["revised"].steps[0].begins == {7: 5}
    assert cursors["revised"].steps[0].total == 5
    assert all(one.is_broken for one in cursors.values())
    assert not cursors["all"].confirm(Confirmation(11, 6, {7: 6}, 11)).is_broken


# -- numbers of nodes ------------------------------------------------------------------------------


def first_node(journal: FileJournal) -> int:
    """As a rendezvous point numbers the next one."""
    return Lineage(journal.lineage).first_node(journal.last_node) + 1


def test_after_a_loss_no_node_has_the_number_of_one_whose_notifications_are_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    shortened(path, node=1).close()
    flip_bit(path / checkpoint.NAME, 60)
    journal = opened(path, 3)
    assert journal.losses
    assert journal.last_node > 1
    new = first_node(journal)
    journal.add_node(new, b"price < 5")
    write(journal)
    journal.close()
    journal = opened(path, 4)
    assert journal.interests() == [(new, b"price < 5")]
    assert journal.memory([Placed(new, (), ())]).counts == {}
    assert journal.find([Range(new, 1, 100)]) == ([], [Range(new, 1, 100)])


def test_a_node_whose_record_was_altered_keeps_its_number(tmp_path: Path) -> None:
    """Nobody was told of anything about it yet; what dropped one before it is there."""
    path = tmp_path / "journal"
    journal = opened(path)
    for node in (1, 2, 3):
        journal.add_node(node, b"filter %d" % node)
        write(journal)
    journal.drop_node(2, RemovedNode(4))
    write(journal)
    journal.close()
    (log,) = path.glob("*.log")
    data = log.read_bytes()
    flip_bit(log, data.index(b"filter 2"))
    flip_bit(log, data.index(b"filter 3"))
    journal = opened(path, 2)
    assert journal.losses
    assert journal.last_node == 5  # the version with which the log goes on
    assert first_node(journal) > 5


def test_a_node_that_is_added_has_no_counter_of_another_one(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal")
    journal.append(record(1, 7))
    journal.add_node(7, b"price < 5")
    write(journal)
    memory = journal.memory([Placed(7, (), ())])
    assert (memory.counts, memory.totals, memory.latest) == ({}, {}, {})


# -- a start that fails ----------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["cut", "mark", "all"])
def test_a_loss_is_known_until_somebody_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path = tmp_path / "journal"
    shortened(path).close()
    if what == "cut":
        last = max(path.glob("*.log"))
        os.truncate(last, last.stat().st_size - 10)
    elif what == "mark":
        (path / "end").unlink()
    else:
        (path / "end").unlink()
        (path / checkpoint.NAME).unlink()
        for log in path.glob("*.log"):
            log.write_bytes(bytes(1_000))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    journal = FileJournal(path)
    assert journal.losses
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        if what != "all":  # its writer dies before it has begun
            with pytest.raises(EnvironmentProblem, match="No space left"):
                journal.begin_life(3)
    journal.close()
    journal = FileJournal(path)
    assert journal.losses
    journal.begin_life(4)
    assert [one.life for one in journal.lineage] == [4]
    journal.close()
    journal = FileJournal(path)
    assert not journal.losses
    assert [one.life for one in journal.lineage] == [4]


# -- damage after a loss ---------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["cut", "missing"])
def test_damage_after_a_loss_is_not_written_down_as_if_nothing_were_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """If the damaged data must be read for the checkpoint."""
    path = tmp_path / "journal"
    shortened(path).close()
    last = max(path.glob("*.log"))
    if what == "cut":
        os.truncate(last, last.stat().st_size - 10)
    else:
        last.unlink()  # the checkpoint is in it
    journal = opened(path, 3)
    assert journal.losses
    journal.add_node(8, b"price < 5")
    write(journal)
    log = max(path.glob("*.log"))
    flip_bit(log, log.read_bytes().index(b"price < 5"))
    kept = (path / checkpoint.NAME).read_bytes()
    monkeypatch.setattr(summary, "MOST_THINGS", -1)  # so that nothing is added up

    def fill() -> None:
        for serial in range(101, 201):
            journal.append(record(serial))
            write(journal)

    with pytest.raises(EnvironmentProblem, match="corrupt records in the group: 1 of"):
        fill()
    assert (path / checkpoint.NAME).read_bytes() == kept
    with pytest.raises(EnvironmentProblem, match="corrupt records in the group: 1 of"):
        journal.interests()
    journal.revive()
    assert journal.losses


def test_what_is_damaged_after_it_was_counted_is_in_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = opened(path, 1)
    journal.add_node(8, b"price < 5")
    write(journal)
    log = max(path.glob("*.log"))
    flip_bit(log, log.read_bytes().index(b"price < 5"))
    for serial in range(1, 101):
        journal.append(record(serial))
        write(journal)
    assert journal._upkeep.size, "there is a checkpoint"
    journal.close()
    again = FileJournal(path)
    assert not again.losses
    assert again.interests() == [(8, b"price < 5")]
    again.close()


def test_notifications_that_are_lost_between_others_are_named(tmp_path: Path) -> None:
    """The total of a node is too low by them, and a repair says so."""
    path = tmp_path / "journal"
    journal = opened(path, 1)
    journal.add_node(7, b"price > 90")
    write(journal)
    for serial in range(1, 7):
        journal.append(record(serial, 7, b"payload %d" % serial))
        write(journal)
    journal.close()
    (log,) = path.glob("*.log")
    for serial in (1, 3, 4, 6):
        flip_bit(log, log.read_bytes().index(b"payload %d" % serial))
    repaired = FileJournal(path, repairs=True)
    problems, lost = repaired.repair()
    assert problems[-1] == (
        "notifications in the middle of the log that can't be read: 3; the totals of their nodes "
        "do not count them"
    )
    assert not lost
    repaired.close()
