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

from tidings.model import AttributesError, TidingsError
from tidings.snapshots import Snapshot, View, identity_of
from tidings.spark.session.session import is_local_master
from tidings.spark.tagging.column_checks import check_columns
from tidings.spark.tagging.worker import Pinned, make_tagger

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

OUTPUTS = ("nodes", "subscriptions", "pairs")
_saved: weakref.WeakKeyDictionary[Snapshot, str] = weakref.WeakKeyDictionary()


def tag(
    df: DataFrame, snapshot: Snapshot | str | Path, output: str = "nodes", *, strict: bool = True
) -> DataFrame:
    """The table with one more column, named after the output:

    - `nodes`: for each row the numbers of the lowest nodes of the content graph that match it;
    - `subscriptions`: the ids of the subscriptions that match it;
    - `pairs`: one row for each row and subscription that match, with the subscription's id.

    `snapshot` is a directory that every worker can read, or a Snapshot, which must be saved in such
    a directory when workers may be on other machines. A column that filters test
    and the table lacks, or has in a type that they can't be compared with, is refused by name;
    `strict=False` lets the first pass, as if it were null everywhere.
    """
    from pyspark.sql import functions as f

    if output not in OUTPUTS:
        raise TidingsError(f"found the output {output!r}, expected one of {', '.join(OUTPUTS)}")
    for name in df.columns:
        if _is_same_name(df, name, output):
            raise AttributesError(f"the table has a column '{name}' already; rename it before")
    opened, path = place_snapshot(snapshot, df.sparkSession)
    wanted = "subscriptions" if output == "pairs" else output
    pinned = Pinned(path, opened.number, identity=identity_of(path))
    column = tags_column(df, pinned, opened.view, (wanted,), strict=strict)
    if output == "pairs":
        column = f.explode(column)
    return df.withColumn(output, column)


def tags_column(
    df: DataFrame, pinned: Pinned, view: View, outputs: tuple[str, ...], *, strict: bool = True
) -> Column:
    """The column of tags of a table at a pinned version: lists, or a struct of lists. The view is
    the one of the same version, in this process."""
    from pyspark.sql import functions as f

    matcher = view.matcher
    names = check_columns(df.schema, matcher.tested(), matcher.attributes, strict=strict)
    for name in names:
        for other in df.columns:
            if other != name and _is_same_name(df, other, name):
                raise AttributesError(
                    f"the table has columns '{name}' and '{other}', which Spark can't tell apart; "
                    f"rename one, or set spark.sql.caseSensitive"
                )
    arrow_udf: Any = f.arrow_udf  # type: ignore[attr-defined]
    udf = arrow_udf(make_tagger(pinned, names or ["none"], outputs), tag_type(view, outputs))
    columns = [f.col(f"`{name.replace('`', '``')}`") for name in names] or [f.lit(True)]
    found: Column = udf(*columns)
    return found


def _is_same_name(df: DataFrame, name: str, other: str) -> bool:
    """Does Spark take two names for one?"""
    if name == other or name.lower() != other.lower():
        return name == other
    return str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true"


def tag_type(view: View, outputs: tuple[str, ...]) -> DataType:
    """The type of a column of tags."""
    from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

    ids: DataType = LongType() if view.has_integer_ids else StringType()
    kinds = {"nodes": ArrayType(LongType(), False), "subscriptions": ArrayType(ids, False)}
    if len(outputs) == 1:
        return kinds[outputs[0]]
    return StructType([StructField(name, kinds[name], False) for name in outputs])


def place_snapshot(snapshot: Snapshot | str | Path, spark: Any) -> tuple[Snapshot, str]:
    """A snapshot and a directory that it is in; one that was only built is saved for a while, in a
    temporary folder, which is refused where workers may be on other machines and not see it."""
    if not isinstance(snapshot, Snapshot):
        path = str(Path(snapshot).absolute())
        return Snapshot.open(path), path
    if snapshot.path is not None:
        return snapshot, str(snapshot.path)
    context = getattr(spark, "_sc", None)  # none: Spark Connect, whose server may be anywhere
    if context is not None and not is_local_master(context.master):
        raise TidingsError(
            f"Spark runs at {context.master}, whose machines do not see temporary folders of this "
            "one: save the snapshot in a folder that all of them see, and give its path"
        )
    known = _saved.get(snapshot)
    if known is None:
        folder = tempfile.mkdtemp(prefix="tidings-snapshot-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        known = str(Path(folder, "snapshot"))
        snapshot.save(known)
        _saved[snapshot] = known
    return snapshot, known
