"""What a journal makes of a known loss: everybody is told of a break, and nothing of before it is
taken for something else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.store.test_journal import BEFORE, opened, ready, record, write

from tidings.model import EnvironmentProblem
from tidings.store.journal import FileJournal, Retention, checkpoint, journal as module, segments

pytestmark = pytest.mark.usefixtures("_small")


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES", 2_000)
    monkeypatch.setattr(module, "CHECKPOINT_BYTES", 4_000)
    monkeypatch.setattr(segments, "SMALL", 1_000)


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
        patch.setattr(segments.Segment, "add", fail)
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
