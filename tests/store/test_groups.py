"""A log of groups: acknowledged data is unchanged, or its loss is reported."""

from __future__ import annotations

import os
import random
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.store.cuts import Cut, cut_at

from tidings.model import EnvironmentProblem
from tidings.store.groups import START, EndMark, GroupLog, Position, end_of, layout
from tidings.store.groups.end_mark import EndMarkFile
from tidings.store.groups.log import ASIDE

Written = dict[int, list[bytes]]


def open_log(folder: Path, **settings: int) -> tuple[GroupLog, Written, list[str]]:
    """A log ready to be appended to, what it has, and what it says is missing."""
    log = GroupLog(folder, **settings)
    walk = log.walk()
    found: Written = {}
    for group in walk:
        found[group.number] = [record for record in group.records if record is not None]
    return log, found, log.take_end(walk)


def look(folder: Path) -> tuple[Written, list[str]]:
    """The same, without a change to anything."""
    log = GroupLog(folder)
    walk = log.walk()
    found = {group.number: [one for one in group.records if one is not None] for group in walk}
    return found, log.losses(walk)


def fill(folder: Path, groups: int, *, seed: int = 1, segment_bytes: int = 400) -> Written:
    draw = random.Random(seed)
    log, _, _ = open_log(folder, segment_bytes=segment_bytes)
    for _ in range(groups):
        log.append([draw.randbytes(draw.randrange(40)) for _ in range(draw.randrange(1, 5))])
    log.close()
    found, losses = look(folder)
    assert not losses
    return found


def test_what_is_appended_is_there_and_can_be_read_again(tmp_path: Path) -> None:
    log, found, losses = open_log(tmp_path / "a" / "b")
    assert (found, losses) == ({}, [])
    first = log.append([b"one", b""], value=7)
    second = log.append([b"two"])
    assert log.read([*first.places, *second.places]) == [b"one", b"", b"two"]
    log.close()
    log, found, losses = open_log(tmp_path / "a" / "b")
    assert found == {1: [b"one", b""], 2: [b"two"]}
    assert not losses
    mark = log.read_mark()
    assert mark is not None
    assert mark.number == 2


def test_a_walk_begins_where_it_is_told_and_ends_where_it_is_told(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path, segment_bytes=100)
    ends = [log.append([bytes([n]) * 30]).end for n in range(9)]
    walk = log.walk(ends[2], ends[5])
    assert [group.number for group in walk] == [4, 5, 6]
    assert not walk.damages


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    fill(tmp_path / "log", 20)
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "log").iterdir()}
    assert modes == {0o600}


def test_dropped_segments_are_no_damage(tmp_path: Path) -> None:
    before = fill(tmp_path, 30)
    log, _, _ = open_log(tmp_path, segment_bytes=400)
    kept = log.segments()[3]
    log.drop_before(kept)
    log.append([b"more"])
    _, found, losses = open_log(tmp_path)
    assert not losses
    assert found == {n: one for n, one in before.items() if n >= kept} | {31: [b"more"]}


def test_a_position_whose_segment_is_gone_is_damage(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path, segment_bytes=100)
    ends = [log.append([bytes([n]) * 30]).end for n in range(9)]
    log.path_of(ends[2].segment).unlink()
    walk = log.walk(ends[2])
    list(walk)
    assert walk.damages


def test_bytes_that_a_record_holds_are_never_taken_for_a_group(tmp_path: Path) -> None:
    """A publisher may send what looks like a group; a torn log is searched for the next one."""
    log, _, _ = open_log(tmp_path)
    forged, _ = layout.encode_group(0, 99, 0, [b"forged"])
    end = log.append([b"before"]).end
    log.append([b"x" * 100 + forged + b"y" * 100])
    log.close()
    os.truncate(log.path_of(end.segment), log.path_of(end.segment).stat().st_size - 10)
    _, found, losses = open_log(tmp_path)
    assert found == {1: [b"before"]}
    assert losses


