"""Pipelines from and to Kafka, against a real broker: rows, keys, offsets, dead letters, options,
and restarts of the broker and of the pipeline. What must arrive is worked out here, row by row."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import pytest
from tests.spark.kills.victims import Session
from tests.waiting import eventually

from tidings.model import EnvironmentProblem
from tidings.spark.outbox.outbox import Commit
from tidings.spark.outbox.outbox_reading import OutboxReader
from tidings.spark.session.kafka import kafka_jars
from tidings.store import ChangeLog
from tidings.studies.host.kafka_broker import Broker, broker_jars
from tidings.studies.host.ports import free_ports

pytestmark = pytest.mark.spark

FILE = """
name = "flights"

[source]
kind = "kafka"
servers = "{servers}"
topic = "{topic}"
{source}

[columns]
flight = "integer"
dep_delay = "integer"

[subscriptions]
log = "subscriptions"

[outbox]
path = "out"

[trigger]
{trigger}

[[sinks]]
kind = "kafka"
servers = "{servers}"
topic = "{topic}.told"
{sink}
"""
NOW, ALWAYS = "available_now = true", "every_seconds = 0.1"
# Soon tired of a broker that is gone: the defaults of Kafka are a minute and more.
IMPATIENT = 'options = { "kafka.default.api.timeout.ms" = "1500", "kafka.request.timeout.ms" = '
IMPATIENT += '"1000", "fetchOffset.numRetries" = "1" }'


class Job:
    """A process with a session that has the connector; see kafka_job.py."""

    def __init__(self, link: Connection[Any, Any]) -> None:
        self._link = link

    def __call__(self, name: str, *arguments: Any) -> Any:
        self._link.send((name, arguments))
        problem, found = self._link.recv()
        assert problem is None, problem
        return found


class Stage:
    """One pipeline, with a topic of its own to read, and another to write."""

    def __init__(self, folder: Path, broker: Broker, job: Job) -> None:
        self.folder, self.broker, self.job = folder, broker, job
        self.topic = folder.name.replace("_", "-")
        self.file = str(folder / "p.toml")
        log = ChangeLog(folder / "subscriptions")
        log.put_many({"late": "dep_delay > 60", "first": "flight = 1"})

    def write(self, source: str = "", sink: str = "", trigger: str = NOW) -> None:
        servers = self.broker.address
        text = FILE.format(
            servers=servers, topic=self.topic, source=source, sink=sink, trigger=trigger
        )
        Path(self.file).write_text(text)

    def put(self, *rows: tuple[int, str | None]) -> None:
        self.job("put", self.topic, *rows)

    def run(self) -> tuple[int, str, str]:
        """`tidings pipeline run`, to the end."""
        found: tuple[int, str, str] = self.job("tidings", "pipeline", "run", self.file)
        return found

    def run_well(self) -> None:
        code, _, err = self.run()
        assert (code, err) == (0, ""), f"{err}\nthe broker said:\n{self.broker.read_log()}"

    @property
    def commits(self) -> list[Commit]:
        there = (self.folder / "out" / "_tidings" / "commits").is_dir()
        return list(OutboxReader(self.folder / "out").commits()) if there else []

    def outbox(self) -> dict[int, int]:
        """The flights in the outbox, by the number of the notification."""
        return {row["notification"]: row["flight"] for row in self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        reader = OutboxReader(self.folder / "out")
        found = [
            row
            for commit in reader.commits()
            for file in reader.files(commit)
            for batch in reader.batches(file)
            for row in batch.to_pylist()
        ]
        numbers = [row["notification"] for row in found]
        assert sorted(numbers) == list(range(1, len(found) + 1))
        return found

    def told(self) -> list[tuple[str, int]]:
        """Keys and flights in the topic of the sink."""
        return [(key, json.loads(value)["flight"]) for _, _, key, value in self.sent()]

    def sent(self) -> list[tuple[int, int, str, str]]:
        found: list[tuple[int, int, str, str]] = self.job("read", f"{self.topic}.told")
        return found

    def expected(self, outbox: dict[int, int]) -> list[tuple[str, int]]:
        """What the topic of the sink must have."""
        return [(f"{self.stream()}/{number}", flight) for number, flight in outbox.items()]

    def forget(self, batch: int) -> None:
        """Remove Spark's note that a batch is done."""
        for name in (str(batch), f".{batch}.crc"):
            (self.folder / "checkpoint" / "commits" / name).unlink()

    def stream(self) -> str:
        return (self.folder / "checkpoint" / "tidings-stream").read_text()

    def offsets(self, batch: int) -> dict[str, int]:
        """The offset that Spark noted for each partition after a batch."""
        last = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[-1]
        found: dict[str, int] = json.loads(last)[self.topic]
        return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Job]]:
    """A broker and a job, which start at the same time."""
    try:
        kafka_jars()
        broker_jars()
    except EnvironmentProblem as problem:
        if os.environ.get("TIDINGS_KAFKA") == "required":  # `make kafka`
            raise
        pytest.skip(str(problem))
    folder = tmp_path_factory.mktemp("kafka")
    script = str(Path(__file__).with_name("kafka_job.py"))
    broker, (port,) = Broker(folder), free_ports(1)
    errors = folder / "errors"
    process = Session([sys.executable, script, str(port), broker.address], errors)

    def connect() -> Connection[Any, Any] | None:
        assert process.alive(), errors.read_text()[-2000:]
        try:
            return Client(("127.0.0.1", port))
        except ConnectionRefusedError:  # it does not listen yet
            return None

    try:
        broker.start()
        link = eventually(connect)
        assert link is not None
        with link:
            yield broker, Job(link)
    finally:
        process.end()
        broker.kill()


