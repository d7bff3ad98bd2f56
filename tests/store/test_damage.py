"""A log that was cut off, altered or could not be written: what is kept, and what is refused."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.repeats import amount, rounds

from tidings.model import TidingsError
from tidings.store import Change, ChangeLog, LogError

GROUP = [("x", "a = 2"), ("é", "b LIKE 'ö%'"), ("7", "a = 1")]
SECTOR = 512
WAY_OUT = "restore '{0}' from a backup, or run `tidings subscriptions repair {0}`, which keeps"


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("0*.log"))


def last_segment(folder: Path) -> Path:
    return segments(folder)[-1]


def mark(folder: Path) -> Path:
    return folder / "end"


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


def refusals(folder: Path, *, of_version: bool = True) -> list[str]:
    """What is said to all who read or write, each for the first time; nothing is given."""
    asks: list[Callable[[], object]] = [
        lambda: ChangeLog(folder).changes(0),
        lambda: ChangeLog(folder).subscriptions(),
        lambda: ChangeLog(folder).put("x", "a = 1"),
    ]
    if of_version:
        asks.append(lambda: ChangeLog(folder).version)
    said = []
    for ask in asks:
        with pytest.raises(LogError) as caught:
            ask()
        said.append(str(caught.value))
        assert "\n" not in said[-1]
        assert WAY_OUT.format(folder) in said[-1]
    return said


def test_what_was_acknowledged_and_cut_off_is_known_to_be_missing(
    tmp_path: Path, no_sync: None
) -> None:
    """Before, each of these cuts was read as unfinished, and the changes were gone silently."""
    log = ChangeLog(tmp_path / "log")
    for n in range(8):
        log.put_many([(f"s{n}", f"a = {n}"), (f"t{n}", f"b = {n}")])
    data = last_segment(log.path).read_bytes()
    sizes = range(len(data) - 200, len(data))
    said = set()
    for size in sizes:
        last_segment(log.path).write_bytes(data[:size])
        said |= set(refusals(log.path))
    kept = {one.partition("of its 16 versions, those after ")[2].partition(" ")[0] for one in said}
    assert kept <= {"10", "12", "14"}
    assert "14" in kept
    last_segment(log.path).write_bytes(data)
    assert ChangeLog(log.path).version == 16


def test_a_process_that_runs_notices_a_cut(tmp_path: Path) -> None:
    log, reader = ChangeLog(tmp_path), ChangeLog(tmp_path)
    log.put("x", "a = 1")
    log.put("y", "a = 2")
    assert reader.version == 2
    os.truncate(last_segment(tmp_path), last_segment(tmp_path).stat().st_size - 1)
    for ask in (lambda: reader.version, lambda: log.put("z", "a = 3"), lambda: log.changes(1)):
        with pytest.raises(LogError, match="of its 2 versions, those after 1 can't be read"):
            ask()


def test_a_process_that_runs_notices_an_older_log(tmp_path: Path) -> None:
    log, reader = ChangeLog(tmp_path / "log"), ChangeLog(tmp_path / "log")
    log.put("x", "a = 1")
    older = copy_of(log.path, "older")
    log.put("y", "a = 2")
    assert reader.version == 2
    for path in older.iterdir():
        shutil.copy(path, log.path)
    asks: list[Callable[[], int]] = [lambda: reader.version, lambda: log.put("z", "a = 3")]
    for ask in asks * 2:
        with pytest.raises(LogError, match="replaced by another one: it was at version 2"):
            ask()
    assert ChangeLog(log.path).put("z", "a = 3") == 2
    with pytest.raises(LogError, match="replaced by another one"):  # also at the same version
        _ = reader.version


def test_a_copy_that_took_the_place_of_the_log_is_what_is_written_to(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "log")
    log.put("x", "a = 1")
    copy = copy_of(log.path, "copy")
    log.path.rename(tmp_path / "before")
    copy.rename(log.path)
    assert log.put("y", "a = 2") == 2
    assert list(ChangeLog(log.path).subscriptions()) == ["x", "y"]


def test_no_file_stays_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n in range(3):
        log = ChangeLog(tmp_path)
        log.put(f"{n}", "a = 1")
        with pytest.raises(TidingsError):
            log.drop("nobody")
        log.forget_before(log.version)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
@pytest.mark.parametrize("last", [GROUP, GROUP[:1]])
def test_cut_off_at_every_byte_of_a_group_that_nobody_was_told_of(
    tmp_path: Path, no_sync: None, segment_bytes: int, last: list[tuple[str, str]]
) -> None:
    log = ChangeLog(tmp_path / "log", segment_bytes=segment_bytes)
    log.put("x", "a = 1")
    log.put_many(GROUP)
    before = everything(log.path)
    good = 0 if segment_bytes == 1 else last_segment(log.path).stat().st_size
    told = mark(log.path).read_bytes()
    log.put_many(last)
    mark(log.path).write_bytes(told)
    data = last_segment(log.path).read_bytes()
    assert len(data) > good + 30
    for size in range(good, len(data)):
        folder = copy_of(log.path, "cut")
        last_segment(folder).write_bytes(data[:size])
        assert everything(folder) == before
        reader, writer = ChangeLog(folder), ChangeLog(folder, segment_bytes=segment_bytes)
        assert reader.version == 4
        assert writer.put("after", "a = 3") == 5
        assert reader.changes(4) == [Change(5, "after", "a = 3", 5)]
        assert ChangeLog(folder).put("after", "a = 1") == 6
        assert everything(folder)[:2] == (6, [*before[1], *reader.changes(4)])
    assert everything(log.path)[0] == 4 + len(last)  # it is whole: it counts


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
        assert reader.version == 1
    shutil.copy(mark(log.path), mark(folder))
    assert reader.version == 4
    assert reader.changes(0) == log.changes(0)


def test_every_altered_byte_is_refused_by_file_and_place(tmp_path: Path, no_sync: None) -> None:
    log = ChangeLog(tmp_path / "log", segment_bytes=150)
    for n in range(3):
        log.put_many(GROUP[: n + 1])
        log.put(f"{n}", "a = 9")
    assert len(segments(log.path)) > 2
    for path in segments(log.path):
        data = path.read_bytes()
        for at in range(len(data)):
            others = {ord("\n"), 0} if at % amount(5, 1) == 0 else set[int]()
            for byte in {data[at] ^ 1 << at % 8} | others - {data[at]}:
                path.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
                with pytest.raises(LogError, match=r"^the log is damaged: "):
                    ChangeLog(log.path).changes(0)
                if at % 7 == 0:
                    assert any(str(path) in one for one in refusals(log.path, of_version=False))
        path.write_bytes(data)
    assert ChangeLog(log.path).changes(0) == log.changes(0)


def test_an_altered_mark_does_no_harm_as_there_are_two(tmp_path: Path, no_sync: None) -> None:
    log = ChangeLog(tmp_path / "log")
    for n in range(4):
        log.put(f"{n}", f"a = {n}")
    data = mark(log.path).read_bytes()
    for at in [*range(80), *range(SECTOR, SECTOR + 80), *range(80, len(data), 97)]:
        folder = copy_of(log.path, "altered")
        mark(folder).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert everything(folder) == everything(log.path)
    mark(log.path).write_bytes(bytes(len(data)))
    assert "its end mark" in refusals(log.path)[0]


def begun_at(folder: Path, good: int) -> ChangeLog:
    """A log whose acknowledged groups are so many bytes."""
    log = ChangeLog(folder)
    log.put("x", "a = 1")
    rest = good - last_segment(folder).stat().st_size
    log.put("y", "a = 'b'")
    rest -= last_segment(folder).stat().st_size - (good - rest)
    shutil.rmtree(folder)
    log = ChangeLog(folder)
    log.put("x", "a = 1")
    log.put("y", f"a = '{'b' * (rest + 1)}'")
    # the length of a long text takes more bytes
    beyond = last_segment(folder).stat().st_size - good
    if beyond:
        shutil.rmtree(folder)
        log = ChangeLog(folder)
        log.put("x", "a = 1")
        log.put("y", f"a = '{'b' * (rest + 1 - beyond)}'")
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
def test_any_sectors_of_a_group_and_any_end_of_the_file(
    tmp_path: Path, no_sync: None, seed: int, acknowledged: bool
) -> None:
    rng = random.Random(f"{seed} sectors")
    for good in (2 * SECTOR - 3, 2 * SECTOR, 2 * SECTOR + 130):
        log = begun_at(tmp_path / f"log{good}", good)
        told = mark(log.path).read_bytes()
        log.put_many((f"s{n}", f"b = {n}") for n in range(60))
        data = last_segment(log.path).read_bytes()
        told = mark(log.path).read_bytes() if acknowledged else told
        there = range(good // SECTOR, (len(data) - 1) // SECTOR + 1)
        assert len(there) >= 4
        for _ in rounds(40, 100):
            lost = {number for number in there if rng.random() < 0.4}
            size = rng.choice([len(data), rng.randrange(good, len(data))])
            if size == len(data) and not lost:
                continue
            mark(log.path).write_bytes(told)
            last_segment(log.path).write_bytes(without_sectors(data[:size], good, lost))
            if acknowledged:
                said = refusals(log.path, of_version=size < len(data))
                assert all("of its 62 versions, those after 2 can't be read" in one for one in said)
            else:
                assert ChangeLog(log.path).version == 2
        if not acknowledged:
            assert ChangeLog(log.path).put("z", "a = 9") == 3


def missing_segment(folder: Path) -> None:
    segments(folder)[1].unlink()


def missing_first_segment(folder: Path) -> None:
    segments(folder)[0].unlink()


def missing_last_segment(folder: Path) -> None:
    segments(folder)[-1].unlink()


def missing_bytes(folder: Path) -> None:
    path = segments(folder)[1]
    path.write_bytes(path.read_bytes()[:-10])


def segments_changed_places(folder: Path) -> None:
    one, two = segments(folder)[1:3]
    one.rename(folder / "x")
    two.rename(one)
    (folder / "x").rename(two)


def missing_mark(folder: Path) -> None:
    mark(folder).unlink()


def segment_of_another_log(folder: Path) -> None:
    other = ChangeLog(folder.parent / "other", segment_bytes=1)
    other.put("x", "a = 1")
    other.put_many(GROUP)
    other.put("y", "a = 1")
    shutil.copy(segments(other.path)[1], segments(folder)[1])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            missing_segment,
            r"03.log, byte 0: the data does not follow group 1; of its 5 versions, those aft.* 1 ",
        ),
        (missing_first_segment, r"00001.log is missing; of its 5 versions, those after 0 can't"),
        (missing_last_segment, r"ends with group 2, .*; of its 5 versions, those after 4 can't"),
        (
            missing_bytes,
            r"02.log, byte 36: the data is corrupt or cut off; of its 5 versions, those after 1 c",
        ),
        (segments_changed_places, r"02.log, byte 0: .* not follow group 1; of its 5 .* after 1 c"),
        (segment_of_another_log, r"02.log, byte 0: .* not follow group 1; of its 5 .* after 1 c"),
        (missing_mark, r"its end mark .*/end is missing or corrupt"),
    ],
)
def test_damage_of_other_kinds(
    tmp_path: Path, no_sync: None, spoil: Callable[[Path], None], message: str
) -> None:
    log = ChangeLog(tmp_path / "log", segment_bytes=1)
    log.put("x", "a = 1")
    log.put_many(GROUP)
    log.put("y", "a = 1")
    spoil(log.path)
    for said in refusals(log.path, of_version=spoil in (missing_last_segment, missing_mark)):
        assert re.search(f"^the log is damaged: .*{message}", said), said


def test_an_altered_checkpoint_is_refused(tmp_path: Path, no_sync: None) -> None:
    log = ChangeLog(tmp_path)
    log.put_many(GROUP)
    log.forget_before(3)
    path = tmp_path / "checkpoint"
    data = path.read_bytes()
    spoilt = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    for bad in [*spoilt, *(data[:size] for size in range(len(data))), data + b"x"]:
        path.write_bytes(bad)
        with pytest.raises(
            LogError, match=r"^the log is damaged: .*/checkpoint is corrupt or .*; of"
        ):
            log.subscriptions()
    with pytest.raises(LogError, match=r"^the log is damaged: .*/checkpoint is corrupt or .*; of"):
        ChangeLog(tmp_path).put("x", "a = 1")
    path.unlink()
    for ask in (ChangeLog(tmp_path).subscriptions, lambda: ChangeLog(tmp_path).drop("x")):
        with pytest.raises(LogError, match="/checkpoint is missing; of its 3 versions, those"):
            ask()


def test_a_checkpoint_of_another_time_or_log_is_refused(tmp_path: Path, no_sync: None) -> None:
    log, other = ChangeLog(tmp_path / "log"), ChangeLog(tmp_path / "other")
    log.put_many(GROUP)
    other.put_many(GROUP)
    other.forget_before(2)
    log.forget_before(3)
    path = log.path / "checkpoint"
    older = path.read_bytes()
    shutil.copy(other.path / "checkpoint", path)
    with pytest.raises(LogError, match="belongs to another log"):
        log.subscriptions()
    path.write_bytes(older)
    log.put_many(GROUP)
    log.forget_before(6)
    path.write_bytes(older)
    with pytest.raises(
        LogError, match=r"0001.log is missing; of its 6 versions, those after 3 can't"
    ):
        log.subscriptions()


def test_a_checkpoint_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put_many((f"s{n}", f"a = {n}") for n in range(300))
    with (
        files_of_at_most(1500),
        pytest.raises(LogError, match=r"the log can't drop files: .*large"),
    ):
        log.forget_before(300)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{1:020}.log", "end", "channel", "lock", "owner",
    }  # fmt: skip
    assert len(log.subscriptions(2)) == 2
    log.forget_before(300)
    assert len(log.subscriptions()) == 300


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
            pytest.raises(LogError, match="none of these changes was ack"),
        ):
            log.put_many(GROUP)
        assert last_segment(tmp_path).stat().st_size == size
        assert (log.version, reader.version) == (1, 1)
    assert log.put_many(GROUP) == 4
    assert [change.node for change in reader.changes(0)] == [1, 2, 3, 4]


def test_a_sync_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ChangeLog(tmp_path)
    log.put("x", "a = 1")
    syncs, fails = {name: getattr(os, name) for name in ("fsync", "fdatasync")}, [True]

    def sync(handle: int, name: str) -> None:
        if fails and fails.pop():
            raise OSError(5, "Input/output error")
        syncs[name](handle)

    for name in syncs:
        monkeypatch.setattr(os, name, partial(sync, name=name))
    with pytest.raises(LogError, match="Input/output error; none of these changes was ack"):
        log.put("x", "a = 2")
    assert (log.version, ChangeLog(tmp_path).version) == (1, 1)
    assert log.put("x", "a = 3") == 2
    assert log.changes(1) == [Change(2, "x", "a = 3", 2)]
    fails[:] = [True, True]  # and the cutting back fails too
    for _ in range(2):
        with pytest.raises(LogError, match="must be opened again; until then it accepts no"):
            log.put("x", "a = 4")
    assert log.changes(0)[1:] == [Change(2, "x", "a = 3", 2)]
    assert ChangeLog(tmp_path).put("x", "a = 5") == 3
