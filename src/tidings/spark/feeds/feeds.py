"""A Spark data source for RSS and Atom feeds, for streams and tables.

    spark.dataSource.register(FeedSource)
    spark.readStream.format("tidings-feeds").option("urls", "https://...").option("spool", "...")

Options:
    urls       http and https addresses, file URLs and paths, separated by spaces or lines
    spool      folder for fetched entries (only for streams; see feed_spool.py); one per query, on a
               disk that outlives the driver; executors do not need it
    checkpoint the folder of the query's checkpoint, if it is on this machine: the spool then
               belongs to it, and queries with another checkpoint are refused
    interval   seconds between two rounds of fetching (60)
    timeout    seconds for fetching and parsing one feed (20)
    largest    the largest size of a document, in bytes (4 MiB)
    maxFilesPerTrigger   the most rounds of fetching in one micro-batch (all)

Invariant: an offset is `{"file": n}`, the number of a spool file. The rows between two offsets are
read from the spool, never from the memory of the reader, so a repeated micro-batch has the same
rows, even in another process. Each partition contains its rows, and Spark sends it to a task.

A failing feed does not stop a stream, or delay it by more than `timeout` (fetch_pool.py). Each
query logs the problem of a feed when the problem appears, changes or disappears. A table, unlike a
stream, reads the feeds only once, so a failing feed is an error.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidings.model import EnvironmentProblem
from tidings.spark.feeds import feed_documents as documents
from tidings.spark.feeds.feed_columns import FEED_COLUMNS
from tidings.spark.feeds.feed_documents import Entry, FeedProblem, Validators
from tidings.spark.feeds.feed_spool import Spool
from tidings.spark.feeds.fetch_pool import FetchPool, FetchProcess, FetchTask
from tidings.spark.outbox.spark_checkpoint import stream_of

SCHEMA = ", ".join(f"{name} {kind}" for name, kind in FEED_COLUMNS.items())

_log = logging.getLogger(__name__)
_ROWS = 5_000  # a partition has at most this many rows


class FeedOptions:
    """The options of the source, read and checked."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.urls = documents.split_addresses(options.get("urls", ""))
        if not self.urls:
            raise EnvironmentProblem('the option "urls" is missing, expected addresses of feeds')
        self.spool = options.get("spool", "")
        self.checkpoint = options.get("checkpoint", "")
        self.interval = _number(options, "interval", 60.0)
        self.timeout = _number(options, "timeout", documents.TIMEOUT)
        self.largest = int(_number(options, "largest", documents.LARGEST))
        self.files = int(_number(options, "maxFilesPerTrigger", 0))

    def task_for(self, address: str, known: Validators) -> FetchTask:
        """A task that fetches a feed with these options."""
        return FetchTask(address, known, self.timeout, self.largest)


class FeedSource(DataSource):
    """The source "tidings-feeds"."""

    @classmethod
    def name(cls) -> str:
        return "tidings-feeds"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> FeedReader:
        documents.load_feedparser()
        return FeedReader(FeedOptions(self.options))

    def streamReader(self, schema: StructType) -> FeedStreamReader:
        documents.load_feedparser()
        options = FeedOptions(self.options)
        if not options.spool:
            raise EnvironmentProblem(
                'the option "spool" is missing, expected a folder for fetched entries'
            )
        return FeedStreamReader(options)


class FeedReader(DataSourceReader):
    """Reads the current entries of feeds, one task per feed."""

    def __init__(self, options: FeedOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(address) for address in self._options.urls]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        with closing(FetchProcess()) as process:
            result = process.fetch(self._options.task_for(partition.value, Validators()))
        if result.problem:
            raise FeedProblem(result.problem)
        return map(_row, result.entries)


class FeedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads entries as they appear. Spark creates the reader in the driver and pickles it for
    tasks.

    So nothing is opened before the first request for offsets, which only the driver makes.
    """

    def __init__(self, options: FeedOptions) -> None:
        self._options = options
        self._opened: Spool | None = None
        self._pool: FetchPool | None = None
        self._reported: dict[str, str] = {}  # problems that this query has logged, by feed
        self._due = -inf
        self._once = False  # fetch only once

    def initialOffset(self) -> dict[str, int]:
        # The offset is not 0, so that a new query with an existing spool continues with the
        # remaining files.
        return {"file": self._spool.committed}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._options.files) if self._options.files else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        # Nothing is fetched yet, because the number of the next file depends on the first offset.
        self._once = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        self._spool.catch_up(start["file"])
        if time.monotonic() >= self._due:
            self._fetch_all()
            self._due = inf if self._once else time.monotonic() + self._options.interval
        end = self._spool.last
        if isinstance(limit, ReadMaxFiles):
            end = min(end, start["file"] + limit.max_files)
        return {"file": max(start["file"], end)}

    def reportLatestOffset(self) -> dict[str, int]:
        return {"file": self._spool.last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        numbers = range(start["file"] + 1, end["file"] + 1)
        entries = [entry for number in numbers for entry in self._spool.read(number)]
        starts = range(0, len(entries), _ROWS)
        return [InputPartition(entries[first : first + _ROWS]) for first in starts]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return map(_row, partition.value)

    def commit(self, end: dict[str, int]) -> None:
        self._spool.commit(end["file"])

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.close()
        if self._opened is not None:
            self._opened.close()

    @property
    def _spool(self) -> Spool:
        if self._opened is None:
            checkpoint = self._options.checkpoint
            owner = stream_of(Path(checkpoint)) if checkpoint else ""
            self._opened = Spool(Path(self._options.spool), owner)
            self._opened.forget_others(self._options.urls)
        return self._opened

    def _fetch_all(self) -> None:
        """Fetch every feed once, and add new entries to the spool."""
        spool = self._spool
        if self._pool is None:
            self._pool = FetchPool()
        fresh: list[Entry] = []
        urls = self._options.urls
        tasks = [
            self._options.task_for(address, spool.feed(address).validators) for address in urls
        ]
        for address, result in zip(urls, self._pool.fetch(tasks), strict=True):
            feed = spool.feed(address)
            if result.changed:
                fresh += spool.take_new(address, result.entries)
                feed.validators = result.validators
            if result.problem and result.problem != self._reported.get(address):
                _log.warning(result.problem)
            elif feed.problem and not result.problem:  # an earlier query may have reported it
                _log.warning(f"the feed {address} can be read again")
            self._reported[address] = feed.problem = result.problem
        if fresh:
            spool.add(fresh)
        else:
            spool.save()


def _row(entry: Entry) -> tuple[Any, ...]:
    *texts, published, updated = (getattr(entry, name) for name in entry.__struct_fields__)
    return (*texts, _convert_seconds(published), _convert_seconds(updated))


def _convert_seconds(seconds: int | None) -> dt.datetime | None:
    # `fromtimestamp` is not used, because on some platforms it fails for times before 1970.
    start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return None if seconds is None else start + dt.timedelta(seconds=seconds)


def _number(options: MutableMapping[str, str], name: str, default: float) -> float:
    try:
        number = float(options.get(name, default))
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise EnvironmentProblem(
            f'the option "{name}" is {options[name]!r}, expected a number of at least 0'
        )
    return number
