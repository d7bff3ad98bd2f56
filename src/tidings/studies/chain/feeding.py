"""The sources of the chain, the thread that feeds rows to them, and a publisher."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path

import msgspec

from tidings.files import place_file
from tidings.network import connect_blocking
from tidings.studies.chain.chain_rows import FIRST_PUBLISHED, Row, draw_row
from tidings.studies.chain.chain_stream import PipelineRun
from tidings.studies.host.kafka_broker import Broker, Producer

EVERY = 0.1  # seconds between two files, or two writes to the broker
MOST_BEHIND = 5.0  # how far the pipeline may fall behind, in seconds of rows
TOPIC = "rows"
SOURCES = ("files", "kafka")


class Source(ABC):
    """A source from which a pipeline reads rows."""

    settings: str
    """The lines that describe this source in the pipeline file."""

    broker: Broker | None = None
    """The process that has the rows, if there is one."""

    @abstractmethod
    def put(self, rows: list[Row]) -> None: ...

    def end(self) -> None:  # noqa: B027
        """Stop the processes of this source, if it has any."""


class FileSource(Source):
    """A folder of JSON lines."""

    settings = 'kind = "files"\npath = "in"\nformat = "json"\nfiles_per_trigger = 50'

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        (folder / "in").mkdir()

    def put(self, rows: list[Row]) -> None:
        name = f"{self._count:06d}.json"
        self._count += 1
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        place_file(self._folder / "in" / name, lines)


class KafkaSource(Source):
    """A topic with two partitions, at a broker that is started for it."""

    broker: Broker

    def __init__(self, folder: Path) -> None:
        home = folder / "kafka"
        home.mkdir()
        self.broker = Broker(home)
        self._producer: Producer | None = None
        try:
            self.broker.start()
            self._producer = Producer(self.broker, TOPIC)
        except BaseException:
            self.end()
            raise
        self.settings = f'kind = "kafka"\nservers = "{self.broker.address}"\ntopic = "{TOPIC}"'

    def put(self, rows: list[Row]) -> None:
        assert self._producer is not None
        self._producer.put(map(msgspec.json.encode, rows))

    def end(self) -> None:
        if self._producer is not None:
            self._producer.end()
        self.broker.kill()


class Feeder:
    """Draws rows and writes them to the source; keeps all of them for the oracle."""

    def __init__(self, source: Source, stream: PipelineRun, seed: int) -> None:
        self.rows: list[Row] = []
        self._source, self._stream = source, stream
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None

    def put(self, count: int) -> None:
        first = len(self.rows)
        rows = [draw_row(self._chance, first + at) for at in range(count)]
        now = time.time_ns() // 1000
        for row in rows:
            row["made"] = now
        self.rows += rows
        self._source.put(rows)

    def start(self, rate: float) -> None:
        """Feed at a steady rate. No rows are drawn as long as the pipeline is too far behind."""
        self._thread = threading.Thread(target=self._run, args=(rate,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self.check()

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _run(self, rate: float) -> None:
        count = max(1, round(rate * EVERY))
        due = time.monotonic()
        try:
            while not self._over.is_set():
                if len(self.rows) - self._stream.rows() < rate * MOST_BEHIND:
                    self.put(count)
                due = max(due + EVERY, time.monotonic() - EVERY)
                self._over.wait(max(0.0, due - time.monotonic()))
        except Exception as problem:
            self._problem = problem


class ChainPublisher:
    """Publishes rows one by one at a router, in addition to those of the source, from a thread. A
    preprocessor tags these rows."""

    def __init__(self, address: str, seed: int) -> None:
        self.rows: list[Row] = []
        self.preprocessed = 0  # rows that a preprocessor tagged
        self._address = address
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._problem: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop publishing, and wait until the last row is acknowledged."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.check()

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        try:
            with connect_blocking(self._address, tag="preprocessor") as agent:
                while not self._over.wait(EVERY):
                    row = draw_row(self._chance, FIRST_PUBLISHED + len(self.rows))
                    row["made"] = time.time_ns() // 1000
                    self.rows.append(row)
                    agent.publish(row, msgspec.json.encode(row))
                    self.preprocessed = agent.preprocessed
        except Exception as problem:
            self._problem = problem
