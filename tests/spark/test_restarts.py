"""Pipelines that were stopped between any two steps, and what keeps two of them apart."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests import arrivals
from tests.repeats import amount
from tests.spark.outboxes import as_before, read_rows
from tests.waiting import eventually, waits_in

from tidings import TidingsError, parse
from tidings.snapshots import Snapshot
from tidings.spark.outbox import outbox as outbox_module
from tidings.spark.outbox.batches.batch_stages import run_stage
from tidings.spark.outbox.outbox import Commit, Outbox
from tidings.spark.outbox.outbox_check import OutboxCheck
from tidings.spark.outbox.spark_checkpoint import SparkCheckpoint
from tidings.spark.pipeline import pipeline as module
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import load_settings
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.store import Accepting, ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILE = """
name = "restarts"

[source]
kind = "files"
path = "in"
files_per_trigger = 1

[columns]
id = "integer"
price = "integer"

[subscriptions]
log = "log"

[outbox]
path = "out"

[trigger]
available_now = true
"""


class Stopped(Exception):
    """In the place of a kill."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.toml").write_text(FILE)
    ChangeLog(tmp_path / "log").put_many({"a": "price > 3", "b": "price > 5 AND id > 2"})
    return tmp_path


def put(folder: Path, batch: int, bad: str | None = None) -> None:
    rows = [json.dumps({"id": 10 * batch + at, "price": at}) for at in range(10)]
    arrivals.put(folder, f"{batch:04d}.json", [*rows, *([bad] if bad else [])])


def opened(spark: SparkSession, folder: Path) -> Pipeline:
    return Pipeline(load_settings(folder / "pipeline.toml"), spark)


def run(pipeline: Pipeline) -> None:
    try:
        pipeline.start().awaitTermination()
    finally:
        pipeline.close()


def failing(pipeline: Pipeline) -> str:
    with pytest.raises(Exception, match=r"Error|Stopped") as caught:
        run(pipeline)
    return str(caught.value)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return read_rows(Outbox(folder / "out"))


def check(folder: Path, batches: int) -> None:
    outbox, log = Outbox(folder / "out"), ChangeLog(folder / "log")
    assert outbox.commits() == list(range(batches))
    found = {row["id"]: row for row in rows_of(folder)}
    assert len(found) == len(rows_of(folder))
    counted: dict[int, list[int]] = {0: []}
    for batch in range(batches):
        pin = outbox.read_pin(batch)
        assert pin is not None
        texts = {id_: text for id_, (text, _) in log.subscriptions(pin.version).items()}
        for at in range(10):
            event = {"id": 10 * batch + at, "price": at}
            told = {id_ for id_, text in texts.items() if parse(text).matches(event)}
            row = found.pop(event["id"], None)
            assert (set() if row is None else set(row["subscriptions"])) == told
            if row is not None:
                assert row["version"] == pin.version
                counted[0].append(row["notification"])
                for node, number in zip(row["nodes"], row["numbers"], strict=True):
                    counted.setdefault(node, []).append(number)
    assert not found
    for numbers in counted.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def stop_at(pipeline: Pipeline, step: str, when: str, patch: pytest.MonkeyPatch) -> None:
    """Have a pipeline stop before or after a step of the first batch that it has to do anew."""
    owner: Any = {
        "run_stage": module, "_hand_over": pipeline, "on_batch": pipeline,
        "accept": Accepting,
    }.get(step, pipeline.outbox)  # fmt: skip
    real: Callable[..., Any] = getattr(owner, step)

    def stopping(*arguments: Any, **named: Any) -> Any:
        if step != "_hand_over" or len(pipeline.outbox.commits()) > begun:
            if when == "after":
                real(*arguments, **named)
            raise Stopped
        return real(*arguments, **named)

    begun = len(pipeline.outbox.commits())
    patch.setattr(owner, step, stopping)


STEPS = [
    ("pin", "before"), ("pin", "after"), ("begin_attempt", "after"), ("run_stage", "after"),
    ("place", "after"), ("commit", "before"), ("commit", "after"), ("keep_counters", "after"),
    ("accept", "before"), ("accept", "after"), ("put_numbers", "before"), ("put_numbers", "after"),
    ("_hand_over", "before"), ("on_batch", "before"),
]  # fmt: skip


