"""`tidings pipeline`: what it prints about a stream, how it ends, and what it refuses."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from tests import arrivals
from tests.cli.conftest import Result, Run
from tests.damage import flip_bit
from tests.spark.outboxes import files_of, put_batch
from tests.waiting import wait_for

from tidings.cli.pipelines.pipeline_view import PipelineView
from tidings.model import TidingsError
from tidings.spark.feeds.feed_spool import FeedState, SpoolState
from tidings.spark.outbox.outbox import Commit, Outbox
from tidings.spark.outbox.outbox_start import take_outbox
from tidings.spark.outbox.spark_checkpoint import SparkCheckpoint
from tidings.spark.pipeline.settings import load_settings
from tidings.spark.pipeline.status import read_status
from tidings.spark.session.failures import sentence_of
from tidings.store import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """
name = "flights"

[source]
kind = "files"
path = "in"
files_per_trigger = 1

[columns]
flight = "integer"
dep_delay = "integer"
origin = "string"

[subscriptions]
log = "subscriptions"

[outbox]
path = "out"

[trigger]
{trigger}
"""
NOW, ALWAYS = "available_now = true", "every_seconds = 0.1"
SINK = 'available_now = true\n[[sinks]]\nkind = "console"\nrows = {}'
CHANNEL = 'channel = "tidings://127.0.0.1:1"'
GOOD = '{"flight": 1, "dep_delay": 75, "origin": "EWR"}'
BAD = '{"flight": "x"}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "p.toml").write_text(FILE.format(trigger=NOW))
    attributes = load_settings(tmp_path / "p.toml").attributes
    ChangeLog(tmp_path / "subscriptions", attributes).put_many(
        {"late": "dep_delay > 60", "Newark": "dep_delay > 60 AND origin = 'EWR'"}
    )
    return tmp_path


def put(folder: Path, name: str, *lines: str) -> None:
    arrivals.put(folder, name, lines)


def commit(outbox: Outbox, batch: int, version: int = 2, refused: int = 0) -> Commit:
    """A batch of four rows; the dead letters, if there were any, are gone since."""
    for folder, rows in ((outbox.folder(batch, "a"), 4), (outbox.dead_folder(batch, "a"), refused)):
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": range(rows)}), folder / "part.parquet")
    files = [one for one in files_of(outbox, batch, "a") if one.rows]
    done = Commit(
        batch, "a", version, 1_700_000_000_000_000, 10, 4, 6, refused, {0: 4, 2: 4}, files
    )
    outbox.commit(done)
    shutil.rmtree(outbox.path / "dead")
    return done


# -- run ---------------------------------------------------------------------------------------


@pytest.mark.spark
def test_run_to_the_end_and_status(run: Run, spark: SparkSession, folder: Path) -> None:
    put(folder, "a.json", GOOD, BAD, '{"flight": 2, "dep_delay": 3}')
    put(folder, "b.json", GOOD)
    file = str(folder / "p.toml")
    result = run("pipeline", "run", file)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert len(lines) == 3
    assert {line.split(":")[0] for line in lines[:2]} == {"batch 0", "batch 1"}
    assert lines[2] == "all rows are read: 2 batches, 3 rows, 2 matched, 4 told, 1 refused"
    assert spark.range(3).count() == 3  # a session that was there is left running

    ChangeLog(folder / "subscriptions").drop("late")
    [found] = run("pipeline", "status", file, "--json").records
    totals = {"batches": 2, "rows": 3, "matched": 2, "told": 4, "refused": 1}
    assert found["totals"] == totals | {"extra_rows": 0, "extra_fields": 0}
    assert (found["last"]["version"], found["latest"], found["subscriptions"]) == (2, 3, 1)
    assert found["counters"] == [
        {"node": 2, "number": 2, "filter": "dep_delay > 60 AND origin = 'EWR'"}
    ]
    assert (found["notifications"], found["open_pins"]) == (2, [])
    [letter] = found["dead_letters"]
    assert (letter["rows"], letter["raw"]) == (1, BAD)
    assert "column 'flight'" in letter["reason"]

    put(folder, "c.json", GOOD)
    result = run("pipeline", "run", file, "--json")
    [record] = result.records
    assert (record["batch"], record["version"], record["told"]) == (2, 3, 1)
    assert record["counters"] == {"0": 3, "2": 3}


@pytest.mark.spark
def test_json_is_not_mixed_with_what_the_console_gets(
    run: Run, spark: SparkSession, folder: Path
) -> None:
    file = folder / "p.toml"
    file.write_text(file.read_text() + '[[sinks]]\nkind = "console"\n')
    put(folder, "a.json", GOOD)
    result = run("pipeline", "run", str(file), "--json")
    assert [one["batch"] for one in result.records] == [0]
    assert "|     1|       75|   EWR| NULL|           1|" in result.err
    put(folder, "b.json", GOOD)
    result = run("pipeline", "run", str(file))
    assert result.err == ""
    assert "|     1|       75|   EWR| NULL|           2|" in result.out


@pytest.mark.spark
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_batch(
    run: Run,
    spark: SparkSession,
    folder: Path,
    which: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # on a machine that is busy
    monkeypatch.setattr("tidings.cli.pipelines.pipeline_command.GRACE", 60.0)
    (folder / "p.toml").write_text(FILE.format(trigger=ALWAYS))
    for number in range(6):
        put(folder, f"{number}.json", GOOD)
    outbox = Outbox(folder / "out")

    def send() -> None:
        wait_for(lambda: outbox.read_pin(1) is not None)
        os.kill(os.getpid(), which)

    sender = threading.Thread(target=send)
    sender.start()
    before = signal.getsignal(which)
    result = run("pipeline", "run", str(folder / "p.toml"))
    sender.join()
    assert (result.code, result.err) == (0, "")
    assert signal.getsignal(which) is before
    done = len(outbox.commits())
    assert 2 <= done < 6
    assert result.out.splitlines()[-1].startswith(f"ended: {done} batches")
    assert outbox.read_pin(done) is None  # the next was not begun
    (folder / "p.toml").write_text(FILE.format(trigger=NOW))
    again = run("pipeline", "run", str(folder / "p.toml"))
    assert again.out.splitlines()[0].startswith(f"batch {done}: ")
    last = outbox.last()
    assert last is not None
    assert (last.batch, last.before + last.matched) == (5, 6)  # each row once


@pytest.mark.spark
def test_a_failure_is_one_sentence(
    run: Run, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "a.json", GOOD)
    file = folder / "p.toml"
    file.write_text(file.read_text() + '[[sinks]]\nkind = "console"\n')

    def fail(*_: object) -> None:
        raise TidingsError("the sink is closed on Sundays")

    monkeypatch.setattr("tidings.spark.pipeline.pipeline.hand_over_to", fail)
    result = run("pipeline", "run", str(file))
    assert (result.code, result.err) == (2, "error: the sink is closed on Sundays\n")


@pytest.mark.spark
def test_a_column_that_filters_compare_otherwise_is_refused(
    run: Run, spark: SparkSession, folder: Path
) -> None:
    file = folder / "p.toml"
    file.write_text(file.read_text().replace('dep_delay = "integer"', 'dep_delay = "string"'))
    for command in ("run", "check"):
        result = run("pipeline", command, str(file))
        assert result.code == 2
        assert len(result.err.splitlines()) == 1
        assert "dep_delay" in result.err


def test_spark_connect_is_refused_before_anything_starts(run: Run, folder: Path) -> None:
    file = folder / "p.toml"
    file.write_text(file.read_text() + '[spark]\nremote = "sc://localhost"\n')
    one_sentence(run("pipeline", "run", str(file)), "can't run through Spark Connect")


def test_a_log_that_is_not_there_is_not_made(run: Run, folder: Path) -> None:
    file = folder / "p.toml"
    file.write_text(file.read_text().replace('log = "subscriptions"', 'log = "nowhere"'))
    one_sentence(run("pipeline", "run", str(file)), "there is no log in")
    assert not (folder / "nowhere").exists()


def test_two_do_not_write_to_one_outbox(run: Run, folder: Path) -> None:
    with Outbox(folder / "out").hold_lock():
        result = run("pipeline", "run", str(folder / "p.toml"))
    assert result.code == 2
    assert "another pipeline writes to the outbox" in result.err


# -- check and status, without Spark -----------------------------------------------------------


def test_check(run: Run, folder: Path) -> None:
    put(folder, "a.json", GOOD, BAD)
    result = run("pipeline", "check", str(folder / "p.toml"))
    assert result.code == 0
    assert "2 subscriptions, 2 nodes, version 2" in result.out
    assert "dep_delay   bigint   number" in result.out
    assert "2 rows of a.json read, 1 refused" in result.out
    assert "note: the first refused row: column 'flight'" in result.err
    commit(Outbox(folder / "out"), 0)
    [found] = run("pipeline", "check", str(folder / "p.toml"), "--json").records
    assert (found["batches"], found["version"]) == (1, 2)
    assert found["columns"][0] == {"name": "flight", "type": "bigint", "compared_with": None}


def test_check_names_who_can_never_match(run: Run, folder: Path) -> None:
    log = ChangeLog(folder / "subscriptions")
    log.put_many({"never": "dep_delay > 9 AND dep_delay < 3", "FALSE": "FALSE"})
    result = run("pipeline", "check", str(folder / "p.toml"))
    said = "note: 2 subscriptions can never match: never, FALSE; `tidings check` says why\n"
    assert (result.code, result.err) == (0, said)
    log.drop("FALSE")  # after the compilation
    log.put("later", "origin = 'a' AND origin = 'b'")
    [found] = run("pipeline", "check", str(folder / "p.toml"), "--json").records
    assert sorted(found["never"]) == ["later", "never"]


def test_check_remarks_that_nobody_is_there(run: Run, folder: Path) -> None:
    log = ChangeLog(folder / "subscriptions")
    log.drop("late")
    log.drop("Newark")
    result = run("pipeline", "check", str(folder / "p.toml"))
    assert (result.code, result.err) == (
        0, "note: there are no subscriptions, so nothing would match\n",
    )  # fmt: skip


def one_sentence(result: Result, sentence: str) -> None:
    assert result.code == 2
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('path = "in"', 'path = "nowhere"'), "source.path: there is no folder"),
        (('log = "subscriptions"', 'log = "nowhere"'), "there is no log in"),
        (('log = "subscriptions"', 'snapshot = "nowhere"'), "is not a snapshot"),
        (('origin = "string"', 'orign = "string"'), "does not declare it (did you mean origin?)"),
        (("[outbox]", "[outbox"), "is not TOML"),
        (('kind = "files"', ""), "source"),
        ((NOW, "every_seconds = nan"), "trigger.every_seconds: found nan, expected 0 to"),
        ((NOW, "every_seconds = inf"), "trigger.every_seconds: found inf, expected 0 to"),
        ((NOW, "every_seconds = -1"), "trigger.every_seconds: found -1.0, expected 0 to"),
        ((NOW, SINK.format("-1")), "sinks[0].rows: found -1, expected 0 to 2,147,483,647"),
        ((NOW, SINK.format(f"0x{'f' * 9999}")), "found an integer of more than 20 digits"),
        (
            ("files_per_trigger = 1", "files_per_trigger = 0"),
            "files_per_trigger: found 0",
        ),
        (('path = "out"', 'path = "out"\ngrain_minutes = 0'), "grain_minutes: found 0, expected"),
        (('path = "out"', 'path = "a\\u0000b"'), r"outbox.path: found 'a\x00b', expected a path"),
        (('path = "out"', 'path = ""'), "outbox.path: found '', expected a path"),
        (('path = "out"', 'path = "in/out"'), "expected a folder outside source.path"),
        (('path = "out"', 'path = "p.toml"'), "p.toml is a file, expected a folder"),
        (('path = "out"', 'path = "p.toml/out"'), "p.toml is a file, expected a folder"),
        (('name = "flights"', 'name = "x"\ncheckpoint = "./in"'), "checkpoint: found"),
        (('name = "flights"', 'name = "x"\ncheckpoint = "p.toml"'), "checkpoint: "),
        (
            ("files_per_trigger = 1", 'when_read = "archive"\narchive = "."'),
            "archive: found",
        ),
        (("files_per_trigger = 1", 'archive = "x"'), "source: expected both when_read"),
        (
            ('log = "subscriptions"', f'log = "subscriptions"\n{CHANNEL}'),
            "subscriptions: expected one of channel, log and snapshot",
        ),
        (
            ('log = "subscriptions"', 'log = "subscriptions"\ntoken_file = "t"'),
            "subscriptions.token_file: expected none without a channel",
        ),
        (
            (NOW, NOW + '\n[[sinks]]\nkind = "channel"'),
            "sinks[0].kind: found 'channel' and subscriptions.log, expected "
            'subscriptions.channel: write channel = "subscriptions" instead of log',
        ),
        (
            ('log = "subscriptions"', 'channel = "s3://bucket/folder"'),
            "subscriptions.channel: found 's3://bucket/folder', expected an address such as "
            "tidings://127.0.0.1:7400, or the folder of a channel",
        ),
        (
            ('log = "subscriptions"', 'channel = "subscriptions"\ntoken_file = "t"'),
            "subscriptions.token_file: expected none with the folder of a channel",
        ),
        (
            ('log = "subscriptions"', 'channel = "nowhere"'),
            "subscriptions: there is no log in",
        ),
        (("[trigger]", f"y = {'1' * 5000}\n[trigger]"), "an integer has too many digits"),
        (("[trigger]", f"y = {'[' * 9999}\n[trigger]"), "nested too deeply"),
    ],
)
def test_what_is_refused_is_refused_in_one_sentence(
    run: Run, folder: Path, change: tuple[str, str], sentence: str
) -> None:
    file = folder / "p.toml"
    assert change[0] in file.read_text()
    file.write_text(file.read_text().replace(*change))
    one_sentence(run("pipeline", "check", str(file)), sentence)
    assert not (folder / "nowhere").exists()
    if "too" in sentence:  # no command can read the file
        one_sentence(run("pipeline", "status", str(file)), sentence)
        one_sentence(run("subscriptions", "list", str(file)), sentence)
    elif "p.toml is a file" in sentence:
        one_sentence(run("pipeline", "run", str(file)), sentence)


def test_a_name_that_the_outbox_uses(run: Run, folder: Path) -> None:
    file = str(folder / "p.toml")
    declared = run("channel", "declare", file, "--types", "nodes=string")
    assert (declared.code, declared.out.startswith("version 3: ")) == (0, True)
    one_sentence(run("pipeline", "check", file), "a name that the outbox uses")
    assert run("channel", "declare", file, "--drop", "nodes").code == 0
    assert run("pipeline", "check", file).code == 0
    one_sentence(run("channel", "declare", file, "--drop", "origin"), "'Newark': dep_delay > 60")


@pytest.fixture
def channel_file(folder: Path) -> Path:
    """A pipeline whose channel does not answer."""
    file = folder / "p.toml"
    text = file.read_text().replace('log = "subscriptions"', CHANNEL)
    columns = text[text.index("[columns]") : text.index("[subscriptions]")]
    file.write_text(text.replace(columns, "") + '[[sinks]]\nkind = "channel"\n')
    return file


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((CHANNEL, 'channel = "127.0.0.1:1"'), "expected an address such as tidings://127.0.0.1:"),
        ((CHANNEL, 'channel = "s3://b/x"'), "expected an address such as tidings://127.0.0.1:7400"),
        (
            ('name = "flights"', 'name = "flights"\nextra = "some"'),
            "extra: found 'some', expected",
        ),
        ((NOW, NOW + '\n[[sinks]]\nkind = "channel"'), "sinks[1].kind: found 'channel' again"),
        ((CHANNEL, f'{CHANNEL}\ntoken_file = "none"'), "none can't be read: No such file"),
        (("a", "a"), "tidings://127.0.0.1:1"),
    ],
)
def test_channels_that_are_refused(
    run: Run,
    channel_file: Path,
    change: tuple[str, str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidings.spark.channel.owner.TRY", 0.2)
    channel_file.write_text(channel_file.read_text().replace(*change))
    one_sentence(run("pipeline", "check", str(channel_file)), sentence)


def test_a_channel_has_its_own_subscriptions(run: Run, channel_file: Path) -> None:
    for command in (("add", "x", "a > 1"), ("list",)):
        result = run("subscriptions", command[0], str(channel_file), *command[1:])
        one_sentence(result, "its subscriptions come from the channel tidings://127.0.0.1:1")


def test_check_refuses_an_outbox_of_another_checkpoint(run: Run, folder: Path) -> None:
    outbox = Outbox(folder / "out")
    outbox.bind_to_checkpoint(folder / "checkpoint")
    assert run("pipeline", "check", str(folder / "p.toml")).code == 0
    (folder / "checkpoint").rename(folder / "gone")
    one_sentence(run("pipeline", "check", str(folder / "p.toml")), "belongs to another checkpoint")


@pytest.mark.parametrize("command", ["run", "check", "status", "verify"])
def test_a_file_that_is_not_there(run: Run, command: str) -> None:
    one_sentence(run("pipeline", command, "nowhere.toml"), "nowhere.toml can't be read")


def test_status_of_what_has_not_begun(run: Run, folder: Path) -> None:
    result = run("pipeline", "status", str(folder / "p.toml"))
    assert (result.code, result.err) == (0, "")
    assert "none committed yet" in result.out
    assert not (folder / "out").exists()


def feeds(folder: Path, state: SpoolState) -> str:
    """A pipeline of feeds and what its spool remembers; its file."""
    source = 'kind = "files"\npath = "in"\nfiles_per_trigger = 1'
    text = FILE.format(trigger=NOW).replace(source, 'kind = "feeds"\nurls = ["a", "b"]')
    (folder / "p.toml").write_text(text)
    (folder / "spool").mkdir()
    (folder / "spool" / "state.json").write_bytes(msgspec.json.encode(state))
    return str(folder / "p.toml")


def test_status_shows_feeds_that_cannot_be_read(run: Run, folder: Path) -> None:
    ill = FeedState(problem="The feed b is ill.")
    file = feeds(folder, SpoolState(0, 0, {"a": FeedState(), "b": ill, "c": ill}))

    assert "The feed b is ill." in run("pipeline", "status", file).out
    assert run("pipeline", "status", file, "--json").records[0]["feeds"] == [ill.problem]


def test_check_refuses_a_spool_of_another_checkpoint(run: Run, folder: Path) -> None:
    file = feeds(folder, SpoolState(0, 0, {}, "another"))
    result = run("pipeline", "check", file)

    assert result.code == 2
    assert "belongs to another checkpoint: give this stream its own spool" in result.err


def test_status_shows_what_is_open_and_what_is_gone(run: Run, folder: Path) -> None:
    outbox = Outbox(folder / "out")
    for batch in range(3):
        commit(outbox, batch, refused=batch)  # dead letters that were removed since
    outbox.pin(3, 2, 1_700_000_000_000_000)
    ChangeLog(folder / "subscriptions").drop("Newark")
    out = run("pipeline", "status", str(folder / "p.toml")).out
    assert "batch 3 with version 2, begun 2023-11-14 22:13:20 UTC" in out
    assert "2; the next batch takes 3, 1 change later" in out
    assert "30 in 3 batches" in out
    assert "2         4   no subscription now" in out
    assert "latest refusals" not in out


def refuse(outbox: Outbox, batch: int, reasons: list[str]) -> Path:
    """A batch of rows that were refused; gives the file."""
    folder = outbox.dead_folder(batch, "a")
    folder.mkdir(parents=True)
    raw = [f"row {at} of {batch}" for at in range(len(reasons))]
    pq.write_table(pa.table({"reason": reasons, "raw": raw}), folder / "part.parquet")
    files = files_of(outbox, batch, "a")
    outbox.commit(Commit(batch, "a", 2, 0, 0, 0, 0, len(reasons), {}, files))
    return folder / "part.parquet"


def test_status_shows_the_latest_reasons(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.spark.pipeline.status.ROWS", 3)  # held at once
    outbox = Outbox(folder / "out")
    refuse(outbox, 0, ["old"] * 3)
    refuse(outbox, 1, ["a", "b", "a", "a"])
    refuse(outbox, 2, ["c", "c", "a", "d", "e", "f", "c", "g", "a"])
    [found] = run("pipeline", "status", str(folder / "p.toml"), "--json").records
    assert [tuple(one.values()) for one in found["dead_letters"]] == [
        ("c", 3, 2, "row 0 of 2"),
        ("a", 2, 2, "row 2 of 2"),
        ("d", 1, 2, "row 3 of 2"),
        ("e", 1, 2, "row 4 of 2"),
        ("f", 1, 2, "row 5 of 2"),
    ]
    assert (found["totals"]["refused"], found["damaged"]) == (16, [])


def test_status_of_very_many_dead_letters_takes_little_memory(folder: Path) -> None:
    reasons = [f"reason {at}" for at in range(1000)] * 300
    refuse(Outbox(folder / "out"), 0, reasons)
    settings = load_settings(folder / "p.toml")
    read_status(settings)  # what is loaded once is loaded
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        [*_, last] = read_status(settings).dead_letters
        assert (last.reason, last.rows) == ("reason 4", 300)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 4 << 20


@pytest.mark.parametrize("content", [b"garbage", b"", None], ids=["garbage", "empty", "columns"])
def test_status_goes_on_past_dead_letters_that_are_damaged(
    run: Run, folder: Path, content: bytes | None
) -> None:
    outbox = Outbox(folder / "out")
    refuse(outbox, 0, ["old"])
    file = refuse(outbox, 1, ["new"])
    if content is None:
        pq.write_table(pa.table({"n": [1]}), file)
    else:
        file.write_bytes(content)
    result = run("pipeline", "status", str(folder / "p.toml"))
    assert result.code == 0
    assert "old" in result.out
    assert f"note: {file}: these dead letters can't be read: " in result.err
    assert len(result.err.splitlines()) == 1
    [found] = run("pipeline", "status", str(folder / "p.toml"), "--json").records
    assert [one["file"] for one in found["damaged"]] == [str(file)]


def test_status_passes_over_files_of_others(run: Run, folder: Path) -> None:
    outbox = Outbox(folder / "out")
    commit(outbox, 0)
    for kind in ("commits", "pins", "counters"):
        (outbox.home / kind).mkdir(mode=0o700, exist_ok=True)
        for name in ("notes.json", "0.json", "²2222222.json"):
            (outbox.home / kind / name).write_text("x")
    (folder / "subscriptions" / "snapshots" / "1 of mine").mkdir(parents=True)
    result = run("pipeline", "status", str(folder / "p.toml"))
    assert (result.code, result.err) == (0, "")
    assert "10 in 1 batch" in result.out
    outbox.keep_counters(0, {0: 4})
    (outbox.path / "data" / "1-my notes").mkdir()
    outbox.log.close()
    take_outbox(Outbox(outbox.path), SparkCheckpoint(folder / "checkpoint"))
    assert (outbox.path / "data" / "1-my notes").exists()
    (log,) = (outbox.home / "commits").glob("*.log")
    flip_bit(log)
    one_sentence(run("pipeline", "status", str(folder / "p.toml")), "_tidings/commits/0000000")


def test_verify_says_what_is_wrong(run: Run, folder: Path) -> None:
    file = str(folder / "p.toml")
    one_sentence(run("pipeline", "verify", file), "there is no outbox in")
    outbox, counters = Outbox(folder / "out"), dict[int, int]()
    for batch in range(30):
        put_batch(outbox, batch, counters)
    result = run("pipeline", "verify", file)
    assert (result.code, result.err) == (0, "")
    assert "sound" in result.out
    [found] = run("pipeline", "verify", file, "--json").records
    assert (found["batches"], found["files"], found["problems"]) == (30, 60, [])
    for batch in range(25):
        (outbox.folder(batch, f"a{batch}") / "one.parquet").unlink()
    result = run("pipeline", "verify", file)
    assert result.code == 1
    assert "25 problems" in result.out
    lines = result.err.splitlines()
    assert len(lines) == 21
    assert lines[0].startswith("error: batch 0: the file ")
    assert lines[0].endswith("one.parquet is missing")
    assert lines[20] == "error: and 5 more (--all shows them)"
    assert len(run("pipeline", "verify", file, "--all").err.splitlines()) == 25
    assert run("pipeline", "verify", file, "--json").code == 1


def test_status_of_an_outbox_that_is_a_file(run: Run, folder: Path) -> None:
    (folder / "out").write_text("x")
    one_sentence(run("pipeline", "status", str(folder / "p.toml")), "out is a file, expected")


# -- what is drawn, what is said ---------------------------------------------------------------


def test_the_view_draws_rates_and_counters() -> None:
    view = PipelineView("flights")
    console = Console(width=100, force_terminal=False)

    def drawn() -> str:
        with console.capture() as got:
            console.print(view.draw())
        return got.get()

    assert drawn().startswith("flights  00:00:0")
    for batch in range(10):
        done = Commit(batch, "a", 7, 0, 1000, 40, 60, 1, {0: 40, 3: 40 + batch, 4: 2})
        view.add_batch(done, 0.5)
    assert "not known yet" in drawn()
    view.progress = {"inputRowsPerSecond": 2500.0, "processedRowsPerSecond": 2000.0}
    text = drawn()
    assert "    9         7   1,000    2,000        40     60         1      0.50" in text
    assert "10 batches, 10,000 rows, 400 matched, 600 told, 10 refused" in text
    assert "2,500 rows/s come in, 2,000 are processed: falling behind" in text
    assert "notifications at 40; node 3 at 49, node 4 at 2" in text
    view.progress = {
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 2.0,
        "sources": [{"metrics": {"maxOffsetsBehindLatest": "12"}}],
    }
    assert "1.0 rows/s come in, 2.0 are processed; 12 rows behind the source" in drawn()


def test_the_highest_counters_are_those_of_all(seed: int) -> None:
    rng, view, all_ = random.Random(seed), PipelineView("x"), dict[int, int]()
    console = Console(width=200)
    for batch in range(30):
        nodes = rng.sample(range(1, 40), rng.randrange(1, 12))
        all_ |= {node: all_.get(node, 0) + rng.randrange(1, 9) for node in nodes}
        counters = {0: batch + 1, **{node: all_[node] for node in nodes}}
        view.add_batch(Commit(batch, "a", 1, 0, 1, 1, 1, 0, counters), 0.5)
        highest = sorted(((n, node) for node, n in all_.items()), reverse=True)
        told = ", ".join(f"node {node} at {n}" for n, node in highest[:5])
        more = f" and {len(all_) - 5} more" if len(all_) > 5 else ""
        with console.capture() as got:
            console.print(view.draw())
        lines = [line.rstrip() for line in got.get().splitlines()]
        assert f"counters  notifications at {batch + 1}; {told}{more}" in lines


@pytest.mark.bench
def test_drawing_does_not_look_at_all_counters() -> None:
    view = PipelineView("x")
    counters = {node: node * 7919 % 1_000_003 for node in range(500_000)}
    view.add_batch(Commit(0, "a", 1, 0, 1, 1, 1, 0, counters), 0.5)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        view.draw()
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.05  # it took half a second, four times a second


WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in run
    yield 1
{last}

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""


JAVA = """An error occurred while calling o107.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.{hint}] Can't read x.  SQLSTATE: KD001
\tat org.apache.spark.X.y(X.scala:1)
Caused by: java.lang.RuntimeException: x is not a Parquet file
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (JAVA.format(hint="NO_HINT"), "Can't read x. x is not a Parquet file"),
        (JAVA.format(hint="TYPE"), "Can't read x."),
        (
            "x\nCaused by: org.apache.spark.api.python.PythonException: "
            "Traceback (most recent call last):\n  File\nKeyError: 'a'\n\n\tat java\n",
            "KeyError: 'a'",
        ),
        (WORKER.format(last="tidings.model.errors.TidingsError: it is late"), "it is late"),
        (WORKER.format(last="ValueError: it is late"), "ValueError: it is late"),
        ("[PATH_NOT_FOUND] No such path: x. SQLSTATE: 42K03", "[PATH_NOT_FOUND] No such path: x."),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: no broker SQLSTATE: XXKST\n"
            "=== Streaming Query ===\n",
            "no broker",
        ),
        ("", "RuntimeError"),
        ("x\ny", "RuntimeError: x"),
        ("An error occurred.\n: java.lang.IllegalStateException: gone\n\tat x", "gone"),
        (
            "org.apache.kafka.common.errors.TimeoutException: Timed out. Call: listNodes\n=== Str",
            "Kafka does not answer: Timed out. Call: listNodes; check servers in the pipeline file",
        ),
        (
            "x\nCaused by: a.KafkaIllegalStateException: Some data may have been lost because\nit",
            "Kafka no longer has rows that were not read yet; set the option failOnDataLoss = "
            '"false" of the source to continue with the rows that are left',
        ),
    ],
)
def test_the_sentence_of_a_failure(text: str, sentence: str) -> None:
    assert sentence_of(RuntimeError(text)) == sentence


def test_the_sentence_of_ours_is_as_it_is() -> None:
    assert sentence_of(TidingsError("one: two\nthree")) == "one: two\nthree"
    assert len(sentence_of(RuntimeError("x" * 1000))) == 400
