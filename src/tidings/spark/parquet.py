"""Tagging Parquet files without a detour: Spark hands out pieces of files, workers do the rest.

    driver    lists row groups ──> pieces ──────────────────────────> moves files into place
    worker                         read (Arrow) ─> match ─> write

A table that comes from files and goes to files need not pass through the JVM's rows, which costs
several times what matching does. Spark still decides who does which piece, and does a piece again
when its worker is lost; files of attempts that failed are named by nobody and swept away.

`tag` does the same for any DataFrame, stream or source; this is for the large files.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.model import AttributesError, TidingsError
from tidings.snapshots import Snapshot, View
from tidings.spark.contracts import check_columns
from tidings.spark.tagging import OUTPUTS, placed
from tidings.spark.worker import ROWS, Pinned, lists_of, view_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE = 1 << 19  # rows of a piece, about: a few row groups
DICTIONARY = 256 << 10  # bytes of a dictionary of texts that is worth keeping
_WHOLE = (pa.int32(), pa.int64())
_PLAIN = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
          pa.string(), pa.binary(), pa.date32())  # fmt: skip


class Piece(msgspec.Struct, frozen=True):
    """Some row groups of one file."""

    file: str
    groups: list[int]
    folder: str  # of the file, from the source's: partitions by folder stay as they are


class Written(msgspec.Struct, frozen=True):
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
) -> Written:
    """Tag Parquet files, and write Parquet files with one more column; see `tag` for outputs.

    `source` is a file, a folder, or several, that every worker can read; `target` a folder that is
    not there yet, or empty. `columns` are those to keep, all when not given.
    """
    if output not in OUTPUTS:
        raise TidingsError(f"found the output {output!r}, expected one of {', '.join(OUTPUTS)}")
    folder = Path(target).absolute()
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise TidingsError(f"'{folder}' is there already, expected a new or empty folder")
    pieces, schema = _pieces(source)
    opened, path = placed(snapshot)
    kept = _kept(schema, columns, output)
    tested = check_columns(_spark_schema(schema), opened.matcher.tested(), strict=strict)
    aside = folder / f"_temporary-{uuid.uuid4().hex[:12]}"
    aside.mkdir(parents=True)
    work = _Work(Pinned(path, opened.number), output, tested, kept, str(aside), pieces)
    try:
        todo = spark.range(0, len(pieces), 1, max(1, len(pieces)))
        run: Any = _runner(work)
        done = todo.mapInArrow(run, "name string, folder string, rows_in long, rows_out long")
        files = done.collect()
        for one in files:
            place = folder / one["folder"]
            place.mkdir(parents=True, exist_ok=True)
            (aside / one["name"]).rename(place / one["name"])
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    (folder / "_SUCCESS").touch()
    return Written(
        sum(one["rows_in"] for one in files), sum(one["rows_out"] for one in files), len(files)
    )


class _Work(msgspec.Struct, frozen=True):
    pinned: Pinned
    output: str
    tested: list[str]
    kept: list[str]
    aside: str
    pieces: list[Piece]


def _runner(work: _Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        view = view_of(work.pinned)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                piece = work.pieces[number]
                name = f"part-{uuid.uuid4().hex}.parquet"
                counts = _tag_piece(view, work, piece, Path(work.aside, name))
                yield pa.RecordBatch.from_pylist([{"name": name, "folder": piece.folder, **counts}])

    return run


def _tag_piece(view: View, work: _Work, piece: Piece, path: Path) -> dict[str, int]:
    rows_in = rows_out = 0
    writer: Any = None
    wanted = list(dict.fromkeys([*work.kept, *work.tested]))
    with _open(piece, wanted) as file:
        for batch in file.iter_batches(
            ROWS, row_groups=piece.groups, columns=wanted, use_threads=False
        ):
            rows_in += batch.num_rows
            for out in _tagged(view, work, batch):
                rows_out += out.num_rows
                if writer is None:
                    writer = pq.ParquetWriter(path, out.schema, **_written(out.schema))
                writer.write_batch(out)
    if writer is not None:
        writer.close()
    return {"rows_in": rows_in, "rows_out": rows_out}


def _open(piece: Piece, wanted: list[str]) -> pq.ParquetFile:
    """The file of a piece. Texts that it has as numbers of a dictionary stay that: a third of the
    time that reading, matching and writing them takes otherwise."""
    file = pq.ParquetFile(piece.file, memory_map=True)
    schema = file.schema_arrow
    texts = {name for name in wanted if pa.types.is_string(schema.field(name).type)}
    if not all(_is_plain(schema.field(name).type) for name in wanted):
        return file
    group = file.metadata.row_group(piece.groups[0])
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema in texts and not _has_small_dictionary(column):
            texts.remove(column.path_in_schema)
    file.close()
    return pq.ParquetFile(piece.file, memory_map=True, read_dictionary=sorted(texts))


def _has_small_dictionary(column: Any) -> bool:
    """A large one was given up in the middle by whoever wrote it, and would be made anew."""
    if not column.has_dictionary_page:
        return False
    return bool(column.data_page_offset - column.dictionary_page_offset < DICTIONARY)


def _is_plain(kind: pa.DataType) -> bool:
    """Is a type the same when it is read back from Parquet, without Arrow's own notes?"""
    return kind in _PLAIN or bool(
        pa.types.is_decimal128(kind)
        or (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"))
        or (pa.types.is_list(kind) and _is_plain(kind.value_type))
        or (pa.types.is_struct(kind) and all(_is_plain(field.type) for field in kind))
    )


def _written(schema: pa.Schema) -> dict[str, Any]:
    """How columns are written: integers by their differences, which is twice as fast as with a
    dictionary and no larger; all others with one."""
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    deltas = {name: "DELTA_BINARY_PACKED" for name, kind in leaves if kind in _WHOLE}
    others = [name for name, _ in leaves if name not in deltas]
    return {
        "compression": "snappy",
        "use_dictionary": others,
        "column_encoding": deltas,
        # a reader would make dictionaries of texts after this note
        "store_schema": not any(pa.types.is_dictionary(field.type) for field in schema),
    }


def _leaves(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns of Parquet that a column of Arrow becomes."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{name}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{name}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{name}.key_value.key", kind.key_type)
        yield from _leaves(f"{name}.key_value.value", kind.item_type)
    else:
        yield name, kind


def _tagged(view: View, work: _Work, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The tagged rows of a batch, in several pieces where there would be too many bytes in one."""
    starts, places = view.matched(batch.select(work.tested) if work.tested else batch)
    # Spark and pandas note their own columns in a file's metadata, which has one more now
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


def _pieces(source: str | Path | Sequence[str | Path]) -> tuple[list[Piece], pa.Schema]:
    """The pieces of all files, and their schema, which must be one."""
    roots = [source] if isinstance(source, (str, Path)) else list(source)
    pieces: list[Piece] = []
    schema: pa.Schema | None = None
    for root in (Path(one).absolute() for one in roots):
        files = sorted(root.rglob("*.parquet")) if root.is_dir() else [root]
        for path in (path for path in files if not path.name.startswith(("_", "."))):
            try:
                metadata = pq.read_metadata(path)
            except (OSError, pa.ArrowInvalid) as problem:
                raise TidingsError(f"'{path}' can't be read as Parquet: {problem}") from None
            found = metadata.schema.to_arrow_schema().remove_metadata()
            if schema is not None and not found.equals(schema):
                raise TidingsError(f"'{path}' has other columns than the files before it")
            schema = found
            folder = "" if root.is_file() else str(path.parent.relative_to(root))
            pieces += _cut(str(path), metadata, folder)
    if schema is None:
        raise TidingsError(f"there are no Parquet files in {', '.join(map(str, roots))}")
    return pieces, schema


def _cut(path: str, metadata: Any, folder: str) -> Iterator[Piece]:
    groups: list[int] = []
    rows = 0
    for number in range(metadata.num_row_groups):
        groups.append(number)
        rows += metadata.row_group(number).num_rows
        if rows >= PIECE:
            yield Piece(path, groups, folder)
            groups, rows = [], 0
    if groups:
        yield Piece(path, groups, folder)


def _kept(schema: pa.Schema, columns: Sequence[str] | None, output: str) -> list[str]:
    kept = list(schema.names if columns is None else columns)
    for name in kept:
        if name not in schema.names:
            raise AttributesError(f"the files have no column '{name}'")
        if name == output:
            raise AttributesError(f"the files have a column '{output}' already; leave it out")
    return kept


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
