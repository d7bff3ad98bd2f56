"""Runs a pipeline: micro-batches from a source to the outbox, and on to sinks.

    pin the version ─> decode, match, file ─> commit ─> accept: numbers ─> hand over
                       one job, on the workers

If the pipeline stops at any point, the batch is repeated with the pinned version and the rows in
Spark's checkpoint, and it is committed only once. A committed batch is numbered by the log of its
subscriptions (store/numbers), which recognises a batch that it has already numbered. If the
subscriptions have no log that can be written, the outbox has its own log of numbers. If the
subscriptions come from a channel, the rendezvous point numbers the notifications that are handed
over.

Sinks get a batch after its commit; they may get it more than once and must recognise repeats. With
a channel sink, the next batch begins only when the owner of the channel has received the previous
batch, so an owner that is down or slow delays the stream.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
import pyarrow as pa

from tidings.files import release_lock
from tidings.model import TidingsError
from tidings.spark.channel.followed_channel import FollowedChannel
from tidings.spark.channel.handing_over import HandingOver
from tidings.spark.channel.mirror import Unknown
from tidings.spark.channel.row_parts import MOST_FRONT, MOST_NODES, MOST_ROW_BYTES, WHOLE_BYTES
from tidings.spark.loading.log_filters import Unfit
from tidings.spark.outbox.batches.batch_stages import (
    EXTRA,
    PAYLOAD,
    ForChannel,
    Stage,
    StagedPartition,
    run_stage,
)
from tidings.spark.outbox.batches.filing import Filing
from tidings.spark.outbox.batches.numbering import ALL
from tidings.spark.outbox.batches.predicate_rows import parse_failure
from tidings.spark.outbox.commits import PartitionCounts
from tidings.spark.outbox.numbered_rows import number_files
from tidings.spark.outbox.outbox import Commit, Outbox, Pin, count
from tidings.spark.outbox.outbox_start import take_outbox
from tidings.spark.outbox.outbox_tables import join_numbers
from tidings.spark.outbox.sealed_files import make_folder
from tidings.spark.outbox.spark_checkpoint import SparkCheckpoint
from tidings.spark.pipeline.inputs import (
    declare_columns,
    keeps_extra,
    load_checked_view,
    open_subscriptions,
)
from tidings.spark.pipeline.settings import (
    ChannelSink,
    Files,
    Settings,
    is_json,
)
from tidings.spark.pipeline.sinks import hand_over_to
from tidings.spark.pipeline.source_streams import (
    OpenedSource,
    declare_source,
    open_source,
    read_files,
)
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.spark.session.failures import sentence_of
from tidings.spark.tagging.column_checks import family_of
from tidings.spark.tagging.worker import Pinned
from tidings.store import Accepting, LogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# called with each commit, and the seconds that its batch took
BatchListener = Callable[[Commit, float], None]


class Pipeline:
    """One pipeline, ready to start on a session."""

    console: TextIO | None = None
    """The stream that console sinks write to; by default stdout."""

    def __init__(
        self, settings: Settings, spark: SparkSession, on_batch: BatchListener = lambda _a, _b: None
    ) -> None:
        self.spark = spark
        self.on_batch = on_batch
        self.outbox = Outbox(settings.at(settings.outbox.path))
        self.subscriptions = open_subscriptions(settings, self.outbox.channel_folder)
        self._file = settings
        self.settings = settings = declare_columns(settings, self.subscriptions.description)
        self.source = open_source(settings, spark)
        self._checkpoint = SparkCheckpoint(settings.at(settings.checkpoint))
        # the number of a batch, and the counters after it
        self._counters: tuple[int, dict[int, int]] | None = None
        self._lock: int | None = None
        self._at_work = threading.Lock()
        self._handing: HandingOver | None = None
        load_checked_view(settings, self.source.schema, self.subscriptions)

    def start(self) -> StreamingQuery:
        """Start the stream; it runs until it is stopped or everything is read.

        The pipeline locks the outbox until `close`; an outbox locked by another process is refused.
        """
        # this pipeline was started before and holds the lock; a batch of the earlier run may still
        # be running, so the outbox is not checked and cleaned again
        if self._lock is not None:
            return self._start()
        self._lock = self.outbox.take_lock()
        try:
            make_folder(self._checkpoint.path)
            self.stream_id = self.outbox.bind_to_checkpoint(self._checkpoint.path)
            take_outbox(self.outbox, self._checkpoint)
            if isinstance(self.subscriptions, FollowedChannel) and self.settings.hands_over:
                self._handing = HandingOver(
                    self.subscriptions.owner, self.outbox.path, self.outbox.channel_folder,
                    self.stream_id, EXTRA if keeps_extra(self.settings) else None,
                    self.settings.outbox.time,
                )  # fmt: skip
            if isinstance(self.subscriptions, FollowedSubscriptions):
                self.subscriptions.own()
            return self._start()
        except BaseException:
            self._release_outbox()
            if isinstance(self.subscriptions, FollowedSubscriptions):
                self.subscriptions.disown()
            raise

    def _start(self) -> StreamingQuery:
        checkpoint = self._checkpoint.path
        trigger = self.settings.trigger
        writer: Any = (
            self.source.df.writeStream.queryName(self.settings.name)
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(self.run_batch)
        )
        if trigger.available_now:
            writer = writer.trigger(availableNow=True)
        else:
            pause = f"{int(trigger.every_seconds * 1000)} milliseconds"
            writer = writer.trigger(processingTime=pause)
        query: StreamingQuery = writer.start()
        return query

    def run_batch(self, df: DataFrame, batch: int) -> None:
        """Run one micro-batch; if it is already committed, only hand it over again."""
        began = time.perf_counter()
        # If the Java process dies, this thread may be committing while another one calls `close` or
        # repeats the batch.
        with self._at_work:
            if self._lock is None:
                raise TidingsError("the pipeline is closed")
            done = self.outbox.read_commit(batch)
            if done is None:
                done = self._write(df, self._pin(batch))
            else:
                self._need_same(done)
            self._number(done)
            self._hand_over(df.sparkSession, done)
            told = self._with_counters(done)
        self.on_batch(told, time.perf_counter() - began)

    def _pin(self, batch: int) -> Pin:
        offsets = self._checkpoint.sync_offsets(batch)
        try:
            known = self.outbox.read_pin(batch)
        except TidingsError as problem:
            raise TidingsError(
                f"{problem}; restore the file, or remove it to repeat the batch with the latest "
                f"version (no row of the batch was handed over)"
            ) from problem
        if known is None:
            # read the time before the version, so that the version includes all changes before that
            # time
            micros = time.time_ns() // 1000
            version, before = self.subscriptions.latest(), self.outbox.read_commit(batch - 1)
            self._take_declaration()
            life, identity = self.subscriptions.life, self.subscriptions.identity
            if before and before.life == life and version < before.version and not identity:
                raise TidingsError(
                    f"{self.subscriptions.name} is at version {version}, but batch {before.batch} "
                    f"used version {before.version}; check that it is the same "
                    f"{self.subscriptions.kind}"
                )
            return self.outbox.pin(batch, version, micros, offsets, identity, life)
        if known.snapshot and known.snapshot != self.subscriptions.identity:
            raise TidingsError(
                f"batch {batch} was started with another snapshot; restore that snapshot, or "
                f"remove {self.outbox.pin_path(batch)} to repeat the batch with the current one "
                f"(no row of the batch was handed over)"
            )
        if known.life != self.subscriptions.life:
            raise TidingsError(
                f"batch {batch} was started in another life of {self.subscriptions.name}, "
                "whose node numbers are no longer valid; remove "
                f"{self.outbox.pin_path(batch)} to repeat the batch with the latest version "
                "(no row of the batch was handed over)"
            )
        self._need_rows(batch, known.offsets)
        return known

    def _take_declaration(self) -> None:
        """Use the channel's current declaration from the next batch on."""
        declared = declare_columns(self._file, self.subscriptions.description)
        if (declared.columns, declared.extra) == (self.settings.columns, self.settings.extra):
            return
        if is_json(declared) or isinstance(declared.source, Files):
            self.source = declare_source(declared, self.source)
        self.settings = declared
        load_checked_view(declared, self.source.schema, self.subscriptions)

    def _need_rows(self, batch: int, offsets: str) -> None:
        now = self._checkpoint.sync_offsets(batch)
        if offsets and now and offsets != now:
            raise TidingsError(
                f"batch {batch} was started with rows that differ from those in the checkpoint "
                f"{self._checkpoint.path}; check that no older checkpoint was restored"
            )

    def _need_same(self, done: Commit) -> None:
        """Check that a batch has its committed rows and files before it is handed over again."""
        pin = None if done.offsets else self.outbox.read_pin(done.batch)  # the old format
        self._need_rows(done.batch, done.offsets if pin is None else pin.offsets)
        if self.settings.sinks:
            self.outbox.need_files(done)

    def _write(self, df: DataFrame, pin: Pin) -> Commit:
        self._need_files(pin.batch)
        attempt = self.outbox.begin_attempt(pin.batch)
        try:
            pinned = self.subscriptions.pin(pin.version)
        except (LogError, Unfit, Unknown) as problem:
            raise TidingsError(
                f"batch {pin.batch} was started with version {pin.version} of the subscriptions, "
                f"which is not available: {problem}; to repeat it with the latest version, remove "
                f"{self.outbox.pin_path(pin.batch)} (no row of the batch was handed over)"
            ) from problem
        work = self.outbox.work_folder(pin.batch, attempt)
        filing = filing_of(self.settings, pin)
        if isinstance(self.settings.source, Files):
            files = self._checkpoint.files(pin.batch)
            df = read_files(self.settings, df, files, df.sparkSession)
        try:
            staged = self._run_stage(df, pinned, work, filing, pin)
            rows = [file for one in staged for file in one.files]
            refused = [file for one in staged for file in one.dead]
            placed = self.outbox.place(pin.batch, attempt, rows, refused)
        finally:
            self.outbox.drop_work(pin.batch, attempt)
        counters = self._known_counters(pin.batch)
        done = Commit(
            pin.batch, attempt, pin.version, pin.micros,
            rows=sum(one.seen for one in staged),
            matched=sum(one.matched for one in staged),
            told=sum(one.told for one in staged),
            refused=sum(one.refused for one in staged),
            files=placed,
            ended=time.time_ns() // 1000,
            offsets=pin.offsets,
            extra_rows=sum(one.extra_rows for one in staged),
            extra_fields=sum(one.extra_fields for one in staged),
            life=pin.life,
            before=counters.get(ALL, 0),
            partitions=[
                PartitionCounts(len(one.files), one.matched, one.counts)
                for one in staged
                if one.files
            ],
        )  # fmt: skip
        self.outbox.commit(done)
        count(done, counters)
        self._counters = pin.batch, counters
        self.outbox.keep_counters(pin.batch, counters)
        return done

    def _run_stage(
        self, df: DataFrame, pinned: Pinned, work: Path, filing: Filing, pin: Pin
    ) -> list[StagedPartition]:
        """Match and file the rows of a batch. If a predicate fails, the owner of the channel
        switches it off, and the rows are matched without it."""
        while True:
            try:
                return run_stage(df, self._stage(pinned, work, filing, pin.micros))
            except Exception as problem:
                failed = parse_failure(sentence_of(problem))
                if failed is None or not isinstance(self.subscriptions, FollowedChannel):
                    raise
                self.subscriptions.switch_off(*failed)
                self._take_declaration()
                pinned = self.subscriptions.pin(pin.version)

    def _stage(self, pinned: Pinned, work: Path, filing: Filing, began: int) -> Stage:
        stage = stage_of(self.source, pinned, work, self.settings, filing, began)
        if stage.channel is None or not isinstance(self.subscriptions, FollowedChannel):
            return stage
        told = msgspec.structs.replace(stage.channel, kind=self.subscriptions.kind_told)
        return msgspec.structs.replace(stage, channel=told)

    def _number(self, done: Commit) -> None:
        """Get the numbers of a committed batch and store them, unless it already has numbers or
        needs none."""
        log = self.outbox.log
        if not done.needs_numbers or log.read_numbers(done.batch) is not None:
            return
        numbers = self._accepting()
        found: dict[int, int] = {}
        if numbers is not None:
            found = numbers.accept(
                self.stream_id, done.batch, done.attempt, done.count_nodes(),
                after=log.last_numbered(), floor=self.outbox.last_numbers,
            )  # fmt: skip
        self.outbox.put_numbers(done.batch, found)

    def _accepting(self) -> Accepting | None:
        """The log that numbers the notifications; None if a rendezvous point numbers them."""
        wanted = self.subscriptions
        if isinstance(wanted, FollowedChannel):
            return None
        if isinstance(wanted, FollowedSubscriptions) and wanted.numbers is not None:
            return wanted.numbers
        return Accepting(self.outbox.numbers_folder)

    def _need_files(self, batch: int) -> None:
        """Refuse a batch with missing files, which Spark would read as empty."""
        if isinstance(self.settings.source, Files):
            for path in self._checkpoint.files(batch):
                if not path.exists():
                    raise TidingsError(
                        f"batch {batch} needs the file {path}, which is missing; restore it, or "
                        f"create an empty file in its place"
                    )

    def _known_counters(self, batch: int) -> dict[int, int]:
        """The counters before a batch. Counters in memory are used only if they belong to the
        previous batch: after a failed commit, the disk may have a batch that they do not count."""
        known, self._counters = self._counters, None
        if known is not None and known[0] == batch - 1:
            return known[1]
        return self.outbox.counters()

    def _with_counters(self, done: Commit) -> Commit:
        """The last commit, with the counters after its batch, for callers that watch the
        pipeline."""
        if self._counters is None or self._counters[0] != done.batch:
            self._counters = done.batch, self.outbox.counters()
        counters, nodes = self._counters[1], (ALL, *done.count_nodes())
        now = {node: counters[node] for node in nodes} if done.partitions else done.counters
        return msgspec.structs.replace(done, counters=now)

    def _hand_over(self, spark: SparkSession, done: Commit) -> None:
        if self._handing is not None:
            self._handing.hand_over(done)
        others = [sink for sink in self.settings.sinks if not isinstance(sink, ChannelSink)]
        if others and done.matched:
            rows = spark.read.parquet(str(self.outbox.folder(done.batch, done.attempt)))
            known = number_files(done, self.outbox.log.read_numbers(done.batch))
            rows = join_numbers(spark, rows, known)
            for sink in others:
                hand_over_to(sink, rows.drop(PAYLOAD), self.stream_id, self.console)

    @property
    def waiting(self) -> str:
        """Why the pipeline waits for the owner of the channel; empty if it does not wait."""
        wanted = self.subscriptions
        return wanted.owner.waiting if isinstance(wanted, FollowedChannel) else ""

    def interrupt(self) -> None:
        """Stop waiting for the owner of the channel, so that a batch that waits for it fails."""
        # `subscriptions` is not set if the subscriptions could not be opened
        followed = getattr(self, "subscriptions", None)
        if isinstance(followed, FollowedChannel):
            followed.owner.stop.set()

    def close(self) -> None:
        """Wait for a running batch, and release the outbox."""
        self.interrupt()
        self._release_outbox()
        self.subscriptions.close()

    def _release_outbox(self) -> None:
        with self._at_work:
            if self._lock is not None:
                self.outbox.log.close()
                release_lock(self._lock)
            self._lock = None