@pytest.mark.timeout(900)  # some twenty short runs
def test_stopped_between_any_two_steps(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    some = random.Random(seed).sample(range(len(STEPS)), amount(6, len(STEPS)))
    monkeypatch.setattr(outbox_module, "COUNTERS_EVERY", 3)
    log = ChangeLog(folder / "log")
    put(folder, 0)
    run(opened(spark, folder))
    for batch, (step, when) in enumerate((STEPS[at] for at in sorted(some)), start=1):
        put(folder, batch)
        with monkeypatch.context() as patch:
            pipeline = opened(spark, folder)
            stop_at(pipeline, step, when, patch)
            failing(pipeline)
        done = Outbox(folder / "out").commits()
        after_commit = (step, when) in STEPS[6:]
        assert len(done) == batch + (1 if after_commit else 0), (step, when, done)
        log.put(f"n{batch}", f"price >= {batch % 10}")
        log.put("a", f"price > {batch % 7}")
        run(opened(spark, folder))  # what was begun, with the old subscriptions
        check(folder, batch + 1)


def test_an_outbox_of_the_release_before_goes_on(spark: SparkSession, folder: Path) -> None:
    """It numbered its rows itself. The numbers go on, and old rows are read as they are."""
    for batch in range(3):
        put(folder, batch)
    run(opened(spark, folder))
    as_before(Outbox(folder / "out"))
    shutil.rmtree(folder / "log" / "numbers")
    check(folder, 3)
    for batch in (3, 4):
        put(folder, batch)
        run(opened(spark, folder))
        check(folder, batch + 1)
    assert ChangeLog(folder / "log").numbers.counters() == Outbox(folder / "out").last_numbers()
    verify(folder)


def test_pipelines_of_one_log_number_together(spark: SparkSession, folder: Path) -> None:
    """Two outboxes, in turn: a number is given once, and each outbox has rising ones."""
    file = folder / "pipeline.toml"
    text = file.read_text()
    for batch in range(3):
        put(folder, batch)
        for out in ("out", "other"):
            file.write_text(text.replace('path = "out"', f'path = "{out}"').replace(
                'name = "restarts"', f'name = "restarts"\ncheckpoint = "checkpoint-{out}"'
            ))  # fmt: skip
            run(opened(spark, folder))
    given: dict[int, list[int]] = {}
    for out in ("out", "other"):
        last: dict[int, int] = {}
        for row in read_rows(Outbox(folder / out)):
            for node, number in zip(row["nodes"], row["numbers"], strict=True):
                assert number > last.get(node, 0)
                last[node] = number
                given.setdefault(node, []).append(number)
        verify(folder, out)
    assert given
    for numbers in given.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def verify(folder: Path, out: str = "out") -> None:
    found = OutboxCheck(Outbox(folder / out))
    for _ in found.batches():
        pass
    assert found.found.problems == []


def test_numbers_without_a_folder_to_write_to(spark: SparkSession, folder: Path) -> None:
    """A fixed snapshot: the outbox numbers for itself. Then a log, which numbers on."""
    file = folder / "pipeline.toml"
    text = file.read_text()
    file.write_text(text.replace('log = "log"', 'snapshot = "s"'))
    Snapshot.build({"a": "price > 3"}).save(folder / "s")
    for batch in range(2):
        put(folder, batch)
        run(opened(spark, folder))
    assert (folder / "out" / "_tidings" / "numbers").is_dir()
    assert not (folder / "log" / "numbers").exists()
    before = [row["numbers"][0] for row in read_rows(Outbox(folder / "out"))]
    assert before == list(range(1, 13))
    file.write_text(text)
    put(folder, 2)
    run(opened(spark, folder))
    later = read_rows(Outbox(folder / "out"))[12:]  # node 1 has the same filter as before
    assert sorted((row["nodes"], row["numbers"]) for row in later) == [
        ([1], [13]), ([1], [14]), ([2], [1]), ([2], [2]), ([2], [3]), ([2], [4]),
    ]  # fmt: skip
    verify(folder)


def test_sinks_get_the_numbers_that_readers_get(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a sink that gets a batch again, after its commit and before its numbers."""
    file = folder / "pipeline.toml"
    file.write_text(file.read_text() + '[[sinks]]\nkind = "console"\n')
    got = list[dict[str, Any]]()

    def collect(_sink: object, rows: Any, *_: object) -> None:
        got.extend(row.asDict() for row in rows.collect())

    monkeypatch.setattr(module, "hand_over_to", collect)
    for batch in range(3):
        put(folder, batch)
        with monkeypatch.context() as patch:
            pipeline = opened(spark, folder)
            stop_at(
                pipeline, *[("put_numbers", "before"), ("on_batch", "before")][batch % 2], patch
            )
            failing(pipeline)
        run(opened(spark, folder))
    wanted = read_rows(Outbox(folder / "out"))
    assert {row["notification"]: row for row in got} == {one["notification"]: one for one in wanted}
    assert len(got) == 18 + 6  # the batch in the middle came twice


def test_an_outbox_has_one_pipeline_at_a_time(spark: SparkSession, folder: Path) -> None:
    put(folder, 0)
    first, second = opened(spark, folder), opened(spark, folder)
    first.start().awaitTermination()
    with pytest.raises(TidingsError, match="another pipeline writes"):
        second.start()
    first.close()
    put(folder, 1)
    run(second)
    check(folder, 2)
    with pytest.raises(TidingsError, match="the pipeline is closed"):
        second.run_batch(spark.range(1), 2)


def test_a_start_that_fails_lets_go(spark: SparkSession, folder: Path) -> None:
    pipeline = opened(spark, folder)
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "tidings-stream").write_text("another")
    pipeline.outbox.home.mkdir(parents=True)
    (pipeline.outbox.home / "stream").write_text("one")
    with pytest.raises(TidingsError, match="belongs to another checkpoint"):
        pipeline.start()
    with pipeline.outbox.hold_lock():
        pass


def test_close_waits_for_a_commit_that_is_under_way(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When Java dies, `awaitTermination` fails at once, and a batch may still be at its commit."""
    put(folder, 0)
    pipeline = opened(spark, folder)
    at_commit, go_on = threading.Event(), threading.Event()
    real = pipeline.outbox.commit

    def slow(done: Commit) -> None:
        at_commit.set()
        assert go_on.wait(120)
        real(done)

    monkeypatch.setattr(pipeline.outbox, "commit", slow)
    query = pipeline.start()
    assert at_commit.wait(120)
    with pytest.raises(Exception, match="already active"):
        pipeline.start()  # and neither lets go nor sweeps up what is under way
    closing = threading.Thread(target=pipeline.close)
    closing.start()
    eventually(lambda: waits_in(closing.ident or 0, "_release_outbox"))
    with (
        pytest.raises(TidingsError, match="another pipeline writes"),
        Outbox(folder / "out").hold_lock(),
    ):
        pass
    go_on.set()
    closing.join(120)
    with Outbox(folder / "out").hold_lock():
        pass
    query.awaitTermination()
    check(folder, 1)


def test_numbers_go_on_after_a_commit_that_failed_late(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is on the disk, the pipeline was told that it is not, and is started again."""
    put(folder, 0)
    pipeline = opened(spark, folder)
    real = pipeline.outbox.commit

    def late(done: Commit) -> None:
        real(done)
        raise OSError("the disk does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.outbox, "commit", late)
        with pytest.raises(Exception, match="the disk does not answer"):
            pipeline.start().awaitTermination()
    put(folder, 1)
    run(pipeline)
    check(folder, 2)


def test_a_checkpoint_that_was_put_back_is_refused(spark: SparkSession, folder: Path) -> None:
    """Spark would make batches of other rows under numbers that are done, and lose them."""
    put(folder, 0)
    run(opened(spark, folder))
    shutil.copytree(folder / "checkpoint", folder / "backup")
    put(folder, 1)
    run(opened(spark, folder))
    shutil.rmtree(folder / "checkpoint")
    (folder / "backup").rename(folder / "checkpoint")
    put(folder, 2)
    assert "check that no older checkpoint was restored" in failing(opened(spark, folder))
    assert Outbox(folder / "out").commits() == [0, 1]


def test_what_spark_noted_is_synced_before_the_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        "tidings.spark.outbox.spark_checkpoint.sync",
        lambda path: synced.append(str(path.relative_to(tmp_path))),
    )
    for name in ("offsets/0", "offsets/1", "sources/0/0", "sources/0/1", "sources/0/.1.crc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    checkpoint = SparkCheckpoint(tmp_path)
    first = checkpoint.sync_offsets(0)
    assert sorted(synced) == ["offsets", "offsets/0", "sources/0", "sources/0/0", "sources/0/1"]
    synced.clear()
    assert checkpoint.sync_offsets(0) == first
    assert synced == []
    assert checkpoint.sync_offsets(1) != first
    assert sorted(synced) == ["offsets", "offsets/1"]
    assert checkpoint.sync_offsets(2) == ""


def test_the_files_of_a_batch_are_those_that_spark_noted(tmp_path: Path) -> None:
    def note(name: str, *lines: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n".join(["v1", *lines]))

    def entry(path: str, log: int) -> str:
        return f'{{"path":"file://{path}","timestamp":1,"batchId":{log}}}'

    note("offsets/0", "{}", '{"logOffset":0}')
    note("offsets/1", "{}", '{"logOffset":2}')
    note("offsets/2", "{}", '{"logOffset":11}')
    note("offsets/3", "{}", "-")
    note("sources/0/0", entry("/in/a", 0))
    note("sources/0/1", entry("/in/b%20c", 1))
    note("sources/0/2", entry("/in/d", 2), entry("/in/e", 2))
    note("sources/0/11.compact", entry("/in/a", 0), entry("/in/f", 1), entry("/in/g", 11))
    checkpoint = SparkCheckpoint(tmp_path)
    found = [[str(path) for path in checkpoint.files(batch)] for batch in range(5)]
    assert found == [["/in/a"], ["/in/b c", "/in/d", "/in/e"], ["/in/g"], [], []]


def test_a_log_that_went_back_is_refused(spark: SparkSession, folder: Path) -> None:
    put(folder, 0)
    run(opened(spark, folder))
    shutil.rmtree(folder / "log")
    ChangeLog(folder / "log").put("a", "price > 3")
    put(folder, 1)
    assert "check that it is the same log" in failing(opened(spark, folder))


def test_a_pinned_version_that_was_forgotten(spark: SparkSession, folder: Path) -> None:
    log = ChangeLog(folder / "log")
    put(folder, 0)
    outbox = Outbox(folder / "out")
    outbox.pin(0, 1, 1)
    log.put("c", "price = 0")
    log.forget_before(3)
    problem = failing(opened(spark, folder))
    assert "batch 0 was started with version 1 of the subscriptions" in problem
    assert str(outbox.pin_path(0)) in problem
    outbox.pin_path(0).unlink()
    run(opened(spark, folder))
    check(folder, 1)


def test_changes_before_the_time_of_a_batch_are_in_its_version(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def latest(self: Any) -> int:
        asked.append(time.time_ns() // 1000)
        return int(self.log.version)

    put(folder, 0)
    pipeline = opened(spark, folder)
    monkeypatch.setattr(FollowedSubscriptions, "latest", latest)
    run(pipeline)
    pin = Outbox(folder / "out").read_pin(0)
    assert pin is not None
    assert pin.micros <= asked[-1]


def test_a_file_that_is_older_than_others_is_read(spark: SparkSession, folder: Path) -> None:
    put(folder, 0)
    run(opened(spark, folder))
    put(folder, 1)
    os.utime(folder / "in" / "0001.json", (time.time() - 30 * 86_400,) * 2)
    run(opened(spark, folder))
    check(folder, 2)


def test_a_task_is_tried_again_unless_the_file_says_otherwise(folder: Path) -> None:
    """`local[2]` tries once: a Python worker that is killed would end the stream."""
    assert load_settings(folder / "pipeline.toml").spark.master == "local[2,4]"


def test_a_trigger_by_the_clock(spark: SparkSession, folder: Path) -> None:
    path = folder / "pipeline.toml"
    path.write_text(path.read_text().replace("available_now = true", "every_seconds = 0.1"))
    pipeline = opened(spark, folder)
    query = pipeline.start()
    try:
        for batch in range(2):
            put(folder, batch)
            query.processAllAvailable()
    finally:
        query.stop()
        pipeline.close()
    check(folder, 2)


def test_rows_that_are_missing_from_what_was_written_are_noticed(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, 0, bad="[")
    real = run_stage

    def losing(*arguments: Any) -> Any:
        staged = real(*arguments)
        for one in staged:
            one.files = one.files[1:]
        return staged

    with monkeypatch.context() as patch:
        patch.setattr(module, "run_stage", losing)
        assert "the batch is not committed" in failing(opened(spark, folder))
    run(opened(spark, folder))
    check(folder, 1)
    assert len([*Outbox(folder / "out").dead_folders()]) == 1
    assert len([*(folder / "out" / "data").iterdir()]) == 1


def test_a_file_that_went_before_its_batch_was_done(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would take it for an empty one, and the batch for done."""
    for batch in range(2):
        put(folder, batch)
        with monkeypatch.context() as patch:
            pipeline = opened(spark, folder)
            stop_at(pipeline, "commit", "before", patch)
            failing(pipeline)
        file = folder / "in" / f"{batch:04d}.json"
        file.rename(folder / "elsewhere")
        assert f"{batch:04d}.json" in failing(opened(spark, folder))
        (folder / "elsewhere").rename(file)
        run(opened(spark, folder))
        check(folder, batch + 1)


def test_a_snapshot_that_was_replaced_while_a_batch_was_open(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pipeline.toml").write_text(FILE.replace('log = "log"', 'snapshot = "s"'))
    old = Snapshot.build({"a": "price > 3"})
    old.save(folder / "s")
    put(folder, 0)
    with monkeypatch.context() as patch:
        pipeline = opened(spark, folder)
        stop_at(pipeline, "commit", "before", patch)
        failing(pipeline)
    Snapshot.build({"b": "price > 5"}).save(folder / "s")
    assert "batch 0 was started with another snapshot" in failing(opened(spark, folder))
    old.save(folder / "s")
    run(opened(spark, folder))
    assert {tuple(row["subscriptions"]) for row in rows_of(folder)} == {("a",)}
    Snapshot.build({"b": "price > 5"}).save(folder / "s")
    put(folder, 1)
    run(opened(spark, folder))
    assert {tuple(row["subscriptions"]) for row in rows_of(folder)} == {("a",), ("b",)}


def test_what_is_missing_is_refused_and_nothing_is_removed(
    spark: SparkSession, folder: Path
) -> None:
    """A commit that was missing once had the data of its batch removed at the next start."""
    for batch in range(3):
        put(folder, batch, bad="{" if batch == 1 else None)
    run(opened(spark, folder))
    out = folder / "out"
    check_ = OutboxCheck(Outbox(out))
    assert [*check_.batches()] == [0, 1, 2]
    assert check_.found.problems == []
    before = {path for home in ("data", "dead") for path in (out / home).rglob("*.parquet")}
    commits = sorted(path for path in (out / "_tidings" / "commits").iterdir() if path.is_file())
    for victim in (commits[0], sorted(before)[1]):
        victim.rename(folder / "away")
        pipeline = opened(spark, folder)
        with pytest.raises(TidingsError, match="nothing in it was changed; restore it"):
            run(pipeline)
        now = {path for home in ("data", "dead") for path in (out / home).rglob("*.parquet")}
        assert now == before - {victim}
        (folder / "away").rename(victim)
    put(folder, 3)
    run(opened(spark, folder))
    check(folder, 4)
    for path in (out, *out.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
