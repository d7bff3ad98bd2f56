"""Opens the source of a pipeline: a stream of raw rows, and how to decode them.

Spark reads the columns of CSV and Parquet, and can't change them while a stream runs. If a channel
declares other attributes meanwhile, the files of a batch are read again with the new columns
(`read_files`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tidings.model import TidingsError, read_declaration
from tidings.notifications import arrow_schema
from tidings.spark.pipeline.settings import Feeds, Files, Kafka, Rate, Settings, is_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

CORRUPT = "_corrupt_record"


class OpenedSource(msgspec.Struct, frozen=True, eq=False):
    """A source: its stream, how its rows are decoded, and the resulting columns."""

    df: Any  # DataFrame
    schema: Any  # StructType of decoded rows
    format: str  # json, csv, typed
    arrow: Any = None  # pa.Schema of decoded rows; None for typed rows
    text: str = "value"
    corrupt: str | None = None


def open_source(settings: Settings, spark: SparkSession) -> OpenedSource:
    """Open the source that a pipeline file names."""
    source = settings.source
    if isinstance(source, Files):
        return _open_files(settings, source, spark)
    if isinstance(source, Kafka):
        return _open_kafka(settings, source, spark)
    if isinstance(source, Feeds):
        from tidings.spark.sources import register

        register(spark)
        stream = spark.readStream.format("tidings-feeds").option("urls", "\n".join(source.urls))
        stream = stream.option("spool", str(settings.at(source.spool)))
        return _open_typed_source(
            stream.option("checkpoint", str(settings.at(settings.checkpoint))).load()
        )
    return _open_rate(source, spark)


def declare_source(settings: Settings, source: OpenedSource) -> OpenedSource:
    """The same source, with the columns that are declared now."""
    arrow = read_declared_schema(settings)
    if source.format == "typed":
        return msgspec.structs.replace(source, schema=spark_schema(arrow))
    return msgspec.structs.replace(source, schema=spark_schema(arrow), arrow=arrow)


def read_files(
    settings: Settings, df: DataFrame, files: Sequence[Path], spark: SparkSession
) -> DataFrame:
    """The rows of the files of a batch, with the columns that are declared now. A column that a
    file lacks is null. `df` has the same rows, with the columns of the stream. `df` itself is
    returned in two cases: if its columns are the declared ones, and if a file has undeclared
    columns, because Spark refuses such a file."""
    source = settings.source
    if not isinstance(source, Files) or source.format == "json" or not settings.columns:
        return df
    columns = read_declared_schema(settings)
    if source.format == "parquet":
        schema = spark_schema(columns)
        if schema.fieldNames() == df.schema.fieldNames():
            return df
        return _plain(spark).schema(schema).parquet(*map(str, files))
    by_header: dict[tuple[str, ...], list[Path]] = {}
    for path in files:
        header = tuple(read_header(path))
        if header:  # a file without a header has no rows
            by_header.setdefault(header, []).append(path)
    names = [*columns.names, CORRUPT]
    is_usual = all([*header, CORRUPT] == df.columns == names for header in by_header)
    if is_usual or any({*one} - {*names} or len({*one}) < len(one) for one in by_header):
        return df
    from pyspark.sql.functions import lit

    found: DataFrame | None = None
    for header, paths in by_header.items():
        rows = _csv(_plain(spark), header).csv([*map(str, paths)])
        missing = {name: lit(None).cast("string") for name in names if name not in rows.columns}
        rows = rows.withColumns(missing).select([_quote(name) for name in names])
        found = rows if found is None else found.union(rows)
    return df if found is None else found


def _plain(spark: SparkSession) -> DataFrameReader:
    """A reader that takes the names of files as they are, even if they contain `*` or `[`."""
    return spark.read.option("__globPaths__", "false")


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _csv(reader: Any, names: Iterable[str]) -> Any:
    """A reader of CSV with these columns, as strings."""
    texts = ", ".join(f"{_quote(name)} string" for name in names)
    return (
        reader.schema(f"{texts}, `{CORRUPT}` string")
        .option("header", True)
        .option("enforceSchema", False)
        .option("escape", '"')  # a quote is escaped by doubling it; Spark's default is a backslash
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", CORRUPT)
    )


def _open_files(settings: Settings, source: Files, spark: SparkSession) -> OpenedSource:
    path = settings.at(source.path)
    if not path.is_dir():
        raise TidingsError(f"source.path: there is no folder {path}")
    # By default Spark silently skips files that are a week older than the newest one. A file that
    # is moved into the folder keeps its old modification time, so the limit is set to 100 years.
    reader = spark.readStream.option("maxFileAge", "36500d")
    if source.files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", source.files_per_trigger)
    # Spark removes or archives a file after the batch that read it is committed
    if source.when_read != "keep":
        reader = reader.option("cleanSource", source.when_read)
    if source.archive is not None:
        reader = reader.option("sourceArchiveDir", str(settings.at(source.archive)))
    if source.format == "parquet":
        if not settings.columns:
            schema = spark.read.parquet(str(path)).schema
        else:
            schema = spark_schema(read_declared_schema(settings))
        return _open_typed_source(reader.schema(schema).parquet(str(path)))
    arrow = read_declared_schema(settings)
    if source.format == "json":
        return OpenedSource(reader.text(str(path)), spark_schema(arrow), "json", arrow)
    rows = _csv(reader, arrow.names).csv(str(path))
    return OpenedSource(rows, spark_schema(arrow), "csv", arrow, corrupt=CORRUPT)


def _open_kafka(settings: Settings, source: Kafka, spark: SparkSession) -> OpenedSource:
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", source.servers)
        .option("subscribe", source.topic)
        .option("startingOffsets", source.start)
        .options(**source.options)
    )
    if source.rows_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.rows_per_trigger)
    arrow = read_declared_schema(settings)
    return OpenedSource(reader.load().select("value"), spark_schema(arrow), "json", arrow)


def _open_rate(source: Rate, spark: SparkSession) -> OpenedSource:
    stream = spark.readStream.format("rate").option("rowsPerSecond", source.rows_per_second)
    return _open_typed_source(stream.load())


def _open_typed_source(df: DataFrame) -> OpenedSource:
    return OpenedSource(df, df.schema, "typed")


def read_declared_schema(settings: Settings) -> pa.Schema:
    """The columns that a pipeline file declares."""
    attributes = settings.attributes
    if attributes is None:
        if is_json(settings):
            return pa.schema([])
        raise TidingsError("columns: found none, expected names and types of the source's columns")
    # `subject` is always declared, but it is a column only if the file lists it
    listed = read_declaration(settings.columns)
    return pa.schema([field for field in arrow_schema(attributes) if field.name in listed])


def has_column(settings: Settings, name: str) -> bool:
    """Whether a source may have a column. For CSV, the header of the first file decides; if there
    is no file, the source does not have the column."""
    source = settings.source
    if not isinstance(source, Files) or source.format != "csv":
        return True
    folder = settings.at(source.path)
    for path in sorted(folder.glob("[!._]*")) if folder.is_dir() else ():
        return name in read_header(path)
    return False


def read_header(path: Path) -> list[str]:
    """The names in the first line of a CSV file; empty if there is none."""
    with path.open(newline="", encoding="utf-8", errors="replace") as lines:
        return next(csv.reader(lines), [])


def spark_schema(arrow: pa.Schema) -> StructType:
    """Convert an Arrow schema to a Spark schema; this needs no session."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow)
