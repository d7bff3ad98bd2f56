"""Tagging tables and streams: for each row the nodes, or the subscriptions, that match it.

    columns that filters test ──Arrow──> Python worker: snapshot, mapped once ──> column of lists
    all other columns stay where they are

Only what filters look at travels to Python, and only the tags travel back. It works on tables and
streams, in this process and through Spark Connect.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.matching.tested import Tested
from tidings.model import AttributesError, TidingsError
from tidings.snapshots import Snapshot
from tidings.spark.contracts import check_columns
from tidings.spark.worker import Pinned, tagger

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OUTPUTS = ("nodes", "subscriptions", "pairs")
_saved: weakref.WeakKeyDictionary[Snapshot, str] = weakref.WeakKeyDictionary()


def tag(
    df: DataFrame, snapshot: Snapshot | str | Path, output: str = "nodes", *, strict: bool = True
) -> DataFrame:
    """The table with one more column, named after the output:

    - `nodes`: for each row the numbers of the lowest nodes of the content graph that match it;
    - `subscriptions`: the ids of the subscriptions that match it;
    - `pairs`: one row for each row and subscription that match, with the subscription's id.

    `snapshot` is a directory that every worker can read, or a Snapshot. A column that filters test
    and the table lacks, or has in a type that they can't be compared with, is refused by name;
    `strict=False` lets the first pass, as if it were null everywhere.
    """
    from pyspark.sql import functions as f

    if output not in OUTPUTS:
        raise TidingsError(f"found the output {output!r}, expected one of {', '.join(OUTPUTS)}")
    if output in df.columns:
        raise AttributesError(f"the table has a column '{output}' already; rename it before")
    opened, path = _placed(snapshot)
    pinned = Pinned(path, opened.number)
    wanted = "subscriptions" if output == "pairs" else output
    column = tags(df, pinned, opened, (wanted,), strict=strict)
    if output == "pairs":
        column = f.explode(column)
    return df.withColumn(output, column)


def tags(
    df: DataFrame,
    pinned: Pinned,
    snapshot: Snapshot,
    outputs: tuple[str, ...],
    tested: Tested | None = None,
    *,
    strict: bool = True,
) -> Column:
    """The column of tags of a table at a pinned version: lists, or a struct of lists."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

    tested = snapshot.matcher.tested() if tested is None else tested
    if not strict:
        there = set(df.columns)
        tested = {path: kinds for path, kinds in tested.items() if path[0] in there}
    names = check_columns(df.schema, tested)
    id_kind: DataType = LongType() if snapshot.has_integer_ids else StringType()
    kinds = {
        "nodes": ArrayType(LongType(), False),
        "subscriptions": ArrayType(id_kind, False),
    }
    returned: Any = kinds[outputs[0]]
    if len(outputs) > 1:
        returned = StructType([StructField(name, kinds[name], False) for name in outputs])
    arrow_udf: Any = f.arrow_udf  # type: ignore[attr-defined]
    udf = arrow_udf(tagger(pinned, names or ["none"], outputs), returned)
    columns = [f.col(f"`{name.replace('`', '``')}`") for name in names] or [f.lit(True)]
    found: Column = udf(*columns)
    return found


def _placed(snapshot: Snapshot | str | Path) -> tuple[Snapshot, str]:
    """A snapshot and a directory that it is in; one that was only built is saved for a while."""
    if not isinstance(snapshot, Snapshot):
        path = str(Path(snapshot).absolute())
        return Snapshot.open(path), path
    if snapshot.path is not None:
        return snapshot, str(snapshot.path)
    known = _saved.get(snapshot)
    if known is None:
        folder = tempfile.mkdtemp(prefix="tidings-snapshot-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        known = str(Path(folder, "snapshot"))
        snapshot.save(known)
        _saved[snapshot] = known
    return snapshot, known
