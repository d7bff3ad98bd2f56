"""The log against a plain model: versions, nodes, reopening, forgetting, threads."""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.repeats import rounds

import tidings
from tidings.store import (
    Change,
    ChangeLog,
    LogError,
    change_records as records,
    live_ids,
    log_opening,
)
from tidings.store.journal import rows

# Filters that are equal in pairs or threes, so that nodes are shared.
TEXTS = [
    text
    for n in range(6)
    for text in (f"a > {n} AND b = 'é'", f"b = 'é' AND a > {n}", f"NOT (a <= {n}) AND b = 'é'")
]

IDS: list[str | int] = [1, "1", 2, "zwei", -7, ""]
KINDS: list[Callable[[int], str | int]] = [int, str]


def oldest(log: ChangeLog) -> int:
    """The version after which all changes are there."""
    try:
        log.changes(0)
    except LogError as problem:
        return int(str(problem).rpartition("after version ")[2])
    return 0


class Model:
    """What a log should say."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.states: list[dict[str | int, tuple[str, int]]] = [{}]

    def put(self, id_: str | int, text: str) -> None:
        """The node of a subscription with an equal filter, or one with the number of the change."""
        key = tidings.parse(text).key
        same = (node for one, node in self.states[-1].values() if tidings.parse(one).key == key)
        self._add(id_, text, next(same, len(self.states)))

    def drop(self, id_: str | int) -> None:
        self._add(id_, None, 0)

    def _add(self, id_: str | int, text: str | None, node: int) -> None:
        self.changes.append(Change(len(self.states), id_, text, node))
        state = dict(self.states[-1])
        if text is None:
            del state[id_]
        else:
            state[id_] = (text, node)
        self.states.append(state)


@pytest.mark.parametrize("segment_bytes", [1, 700, 1 << 20])
def test_like_a_model(tmp_path: Path, seed: int, no_sync: None, segment_bytes: int) -> None:
    rng = random.Random(seed)
    model, kept, forgotten = Model(), 0, 0
    writer = ChangeLog(tmp_path, segment_bytes=segment_bytes)
    reader = ChangeLog(tmp_path)
    for _ in rounds(120, 300):
        step = rng.random()
        state = model.states[-1]
        id_ = rng.choice(IDS)
        if step < 0.55:
            ids = [id_] if step < 0.4 else [rng.choice(KINDS)(n) for n in rng.sample(range(9), 2)]
            pairs = [(one, rng.choice(TEXTS)) for one in ids]
            if len({*map(type, ids), *map(type, state)}) > 1:
                mixed = r"^found the (string|integer) .* are"
                with pytest.raises(tidings.TidingsError, match=mixed):
                    writer.put_many(pairs)
            else:
                for pair in pairs:
                    model.put(*pair)
                latest = writer.put(*pairs[0]) if step < 0.4 else writer.put_many(pairs)
                assert latest == len(model.changes)
        elif step < 0.75:
            if id_ in state:
                model.drop(id_)
                assert writer.drop(id_) == len(model.changes)
            else:
                with pytest.raises(tidings.TidingsError, match=r"^there is no subscription with"):
                    writer.drop(id_)
        elif step < 0.77:
            for each in state:
                model.drop(each)
                assert writer.drop(each) == len(model.changes)
        elif step < 0.85:
            writer = ChangeLog(tmp_path, segment_bytes=segment_bytes)
        elif step < 0.9:
            forgotten = max(forgotten, version := rng.randint(0, len(model.changes)))
            rng.choice([reader, writer]).forget_before(version)
            before, kept = kept, oldest(ChangeLog(tmp_path))
            assert before <= kept <= forgotten
        else:
            reader = ChangeLog(tmp_path)
        log = rng.choice([reader, writer])
        assert log.version == len(model.changes)
        if model.states[-1]:
            assert {log.id_kind} == set(map(type, model.states[-1]))
        upto = rng.randint(forgotten, len(model.changes))
        assert log.subscriptions(upto) == model.states[upto]
        after = rng.randint(kept, upto)
        assert log.changes(after, upto) == model.changes[after:upto]
        assert log.changes(upto) == model.changes[upto:]


def test_a_change(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "deep" / "log")
    assert (log.version, log.changes(0), log.subscriptions()) == (0, [], {})
    assert log.put("one", "a = 1") == 1
    assert log.put_many([("two", "1 = a"), ("3", tidings.parse("b = 2"))]) == 3
    assert log.drop("one") == 4
    assert log.put_many({"two": "1 = a"}) == 5
    assert log.put_many([]) == 5
    assert log.changes(0) == [
        Change(1, "one", "a = 1", 1),
        Change(2, "two", "1 = a", 1),
        Change(3, "3", "b = 2", 3),
        Change(4, "one", None, 0),
        Change(5, "two", "1 = a", 1),
    ]
    assert log.changes(1, 2) == [Change(2, "two", "1 = a", 1)]
    assert log.subscriptions() == {"two": ("1 = a", 1), "3": ("b = 2", 3)}
    assert log.subscriptions(1) == {"one": ("a = 1", 1)}


def test_attributes_decide_what_is_equal_and_what_is_refused(tmp_path: Path) -> None:
    attributes = tidings.Attributes({"day": "date"})
    log = ChangeLog(tmp_path, attributes)
    log.put("x", "day > '2024-01-01'")
    log.put("y", "day > DATE '2024-01-01'")
    assert [change.node for change in log.changes(0)] == [1, 1]
    with pytest.raises(tidings.FilterError, match="dya"):
        log.put("z", "dya = 1")
    assert log.version == 2


@pytest.mark.parametrize("bad", [None, 1.5, True, b"x", "\ud800", 2**63])
def test_ids_that_are_refused(tmp_path: Path, bad: str) -> None:
    log = ChangeLog(tmp_path)
    sentence = r"as an id, expected a string or a 64-bit integer"
    with pytest.raises(tidings.TidingsError, match=sentence):
        log.put(bad, "a = 1")
    with pytest.raises(tidings.TidingsError, match=sentence):
        log.put_many([(bad, "a = 1")])
    with pytest.raises(tidings.TidingsError, match=sentence):
        log.drop(bad)
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "owner"}


def test_ids_of_another_kind_than_those_that_are_there(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    assert log.id_kind is None
    log.put("ana", "a = 1")
    for reader in (log, ChangeLog(tmp_path)):
        assert reader.id_kind is str
        with pytest.raises(tidings.TidingsError) as caught:
            reader.put_many([("ben", "a = 2"), (7, "a = 1")])
        assert str(caught.value) == (
            f"found the integer 7 as an id, but the ids of the subscriptions in '{tmp_path}' are "
            f"strings"
        )
    assert log.version == 1
    log.drop("ana")
    assert log.id_kind is str  # of the last one
    log.put(7, "a = 1")
    assert log.id_kind is int
    with pytest.raises(tidings.TidingsError, match=r"^found the string 'ana' .* are integers$"):
        log.put("ana", "a = 1")
    log.forget_before(log.version)
    assert ChangeLog(tmp_path).id_kind is int
    with pytest.raises(tidings.TidingsError, match=r"^found the string 'ana' .* are integers$"):
        ChangeLog(tmp_path).put("ana", "a = 1")


def test_a_log_of_both_kinds_that_was_made_before_they_were_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(live_ids.ProjectedIds, "take", lambda *_: None)
        ChangeLog(tmp_path).put_many([("ana", "a = 1"), (7, "a = 1")])
    log = ChangeLog(tmp_path)
    for new in ("ben", 8):
        with pytest.raises(tidings.TidingsError, match=r"strings and integers; drop those of one"):
            log.put(new, "a = 1")
    assert log.put("ana", "a = 2") == 3
    assert log.drop(7) == 4
    assert log.put("ben", "a = 1") == 5


def test_bad_filters_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    with pytest.raises(tidings.RefusedFilters, match=r"2 of 3 filters .* 'bad': .* 'worse': "):
        log.put_many([("bad", "a ="), ("good", "a = 1"), ("worse", "a >")])
    with pytest.raises(tidings.TidingsError, match=r"expected an \(id, filter\) pair"):
        log.put_many([("good", "a = 1"), 7])  # type: ignore[list-item]
    assert log.version == 0


def test_versions_that_are_not_there(tmp_path: Path, no_sync: None) -> None:
    log = ChangeLog(tmp_path, segment_bytes=1)
    log.put_many([("x", "a = 1"), ("x", "a = 2")])
    log.put("x", "a = 3")
    for bad in (-1, 4, True):
        for ask in (log.subscriptions, log.changes, log.forget_before):
            with pytest.raises(LogError, match=r"expected a version from 0 to 3, the latest in"):
                ask(bad)
    log.forget_before(3)
    with pytest.raises(LogError, match=r"the state at version 2 was dropped, expected version 3"):
        log.subscriptions(2)
    with pytest.raises(
        LogError, match=r"version 2 of .* was dropped; the log has only the changes after version 3"
    ):
        log.changes(2)
    assert log.changes(3) == []


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "log")
    log.put_many({"x": "a = 1", "y": "b = 1"})
    log.forget_before(1)
    there = [log.path, *log.path.rglob("*")]
    assert {path.name for path in there} >= {"log", "lock", "channel", "end", "checkpoint"}
    for path in there:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_the_latest_changes_of_a_long_log_are_read_from_near_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_sync: None
) -> None:
    log = ChangeLog(tmp_path, segment_bytes=1000)
    log.put("x", "a = 1")
    late, fresh = ChangeLog(tmp_path), ChangeLog(tmp_path)
    assert late.version == 1
    for n in range(300):
        log.put("x", f"a = {n}")
    read, decode = [0], rows.decode_rows

    def counted(record: bytes) -> rows.Rows:
        read[0] += 1
        return decode(record)

    monkeypatch.setattr(records, "decode_rows", counted)
    for reader in (late, fresh):
        assert [change.version for change in reader.changes(299)] == [300, 301]
    assert read[0] < 40
    log.put("x", "a = 0")
    read[0] = 0
    assert [change.version for change in late.changes(301)] == [302]
    assert read == [1]  # one who follows


def test_threads_share_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ChangeLog(tmp_path)
    log.put("x", "a = 1")
    synced = []
    syncs = {name: getattr(os, name) for name in ("fsync", "fdatasync")}

    def counted(handle: int, name: str) -> None:
        synced.append(handle)
        syncs[name](handle)

    for name in syncs:
        monkeypatch.setattr(os, name, partial(counted, name=name))

    def write(thread: int) -> list[int]:
        return [log.put(f"{thread}-{n}", f"a = {n}") for n in range(20)]

    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(write, range(8)))
    assert sorted(itertools.chain(*versions)) == list(range(2, 162))
    assert len(synced) < 160
    said = {change.version: change.id for change in ChangeLog(tmp_path).changes(1)}
    for thread, numbers in enumerate(versions):
        assert [said[version] for version in numbers] == [f"{thread}-{n}" for n in range(20)]


def test_one_refusal_of_a_thread_is_not_that_of_others(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put("x", "a = 1")

    def one(n: int) -> int | str:
        try:
            return log.drop("nobody") if n % 2 else log.put(f"{n}", "a = 1")
        except tidings.TidingsError as problem:
            return str(problem)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(40)))
    assert set(answers[1::2]) == {"there is no subscription with the id 'nobody'"}
    assert sorted(map(int, answers[::2])) == list(range(2, 22))


def test_readers_see_nothing_that_the_disk_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = ChangeLog(tmp_path), ChangeLog(tmp_path)
    writer.put("x", "a = 1")
    assert reader.version == 1
    waits, let = threading.Event(), threading.Event()

    def fsync(handle: int) -> None:
        waits.set()
        assert let.wait(30)

    size = (tmp_path / f"{1:020}.log").stat().st_size
    monkeypatch.setattr(os, "fdatasync", fsync)
    monkeypatch.setattr(log_opening, "PATIENCE", 0.05)
    thread = threading.Thread(target=writer.put, args=("x", "a = 2"))
    thread.start()
    try:
        assert waits.wait(30)
        assert (tmp_path / f"{1:020}.log").stat().st_size > size  # it is written
        assert [reader.version, writer.version, ChangeLog(tmp_path).version] == [1, 1, 1]
    finally:
        let.set()
        thread.join()
    assert [reader.version, writer.version, ChangeLog(tmp_path).version] == [2, 2, 2]
