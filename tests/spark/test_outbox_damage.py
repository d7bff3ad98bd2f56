"""Outboxes that were altered, truncated, restored, or written by the previous version: no committed
row is lost or numbered twice without an error, and nothing is removed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.archives import unpack
from tests.damage import flip_bit
from tests.repeats import runs
from tests.spark import outboxes
from tests.spark.outboxes import put_batch, read_rows

from tidings import TidingsError
from tidings.spark.outbox import commits as commits_module, outbox as outbox_module
from tidings.spark.outbox.commits import DamagedOutbox
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_check import CheckReport, OutboxCheck
from tidings.spark.outbox.outbox_start import take_outbox
from tidings.spark.outbox.spark_checkpoint import SparkCheckpoint
from tidings.store.numbers import pack_counts

BEFORE = Path(__file__).parents[1] / "store" / "before.tar.gz"


@pytest.fixture
def checkpoint(tmp_path: Path) -> SparkCheckpoint:
    (tmp_path / "checkpoint" / "commits").mkdir(parents=True)
    return SparkCheckpoint(tmp_path / "checkpoint")


@pytest.fixture
def outbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outbox:
    """Eight batches, and one that was begun."""
    monkeypatch.setattr(outbox_module, "COUNTERS_EVERY", 3)
    found, counters = Outbox(tmp_path / "out"), dict[int, int]()
    for batch in range(8):
        put_batch(found, batch, counters)
    found.pin(8, 1, 108)
    found.log.close()
    return Outbox(found.path)


def listed(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def verified(outbox: Outbox) -> CheckReport:
    check = OutboxCheck(Outbox(outbox.path))
    for _ in check.batches():
        pass
    return check.found


def refused(outbox: Outbox, checkpoint: SparkCheckpoint) -> str:
    """What a start says; it changes nothing."""
    before = listed(outbox.path)
    with pytest.raises(DamagedOutbox) as caught:
        take_outbox(Outbox(outbox.path), checkpoint)
    assert listed(outbox.path) == before
    said = str(caught.value)
    assert str(outbox.path) in said
    assert "restore it and its checkpoint" in said
    assert "\n" not in said
    return said


def test_a_sound_outbox_is_taken_and_gone_on_with(
    outbox: Outbox, checkpoint: SparkCheckpoint
) -> None:
    (checkpoint.path / "commits" / "7").touch()
    take_outbox(outbox, checkpoint)
    counters = outbox.counters()
    assert counters == {0: 32, 1: 16, 2: 8, 3: 8}
    put_batch(outbox, 8, counters)
    outbox.log.close()
    found = verified(outbox)
    assert found.problems == []
    assert (found.batches, found.files, found.notifications, found.nodes) == (9, 18, 36, 3)
    assert (outbox.home / "commits" / "end").stat().st_mode & 0o077 == 0


def log_of(outbox: Outbox) -> Path:
    (path,) = (outbox.home / "commits").glob("*.log")
    return path


def without_log(outbox: Outbox) -> None:
    log_of(outbox).unlink()


def without_commits(outbox: Outbox) -> None:
    shutil.rmtree(outbox.home / "commits")


def without_mark(outbox: Outbox) -> None:
    (outbox.home / "commits" / "end").unlink()


def cut_in_the_middle(outbox: Outbox) -> None:
    path = log_of(outbox)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def altered_counter(outbox: Outbox) -> None:
    """The attack that gave numbers twice: the count of a commit is another."""
    path = log_of(outbox)
    whole = path.read_bytes()
    assert b'"before":28' in whole
    path.write_bytes(whole.replace(b'"before":28', b'"before":24'))


def left_out(outbox: Outbox) -> None:
    """A commit in the middle is gone, bytes and all."""
    path = log_of(outbox)
    whole = path.read_bytes()
    third, fourth = (whole.index(b'{"batch":%d' % batch) for batch in (3, 4))
    path.write_bytes(whole[:third] + whole[fourth:])


def zeroed(outbox: Outbox) -> None:
    path = log_of(outbox)
    whole = path.read_bytes()
    path.write_bytes(whole[:600] + bytes(512) + whole[1112:])


def missing_file(outbox: Outbox) -> None:
    (outbox.folder(2, "a2") / "two.parquet").unlink()


def shorter_file(outbox: Outbox) -> None:
    path = outbox.folder(5, "a5") / "one.parquet"
    path.write_bytes(path.read_bytes()[:-4])


@pytest.mark.parametrize(
    "harm",
    [
        without_log, without_commits, without_mark, cut_in_the_middle, altered_counter, left_out,
        zeroed, missing_file, shorter_file,
    ],
)  # fmt: skip
def test_what_was_harmed_is_refused_and_nothing_is_touched(
    outbox: Outbox, checkpoint: SparkCheckpoint, harm: Callable[[Outbox], None]
) -> None:
    harm(outbox)
    refused(outbox, checkpoint)
    assert verified(outbox).problems


def test_commits_that_were_put_back_from_a_copy_are_refused(
    outbox: Outbox, checkpoint: SparkCheckpoint, tmp_path: Path
) -> None:
    """The log and its end mark agree, and are of yesterday."""
    shutil.copytree(outbox.home / "commits", tmp_path / "copy")
    take_outbox(outbox, checkpoint)
    counters = outbox.counters()
    put_batch(outbox, 8, counters)
    put_batch(outbox, 9, counters)
    outbox.log.close()
    shutil.rmtree(outbox.home / "commits")
    (tmp_path / "copy").rename(outbox.home / "commits")
    assert "commits end with batch 7, but batch 9 was started" in refused(outbox, checkpoint)
    assert "the commits end with batch 7" in " ".join(verified(outbox).problems)


def test_what_spark_noted_as_done_must_be_committed(
    outbox: Outbox, checkpoint: SparkCheckpoint
) -> None:
    (checkpoint.path / "commits" / "8").touch()
    assert "commits end with batch 7, but batch 8 was finished" in refused(outbox, checkpoint)


def test_every_flipped_bit_of_the_commits_is_noticed(
    outbox: Outbox, checkpoint: SparkCheckpoint, seed: int
) -> None:
    chance, path, mark = random.Random(seed), log_of(outbox), outbox.home / "commits" / "end"
    whole, counters = path.read_bytes(), {0: 32, 1: 16, 2: 8, 3: 8}
    for _ in range(60):
        flip_bit(path, chance.randrange(len(whole)), 1 << chance.randrange(8))
        refused(outbox, checkpoint)
        assert verified(outbox).problems
        path.write_bytes(whole)
    marks = mark.read_bytes()
    for _ in range(20):  # of two marks one is left
        flip_bit(mark, chance.randrange(len(marks)), 1 << chance.randrange(8))
        taken = Outbox(outbox.path)
        take_outbox(taken, checkpoint)
        assert taken.counters() == counters
        taken.log.close()
        mark.write_bytes(marks)
    assert verified(outbox).problems == []


def test_altered_bytes_of_data_are_found(outbox: Outbox) -> None:
    path = outbox.folder(3, "a3") / "one.parquet"
    flip_bit(path)
    assert verified(outbox).problems == [f"batch 3: {path} was altered: its checksum differs"]
    done = outbox.read_commit(3)  # it would be handed over again
    assert done is not None
    with pytest.raises(DamagedOutbox, match=r"one\.parquet was altered"):
        outbox.need_files(done)


def test_numbers_are_counted_again(outbox: Outbox, checkpoint: SparkCheckpoint) -> None:
    """Numbers that are wrong when they are made: checksums agree, numbers do not."""
    take_outbox(outbox, checkpoint)
    counters = outbox.counters() | {1: 15}  # one too low: a number is given twice
    put_batch(outbox, 8, counters)
    outbox.log.close()
    assert verified(outbox).problems == [
        "batch 8: node 1 continues after the number 15, expected at least 16"
    ]


def test_a_commit_that_counts_wrongly_is_found(
    outbox: Outbox, checkpoint: SparkCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_outbox(outbox, checkpoint)
    put_batch(outbox, 8, outbox.counters() | {0: 30})
    assert "30 notifications came before, expected 32" in verified(outbox).problems[0]
    with monkeypatch.context() as patch:
        patch.setattr(outboxes, "pack_counts", lambda counts: pack_counts(counts | {9: 1}))
        put_batch(outbox, 9, {0: 34})
    problems = verified(outbox).problems
    assert "batch 9: partition 0 was counted wrongly: node 9" in problems
    assert "batch 9: partition 1 was counted wrongly: node 9" in problems


def test_a_batch_that_waits_for_its_numbers_is_sound(
    outbox: Outbox, checkpoint: SparkCheckpoint
) -> None:
    """The process was stopped after the commit; counters are known, numbers follow."""
    take_outbox(outbox, checkpoint)
    counters = outbox.counters()
    put_batch(outbox, 8, counters, numbered=False)
    outbox.log.close()
    assert verified(outbox).problems == []
    again = Outbox(outbox.path)
    take_outbox(again, checkpoint)
    assert again.counters() == counters
    assert (again.log.last_numbered(), again.log.read_numbers(8)) == (7, None)
    again.put_numbers(8, {1: 100, 2: 8, 3: 8})  # other outboxes use the same nodes
    again.log.close()
    assert verified(again).problems == []
    assert again.last_numbers() == {1: 102, 2: 9, 3: 9}


def test_altered_pins_are_found(outbox: Outbox, checkpoint: SparkCheckpoint) -> None:
    for batch in (4, 8):
        path = outbox.pin_path(batch)
        path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":3'))
    with pytest.raises(TidingsError, match="was altered: its checksum differs"):
        outbox.read_pin(8)
    assert [one for one in verified(outbox).problems if "00000004.json" in one]


def test_what_no_commit_names_is_moved_aside_and_never_removed(
    outbox: Outbox, checkpoint: SparkCheckpoint
) -> None:
    late, begun = outbox.folder(5, "late"), outbox.folder(8, "begun")
    for folder in (late, begun, outbox.dead_folder(8, "begun")):
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_bytes(b"rows")
    work = outbox.work_folder(8, outbox.begin_attempt(8))
    assert verified(outbox).problems == [f"{late / 'part.parquet'} exists, but no commit names it"]
    take_outbox(outbox, checkpoint)
    assert not work.exists()
    there = sorted(str(path.relative_to(path.parents[2]))
                   for path in (outbox.home / "aside").rglob("part.parquet"))  # fmt: skip
    assert there == [
        "data/00000005-late/part.parquet",
        "data/00000008-begun/part.parquet",
        "dead/00000008-begun/part.parquet",
    ]
    assert verified(outbox).problems == []


def test_a_long_log_is_read_from_where_counters_were_kept(
    outbox: Outbox, checkpoint: SparkCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits_module, "WHOLE", 100)
    read, real = list[bytes](), commits_module.decode_commit

    def decoded(record: bytes) -> Any:
        read.append(record)
        return real(record)

    monkeypatch.setattr(commits_module, "decode_commit", decoded)
    take_outbox(outbox, checkpoint)
    assert len(read) == 1  # of eight: 6 was kept
    assert outbox.counters() == {0: 32, 1: 16, 2: 8, 3: 8}
    first = outbox.read_commit(0)
    assert first is not None
    assert first.batch == 0
    put_batch(outbox, 8, outbox.counters())
    outbox.log.close()
    assert verified(outbox).problems == []
    path = log_of(outbox)
    path.write_bytes(path.read_bytes()[:300])
    refused(outbox, checkpoint)


def harmed_at_random(outbox: Outbox, copies: list[Path], chance: random.Random) -> str:
    """Roll back, cut, flip, zero, remove or swap something of an outbox; what was done."""
    files = sorted(
        path for path in outbox.path.rglob("*") if path.is_file() and path.name != "lock"
    )
    path, other = chance.choice(files), chance.choice(files)
    whole = path.read_bytes()
    at = chance.randrange(max(1, len(whole)))
    kind = chance.choice(["flip", "cut", "zero", "remove", "swap", "folder", "back", "file back"])
    if kind == "flip" and whole:
        flip_bit(path, at, 1 << chance.randrange(8))
    elif kind == "cut":
        path.write_bytes(whole[:at])
    elif kind == "zero":
        path.write_bytes(whole[:at] + bytes(min(512, len(whole) - at)) + whole[at + 512 :])
    elif kind == "remove":
        path.unlink()
    elif kind == "swap" and other != path:
        path.write_bytes(other.read_bytes())
        other.write_bytes(whole)
    elif kind == "folder":
        path = chance.choice([one for one in outbox.path.rglob("*") if one.is_dir()])
        shutil.rmtree(path)
    elif kind == "back":
        path = chance.choice(copies)
        shutil.rmtree(outbox.path)
        shutil.copytree(path, outbox.path)
    elif kind == "file back":
        copy = chance.choice(copies)
        old = chance.choice([one for one in copy.rglob("*") if one.is_file()])
        path = outbox.path / old.relative_to(copy)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(old, path)
    return f"{kind} {path}"


@pytest.mark.parametrize("run", runs(10, 40))
def test_a_time_machine(
    outbox: Outbox, checkpoint: SparkCheckpoint, tmp_path: Path, seed: int, run: int
) -> None:
    """Whatever is done to an outbox, it is refused, or it goes on with every committed batch and
    every counter, and all data that was there is there still."""
    chance, copies = random.Random(f"{seed} {run}"), list[Path]()
    take_outbox(outbox, checkpoint)
    counters = outbox.counters()
    for batch in range(8, 12):
        copies.append(tmp_path / f"copy{batch}")
        shutil.copytree(outbox.path, copies[-1])
        put_batch(outbox, batch, counters)
        (checkpoint.path / "commits" / str(batch)).touch()
    outbox.log.close()
    done = [harmed_at_random(outbox, copies, chance) for _ in range(chance.choice((1, 1, 2)))]
    before = {name: raw for name, raw in listed(outbox.path).items() if name[:5] == "data/"}
    taken, said = Outbox(outbox.path), ""
    try:
        take_outbox(taken, checkpoint)
    except TidingsError as problem:
        said = str(problem)
    now = {name: raw for name, raw in listed(outbox.path).items() if name[:5] == "data/"}
    if said:
        assert str(outbox.path) in said, done
        assert now == before
        return
    assert taken.counters() == counters, done
    assert taken.commits() == list(range(12)), done
    put_batch(taken, 12, counters)
    taken.log.close()
    altered = [one for one in verified(outbox).problems if "checksum" not in one]
    assert all(".json" in one or "no commit" in one for one in altered), (done, altered)


# -- the format before -------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Outbox:
    unpack(BEFORE, tmp_path)
    return Outbox(tmp_path / "before" / "outbox")


def test_the_format_before_is_rewritten(old: Outbox, checkpoint: SparkCheckpoint) -> None:
    assert old.batches() == 5
    with pytest.raises(TidingsError, match="start its pipeline, which converts it"):
        old.commits()
    assert "converts it" in verified(old).problems[0]
    data = {name: raw for name, raw in listed(old.path).items() if name.startswith("d")}
    json = listed(old.home / "commits")
    take_outbox(old, checkpoint)
    assert {name: raw for name, raw in listed(old.path).items() if name.startswith("d")} == data
    assert old.commits() == [0, 1, 2, 3, 4]
    assert old.counters() == {0: 20, 1: 10, 2: 5, 3: 5}
    assert [row["notification"] for row in read_rows(old)] == list(range(1, 21))
    assert [folder.name[:8] for folder in old.dead_folders()] == ["00000001"]
    pin = old.read_pin(5)
    assert pin is not None
    assert (pin.version, pin.offsets) == (9, "abcdef")
    (aside,) = (old.home / "aside" / "before").glob("commits.*")
    assert listed(aside) == json
    found = verified(old)
    assert (found.problems, found.batches, found.without_digest) == ([], 5, 11)
    old.log.close()
    again = Outbox(old.path)
    take_outbox(again, checkpoint)
    assert again.commits() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("stop", range(9))
def test_a_rewriting_that_is_interrupted_is_done_again(
    old: Outbox, checkpoint: SparkCheckpoint, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    real, calls = Path.rename, list[Path]()

    def renaming(path: Path, target: Path) -> Path:
        calls.append(path)
        if len(calls) > stop:
            raise KeyboardInterrupt
        return real(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", renaming)
        try:
            take_outbox(old, checkpoint)
        except KeyboardInterrupt:
            assert stop < 6
    again = Outbox(old.path)
    take_outbox(again, checkpoint)
    assert again.counters() == {0: 20, 1: 10, 2: 5, 3: 5}
    assert verified(again).problems == []


def gap(old: Outbox) -> None:
    (old.home / "commits" / "00000002.json").unlink()


def no_last(old: Outbox) -> None:
    (old.home / "commits" / "00000004.json").unlink()


def lower_counter(old: Outbox) -> None:
    path = old.home / "commits" / "00000003.json"
    path.write_bytes(path.read_bytes().replace(b'"counters":{"0":16', b'"counters":{"0":12'))


def no_file(old: Outbox) -> None:
    next((old.path / "data").glob("00000003-*/*/*.parquet")).unlink()


@pytest.mark.parametrize("harm", [gap, no_last, lower_counter, no_file])
def test_a_harmed_outbox_of_the_format_before_is_refused(
    old: Outbox, checkpoint: SparkCheckpoint, harm: Callable[[Outbox], None]
) -> None:
    harm(old)
    data = listed(old.path / "data")
    with pytest.raises(DamagedOutbox):
        take_outbox(old, checkpoint)
    assert listed(old.path / "data") == data