def damaged(found: Written, before: Written) -> bool:
    """Is something missing? What is there must be as it was."""
    for number, records in found.items():
        there = iter(before[number])
        assert all(record in there for record in records), "a record that was never written"
    return found != before


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    before = fill(tmp_path / "log", 12)
    last = max((tmp_path / "log").glob("*.log"))
    for size in range(last.stat().st_size):
        shutil.copytree(tmp_path / "log", tmp_path / "cut")
        os.truncate(tmp_path / "cut" / last.name, size)
        found, losses = look(tmp_path / "cut")
        assert damaged(found, before) == bool(losses), size
        if size % 50:
            shutil.rmtree(tmp_path / "cut")
            continue
        log, _, _ = open_log(tmp_path / "cut")
        log.append([b"on it goes"])  # and it goes on, and says it only once
        _, again, losses = open_log(tmp_path / "cut")
        assert list(again.values())[-1] == [b"on it goes"]
        assert not losses, size
        shutil.rmtree(tmp_path / "cut")


@pytest.mark.parametrize("dropped", [False, True])
def test_every_cut_of_an_earlier_segment_is_noticed(tmp_path: Path, *, dropped: bool) -> None:
    """Also one that leaves the head of the first segment and none of its groups."""
    fill(tmp_path, 12)
    if dropped:
        log, _, _ = open_log(tmp_path)
        log.drop_before(log.segments()[1])
        log.close()
    *earlier, _ = sorted(tmp_path.glob("*.log"))
    assert len(earlier) > 1
    for path in earlier:
        data = path.read_bytes()
        for size in range(len(data)):
            os.truncate(path, size)
            assert look(tmp_path)[1], (path.name, size)
            path.write_bytes(data)
    assert not look(tmp_path)[1]


def test_every_flipped_bit_is_noticed_or_does_no_harm(tmp_path: Path) -> None:
    before = fill(tmp_path / "log", 12)
    draw = random.Random(5)
    for path in sorted((tmp_path / "log").iterdir()):
        data = path.read_bytes()
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            found, losses = look(tmp_path / "log")
            assert losses or not damaged(found, before), (path.name, at)
            if path.name == "end":
                assert not losses, "one of two marks was altered, and the log is whole"
        path.write_bytes(data)


def test_a_record_that_was_altered_spoils_only_itself(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path)
    group = log.append([b"a" * 50, b"b" * 50, b"c" * 50])
    log.append([b"d"])
    path, place = log.path_of(1), group.places[1]
    data = bytearray(path.read_bytes())
    data[place.start + 7] ^= 4
    path.write_bytes(data)
    assert log.read(group.places) == [b"a" * 50, None, b"c" * 50]
    _, found, losses = open_log(tmp_path)
    assert found == {1: [b"a" * 50, b"c" * 50], 2: [b"d"]}
    assert "corrupt records in the group: 1 of 3" in losses[0]


def test_what_is_cut_off_after_a_loss_is_kept_aside(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path)
    end = log.append([b"a"]).end
    log.append([b"secret words"])
    log.close()
    path = log.path_of(1)
    data = bytearray(path.read_bytes())
    data[end.offset + 3] ^= 1
    path.write_bytes(data)
    log, _, losses = open_log(tmp_path)
    assert losses
    assert open_log(tmp_path)[2] == losses  # nothing was touched, and nobody was told of it yet
    log.append([b"something was lost"])
    (kept,) = (tmp_path / ASIDE).iterdir()
    assert b"secret words" in kept.read_bytes()


@pytest.mark.parametrize("name", ["end", "all"])
def test_missing_files_are_noticed(tmp_path: Path, name: str) -> None:
    fill(tmp_path, 12)
    for path in [tmp_path / "end"] if name == "end" else tmp_path.glob("*.log"):
        path.unlink()
    assert open_log(tmp_path)[2]


def test_a_segment_of_another_log_is_noticed(tmp_path: Path) -> None:
    before, _ = fill(tmp_path / "a", 12, seed=1), fill(tmp_path / "b", 12, seed=1)
    name = sorted((tmp_path / "a").glob("*.log"))[1].name
    shutil.copy(tmp_path / "b" / name, tmp_path / "a" / name)
    _, found, losses = open_log(tmp_path / "a")
    assert losses
    assert damaged(found, before)


def test_an_older_end_mark_does_no_harm(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path)
    log.append([b"1"])
    older = (tmp_path / "end").read_bytes()
    log.append([b"2"])
    (tmp_path / "end").write_bytes(older)
    _, found, losses = open_log(tmp_path)
    assert found == {1: [b"1"], 2: [b"2"]}
    assert not losses


