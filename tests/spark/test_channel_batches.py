"""Pipelines with a channel, in this process: which version a batch gets, what is handed over, and
what happens when the owner is away. test_channel_live.py has the chain over real processes."""

from __future__ import annotations

import itertools
import json
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import arrivals
from tests.spark.channels import ToldChannel
from tests.waiting import eventually

from tidings import parse
from tidings.filters import Attributes
from tidings.model import TidingsError
from tidings.network import Refusal
from tidings.routing.protocol import unwrap
from tidings.spark.channel import row_parts
from tidings.spark.channel.owner import read_waiting
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_reading import OutboxReader
from tidings.spark.pipeline.dead_letters import read_letters, replay_letters
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import load_settings
from tidings.spark.pipeline.status import read_status
from tidings.spark.pipeline.stoppable_pipeline import StoppablePipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("forked")]

FILE = """
name = "flights"

[source]
kind = "files"
path = "in"
format = "{format}"
files_per_trigger = 1

[subscriptions]
channel = "tidings://there"
rebuild_after = 3

[outbox]
path = "out"

[trigger]
available_now = true

[[sinks]]
kind = "channel"
"""
TYPES = {"subject": "string", "flight": "integer", "delay": "integer", "origin": "string"}
SINK = '[[sinks]]\nkind = "channel"\n'


@pytest.fixture
def folder(tmp_path: Path, channel: ToldChannel) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.toml").write_text(FILE.format(format="json"))
    channel.renew(attributes=TYPES, extra="keep")
    return tmp_path


def flights(first: int, count: int = 20) -> list[dict[str, Any]]:
    places = ("EWR", "JFK", None)
    return [
        {"flight": at, "delay": at * 7 % 100} | ({"origin": one} if (one := places[at % 3]) else {})
        for at in range(first, first + count)
    ]


def put(folder: Path, name: str, rows: list[Any]) -> None:
    arrivals.put(folder, name, (row if isinstance(row, str) else json.dumps(row) for row in rows))


def run(spark: SparkSession, folder: Path) -> Pipeline:
    pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark)
    try:
        pipeline.start().awaitTermination()
    finally:
        pipeline.close()
    return pipeline


def told(channel: ToldChannel) -> list[tuple[int, int, list[int], Any]]:
    """(batch, version, nodes, payload) of all that was taken."""
    found = []
    for part in channel.parts:
        for at in range(len(part)):
            nodes = part.nodes[part.node_starts[at] : part.node_starts[at + 1]].tolist()
            body = part.payloads[part.payload_starts[at] : part.payload_starts[at + 1]]
            found.append((part.batch, part.version, nodes, unwrap(body)[1]))
    return found


def check(channel: ToldChannel, version: int, batch: int, rows: list[dict[str, Any]]) -> None:
    """A batch has the rows that match, each with its lowest nodes. Of nodes that cover each other,
    the one with the higher number lies above."""
    declared = Attributes(TYPES)
    state = {
        node: parse(text, attributes=declared) for node, text in channel.states[version].items()
    }
    wanted = []
    for row in rows:
        match = {node: one for node, one in state.items() if one.matches(row)}
        lowest = [
            node for node, one in match.items()
            if not any(
                one.covers(low) and (other < node or not low.covers(one))
                for other, low in match.items() if other != node
            )
        ]  # fmt: skip
        if match:
            wanted.append((batch, version, sorted(lowest), row))
    found = [(*one[:3], json.loads(one[3])) for one in told(channel) if one[0] == batch]
    assert sorted(found, key=lambda one: one[3]["flight"]) == wanted


def test_each_batch_has_the_version_of_its_beginning(
    spark: SparkSession, folder: Path, channel: ToldChannel
) -> None:
    channel.add("delay > 30")
    channel.add("NOT (delay <= 30)")
    late = channel.add("delay > 60 AND origin = 'EWR'", 1 << 24)
    for name, first in (("a", 0), ("b", 20)):
        put(folder, f"{name}.json", flights(first))
        run(spark, folder)
        check(channel, channel.version, len(channel.parts) - 1, flights(first))
    channel.add("origin IS NULL")
    channel.end(late)
    for low in range(5):
        channel.add(f"delay > {low}")
    put(folder, "c.json", [*flights(40), '{"flight": "x"}'])
    run(spark, folder)
    check(channel, channel.version, 2, flights(40))
    settings = load_settings(folder / "pipeline.toml")
    replay = replay_letters(settings, read_letters(OutboxReader(folder / "out")))
    assert (replay.replayed, len(replay.refused)) == (0, 1)  # by the columns of the channel
    put(folder, "d.json", [])
    channel.end(1)
    run(spark, folder)
    assert [(one.batch, one.part, one.last) for one in channel.parts] == [
        (batch, 0, True) for batch in range(4)
    ]
    assert not len(channel.parts[3])
    status = read_status(settings)
    assert status.channel is not None
    assert (status.channel.address, status.channel.handed) == ("tidings://there", 3)
    assert (status.latest, status.subscriptions) == (channel.version, len(channel.living()))


