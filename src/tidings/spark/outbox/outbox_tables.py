"""An outbox as a table or a stream of Spark, in which each committed batch occurs once.

Spark reads the files of a table itself, with places instead of numbers (numbered_rows.py). A UDF
joins the numbers, in the workers; a query that does not ask for numbers does not run the UDF.

The offset of a stream is a number of committed batches. So a query that continues from its
checkpoint reads exactly the batches that it has not read before; if a micro-batch is repeated, it
has the same rows, because committed files never change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tidings.model import TidingsError
from tidings.spark.outbox.batches.numbering import NODES, NOTIFICATION, NUMBERS, PLACE, PLACES
from tidings.spark.outbox.numbered_rows import REPLACED, RowNumbers, number_columns
from tidings.spark.outbox.outbox_reading import OutboxReader, grain_of
from tidings.spark.session import send_to_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "tidings-outbox"  # of the stream
GRAIN = "grain"


def read_outbox(
    spark: SparkSession,
    path: str | Path,
    *,
    stream: bool = False,
    dead: bool = False,
    since: int = 0,
    schema: StructType | str | None = None,
) -> DataFrame:
    """The committed rows of an outbox, as a table or as a stream.

    The columns are those of the source, then `notification`, `version`, `nodes`, `numbers`,
    `subscriptions` and `grain`; with `dead`, the refused rows: `reason` and `raw`. Rows of attempts
    that were not committed are never read. A stream yields each committed batch once, and follows
    the outbox; a table has the batches that are committed when this is called. `since` is the first
    batch to read.

    `path` may have any scheme that Spark and pyarrow.fs support, such as s3a:// or hdfs://. Columns
    that were added later are null in older rows. An outbox without rows has no columns yet, so it
    needs `schema`.
    """
    reader = OutboxReader(path)
    if isinstance(schema, str):
        given = StructType.fromDDL(schema)
        assert isinstance(given, StructType)
        schema = given
    if stream:
        spark.dataSource.register(OutboxSource)
        wanted = _columns(reader, since, dead) if schema is None else schema
        source = spark.readStream.format(FORMAT).schema(wanted)
        settings = {"path": reader.address, "since": str(since), "dead": str(dead).lower()}
        return source.options(**settings).load()
    files = [
        _escape(reader.place_of(file))
        for commit in reader.commits(since)
        for file in reader.files(commit, dead=dead)
    ]
    if not files:
        wanted = _columns(reader, since, dead) if schema is None else schema
        return spark.createDataFrame([], wanted)
    opened = spark.read
    if schema is None:
        opened = opened.option("mergeSchema", "true")
    else:
        opened = opened.schema(schema if dead else _stored_schema(schema))
    rows = opened.parquet(*files)
    if dead:
        return rows
    name = f.regexp_extract(f.col("_metadata.file_path"), "grain=([^/]+)/[^/]+$", 1)
    found = join_numbers(spark, rows.withColumn(GRAIN, name), reader.address)
    if schema is None:
        return found
    names = dict.fromkeys((*schema.fieldNames(), GRAIN))
    return found.select(*map(_quote, names))


def _stored_schema(wanted: StructType) -> StructType:
    """The columns to read, from which the wanted columns can be computed for files of any
    release."""
    there = [one for one in wanted.fields if one.name != GRAIN]
    known = {one.name for one in there}
    lists = ArrayType(LongType())
    added = ((PLACE, LongType()), (NODES, lists), (PLACES, lists))
    return StructType([*there, *(StructField(n, kind) for n, kind in added if n not in known)])


def join_numbers(
    spark: SparkSession, rows: DataFrame, known: str | Mapping[str, RowNumbers]
) -> DataFrame:
    """Rows that Spark read from an outbox's files, with numbers instead of places. `known` is
    the path of the outbox, whose commits each task reads; or the numbers of the files, if there are
    few files."""
    if PLACE not in rows.columns:
        return rows  # all files are from an older release, and already have numbers
    arrow_udf: Any = f.arrow_udf  # type: ignore[attr-defined]
    kinds = f"struct<{NOTIFICATION}: long, {NUMBERS}: array<long>>"
    udf = arrow_udf(send_to_workers(spark, _number_rows(known)), kinds)
    joined = udf(f.col("_metadata.file_path"), f.col(PLACE), f.col(NODES), f.col(PLACES))
    columns: dict[str, Any] = {}
    for name in rows.columns:
        name = REPLACED.get(name, name)
        found = f.col(_quote(name)) if name in rows.columns else None
        if name in REPLACED.values():
            number = joined[name]
            found = number if found is None else f.coalesce(found, number)
        assert found is not None
        columns[name] = found.alias(name)
    return rows.select(*columns.values())


def _quote(name: str) -> str:
    """The name of a column for Spark, which reads a dot as a path into a struct."""
    return f"`{name.replace('`', '``')}`"


def _number_rows(known: str | Mapping[str, RowNumbers]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that numbers rows from any files of an outbox."""

    def run(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        find = OutboxReader(known).numbers_of if isinstance(known, str) else known.__getitem__
        for columns in batches:
            yield number_columns(find, *columns)

    return run


def _escape(path: str) -> str:
    """The path of a file for Spark, which reads some characters as wildcards."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _columns(reader: OutboxReader, since: int, dead: bool) -> StructType:
    """The columns of the latest file. A stream has the same columns as a table."""
    from pyspark.sql.pandas.types import from_arrow_schema

    last = None
    for commit in reader.commits(since):
        last = next(iter(reader.files(commit, dead=dead)), last)
    if last is None:
        if dead:
            return StructType().add("reason", "string").add("raw", "string")
        raise TidingsError(
            f"the outbox {reader.address} has no rows yet, so its columns are not known; pass "
            f"`schema`, or wait for its first batch"
        )
    found: StructType = from_arrow_schema(reader.schema(last).remove_metadata())
    return found if dead else found.add(GRAIN, StringType())


class OutboxSource(DataSource):
    """The source "tidings-outbox"; `tidings.spark.read_outbox` opens it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> OutboxStream:
        return OutboxStream(dict(self.options), schema)


class OutboxStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads batches as they are committed. Spark creates the stream in the driver and pickles it
    for tasks, so it opens nothing until it is used."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._path = options["path"]
        self._since = int(options.get("since", "0"))
        self._dead = options.get("dead") == "true"
        self._schema = schema
        self._opened: OutboxReader | None = None
        # set for a query that reads all available batches and then ends
        self._end: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    def _reader(self) -> OutboxReader:
        if self._opened is None:
            self._opened = OutboxReader(self._path)
        return self._opened

    def initialOffset(self) -> dict[str, int]:
        return {"batches": self._since}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._reader().refresh()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        end = self._reader().refresh() if self._end is None else self._end
        return {"batches": max(start["batches"], end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        reader = self._reader()
        if reader.refresh() < end["batches"]:
            raise TidingsError(
                f"the outbox {self._path} has {reader.refresh():,} batches, but this query has "
                f"read {end['batches']:,}; check that it is the same outbox"
            )
        return [
            InputPartition(file)
            for commit in reader.commits(start["batches"], end["batches"])
            for file in reader.files(commit, dead=self._dead)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = to_arrow_schema(self._schema, timezone="UTC")
        for batch in self._reader().batches(partition.value):
            yield _conform(batch, wanted, grain_of(partition.value), partition.value)


def _conform(batch: pa.RecordBatch, wanted: pa.Schema, grain: str | None, file: str) -> Any:
    """The batch with the columns of the stream; columns that its file lacks are null."""
    columns = []
    for field in wanted:
        at = batch.schema.get_field_index(field.name)
        if at < 0 and field.name == GRAIN and grain is not None:
            columns.append(pa.repeat(pa.scalar(grain, field.type), batch.num_rows))
            continue
        if at < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        try:
            columns.append(batch.column(at).cast(field.type))
        except pa.ArrowException as problem:
            found = batch.schema.field(at).type
            raise TidingsError(
                f"{file}: the column '{field.name}' is {found}, expected {field.type}, as in the "
                f"latest batch; read older batches with a `schema` of their own"
            ) from problem
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
