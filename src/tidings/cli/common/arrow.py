"""Reads rows of CSV, Parquet and Arrow files with pyarrow, batch by batch.

pyarrow is imported only in this module, and only when such a file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.input_files import STDIN, begins_with, name_of, open_input
from tidings.model import EnvironmentProblem

# The first block determines the types of CSV columns, so it is large.
BLOCK_BYTES = 16 << 20
BATCH_ROWS = 4096
_ARROW_FILE = b"ARROW1"  # an Arrow stream begins differently

Rows = Iterator[dict[str, Any]]


def read_csv(path: str, as_text: Iterable[str] = (), nulls: Iterable[str] = ()) -> Rows:
    """Yield the rows of a CSV file. Columns in `as_text` are read as strings; the types of other
    columns are inferred. Empty fields and the strings in `nulls` become null."""
    pa = load_pyarrow()
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types={name: pa.string() for name in as_text},
        null_values=["", *nulls],
        strings_can_be_null=True,
    )
    options = csv.ReadOptions(block_size=BLOCK_BYTES)
    parse = csv.ParseOptions(newlines_in_values=True)
    with open_input(path) as file, _name_file_in_errors(path, "CSV"):
        batches = csv.open_csv(file, options, parse, convert)
        _check_columns(path, batches.schema)
        for field in batches.schema:
            if pa.types.is_binary(field.type):  # the inferred type of bytes that are not UTF-8
                raise BadInput(f"{name_of(path)}: the column '{field.name}' is not text in UTF-8")
        for batch in batches:
            yield from rows_of(batch)


def read_parquet(path: str) -> Rows:
    """Yield the rows of a Parquet file."""
    load_pyarrow()
    from pyarrow import parquet

    if path == STDIN:
        raise BadInput("stdin: Parquet can't be read from a pipe, expected the name of a file")
    with open_input(path) as file, _name_file_in_errors(path, "Parquet"):
        source = parquet.ParquetFile(file)
        _check_columns(path, source.schema_arrow)
        for batch in source.iter_batches(BATCH_ROWS):
            yield from rows_of(batch)


def read_arrow(path: str) -> Rows:
    """Yield the rows of an Arrow stream, as they arrive, or of an Arrow file."""
    pa = load_pyarrow()
    with open_input(path) as file, _name_file_in_errors(path, "Arrow"):
        if not begins_with(file, _ARROW_FILE):
            stream = pa.ipc.open_stream(file)
            _check_columns(path, stream.schema)
            for batch in stream:
                yield from rows_of(batch)
            return
        if not file.seekable():
            raise BadInput(
                f"{name_of(path)}: an Arrow file can't be read from a pipe, expected an Arrow "
                "stream, or the name of a file"
            )
        source = pa.ipc.open_file(file)
        _check_columns(path, source.schema)
        for number in range(source.num_record_batches):
            yield from rows_of(source.get_batch(number))


def rows_of(batch: Any) -> Rows:
    """The rows of a record batch or table as events: null cells are left out."""
    pa = load_pyarrow()
    from tidings.notifications import cell_cleaner

    for at, field in enumerate(batch.schema):
        # Python's datetime has no nanoseconds, and pyarrow would need pandas to keep them.
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            micros = batch.column(at).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(at, field.name, micros)
    clean = cell_cleaner(pa.struct(list(batch.schema)))
    assert clean is not None
    for start in range(0, batch.num_rows, BATCH_ROWS):
        rows = batch.slice(start, BATCH_ROWS).to_pylist(maps_as_pydicts="lossy")
        yield from map(clean, rows)


def load_pyarrow() -> Any:
    """Import pyarrow, or explain that it is missing."""
    try:
        import pyarrow
    except ImportError:
        raise EnvironmentProblem(
            "reading CSV and Parquet needs the package pyarrow, which is not installed: "
            "pip install pyarrow"
        ) from None
    return pyarrow


@contextmanager
def _name_file_in_errors(path: str, kind: str) -> Iterator[None]:
    """Turn pyarrow's errors into one line that names the file."""
    pa = load_pyarrow()
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError, OSError) as problem:
        said = " ".join(str(problem).split())[:300]
        hint = "; --types can declare the column" if "conversion error" in said else ""
        raise BadInput(f"{name_of(path)}: this can't be read as {kind}: {said}{hint}") from None


def _check_columns(path: str, schema: Any) -> None:
    seen: set[str] = set()
    for field in schema:
        if field.name in seen:
            raise BadInput(f"{name_of(path)}: the column '{field.name}' occurs twice")
        seen.add(field.name)
