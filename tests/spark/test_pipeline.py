"""Pipelines: what lands in the outbox is what the oracle says, each thing once, numbered."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from tests.arrivals import put
from tests.spark.outboxes import read_rows
from tests.waiting import wait_for

from tidings import Attributes, TidingsError, parse
from tidings.snapshots import Snapshot
from tidings.spark.outbox.outbox import Commit, Outbox
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import load_settings
from tidings.spark.pipeline.status import read_status
from tidings.spark.session.failures import sentence_of
from tidings.store import ChangeLog, owner_of
from tidings.store.declared import join_attributes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILE = """
name = "flights"

[source]
kind = "files"
path = "in"
format = "{format}"
files_per_trigger = 1

[columns]
flight = "integer"
dep_delay = "integer"
origin = "string"
at = "timestamp"

[subscriptions]
log = "subscriptions"

[outbox]
path = "out"
time = "at"

[trigger]
available_now = true
"""
SUBSCRIPTIONS = {
    "late": "dep_delay > 60",
    "very late": "dep_delay > 120",
    "Newark": "origin = 'EWR' AND dep_delay > 60",
}


def flight(number: int) -> dict[str, Any]:
    return {
        "flight": number,
        "dep_delay": number * 7 % 200,
        "origin": ("EWR", "JFK", "LGA")[number % 3],
        "at": f"2013-01-{1 + number % 28:02d}T{number % 24:02d}:30:00Z",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.toml").write_text(FILE.format(format="json"))
    attributes = load_settings(tmp_path / "pipeline.toml").attributes
    ChangeLog(tmp_path / "subscriptions", attributes).put_many(SUBSCRIPTIONS)
    return tmp_path


def run(spark: SparkSession, folder: Path) -> Pipeline:
    pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark)
    query = pipeline.start()
    query.awaitTermination()
    pipeline.close()
    return pipeline


def outbox_rows(folder: Path) -> list[dict[str, Any]]:
    return read_rows(Outbox(folder / "out"))


def check_numbers(rows: list[dict[str, Any]]) -> None:
    """Every node counts 1, 2, 3, ...; so do notifications."""
    counted: dict[int, list[int]] = {}
    for row in rows:
        for node, number in zip(row["nodes"], row["numbers"], strict=True):
            counted.setdefault(node, []).append(number)
    for numbers in counted.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert [row["notification"] for row in rows] == list(range(1, len(rows) + 1))


def test_changes_count_from_the_next_batch_on(spark: SparkSession, folder: Path) -> None:
    log = ChangeLog(folder / "subscriptions")
    expected: dict[int, set[str]] = {}
    for start in (0, 40, 80):
        flights = [flight(number) for number in range(start, start + 40)]
        put(folder, f"{start}.json", [json.dumps(one) for one in flights])
        now = log.subscriptions()
        for one in flights:
            told = {str(id_) for id_, (text, _) in now.items() if parse(text).matches(one)}
            if told:
                expected[one["flight"]] = told
        run(spark, folder)
        if start == 0:
            log.put("early", "dep_delay < 20")
            log.put("late", "dep_delay > 90")
            log.drop("very late")
    rows = outbox_rows(folder)
    assert {row["flight"]: set(row["subscriptions"]) for row in rows} == expected
    assert all(len(set(row["subscriptions"])) == len(row["subscriptions"]) for row in rows)
    check_numbers(rows)
    assert {row["version"] for row in rows} == {3, 6}
    commits = [Outbox(folder / "out").read_commit(batch) for batch in range(3)]
    assert [commit and (commit.version, commit.rows) for commit in commits] == [
        (3, 40), (6, 40), (6, 40),
    ]  # fmt: skip
    assert all(row["grain"] == f"{row['at']:%Y-%m-%dT%H}-00" for row in rows)


def test_a_running_pipeline_makes_the_changes_of_commands(
    spark: SparkSession, folder: Path
) -> None:
    where = folder / "subscriptions"
    before = ChangeLog(where).version
    put(folder, "a.json", [json.dumps(flight(number)) for number in range(10)])
    seen: list[tuple[int | None, int]] = []

    def change(_: Commit, __: float) -> None:
        seen.append((owner_of(where), ChangeLog(where).put("more", "dep_delay > 7", owner="ana")))

    pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark, change)
    pipeline.start().awaitTermination()
    assert seen == [(os.getpid(), before + 1)]
    pipeline.close()
    assert owner_of(where) is None
    assert ChangeLog(where).put("more", "dep_delay > 8") == before + 2
    assert ChangeLog(where).state().owners == {"more": "ana"}


def test_bad_rows_are_kept_with_the_reason(spark: SparkSession, folder: Path) -> None:
    (folder / "pipeline.toml").write_text('extra = "refuse"\n' + FILE.format(format="json"))
    log = ChangeLog(folder / "subscriptions")
    log.declare(load_settings(folder / "pipeline.toml").attributes)
    good = [json.dumps(flight(number)) for number in (10, 20, 30)]
    bad = ['{"flight": 1, "dep_delay": "soon"}', '{"flight": 2', '{"flihgt": 3}', "[]"]
    put(folder, "a.json", [good[0], *bad, *good[1:]])
    run(spark, folder)
    outbox = Outbox(folder / "out")
    done = outbox.last()
    assert done is not None
    assert (done.rows, done.refused) == (3, 4)
    assert {row["flight"] for row in outbox_rows(folder)} == {10, 20}
    dead = [row for one in outbox.dead_folders() for row in pq.read_table(one).to_pylist()]
    reasons = {row["raw"]: row["reason"] for row in dead}
    assert set(reasons) == set(bad)
    assert "dep_delay" in reasons[bad[0]]
    assert "did you mean flight?" in reasons[bad[2]]


def test_csv(spark: SparkSession, folder: Path) -> None:
    (folder / "pipeline.toml").write_text(FILE.format(format="csv"))
    put(folder, "a.csv", ["flight,dep_delay,origin,at", "1,70,EWR,2013-01-01", "2,x,EWR,", "3,,,"])
    run(spark, folder)
    rows = outbox_rows(folder)
    assert [(row["flight"], sorted(row["subscriptions"])) for row in rows] == [
        (1, ["Newark", "late"])
    ]
    done = Outbox(folder / "out").last()
    assert done is not None
    assert (done.rows, done.refused) == (2, 1)


@pytest.mark.parametrize("kind", ["delete", "archive"])
def test_files_go_once_their_batch_is_committed(
    spark: SparkSession, folder: Path, kind: str
) -> None:
    archive = 'archive = "read"\n' if kind == "archive" else ""
    text = FILE.format(format="json").replace("path", f'when_read = "{kind}"\n{archive}path', 1)
    (folder / "pipeline.toml").write_text(text)
    source, names = folder / "in", ("a.json", "b.json", "c.json")
    for number, name in enumerate(names):
        put(folder, name, [json.dumps(flight(n)) for n in range(10 * number, 10 * number + 10)])
        os.utime(source / name, (number, number))  # they are read in this order
    written = {path.name: path.read_text() for path in source.iterdir()}
    batches: list[int] = []

    def told(done: Commit, _: float) -> None:
        batches.append(done.batch)
        assert (source / names[done.batch]).exists()  # Spark has yet to note that it is done
        if batches == [0, 1]:
            raise TidingsError("stopped between our commit and Spark's")

    for _ in range(2):
        pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark, told)
        query = pipeline.start()
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination()
        pipeline.close()
    assert batches == [0, 1, 1, 2]
    assert left_of(source, 1) == ["c.json"]  # it goes when there is a batch after its own
    put(folder, "d.json", [json.dumps(flight(30))])
    run(spark, folder)
    assert left_of(source, 1) == ["d.json"]
    there = outbox_rows(folder)
    assert len({row["flight"] for row in there}) == len(there) > 5
    check_numbers(there)
    kept = folder / "read" / source.relative_to("/")
    archived = {path.name: path.read_text() for path in kept.glob("*")}
    assert archived == (written if kind == "archive" else {})


def left_of(folder: Path, count: int) -> list[str]:
    """The files of a folder once there are so few, for another thread of Spark removes them."""
    wait_for(lambda: len(list(folder.iterdir())) <= count, 30)
    return sorted(path.name for path in folder.iterdir())


def test_csv_as_everyone_writes_it(spark: SparkSession, folder: Path) -> None:
    """A quote in quotes is doubled."""
    (folder / "pipeline.toml").write_text(FILE.format(format="csv"))
    origins = ['say "hi"', 'say "hi", bob', "a,b", "back\\slash", 'end\\"']
    with (folder / ".a").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["flight", "dep_delay", "origin", "at"])
        writer.writerows([at, 100, origin, ""] for at, origin in enumerate(origins))
    (folder / ".a").rename(folder / "in" / "a.csv")
    run(spark, folder)
    assert [row["origin"] for row in outbox_rows(folder)] == origins
    put(folder, "b.csv", ["dep_delay,flight,origin,at", "70,100,EWR,"])  # in another order
    put(folder, "c.csv", ["dep_delay,flight", "80,101", "late,102", "90,103,x"])  # without some
    run(spark, folder)
    rows = {row["flight"]: row for row in outbox_rows(folder)}
    assert [(rows[at]["dep_delay"], rows[at]["origin"]) for at in (100, 101)] == [
        (70, "EWR"), (80, None),
    ]  # fmt: skip
    dead = [pq.read_table(one).to_pylist() for one in Outbox(folder / "out").dead_folders()]
    assert [row["raw"] for rows in dead for row in rows if row] != []
    put(folder, "d.csv", ["dep_delay,flight,origin,when", "70,1,EWR,"])
    with pytest.raises(Exception, match="header") as caught:
        run(spark, folder)
    assert "d.csv: the header does not match the declared columns" in sentence_of(caught.value)


def test_lines_that_are_not_utf8(spark: SparkSession, folder: Path) -> None:
    good = json.dumps(flight(20)).encode()
    (folder / ".a").write_bytes(b'{"origin": "J\xfcFK"}\n' + good + b"\n")
    (folder / ".a").rename(folder / "in" / "a.json")
    run(spark, folder)
    assert [row["flight"] for row in outbox_rows(folder)] == [20]
    (letters,) = Outbox(folder / "out").dead_folders()
    (dead,) = pq.read_table(letters).to_pylist()
    assert dead["raw"] == '{"origin": "J\\xfcFK"}'
    assert "expected UTF-8" in dead["reason"]


def test_a_batch_that_was_committed_is_not_done_again(spark: SparkSession, folder: Path) -> None:
    put(folder, "a.json", [json.dumps(flight(number)) for number in range(30)])
    run(spark, folder)
    before = outbox_rows(folder)
    for path in (folder / "checkpoint" / "commits").glob("*"):  # as if stopped just before
        path.unlink()
    ChangeLog(folder / "subscriptions").put("all", "true")
    run(spark, folder)
    assert outbox_rows(folder) == before


def test_a_batch_that_is_done_again_sees_the_same_subscriptions(
    spark: SparkSession, folder: Path
) -> None:
    put(folder, "a.json", [json.dumps(flight(number)) for number in range(30)])
    Outbox(folder / "out").pin(0, 2, 1)  # it began, and was stopped
    run(spark, folder)
    assert {row["version"] for row in outbox_rows(folder)} == {2}
    assert not any("Newark" in row["subscriptions"] for row in outbox_rows(folder))


def test_an_outbox_of_another_checkpoint_is_refused(spark: SparkSession, folder: Path) -> None:
    put(folder, "a.json", [json.dumps(flight(1))])
    run(spark, folder)
    (folder / "checkpoint").rename(folder / "gone")
    with pytest.raises(TidingsError, match="belongs to another checkpoint"):
        run(spark, folder)
    (folder / "gone").rename(folder / "checkpoint")
    (folder / "out").rename(folder / "elsewhere")
    with pytest.raises(TidingsError, match="belongs to another checkpoint"):
        run(spark, folder)


def test_a_fixed_snapshot_and_typed_files(spark: SparkSession, folder: Path) -> None:
    text = FILE.format(format="parquet").replace('log = "subscriptions"', 'snapshot = "s"')
    (folder / "pipeline.toml").write_text(text)
    Snapshot.build({7: "dep_delay > 60"}, number=5).save(folder / "s")
    frame = spark.createDataFrame(
        [(1, 61, "EWR", None), (2, 3, "EWR", None)],
        "flight long, dep_delay long, origin string, at timestamp",
    )
    frame.coalesce(1).write.mode("overwrite").parquet(str(folder / "in"))
    run(spark, folder)
    assert [(r["flight"], r["subscriptions"], r["version"]) for r in outbox_rows(folder)] == [
        (1, [7], 5)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('name = "flights"', ""), "name: the setting is missing; add it"),
        (('kind = "files"', 'kind = "fils"'), "source"),
        (('path = "in"\n', 'path = "in"\ncolour = 1\n'), "colour"),
        (('log = "subscriptions"', ""), "expected one of channel, log and snapshot"),
        (('at = "timestamp"', 'at = "time"'), "line 14: columns: 'at' has the type 'time'"),
        (('time = "at"', 'time = "origin"'), "outbox.time: found 'origin', expected a timestamp"),
        (("[outbox]", "[outbox"), "is not TOML"),
    ],
)
def test_pipeline_files_that_are_refused(
    folder: Path, change: tuple[str, str], message: str
) -> None:
    path = folder / "pipeline.toml"
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(TidingsError) as caught:
        load_settings(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_columns_of_the_file_and_of_the_channel(spark: SparkSession, folder: Path) -> None:
    """The first columns are the declaration. Later ones must agree with it; a column that is
    declared later is in the next batch, and nodes keep their numbers."""
    file, log = folder / "pipeline.toml", ChangeLog(folder / "subscriptions")
    for id_ in log.subscriptions():
        log.drop(id_)
    log.put_many({"gt1": "dep_delay > 1", "ge2": "dep_delay >= 2"})
    nodes = {id_: node for id_, (_, node) in log.subscriptions().items()}
    put(folder, "0.json", [json.dumps({"flight": 1, "dep_delay": 2, "seats": 3})])
    run(spark, folder)
    assert log.last_declaration.declaration.types == load_settings(file).columns
    assert (log.last_declaration.version, len({*nodes.values()})) == (0, 1)
    whole = 'dep_delay = "integer"'
    text = file.read_text()
    assert whole in text
    file.write_text(text.replace(whole, 'dep_delay = "double"'))
    sentence = "'dep_delay' is double here, but the channel '.*' declares integer; correct it"
    with pytest.raises(TidingsError, match=sentence):
        Pipeline(load_settings(file), spark)
    file.write_text(text.replace(whole, f'{whole}\nseats = "integer"'))
    with pytest.raises(TidingsError, match=r"'seats' is given, but the channel '.*' does not"):
        Pipeline(load_settings(file), spark)
    file.write_text(text)
    declared = log.attributes
    assert declared is not None
    with pytest.raises(TidingsError, match=r"2 filters do not fit the declaration: the subscr"):
        log.declare(join_attributes(Attributes({"dep_delay": "double"}), declared))
    log.declare(join_attributes(declared, Attributes({"seats": "integer"})))
    log.put("seats", "seats > 1")
    put(folder, "1.json", [json.dumps({"flight": 2, "dep_delay": 2, "seats": 2})])
    run(spark, folder)
    rows = {row["flight"]: row for row in outbox_rows(folder)}
    assert {flight: set(row["subscriptions"]) for flight, row in rows.items()} == {
        1: {"gt1", "ge2"}, 2: {"gt1", "ge2", "seats"},
    }  # fmt: skip
    assert [rows[at]["numbers"][0] for at in (1, 2)] == [1, 2]  # the node goes on counting
    assert rows[2]["nodes"] == [*rows[1]["nodes"], log.version]
    texts = {one.node: one.filter for one in read_status(load_settings(file)).counters}
    assert texts == {rows[1]["nodes"][0]: "dep_delay > 1", log.version: "seats > 1"}


def test_a_snapshot_that_is_altered_under_way_tells_nobody_anything(
    spark: SparkSession, folder: Path
) -> None:
    """The driver has compared it; a worker that maps it compares it again."""
    Snapshot.build(SUBSCRIPTIONS).save(folder / "fixed")
    text = FILE.format(format="json").replace('log = "subscriptions"', 'snapshot = "fixed"')
    (folder / "pipeline.toml").write_text(text)
    put(folder, "a.json", [json.dumps(flight(number)) for number in range(40)])
    pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark)
    path = folder / "fixed" / "index" / "entry_box.arrow"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    with contextlib.closing(pipeline), pytest.raises(StreamingQueryException) as caught:
        pipeline.start().awaitTermination()
    assert "entry_box.arrow is corrupt" in sentence_of(caught.value)
    assert Outbox(folder / "out").commits() == []
    with pytest.raises(TidingsError, match=r"entry_box\.arrow is corrupt"):
        Pipeline(load_settings(folder / "pipeline.toml"), spark)
    path.write_bytes(whole)
    run(spark, folder)
    assert Outbox(folder / "out").commits() == [0]