@pytest.fixture
def stage(tmp_path: Path, running: tuple[Broker, Job]) -> Stage:
    made = Stage(tmp_path, *running)
    made.job("create", made.topic, f"{made.topic}.told")
    return made


def flight(number: int, delay: Any = 90) -> str:
    return json.dumps({"flight": number, "dep_delay": delay, "gate": f"B{number}"})


def test_rows_come_from_a_topic_and_go_to_another_with_keys(stage: Stage) -> None:
    bad = [flight(5, "late"), "no JSON", None, '{"flight": 6}']  # the last matches nothing
    stage.put(*((n % 2, flight(n)) for n in range(1, 5)), *((0, text) for text in bad))
    stage.put((1, flight(7, 3)), (1, flight(8, 61)))
    stage.write()

    code, out, err = stage.run()

    assert (code, err) == (0, "")
    assert out.endswith("all rows are read: 1 batch, 7 rows, 5 matched, 6 told, 3 refused\n")
    rows = {row["flight"]: row for row in stage.rows()}
    assert sorted(rows) == [1, 2, 3, 4, 8]
    assert (rows[1]["subscriptions"], rows[8]["extra"]) == (["late", "first"], '{"gate":"B8"}')
    sent = {key: json.loads(value) for _, _, key, value in stage.sent()}
    assert sorted(stage.told()) == sorted(stage.expected(stage.outbox()))
    for value in sent.values():
        assert value.pop("grain")
        assert value == rows[value["flight"]]
    code, out, _ = stage.job("tidings", "dead-letters", "show", stage.file, "--json")
    letters = [json.loads(line) for line in out.splitlines()]
    assert {one["raw"] for one in letters} == {flight(5, "late"), "no JSON", ""}
    assert stage.offsets(0) == {"0": 6, "1": 4}


def test_a_broker_and_a_batch_that_come_again(stage: Stage) -> None:
    stage.put(*((n % 2, flight(n)) for n in range(8)))
    stage.write("rows_per_trigger = 5")
    stage.run_well()
    stage.broker.kill()
    stage.broker.start()
    stage.put(*((n % 2, flight(n)) for n in range(8, 13)))
    stage.run_well()

    outbox, told = stage.outbox(), stage.told()

    assert sorted(outbox.values()) == list(range(13))
    assert sorted(told) == sorted(stage.expected(outbox))
    assert max(done.rows for done in stage.commits) <= 5
    assert stage.offsets(len(stage.commits) - 1) == {"0": 7, "1": 6}

    # As if killed after the hand-over, before Spark noted it: the batch is handed over again
    last = stage.commits[-1]
    stage.forget(last.batch)
    stage.run_well()
    again = stage.told()
    assert len(again) == len(told) + last.matched
    assert set(again) == set(told)
    assert (stage.outbox(), stage.commits[-1]) == (outbox, last)