def test_a_write_that_fails_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _, _ = open_log(tmp_path)
    log.append([b"1"])

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(EnvironmentProblem, match="No space left"):
            log.append([b"2"])
    log.append([b"3"])
    _, found, losses = open_log(tmp_path)
    assert found == {1: [b"1"], 2: [b"3"]}
    assert not losses


def test_groups_of_which_nobody_was_told_are_taken_back(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path, segment_bytes=150)
    ends = [log.append([bytes([n]) * 30]).end for n in range(6)]
    log.take_back(ends[1])
    assert look(tmp_path) == ({1: [bytes(30)], 2: [b"\1" * 30]}, [])
    log.append([b"on"])
    assert look(tmp_path) == ({1: [bytes(30)], 2: [b"\1" * 30], 3: [b"on"]}, [])


@pytest.mark.parametrize("segment_bytes", [1, 1000])
def test_groups_that_are_taken_back_when_the_current_is_cut_off_are_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int
) -> None:
    for call in range(20):
        folder = tmp_path / f"{call}"
        log, _, _ = open_log(folder, segment_bytes=segment_bytes)
        ends = [log.append([b"%d" % n]).end for n in range(4)]
        with monkeypatch.context() as patch:
            cut_at(call, patch)
            try:
                log.take_back(ends[0])
                break
            except Cut:
                pass
        _, found, losses = open_log(folder)
        assert not losses
        # nobody was told of the others, and it does no harm if some are there
        assert found == {n + 1: [b"%d" % n] for n in range(len(found))}
        assert found
    assert call > 2


def test_a_first_group_that_was_never_finished_is_no_loss(tmp_path: Path) -> None:
    log, _, losses = open_log(tmp_path)
    assert not losses
    begun = (tmp_path / "end").read_bytes()  # the mark is there before the first group
    log.append([b"one"])
    data = log.path_of(1).read_bytes()
    for size in range(len(data)):
        folder = tmp_path / f"{size}"
        folder.mkdir()
        (folder / "end").write_bytes(begun)
        (folder / log.path_of(1).name).write_bytes(data[:size])
        again, found, losses = open_log(folder)
        assert (found, losses) == ({}, [])
        again.append([b"two"])
        assert open_log(folder)[1] == {1: [b"two"]}


def test_a_value_is_given_to_groups_that_the_mark_does_not_tell_of(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path)
    log.append([b"1"], 10)
    older = (tmp_path / "end").read_bytes()
    log.append([b"2"], 20)
    (tmp_path / "end").write_bytes(older)
    log = GroupLog(tmp_path)
    mark = log.read_mark()
    assert mark is not None
    assert log.has_more(end_of(mark))
    walk = log.walk(end_of(mark))
    assert [group.records for group in walk] == [[b"2"]]
    assert log.take_end(walk, 20) == []
    assert log.marked == log.read_mark()
    assert log.marked is not None
    assert (log.marked.number, log.marked.value) == (2, 20)
    assert not log.has_more(log.end)


def test_a_position_at_the_end_of_a_dropped_segment_is_the_start_of_the_next(
    tmp_path: Path,
) -> None:
    log, _, _ = open_log(tmp_path, segment_bytes=100)
    ends = [log.append([bytes([n]) * 30]).end for n in range(9)]
    log.drop_before(5)
    assert log.start_of(5) == Position(4, 5, 0, ends[3].chain)
    assert log.start_of(4) is None
    walk = log.walk(ends[3])
    assert [group.number for group in walk] == [5, 6, 7, 8, 9]
    assert not walk.damages
    walk = log.walk(ends[2])
    list(walk)
    assert walk.damages  # group 4 is gone


def test_writers_in_turn_keep_what_was_dropped(tmp_path: Path) -> None:
    one, _, _ = open_log(tmp_path, segment_bytes=100)
    for n in range(9):
        one.append([bytes([n]) * 30])
    two, _, _ = open_log(tmp_path, segment_bytes=100)
    two.drop_before(5)
    walk = one.walk(one.end)
    list(walk)
    assert one.take_end(walk) == []
    one.append([b"more"])
    mark = one.read_mark()
    assert mark is not None
    assert mark.oldest == 5
    assert not open_log(tmp_path)[2]


def test_a_cut_before_the_position_that_a_walk_begins_at_is_noticed(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path)
    end = log.append([b"1" * 50]).end
    assert not log.has_more(end)
    os.truncate(log.path_of(1), end.offset - 1)
    assert log.has_more(end)
    walk = log.walk(end)
    list(walk)
    assert walk.damages


