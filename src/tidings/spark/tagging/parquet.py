"""Tags Parquet files directly: Spark distributes pieces of files, and workers do the rest.

    driver    lists row groups ──> pieces ──────────────────────────> moves files into place
    worker                         read (Arrow) ─> match ─> write

A table that is read from files and written to files need not be converted to JVM rows, which would
cost several times as much as matching. Spark still schedules the pieces, and repeats a piece if its
worker is lost. Files of failed attempts are removed.

`tag` does the same for any DataFrame, stream or source; this module is the fast path for large
files.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tidings.files import local_path
from tidings.model import AttributesError, TidingsError
from tidings.snapshots import Snapshot, View, identity_of
from tidings.spark.session import send_to_workers
from tidings.spark.tagging.column_checks import check_columns, warn_never
from tidings.spark.tagging.parquet_files import (
    FilePiece,
    find_pieces,
    is_plain,
    open_writer,
    read_piece,
)
from tidings.spark.tagging.tagging import OUTPUTS, place_snapshot
from tidings.spark.tagging.worker import ROWS, Pinned, lists_of, view_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


class TagResult(msgspec.Struct, frozen=True):
    """The numbers of rows read, rows written and files written."""

    rows_in: int
    rows_out: int
    files: int


def tag_parquet(
    spark: SparkSession,
    source: str | Path | Sequence[str | Path],
    target: str | Path,
    snapshot: Snapshot | str | Path,
    output: str = "nodes",
    *,
    columns: Sequence[str] | None = None,
    strict: bool = True,
    errors: str = "raise",
) -> TagResult:
    """Tag Parquet files, and write Parquet files with one more column; see `tag` for outputs and
    checks.

    `source` is one or several files or folders that every worker can read; `target` is a new or
    empty folder. `columns` are the columns to keep, by default all.
    """
    if output not in OUTPUTS:
        raise TidingsError(f"found the output {output!r}, expected one of {', '.join(OUTPUTS)}")
    folder = local_path(target, "tagged files").absolute()
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise TidingsError(f"'{folder}' exists already, expected a new or empty folder")
    pieces, schema = find_pieces(source)
    opened, path = place_snapshot(snapshot, spark)
    warn_never(opened.view)
    kept = _columns_to_keep(schema, columns, output)
    tested = check_columns(_spark_schema(schema), opened.view, strict=strict, errors=errors)
    wanted = pa.schema([schema.field(name) for name in dict.fromkeys([*kept, *tested])])
    aside = folder / f"_temporary-{uuid.uuid4().hex[:12]}"
    aside.mkdir(parents=True)
    pinned = Pinned(path, opened.number, identity=identity_of(path))
    shipped = wanted.serialize().to_pybytes()
    work = _Work(pinned, output, tested, kept, shipped, str(aside), pieces)
    try:
        todo = spark.range(0, len(pieces), 1, max(1, len(pieces)))
        run = send_to_workers(spark, _make_runner(work))
        done = todo.mapInArrow(run, "name string, folder string, rows_in long, rows_out long")
        files = done.collect()
        _move(files, aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    (folder / "_SUCCESS").touch()
    return TagResult(
        sum(one["rows_in"] for one in files), sum(one["rows_out"] for one in files), len(files)
    )


def _move(files: Sequence[Any], aside: Path, folder: Path) -> None:
    """Move all files into place, or none."""
    moved: list[Path] = []
    try:
        for one in files:
            place = folder / one["folder"]
            place.mkdir(parents=True, exist_ok=True)
            moved.append((aside / one["name"]).rename(place / one["name"]))
    except BaseException:
        for path in moved:
            path.unlink(missing_ok=True)
        raise


class _Work(msgspec.Struct, frozen=True):
    pinned: Pinned
    output: str
    tested: list[str]
    kept: list[str]
    schema: bytes  # the schema of the columns to read, serialized by Arrow
    aside: str
    pieces: list[FilePiece]


def _make_runner(work: _Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        view = view_of(work.pinned)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                piece = work.pieces[number]
                name = f"part-{uuid.uuid4().hex}.parquet"
                counts = _tag_piece(view, work, piece, Path(work.aside, name))
                yield pa.RecordBatch.from_pylist([{"name": name, "folder": piece.folder, **counts}])

    return run


def _tag_piece(view: View, work: _Work, piece: FilePiece, path: Path) -> dict[str, int]:
    rows_in = rows_out = 0
    schema = pa.ipc.read_schema(pa.py_buffer(work.schema))
    writer: Any = None
    try:
        for batch in read_piece(piece, schema, ROWS):
            rows_in += batch.num_rows
            for out in _tag_batch(view, work, batch):
                rows_out += out.num_rows
                if writer is None:
                    writer = open_writer(path, out.schema, plain=is_plain(schema))
                writer.write_batch(out)
    finally:
        if writer is not None:
            writer.close()
    return {"rows_in": rows_in, "rows_out": rows_out}


def _tag_batch(view: View, work: _Work, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The tagged rows of a batch; several pieces if one piece would be too large."""
    starts, places = view.match_places(batch.select(work.tested) if work.tested else batch)
    # the metadata that Spark and pandas write describes the old columns
    kept = batch.select(work.kept).replace_schema_metadata(None)
    each = kept.nbytes // max(1, kept.num_rows) if work.output == "pairs" else 0
    for first, last, matched in view.pieces(starts, places, each):
        rows = kept.slice(first, last - first)
        if work.output != "pairs":
            yield rows.append_column(work.output, lists_of(view, work.output, matched))
            continue
        lists = view.subscription_lists(*matched)
        rows = rows.take(pa.compute.list_parent_indices(lists))
        yield rows.append_column("pairs", lists.flatten())


def _columns_to_keep(schema: pa.Schema, columns: Sequence[str] | None, output: str) -> list[str]:
    kept = list(schema.names if columns is None else columns)
    for name in kept:
        if name not in schema.names:
            raise AttributesError(f"the files have no column '{name}'")
        if name == output:
            raise AttributesError(
                f"the files already have a column '{output}'; leave it out of `columns`"
            )
    return kept


def _spark_schema(schema: pa.Schema) -> StructType:
    """The schema in Spark's types. Types that Spark lacks become binary, which no filter tests."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import BinaryType, StructField, StructType

    def kind(field: Any) -> DataType:
        try:
            found: DataType = from_arrow_type(field.type)
        except Exception:  # PySparkTypeError, and ValueError for some types
            return BinaryType()
        return found

    return StructType([StructField(field.name, kind(field)) for field in schema])
