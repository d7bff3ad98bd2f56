"""The segments of a journal, where a checkpoint is in the middle of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.test_journal import opened, ready, record, write

from tidings.routing.protocol.messages import Range
from tidings.store.journal import FileJournal, Retention, journal as module, log_segments


def add(journal: FileJournal, first: int, last: int) -> None:
    for serial in range(first, last + 1):
        journal.append(record(serial))
        write(journal)


def halved(path: Path, retention: Retention | None = None) -> FileJournal:
    """A journal that was opened with a checkpoint in the middle of its first segment."""
    journal = opened(path, 1, retention)
    add(journal, 1, 8)
    journal._keep(journal._catch_up())
    journal.close()
    return opened(path, 2, retention)


def test_what_is_before_a_checkpoint_in_the_middle_of_a_segment_is_found_after_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES", 3_000)
    journal = halved(tmp_path / "journal")
    add(journal, 9, 40)
    assert len(journal._log.segments()) > 2
    journal._keep(journal._catch_up())
    found, lost = ready(journal).find([Range(7, 1, 40)])
    assert [one.serial for one in found] == [*range(1, 41)]
    assert lost == []


def test_a_segment_stays_as_long_as_somebody_needs_its_first_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_segments, "LINGER", 0.0)
    monkeypatch.setattr(log_segments, "SMALL", 100)
    journal = halved(tmp_path / "journal", Retention(marks=9))
    journal._log.begin_segment()
    add(journal, 9, 9)
    assert journal._log.segments() == [1, 11], "there is nothing in its second part"
    add(journal, 10, 10)
    assert journal._log.segments() == [11], "ten marks are too many"


def test_parts_of_a_segment_count_once(tmp_path: Path) -> None:
    journal = halved(tmp_path / "journal")
    add(journal, 9, 10)
    (path,) = (tmp_path / "journal").glob("*.log")
    assert journal._segments.size() == path.stat().st_size
