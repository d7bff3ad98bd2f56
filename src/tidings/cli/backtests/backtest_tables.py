"""Opens the table of a backtest with Spark: Parquet, CSV, JSON, stdin, or the demo's flights.

Spark itself reads folders, patterns of file names and compressed files. Declared columns, even
nested ones, are converted to their types; a value that can't be converted becomes null.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli.backtests.job_bar import show_jobs
from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.declared_types import DeclaredTypes
from tidings.cli.common.events import list_files
from tidings.cli.common.input_files import (
    EXTENSIONS,
    STDIN,
    extension_of,
    open_input,
    spans_lines,
)
from tidings.cli.common.screen import cut
from tidings.filters import Attributes, Filter
from tidings.model import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FLIGHTS = "flights"
FORMATS = ("parquet", "csv", "json")
_SETTINGS = {
    "spark.driver.maxResultSize": "0",  # no limit: the driver adds up counts as they arrive
    "spark.sql.files.maxPartitionBytes": "32m",  # small parts, so that the progress bar moves often
}
_MOST_TYPES = 12  # the most columns whose types are shown


@contextmanager
def open_session(master: str) -> Iterator[SparkSession]:
    """A Spark session for one command."""
    from tidings.spark.pipeline import session_at

    try:
        spark = session_at("tidings backtest", master, **_SETTINGS)
    except EnvironmentProblem:
        raise
    except Exception as problem:
        raise BadInput(f"--master {master}: Spark did not start: {_first_line(problem)}") from None
    spark.sparkContext.setLogLevel("OFF")  # the command itself reports errors, in one line
    try:
        yield spark
    finally:
        spark.stop()


def choose_shared_folder(master: str, given: Path | None, option: str) -> Path | None:
    """The folder for files that executors read; None if all of them run on this machine.

    Raises BadInput if no shared folder is given and executors may run on other machines, from which
    they can't read temporary folders of this machine.
    """
    from tidings.spark.session import is_local_master

    if is_local_master(master):
        return None
    if given is None:
        raise BadInput(
            f"--master {master}: executors may run on other machines; with {option}, name a "
            "folder that all of them see at the same path"
        )
    if not given.is_dir():
        raise BadInput(f"{option} {given}: there is no such folder")
    return given


@contextmanager
def compile_filters(
    filters: Mapping[Any, Filter | str],
    shared: Path | None,
    attributes: Attributes | None = None,
) -> Iterator[Any]:
    """The filters for a backtest: unchanged, compiled, or compiled into a shared folder."""
    if shared is None and attributes is None:
        yield filters
        return
    from tidings.snapshots import Snapshot

    compiled = Snapshot.build(filters, attributes)
    if shared is None:
        yield compiled
        return
    with _scratch_folder(shared) as folder:
        compiled.save(folder / "filters")
        yield folder / "filters"


@contextmanager
def _scratch_folder(shared: Path | None) -> Iterator[Path]:
    """A temporary folder. Other users can read a shared folder, because executors may run as
    another user."""
    if shared is None:
        folder = Path(tempfile.mkdtemp(prefix="tidings-"))
    else:
        folder = shared.absolute() / f"tidings-{uuid.uuid4().hex}"
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def name_table_in_errors(path: str) -> Iterator[None]:
    """Turn Spark's errors into one line that names the table."""
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
    except ImportError as error:
        raise EnvironmentProblem(
            "PySpark is not installed; install tidings with the extra `tidings[spark]`"
        ) from error
    try:
        yield
    except (PySparkException, Py4JError) as problem:
        raise BadInput(f"{path}: Spark can't read this: {_first_line(problem)}") from None


@contextmanager
def table_of(
    spark: SparkSession,
    path: str,
    form: str,
    shared: Path | None = None,
    declared: DeclaredTypes | None = None,
) -> Iterator[DataFrame]:
    """The table at a path, with declared columns in their types; files written for it are removed
    at the end."""
    if path == FLIGHTS and not Path(path).exists():
        with _scratch_folder(shared) as folder:
            yield spark.read.parquet(_write_flights(folder))
        return
    if path == STDIN:
        with _scratch_folder(shared) as folder:
            yield _read_table(spark, _write_stdin(folder, form), "stdin", form, declared)
        return
    yield _read_table(spark, path, path, form, declared)


def _read_table(
    spark: SparkSession, path: str, name: str, form: str, declared: DeclaredTypes | None
) -> DataFrame:
    read: Any = spark.read
    if form == "csv":
        read = read.option("header", True).option("inferSchema", True)
    elif form == "json" and "://" not in path and any(map(spans_lines, list_files(path, form))):
        read = read.option("multiLine", True)
    with show_jobs(spark, f"reading {cut(path, 40)}"):  # Spark reads JSON and CSV to infer types
        df: DataFrame = read.format(form).load(path)
    converted: set[str] = set()
    if declared is not None and declared.attributes is not None:
        from tidings.spark.tagging import convert_columns

        df, converted = convert_columns(df, declared.attributes)
    if form != "parquet":
        shown = [
            f"{one.name} {one.dataType.simpleString()}"
            for one in df.schema.fields
            if one.name not in converted
        ]
        if not shown:
            return df
        more = f" and {len(shown) - _MOST_TYPES} more" if len(shown) > _MOST_TYPES else ""
        remark(
            f"{name}: Spark inferred the types of the columns: "
            f"{', '.join(shown[:_MOST_TYPES])}{more}"
        )
    return df


def _write_stdin(folder: Path, form: str) -> str:
    """Copy stdin, decompressed, to a file that Spark can read; return its path."""
    if form == "parquet":
        raise BadInput("stdin: Parquet can't be read from a pipe, expected the name of a file")
    target = folder / f"events.{form}"
    with open_input(STDIN) as file, target.open("wb") as out:
        shutil.copyfileobj(file, out)
    return str(target)


def format_of(path: str, given: str | None) -> str:
    """The given format, or the format of a file's extension; for a folder, the format of the first
    file with a known extension."""
    if given is not None:
        if given not in FORMATS:
            raise BadInput(f"--format: found '{given}', expected one of {', '.join(FORMATS)}")
        return given
    place = Path(path)
    if path == FLIGHTS and not place.exists():
        return "parquet"
    if path == STDIN:
        return "json"
    files = [path] if "://" in path or place.is_dir() else list_files(path)
    if "://" not in path and not Path(files[0]).exists():
        raise BadInput(f"{path}: there is no such file or folder")
    for file in sorted(map(str, place.rglob("*"))) if place.is_dir() else files:
        found = EXTENSIONS.get(extension_of(file))
        if found in FORMATS:
            return str(found)
    if place.is_dir() or "://" in path:
        return "parquet"
    raise BadInput(
        f"{path}: expected a .parquet, .csv or .jsonl file, a folder of such files, the word "
        f"{FLIGHTS}, or --format {', '.join(FORMATS)}"
    )


def _write_flights(folder: Path) -> str:
    """Write the flights to a Parquet file; return the folder."""
    from tidings.cli.demo.demo_flights import load_flights

    flights = load_flights()
    from pyarrow import parquet

    parquet.write_table(flights, folder / "flights.parquet", row_group_size=1 << 16)
    return str(folder)


def _first_line(problem: Exception) -> str:
    """The essential line of a long message: the first or, for a Java error, the second."""
    lines = [line.strip(": ") for line in str(problem).splitlines() if line.strip(": ")]
    told = lines[1:2] if lines and lines[0].startswith("An error occurred while") else lines[:1]
    return (told or [type(problem).__name__])[0][:300]