def test_another_course_of_the_same_log_is_noticed(tmp_path: Path) -> None:
    """An older copy went on by itself, and one of its segments got here."""
    log, _, _ = open_log(tmp_path / "one")
    log.append([b"1"])
    log.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for name in ("one", "two"):
        log, _, _ = open_log(tmp_path / name)
        log.append([name.encode()])
        log.close()
    shutil.copy(log.path_of(1), tmp_path / "one")
    losses = look(tmp_path / "one")[1]
    assert "the group is not the one that was acknowledged" in losses[0]


def test_a_group_of_which_sectors_never_reached_the_disk_is_cut_off(tmp_path: Path) -> None:
    log, _, _ = open_log(tmp_path)
    log.append([b"1"])
    older = (tmp_path / "end").read_bytes()
    place = log.append([b"2" * 600, b"3" * 600]).places[1]
    data = bytearray(log.path_of(1).read_bytes())
    data[place.start : place.end] = bytes(place.end - place.start)
    log.path_of(1).write_bytes(data)
    assert look(tmp_path)[1]  # somebody was told of it
    (tmp_path / "end").write_bytes(older)
    _, found, losses = open_log(tmp_path)
    assert (found, losses) == ({1: [b"1"]}, [])


def test_a_mark_that_was_written_half_way_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _, _ = open_log(tmp_path)
    log.append([b"1"], 1)
    write = EndMarkFile.write
    fails = [True]

    def write_and_fail(self: EndMarkFile, mark: EndMark, *, sync: bool = False) -> None:
        write(self, mark, sync=sync)
        if fails.pop():
            raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(EndMarkFile, "write", write_and_fail)
        fails.insert(0, False)
        with pytest.raises(EnvironmentProblem, match="Input/output error"):
            log.append([b"2"], 2)
    _, found, losses = open_log(tmp_path)
    assert (found, losses) == ({1: [b"1"]}, [])


class Damage:
    """Something that happens to the files of a log."""

    def __init__(self, draw: random.Random, older: Path) -> None:
        self.draw = draw
        self.older = older
        self.struck: list[str] = []

    def strike(self, folder: Path) -> None:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        path = self.draw.choice(files)
        self.struck.append(path.name)
        data = bytearray(path.read_bytes())
        at = self.draw.randrange(len(data) or 1)
        kind = self.draw.choice(["flip", "cut", "zero", "unlink", "older", "swap"])
        if kind == "flip" and data:
            data[at] ^= 1 << self.draw.randrange(8)
        elif kind == "cut":
            del data[at:]
        elif kind == "zero":
            data[at : at + 200] = bytes(len(data[at : at + 200]))
        elif kind == "older" and (self.older / path.name).exists():
            data = bytearray((self.older / path.name).read_bytes())
        elif kind == "swap":
            other = self.draw.choice(files)
            self.struck.append(other.name)
            data, rest = bytearray(other.read_bytes()), data
            other.write_bytes(rest)
        path.write_bytes(data)
        if kind == "unlink":
            path.unlink()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_damage_is_noticed_or_does_no_harm(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    draw = random.Random(seed)
    folder = tmp_path_factory.mktemp("groups")
    before = fill(folder / "log", draw.randrange(1, 12), seed=seed)
    shutil.copytree(folder / "log", folder / "older")
    log, _, _ = open_log(folder / "log", segment_bytes=400)
    for _ in range(draw.randrange(8)):
        group = log.append([draw.randbytes(draw.randrange(60))])
        before[group.number] = [one for one in group.records if one is not None]
    log.close()
    damage = Damage(draw, folder / "older")
    for _ in range(draw.randrange(1, 3)):
        damage.strike(folder / "log")
    found, losses = look(folder / "log")
    if not losses and damaged(found, before):
        # the end and its mark went back in time together: that is for peers to notice
        assert found == {number: before[number] for number in range(1, len(found) + 1)}
        assert "end" in damage.struck
    log, _, _ = open_log(folder / "log")
    log.append([b"it goes on"])
    _, again, losses = open_log(folder / "log")
    assert [b"it goes on"] in again.values()


def test_positions_begin_at_the_start() -> None:
    assert Position() == START