@pytest.mark.slow
def test_a_broker_and_a_pipeline_that_are_killed_at_work(stage: Stage) -> None:
    """`tidings pipeline run` in a process of its own, which fetches and names the jars itself."""
    stage.put(*((n % 2, flight(n)) for n in range(8)))
    stage.write("rows_per_trigger = 3", trigger=ALWAYS)
    errors = stage.folder / "errors"
    process = Session([sys.executable, "-m", "tidings", "pipeline", "run", stage.file], errors)

    def has_told(count: int) -> Callable[[], bool]:
        def look() -> bool:
            assert process.alive(), errors.read_text()[-2000:]
            return sum(done.matched for done in stage.commits) >= count

        return look

    try:
        eventually(has_told(8))
        stage.broker.kill()
        stage.broker.start()
        stage.put(*((n % 2, flight(n)) for n in range(8, 14)))
        eventually(has_told(9))
    finally:
        process.end()  # kill -9, wherever it is
    stage.put(*((n % 2, flight(n)) for n in range(14, 17)))
    stage.write("rows_per_trigger = 3")
    stage.run_well()

    outbox = stage.outbox()

    assert sorted(outbox.values()) == list(range(17))
    assert set(stage.told()) == set(stage.expected(outbox))


def test_where_it_starts(stage: Stage) -> None:
    stage.put(*((n % 2, flight(n)) for n in range(6)))
    stage.write('start = "latest"')
    stage.run_well()
    assert stage.outbox() == {}
    stage.put((0, flight(6)))
    stage.run_well()
    assert list(stage.outbox().values()) == [6]
    assert stage.offsets(len(stage.commits) - 1) == {"0": 4, "1": 3}

    for folder in ("checkpoint", "out"):
        (stage.folder / folder).rename(stage.folder / f"{folder}.before")
    since = json.dumps({stage.topic: {"0": 2, "1": -1}})  # -1: the latest
    stage.write(f"options = {{ startingOffsets = '{since}' }}")
    stage.run_well()
    assert sorted(stage.outbox().values()) == [4, 6]


def test_rows_that_the_broker_has_forgotten(stage: Stage) -> None:
    stage.put(*((0, flight(n)) for n in range(2)))
    stage.write()
    stage.run_well()
    stage.put(*((0, flight(n)) for n in range(2, 6)))
    stage.job("trim", stage.topic, 0, 4)

    code, _, err = stage.run()

    assert code == 2
    assert err == (
        f"error: the pipeline failed: Kafka no longer has rows that were not read yet (partition "
        f'{stage.topic}-0 from offset 2 on); set the option failOnDataLoss = "false" of the source '
        f"to continue with the rows that are left\n"
    )
    stage.write('options = { failOnDataLoss = "false" }')
    stage.run_well()
    assert sorted(stage.outbox().values()) == [0, 1, 4, 5]


def test_a_sink_that_refuses_gets_the_batch_at_the_next_start(stage: Stage) -> None:
    stage.put((0, flight(1)), (1, flight(2)))
    stage.write(sink='options = { "kafka.max.request.size" = "50" }')

    code, _, err = stage.run()

    assert code == 2
    assert re.fullmatch(r"error: the pipeline failed: The message is .+ larger than 50, .+\n", err)
    assert len(stage.commits) == 1
    stage.write()
    stage.run_well()
    assert {flight for _, flight in stage.told()} == {1, 2}
    assert len(stage.commits) == 1


def test_no_broker(stage: Stage) -> None:
    stage.write(IMPATIENT)
    text = Path(stage.file).read_text()
    Path(stage.file).write_text(text.replace(stage.broker.address, "127.0.0.1:1"))

    code, _, err = stage.run()

    assert code == 2
    assert err.startswith("error: the pipeline failed: Kafka does not answer: Timed out waiting")
    assert err.endswith("; check servers in the pipeline file\n")
