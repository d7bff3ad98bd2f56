"""Repairing a damaged log: intact changes stay, lost versions are named, and no version is assigned
twice."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from tests.damage import flip_bit
from tests.repeats import rounds
from tests.store.cuts import Cut, cut_at

from tidings.store import ChangeLog, LogError
from tidings.store.groups import layout

BEFORE = Path(__file__).parent / "logs_before"


pytestmark = pytest.mark.usefixtures("no_sync")


def filled(folder: Path, *, segment_bytes: int = 1) -> ChangeLog:
    """Groups of two versions: 1 and 2, 3 and 4, up to 11 and 12; the filter of each is new."""
    log = ChangeLog(folder, segment_bytes=segment_bytes)
    for n in range(6):
        log.put_many([(f"s{n}", f"a = {n}"), (f"t{n}", f"b = {n}")])
    return log


def segments(log: ChangeLog) -> list[Path]:
    return sorted(log.path.glob("0*.log"))


def test_an_end_that_was_cut_off(tmp_path: Path) -> None:
    log = filled(tmp_path)
    os.truncate(segments(log)[4], 100)
    segments(log)[5].unlink()
    reader, writer = ChangeLog(tmp_path), ChangeLog(tmp_path)
    for one in (reader, writer):
        with pytest.raises(LogError, match="of its 12 versions, those after 8 can't be read"):
            one.put("x", "a = 1")
    done = ChangeLog(tmp_path).repair()
    assert done.lost == [(9, 12)]
    assert done.version == 13
    assert "byte 36: the data is corrupt or cut off" in done.problems[0]
    assert [path.stat().st_size for path in Path(done.aside).iterdir()] == [100]
    # processes that ran all the while go on
    assert reader.version == writer.version == log.version == 13
    assert list(reader.subscriptions()) == [f"{one}{n}" for n in range(4) for one in "st"]
    assert writer.put("new", "c = 1") == 14
    assert log.put("new", "a = 0") == 15
    # four versions are lost, and each may have had a filter of its own: no number comes again
    assert [change.node for change in reader.changes(13)] == [14, 1]
    for version in (9, 12):
        with pytest.raises(LogError, match=f"version {version} .*was lost when the log was rep"):
            reader.subscriptions(version)
        with pytest.raises(LogError, match=f"version {version} .*was lost when the log was rep"):
            reader.changes(version)
    with pytest.raises(LogError, match=r"the state at version 8 was dropped, expected version 13"):
        reader.subscriptions(8)
    log.forget_before(14)
    with pytest.raises(LogError, match="version 9 was lost"):
        ChangeLog(tmp_path).subscriptions(9)


def test_changes_behind_the_damage_stay(tmp_path: Path) -> None:
    log = filled(tmp_path, segment_bytes=1 << 20)
    log.put("t1", "a = 0")
    path = segments(log)[0]
    data = path.read_bytes()
    flip_bit(path, data.index(b"b = 2"))
    done = ChangeLog(tmp_path).repair()
    assert done.lost == [(5, 6)]
    assert done.version == 14
    found = log.subscriptions()
    assert set(found) == {f"{one}{n}" for n in range(6) for one in "st"} - {"s2", "t2"}
    assert found["t1"] == ("a = 0", 1)
    assert found["t5"] == ("b = 5", 12)
    log.put("s2", "a = 2")  # its number is lost too, so it has another
    log.put("t4", "a = 3")
    assert [change.node for change in log.changes(14)] == [15, 7]


def test_a_first_file_of_which_only_the_head_is_left(tmp_path: Path) -> None:
    """The next file was taken for the first one, as if the files before it had been dropped."""
    log = filled(tmp_path)
    first, second = segments(log)[:2]
    os.truncate(first, layout.SEGMENT_HEAD)
    with pytest.raises(LogError, match="the data does not follow group 0"):
        ChangeLog(tmp_path).subscriptions()
    done = ChangeLog(tmp_path).repair()
    assert done.lost == [(1, 2)]
    assert str(second) in done.problems[0]
    assert set(log.subscriptions()) == {f"{one}{n}" for n in range(1, 6) for one in "st"}


def test_a_mark_that_is_missing(tmp_path: Path) -> None:
    """Nothing tells how far the log went, so many versions and numbers are passed over."""
    log = filled(tmp_path)
    segments(log)[5].unlink()
    (tmp_path / "end").unlink()
    done = ChangeLog(tmp_path).repair()
    assert done.version == 10_011
    assert done.lost == []
    assert len(ChangeLog(tmp_path).subscriptions()) == 10
    assert ChangeLog(tmp_path).put("new", "c = 1") == 10_012
    assert ChangeLog(tmp_path).subscriptions()["new"] == ("c = 1", 10_012)


@pytest.mark.parametrize("gone", [1, 3])
def test_a_mark_and_the_first_files_that_are_missing(tmp_path: Path, gone: int) -> None:
    """What remains of the log still tells that it did not begin there."""
    log = filled(tmp_path)
    for path in (*segments(log)[:gone], tmp_path / "end"):
        path.unlink()
    done = ChangeLog(tmp_path).repair()
    assert done.lost == [(1, 2 * gone)]
    assert set(log.subscriptions()) == {f"{one}{n}" for n in range(gone, 6) for one in "st"}


def test_a_checkpoint_that_was_altered(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.forget_before(6)
    flip_bit(tmp_path / "checkpoint", 60)
    done = ChangeLog(tmp_path).repair()
    assert done.lost == [(1, 6)]
    assert len(ChangeLog(tmp_path).subscriptions()) == 6
    assert ChangeLog(tmp_path).put("new", "c = 1") == 14
    assert ChangeLog(tmp_path).subscriptions()["new"] == ("c = 1", 14)


def test_damage_before_the_checkpoint_loses_no_change(tmp_path: Path) -> None:
    log = filled(tmp_path, segment_bytes=1 << 20)
    log.forget_before(7)
    flip_bit(segments(log)[0], 60)
    with pytest.raises(LogError, match="the log is damaged"):
        ChangeLog(tmp_path).changes(4)
    before = log.subscriptions()
    done = ChangeLog(tmp_path).repair()
    assert done.lost == []
    assert done.version == 13
    assert ChangeLog(tmp_path).subscriptions() == before


def test_a_log_that_is_whole_is_left_alone(tmp_path: Path) -> None:
    assert ChangeLog(tmp_path / "new").repair().version == 0
    for name in ("log", "forgotten", "plain"):
        log = ChangeLog(shutil.copytree(BEFORE / name, tmp_path / name)) if name == "plain" else \
            filled(tmp_path / name)  # fmt: skip
        assert log.version  # what is of an older format is converted
        if name == "forgotten":
            log.forget_before(log.version)
        before = {path: path.stat().st_mtime_ns for path in log.path.rglob("0*.log")}
        done = log.repair()
        assert (done.problems, done.lost, done.aside) == ([], [], "")
        assert {path: path.stat().st_mtime_ns for path in log.path.rglob("0*.log")} == before
        assert done.version == log.version


def test_a_checkpoint_that_is_newer_than_the_log(tmp_path: Path) -> None:
    """Log and end mark were put back, and the checkpoint was not."""
    log = filled(tmp_path)
    shutil.copytree(tmp_path, tmp_path / "copy")
    log.put("late", "c = 1")
    log.put("later", "c = 2")
    log.forget_before(13)
    for path in (tmp_path / "copy").iterdir():
        shutil.copy(path, tmp_path)
    for path in segments(log)[6:]:
        path.unlink()
    with pytest.raises(LogError, match="is newer than the log"):
        ChangeLog(tmp_path).subscriptions()
    done = ChangeLog(tmp_path).repair()
    assert "is missing" in done.problems[0]
    assert done.version == 13 + 10_000 + 1  # nothing tells how far it went
    assert len(ChangeLog(tmp_path).subscriptions()) == 13
    assert ChangeLog(tmp_path).put("new", "c = 3") == done.version + 1
    assert ChangeLog(tmp_path).subscriptions()["new"][1] > 10_000


def test_a_mark_that_is_older_than_log_and_checkpoint_is_nothing_wrong(tmp_path: Path) -> None:
    """The current was cut off before the disk had the mark."""
    log = filled(tmp_path, segment_bytes=1 << 20)
    before = (tmp_path / "end").read_bytes()
    log.put("late", "c = 1")
    log.put("later", "c = 2")
    log.forget_before(13)
    (tmp_path / "end").write_bytes(before)
    done = ChangeLog(tmp_path).repair()
    assert (done.problems, done.lost, done.version) == ([], [], 14)
    assert len(ChangeLog(tmp_path).subscriptions()) == 14


def test_a_checkpoint_that_is_missing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.forget_before(6)
    (tmp_path / "checkpoint").unlink()
    done = ChangeLog(tmp_path).repair()
    assert done.problems == [f"the checkpoint {tmp_path / 'checkpoint'} is missing"]
    assert done.lost == [(1, 6)]


def test_interrupted_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in range(100):
        log = filled(tmp_path / f"{call}")
        segments(log)[5].unlink()
        with monkeypatch.context() as patch:
            cut_at(call, patch)
            try:
                ChangeLog(log.path).repair()
                break
            except Cut:
                pass
        done = ChangeLog(log.path).repair()  # again, or it was done but for the end
        assert done.lost in ([(11, 12)], [])
        # if it was cut off before the mark was written, it was repaired twice
        assert log.version == ChangeLog(log.path).version == done.version in {13, 14}
        assert len(log.subscriptions()) == 10
        assert log.put("new", "c = 1") == done.version + 1
    assert 8 < call < 99


def test_nothing_is_given_twice_whatever_was_damaged(tmp_path: Path, seed: int) -> None:
    rng = random.Random(f"{seed} repairs")
    for turn in rounds(25, 60):
        log = ChangeLog(tmp_path / f"{turn}", segment_bytes=rng.choice([1, 300, 1 << 20]))
        filters: dict[str, set[int]] = {}
        groups = rng.randrange(1, 20)
        for _ in range(groups):
            log.put_many((f"s{rng.randrange(9)}", f"a = {rng.randrange(30)}") for _ in range(3))
            for one in log.changes(log.version - 3):
                filters.setdefault(str(one.filter), set()).add(one.node)
            if rng.random() < 0.1:
                log.forget_before(rng.randrange(log.version))
        history = log.subscriptions()
        files = [path for path in log.path.iterdir() if path.suffix == ".log" or
                 path.name == "checkpoint"]  # fmt: skip
        for _ in range(rng.randrange(1, 3)):
            path = rng.choice(files)
            size = path.stat().st_size if path.exists() else 0
            kind = rng.choice(["flip", "cut", "unlink"])
            if kind == "flip" and size:
                flip_bit(path, rng.randrange(size))
            elif kind == "cut" and size:
                os.truncate(path, rng.randrange(size))
            elif kind == "unlink":
                path.unlink(missing_ok=True)
        highest = max(map(max, filters.values()))
        done = ChangeLog(log.path).repair()
        again = ChangeLog(log.path)
        if done.problems or done.lost:
            assert done.version == 3 * groups + 1, (turn, done)
        lost = {version for first, last in done.lost for version in range(first, last + 1)}
        found = again.subscriptions()
        if not lost:
            assert found == history
        assert again.put("new", "c = 1") == again.version == done.version + 1
        assert again.subscriptions()["new"][1] > highest
        for text, nodes in filters.items():
            again.put("new", text)
            given = again.subscriptions()["new"][1]
            assert given in nodes or given > highest