def test_a_driver_that_died_hands_over_again(
    spark: SparkSession, folder: Path, channel: ToldChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the owner has the batch or not; it is tagged as it was, though filters changed."""
    channel.add("delay > 10")
    version = channel.version
    put(folder, "a.json", flights(0))

    def die(*_: object) -> None:
        raise TidingsError("killed")

    for owner, name in (
        (channel, "hand_over"),
        ("tidings.spark.channel.handing_over", "write_sealed"),
    ):
        with monkeypatch.context() as patch:
            if isinstance(owner, str):
                patch.setattr(f"{owner}.{name}", die)
            else:
                patch.setattr(owner, name, die)
            with pytest.raises(Exception, match="killed"):
                run(spark, folder)
        assert len(Outbox(folder / "out").commits()) == 1
    channel.add("delay > 20")
    run(spark, folder)
    check(channel, version, 0, flights(0))
    assert len(channel.parts) == 1


def test_a_repeated_batch_has_its_version_while_the_owner_is_down(
    spark: SparkSession, folder: Path, channel: ToldChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.add("delay > 10")
    version = channel.version
    put(folder, "a.json", flights(0))
    with monkeypatch.context() as patch:
        patch.setattr("tidings.spark.pipeline.pipeline.run_stage", lambda *_: 1 / 0)
        with pytest.raises(Exception, match="ZeroDivisionError"):
            run(spark, folder)
    channel.add("delay > 20")
    channel.renewed = channel.version
    answered = channel.calls
    channel.down = 10**9
    pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark)
    query = pipeline.start()
    outbox = Outbox(folder / "out")
    eventually(lambda: len(outbox.log) == 1)
    assert eventually(lambda: read_waiting(outbox.channel_folder)) is not None
    status = read_status(load_settings(folder / "pipeline.toml"))
    assert status.channel is not None
    assert status.channel.waiting is not None
    assert status.channel.waiting.reason == "no answer from the owner"
    assert (status.channel.handed, channel.parts) == (None, [])
    assert channel.calls > answered
    channel.down = 0
    query.awaitTermination()
    pipeline.close()
    check(channel, version, 0, flights(0))
    assert read_waiting(outbox.channel_folder) is None


def test_a_slow_owner_holds_the_stream_up(
    spark: SparkSession, folder: Path, channel: ToldChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.add("delay > 10")
    for at in range(4):
        put(folder, f"{at}.json", flights(20 * at))
    go, seen = threading.Semaphore(0), list[int]()
    take = channel.hand_over

    def hand_over(parts: Any) -> int:
        seen.append(parts[0].batch)
        go.acquire()
        return take(parts)

    def has(count: int) -> bool:
        return len(seen) == count

    monkeypatch.setattr(channel, "hand_over", hand_over)
    pipeline = Pipeline(load_settings(folder / "pipeline.toml"), spark)
    query = pipeline.start()
    outbox = Outbox(folder / "out")
    for batch in range(4):
        eventually(partial(has, batch + 1))
        assert len(outbox.log) == batch + 1  # no batch begins before the owner has the last one
        assert outbox.read_pin(batch + 1) is None
        go.release()
    query.awaitTermination()
    pipeline.close()
    assert seen == [0, 1, 2, 3]


def test_waiting_ends_with_the_pipeline(
    spark: SparkSession, folder: Path, channel: ToldChannel
) -> None:
    channel.add("delay > 10")
    pipeline = StoppablePipeline(load_settings(folder / "pipeline.toml"), spark)
    put(folder, "a.json", flights(0))
    channel.down = 10**9
    query = pipeline.start()
    eventually(lambda: read_waiting(pipeline.outbox.channel_folder))
    pipeline.end(query, grace=0.1)
    pipeline.check(query)
    pipeline.close()
    channel.down = 0
    run(spark, folder)
    check(channel, channel.version, 0, flights(0))


def test_a_part_of_another_life_ends_the_pipeline_and_then_it_goes_on(
    spark: SparkSession, folder: Path, channel: ToldChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.add("delay > 10")
    put(folder, "a.json", flights(0))
    file = folder / "pipeline.toml"

    def refuse(_: object) -> int:
        raise Refusal("found a part that was tagged in life 7 of the channel, expected life 8")

    with monkeypatch.context() as patch:
        patch.setattr(channel, "hand_over", refuse)
        for _ in range(2):
            with pytest.raises(Exception, match="expected life 8"):
                run(spark, folder)
        # what the page says to do: one run without the sink
        file.write_text(file.read_text().replace(SINK, ""))
        run(spark, folder)
    channel.renew(life=8)
    file.write_text(file.read_text() + SINK)
    put(folder, "b.json", flights(20))
    run(spark, folder)
    assert {(one.batch, one.life) for one in channel.parts} == {(1, 8)}
    check(channel, channel.version, 1, flights(20))


def test_a_batch_that_began_in_another_life_is_not_finished(
    spark: SparkSession, folder: Path, channel: ToldChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.add("delay > 10")
    put(folder, "a.json", flights(0))
    with monkeypatch.context() as patch:
        patch.setattr("tidings.spark.pipeline.pipeline.run_stage", lambda *_: 1 / 0)
        with pytest.raises(Exception, match="ZeroDivisionError"):
            run(spark, folder)
    channel.renew(life=8)
    with pytest.raises(Exception, match="batch 0 was started in another life of the channel"):
        run(spark, folder)
    Outbox(folder / "out").pin_path(0).unlink()
    run(spark, folder)
    assert {one.life for one in channel.parts} == {8}


def test_rows_that_are_too_long_are_dead_letters(
    spark: SparkSession, folder: Path, channel: ToldChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.spark.pipeline.pipeline.MOST_ROW_BYTES", 300)
    monkeypatch.setattr("tidings.spark.pipeline.pipeline.MOST_NODES", 3)
    for origin in ("JFK", "EWR"):
        channel.add(f"origin = '{origin}'")
    for odd in range(4):
        channel.add(f"delay % 10 = {odd} OR flight = 7")
    rows: list[Any] = [
        {"flight": 1, "delay": 8, "origin": "JFK"},
        {"flight": 2, "delay": 8, "origin": "JFK", "note": "x" * 300},
        {"flight": 7, "delay": 9, "origin": "EWR"},
        {"flight": 4, "delay": 8, "origin": "none", "note": "x" * 300},
    ]
    put(folder, "a.json", rows)
    run(spark, folder)
    assert [json.loads(one[3]) for one in told(channel)] == rows[:1]
    letters = list(read_letters(OutboxReader(folder / "out")))
    assert sorted((json.loads(one.raw) for one in letters), key=lambda row: row["flight"]) == [
        rows[1], rows[2],
    ]  # fmt: skip
    assert "at most 3 nodes, and at most 300 bytes of nodes and payload" in letters[0].reason
    done = Outbox(folder / "out").read_commit(0)
    assert done is not None
    assert (done.rows, done.matched, done.refused) == (2, 1, 2)


def test_long_rows_are_handed_over_in_pieces(
    spark: SparkSession, folder: Path, channel: ToldChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless too little room is left for the payload."""
    monkeypatch.setattr("tidings.spark.pipeline.pipeline.WHOLE_BYTES", 400)
    monkeypatch.setattr("tidings.spark.pipeline.pipeline.MOST_FRONT", 200)
    monkeypatch.setattr("tidings.spark.pipeline.pipeline.MOST_ROW_BYTES", 3000)
    for name, value in (("PART_BYTES", 300), ("WHOLE_BYTES", 400), ("PIECE_BYTES", 150)):
        monkeypatch.setattr(row_parts, name, value)
    channel.renew(attributes=None, extra="open")
    channel.add("delay > 5")
    (folder / "pipeline.toml").write_text(FILE.format(format="parquet"))
    notes = ["x", "y" * 1000, "z" * 4000, "n" * 1000, "w"]
    delays = [6.0, 7.0, 8.0, float("inf"), 9.0]
    table = pa.table({"delay": delays, "note": notes})
    pq.write_table(table, folder / "in" / "a.parquet")
    run(spark, folder)
    found: list[Any] = []
    held = b""
    bodies = [
        part.payloads[one:two]
        for part in channel.parts
        for one, two in itertools.pairwise(part.payload_starts.tolist())
    ]
    for about, payload in map(unwrap, bodies):
        held += payload
        if about.piece is None or about.piece.at + 1 == about.piece.of:
            found.append((json.loads(held), about.piece is not None))
            held = b""
    assert found == [
        ({"delay": 6.0, "note": "x"}, False), ({"delay": 7.0, "note": notes[1]}, True),
        ({"delay": 9.0, "note": "w"}, False),
    ]  # fmt: skip
    letters = {json.loads(one.raw)["note"][0]: one.reason
               for one in read_letters(OutboxReader(folder / "out"))}  # fmt: skip
    assert letters.keys() == {"z", "n"}
    assert "found 1 node, and 4,0" in letters["z"]
    assert letters["z"].endswith("store large values elsewhere, and send their addresses")
    assert "expected at most 400 bytes, or at most 200 bytes of metadata" in letters["n"]


def test_a_channel_without_declared_attributes(
    spark: SparkSession, folder: Path, channel: ToldChannel
) -> None:
    channel.renew(attributes=None, extra="open")
    channel.add("delay > 10")
    channel.add("user.city = 'Oslo'")
    rows = [{"delay": 11}, {"delay": "late"}, {"user": {"city": "Oslo", "age": None}}, {"x": 1}]
    put(folder, "a.json", rows)
    run(spark, folder)
    assert [(one[2], json.loads(one[3])) for one in told(channel)] == [
        ([1], rows[0]), ([2], rows[2]),
    ]  # fmt: skip


def test_filters_of_others_do_not_end_a_pipeline(
    spark: SparkSession, folder: Path, channel: ToldChannel
) -> None:
    """Columns that are not there, that have another type, and that can't be compared."""
    channel.renew(attributes=None, extra="open")
    (folder / "pipeline.toml").write_text(FILE.format(format="parquet"))
    table = pa.table({"n": [1, 2, 3], "b": [b"x", b"y", b"z"], "s": ["1", "2", None]})
    pq.write_table(table, folder / "in" / "a.parquet")
    for text in ("gone = 1", "gone IS NULL AND n = 3", "b = 'x'", "s > 1", "n > 1"):
        channel.add(text)
    run(spark, folder)
    assert [(one[2], json.loads(one[3])) for one in told(channel)] == [
        ([5], {"n": 2, "b": "eQ==", "s": "2"}), ([2], {"n": 3, "b": "eg=="}),
    ]  # fmt: skip


def test_columns_of_other_types_than_declared(
    spark: SparkSession, folder: Path, channel: ToldChannel
) -> None:
    files = 'kind = "files"\npath = "in"\nformat = "json"\nfiles_per_trigger = 1'
    text = FILE.format(format="json").replace(files, 'kind = "rate"')
    (folder / "pipeline.toml").write_text(text)
    channel.renew(attributes={"value": "string"})
    with pytest.raises(TidingsError, match="'value' is bigint, but was declared as string"):
        Pipeline(load_settings(folder / "pipeline.toml"), spark)


def test_csv_has_the_columns_of_the_channel(
    spark: SparkSession, folder: Path, channel: ToldChannel
) -> None:
    (folder / "pipeline.toml").write_text(FILE.format(format="csv"))
    channel.add("delay > 10 OR subject = 'a'")
    put(folder, "a.csv", ["flight,delay,origin", "1,11,JFK", "2,9,JFK"])
    run(spark, folder)
    assert [json.loads(one[3]) for one in told(channel)] == [
        {"flight": 1, "delay": 11, "origin": "JFK"}
    ]


def test_a_single_column_of_bytes_is_what_subscribers_get(
    spark: SparkSession, folder: Path, channel: ToldChannel
) -> None:
    channel.renew(attributes=None, extra="open")
    (folder / "pipeline.toml").write_text(FILE.format(format="parquet"))
    pq.write_table(pa.table({"b": [b"\x00x", b"\xff"]}), folder / "in" / "a.parquet")
    channel.add("b IS NULL")  # it can't be compared, so it counts as null
    run(spark, folder)
    assert [one[3] for one in told(channel)] == [b"\x00x", b"\xff"]
