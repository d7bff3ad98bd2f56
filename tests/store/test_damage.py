"""A log that was cut off, altered or could not be written: what is kept, and what is refused."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidings.store import Change, ChangeLog, LogError
from tidings.store.segments import SECTOR

GROUP = [("x", "a = 2"), ("é", "b LIKE 'ö%'"), ("7", "a = 1")]


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def last_segment(folder: Path) -> Path:
    return max(folder.glob("0*.log"))


def copy_of(folder: Path, name: str) -> Path:
    shutil.rmtree(folder.parent / name, ignore_errors=True)
    return Path(shutil.copytree(folder, folder.parent / name))


def everything(folder: Path) -> tuple[int, list[Change], object]:
    """All that can be read; an instance of its own for each, so that each has to find damage."""
    return (
        ChangeLog(folder).version,
        ChangeLog(folder).changes(0),
        ChangeLog(folder).subscriptions(),
    )


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
@pytest.mark.parametrize("last", [GROUP, GROUP[:1]])
def test_cut_off_at_every_byte_of_the_last_group(
    tmp_path: Path, no_sync: None, segment_bytes: int, last: list[tuple[str, str]]
) -> None:
    log = ChangeLog(tmp_path / "log", segment_bytes=segment_bytes)
    log.put("x", "a = 1")
    log.put_many(GROUP)
    before = everything(log.path)
    good = 0 if segment_bytes == 1 else last_segment(log.path).stat().st_size
    log.put_many(last)
    data = last_segment(log.path).read_bytes()
    assert len(data) > good + 30
    for size in range(good, len(data)):
        folder = copy_of(log.path, "cut")
        last_segment(folder).write_bytes(data[:size])
        assert everything(folder) == before
        reader, writer = ChangeLog(folder), ChangeLog(folder, segment_bytes=segment_bytes)
        assert reader.version == 4
        assert writer.put("after", "a = 3") == 5
        assert reader.changes(4) == [Change(5, "after", "a = 3", 4)]
        assert ChangeLog(folder).put("after", "a = 1") == 6
        assert everything(folder)[:2] == (6, [*before[1], *reader.changes(4)])


def test_a_reader_beside_a_group_that_grows_byte_by_byte(tmp_path: Path, no_sync: None) -> None:
    log = ChangeLog(tmp_path / "log")
    log.put("x", "a = 1")
    good = last_segment(log.path).stat().st_size
    folder = copy_of(log.path, "growing")
    log.put_many(GROUP)
    data = last_segment(log.path).read_bytes()
    reader = ChangeLog(folder)
    for size in range(good, len(data) + 1):
        last_segment(folder).write_bytes(data[:size])
        assert reader.version == (4 if size == len(data) else 1)
    assert reader.changes(0) == log.changes(0)


def test_every_altered_byte_is_refused_by_file_and_line(tmp_path: Path, no_sync: None) -> None:
    log = ChangeLog(tmp_path / "log", segment_bytes=150)
    for n in range(3):
        log.put_many(GROUP[: n + 1])
        log.put(f"{n}", "a = 9")
    paths = sorted(log.path.glob("0*.log"))
    assert len(paths) > 2
    for path in paths:
        data = path.read_bytes()
        for at in range(len(data)):
            line = data[:at].count(b"\n") + 1
            for byte in {data[at] ^ 1 << at % 8, ord("\n"), 0} - {data[at]}:
                path.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
                with pytest.raises(LogError) as caught:
                    ChangeLog(log.path).changes(0)
                where = f"the log is damaged: '{path}', line {line}, was altered"
                assert str(caught.value).startswith(where)
                if at % 7 == 0:
                    with pytest.raises(LogError, match=re.escape(where)):
                        ChangeLog(log.path).put("x", "a = 1")
        path.write_bytes(data)
    assert ChangeLog(log.path).changes(0) == log.changes(0)


def begun_at(folder: Path, good: int) -> ChangeLog:
    """A log whose acknowledged groups are so many bytes."""
    log = ChangeLog(folder)
    log.put("x", "a = 1")
    rest = good - last_segment(folder).stat().st_size
    log.put("y", "a = ''")
    rest -= last_segment(folder).stat().st_size - (good - rest)
    last_segment(folder).unlink()
    log = ChangeLog(folder)
    log.put("x", "a = 1")
    log.put("y", f"a = '{'b' * rest}'")
    assert last_segment(folder).stat().st_size == good
    return log


def without_sectors(data: bytes, good: int, lost: set[int]) -> bytes:
    """What a power cut leaves when sectors did not reach the disk: behind the good bytes, zeros."""
    left = bytearray(data)
    for number in lost:
        start = min(max(good, number * SECTOR), len(data))
        stop = min((number + 1) * SECTOR, len(data))
        left[start:stop] = bytes(stop - start)
    return bytes(left)


@pytest.mark.parametrize("acknowledged", [False, True])
def test_sectors_that_never_reached_the_disk_wherever_the_group_begins(
    tmp_path: Path, no_sync: None, acknowledged: bool
) -> None:
    """Every share that a group can have of the sectors it lies in, down to one byte."""
    for good in range(2 * SECTOR - 200, 2 * SECTOR + 2):
        log = begun_at(tmp_path / "log", good)
        log.put_many(GROUP)
        end = last_segment(log.path).stat().st_size
        if acknowledged:
            log.put("after", "a = 5")
        data = last_segment(log.path).read_bytes()
        there = range(good // SECTOR, (end - 1) // SECTOR + 1)
        assert len(there) <= 2
        for lost in [{number} for number in there] + [set(there)]:
            # only of the group: what comes after it was written later
            spoilt = without_sectors(data[:end], good, lost) + data[end:]
            last_segment(log.path).write_bytes(spoilt)
            if acknowledged:
                with pytest.raises(LogError, match=r"line \d, was altered"):
                    _ = ChangeLog(log.path).version
                with pytest.raises(LogError, match=r"line \d, was altered"):
                    ChangeLog(log.path).put("z", "a = 9")
            else:
                assert ChangeLog(log.path).version == 2
                assert ChangeLog(log.path).put("z", "a = 9") == 3
                assert list(ChangeLog(log.path).subscriptions()) == ["x", "y", "z"]
        shutil.rmtree(log.path)


def test_any_sectors_of_a_long_group_and_any_end_of_the_file(
    tmp_path: Path, no_sync: None, seed: int
) -> None:
    rng = random.Random(f"{seed} sectors")
    for good in (SECTOR - 3, SECTOR, SECTOR + 130):
        log = begun_at(tmp_path / f"log{good}", good)
        log.put_many((f"s{n}", f"b = {n}") for n in range(30))
        data = last_segment(log.path).read_bytes()
        there = range(good // SECTOR, (len(data) - 1) // SECTOR + 1)
        assert len(there) >= 4
        for _ in range(300):
            lost = {number for number in there if rng.random() < 0.4}
            size = rng.choice([len(data), rng.randrange(good, len(data))])
            if size == len(data) and not lost:
                continue
            last_segment(log.path).write_bytes(without_sectors(data[:size], good, lost))
            assert ChangeLog(log.path).version == 2
        assert ChangeLog(log.path).put("z", "a = 9") == 3


def test_zeros_that_no_lost_sector_leaves_are_damage(tmp_path: Path, no_sync: None) -> None:
    """They end before the end of a sector: whoever wrote them, the group may be acknowledged."""
    log = begun_at(tmp_path / "log", good := SECTOR + 20)
    log.put_many(GROUP)
    data = last_segment(log.path).read_bytes()
    assert len(data) < 2 * SECTOR
    for size in (1, 2, 7, 8, 9, 60):
        for start in range(good, len(data) - size):
            spoilt = data[:start] + bytes(size) + data[start + size :]
            last_segment(log.path).write_bytes(spoilt)
            with pytest.raises(LogError, match=r"line \d, was altered"):
                _ = ChangeLog(log.path).version
    # The group before it was acknowledged: zeros there are damage wherever they end.
    for size in (20, good - SECTOR, good):
        last_segment(log.path).write_bytes(data[: good - size] + bytes(size) + data[good:])
        with pytest.raises(LogError, match=r"line [12], was altered"):
            everything(log.path)


def missing_segment(folder: Path) -> None:
    sorted(folder.glob("0*.log"))[1].unlink()


def missing_first_segment(folder: Path) -> None:
    min(folder.glob("0*.log")).unlink()


def missing_lines(folder: Path) -> None:
    path = sorted(folder.glob("0*.log"))[1]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def a_line_twice(folder: Path) -> None:
    path = last_segment(folder)
    path.write_bytes(path.read_bytes() * 2)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (missing_segment, r"0001.log', line 2, is missing: the next segment begins with version 5"),
        (missing_first_segment, r"no changes after version 0, only those after 1: .* missing from"),
        (missing_lines, r"00002.log', line 3, is missing, the file was cut short"),
        (a_line_twice, r"00005.log', line 2, has version 5, expected 6"),
    ],
)
def test_damage_of_other_kinds(
    tmp_path: Path, no_sync: None, spoil: Callable[[Path], None], message: str
) -> None:
    log = ChangeLog(tmp_path, segment_bytes=1)
    log.put("x", "a = 1")
    log.put_many(GROUP)
    log.put("y", "a = 1")
    spoil(tmp_path)
    for read in (lambda: ChangeLog(tmp_path).changes(0), ChangeLog(tmp_path).subscriptions):
        with pytest.raises(LogError, match=message):
            read()
    with pytest.raises(LogError, match=message):
        ChangeLog(tmp_path).put("x", "a = 1")


def test_an_altered_checkpoint_is_refused(tmp_path: Path, no_sync: None) -> None:
    log = ChangeLog(tmp_path)
    log.put_many(GROUP)
    log.forget_before(3)
    path = tmp_path / "checkpoint.jsonl"
    data = path.read_bytes()
    spoilt = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    for bad in [*spoilt, *(data[:size] for size in range(len(data))), data + b"x"]:
        path.write_bytes(bad)
        with pytest.raises(LogError, match=r"^the log is damaged: '.*checkpoint.jsonl', line \d"):
            log.subscriptions()
    with pytest.raises(LogError, match=r"^the log is damaged: '.*checkpoint.jsonl', line \d"):
        ChangeLog(tmp_path).put("x", "a = 1")
    path.unlink()
    for ask in (ChangeLog(tmp_path).subscriptions, lambda: ChangeLog(tmp_path).drop("x")):
        with pytest.raises(LogError, match="no changes after version 0, only those after 3"):
            ask()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Like a full disk, for files that grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk(tmp_path: Path) -> None:
    log, reader = ChangeLog(tmp_path), ChangeLog(tmp_path)
    log.put("x", "a = 1")
    size = last_segment(tmp_path).stat().st_size
    for room in (0, 1, 100):
        with (
            files_of_at_most(size + room),
            pytest.raises(LogError, match="nothing of this was ack"),
        ):
            log.put_many(GROUP)
        assert last_segment(tmp_path).stat().st_size == size
        assert (log.version, reader.version) == (1, 1)
    assert log.put_many(GROUP) == 4
    assert [change.node for change in reader.changes(0)] == [1, 2, 3, 1]


def test_a_sync_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ChangeLog(tmp_path)
    log.put("x", "a = 1")
    sync, fails = os.fsync, [True]

    def fsync(handle: int) -> None:
        if fails and fails.pop():
            raise OSError(5, "Input/output error")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(LogError, match="Input/output error; nothing of this was acknowledged"):
        log.put("x", "a = 2")
    assert (log.version, ChangeLog(tmp_path).version) == (1, 1)
    assert log.put("x", "a = 3") == 2
    assert log.changes(1) == [Change(2, "x", "a = 3", 2)]
    fails[:] = [True, True]  # and the cutting back fails too
    for _ in range(2):
        with pytest.raises(LogError, match="takes no more changes until it is opened again"):
            log.put("x", "a = 4")
    assert log.changes(0)[1:] == [Change(2, "x", "a = 3", 2)]
    assert ChangeLog(tmp_path).put("x", "a = 5") == 3