def stage_of(
    source: OpenedSource,
    pinned: Pinned,
    work: Path,
    settings: Settings,
    filing: Filing,
    began: int = 0,
) -> Stage:
    """The instructions for the workers that run a batch; `began` is the start of the batch in
    microseconds since 1970."""
    raw = pa.schema([]) if source.arrow is None else source.arrow
    schema = raw.serialize().to_pybytes()
    extra = settings.extra_fields if is_json(settings) else "refuse"
    return Stage(
        pinned, str(work), schema, source.format, source.text, source.corrupt, extra,
        channel=_for_channel(source, settings, began), filing=filing,
    )  # fmt: skip


def _for_channel(source: OpenedSource, settings: Settings, began: int) -> ForChannel | None:
    if settings.subscriptions.channel is None:
        return None
    tested = None
    if source.format == "typed":  # a filter could name a column whose type can't be compared
        tested = tuple(one.name for one in source.schema if family_of(one.dataType) is not None)
    if not settings.hands_over:
        return ForChannel(tested)
    return ForChannel(
        tested, MOST_ROW_BYTES, WHOLE_BYTES, MOST_FRONT, MOST_NODES, settings.outbox.time, began
    )


def filing_of(settings: Settings, pin: Pin) -> Filing:
    """Instructions for filing the rows of a batch, after they were matched."""
    given = settings.outbox
    return Filing(pin.version, pin.micros // 1_000_000, 60 * given.grain_minutes, given.time)
