"""Tags tables and streams: adds to each row the nodes, or the subscriptions, that match it.

    columns that filters test ──Arrow──> Python worker: snapshot, mapped once ──> column of lists
    all other columns stay in the JVM

Only the columns that filters test are sent to Python, and only the tags are sent back. Tagging
works on tables and streams, in this process and through Spark Connect.
"""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.files import address_of, local_path, process_folder, scheme_of
from tidings.model import AttributesError, TidingsError
from tidings.snapshots import NamedMembers, Snapshot, View, identity_of
from tidings.spark.session import is_local_master, send_to_workers
from tidings.spark.tagging.column_checks import check_columns, warn_never
from tidings.spark.tagging.worker import Pinned, make_tagger

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

OUTPUTS = ("nodes", "subscriptions", "pairs", "parts")
_saved: weakref.WeakKeyDictionary[Snapshot, str] = weakref.WeakKeyDictionary()


def tag(
    df: DataFrame,
    snapshot: Snapshot | str | Path,
    output: str = "nodes",
    *,
    strict: bool = True,
    errors: str = "raise",
) -> DataFrame:
    """Return the table with one more column, named after the output:

    - `nodes`: for each row, the numbers of the lowest nodes of the content graph that match it;
    - `subscriptions`: the ids of the subscriptions that match it;
    - `pairs`: one row for each match of a row and a subscription, with the subscription's id;
    - `parts`: for each row, a list with a struct for each subscription that matches the row and
      whose filter has named parts: `id`, and `names`, which lists the named parts that are true.

    `snapshot` is a directory that every worker can read, which may be at an address such as
    s3a://bucket/snapshot; or a Snapshot, which must be saved in such a directory if workers may run
    on other machines.

    Raises AttributesError, which names the subscriptions, if the table lacks a column that filters
    test, if the type of the column can't be compared, or if a filter does not fit that type
    (`city > 5` on strings, `hour(time)` on strings, `length(qty)` on numbers). With `strict=False`,
    a missing column counts as null. With `errors="collect"`, a MisfitWarning names the filters with
    tests that don't fit their columns; these tests never pass. A NeverTrueWarning names
    subscriptions that can never match.
    """
    from pyspark.sql import functions as f

    if output not in OUTPUTS:
        raise TidingsError(f"found the output {output!r}, expected one of {', '.join(OUTPUTS)}")
    for name in df.columns:
        if _is_same_name(df, name, output):
            raise AttributesError(f"the table already has a column '{name}'; rename it first")
    opened, path = place_snapshot(snapshot, df.sparkSession)
    warn_never(opened.view)
    wanted = "subscriptions" if output == "pairs" else output
    pinned = Pinned(path, opened.number, identity=identity_of(path))
    also = NamedMembers(opened.view).parts_view if output == "parts" else None
    column = tags_column(
        df, pinned, opened.view, (wanted,), strict=strict, errors=errors, also=also
    )
    if output == "pairs":
        column = f.explode(column)
    return df.withColumn(output, column)


def tags_column(
    df: DataFrame,
    pinned: Pinned,
    view: View,
    outputs: tuple[str, ...],
    *,
    strict: bool = True,
    errors: str = "raise",
    also: View | None = None,
) -> Column:
    """The column of tags at a pinned version: lists, or a struct of lists if there are several
    outputs. `view` is the view of the same version in this process. If `also` is given, the columns
    that its filters test are needed too."""
    from pyspark.sql import functions as f

    names = check_columns(df.schema, view, strict=strict, errors=errors)
    if also is not None:  # a part may test a column that the filter as a whole does not need
        more = check_columns(df.schema, also, strict=strict, errors=errors)
        names = [name for name in df.columns if name in names or name in more]
    for name in names:
        for other in df.columns:
            if other != name and _is_same_name(df, other, name):
                raise AttributesError(
                    f"the table has columns '{name}' and '{other}', which Spark can't tell apart; "
                    f"rename one, or set spark.sql.caseSensitive"
                )
    arrow_udf: Any = f.arrow_udf  # type: ignore[attr-defined]
    tagger = send_to_workers(df.sparkSession, make_tagger(pinned, names or ["none"], outputs))
    udf = arrow_udf(tagger, tag_type(view, outputs))
    columns = [f.col(f"`{name.replace('`', '``')}`") for name in names] or [f.lit(True)]
    found: Column = udf(*columns)
    return found


def _is_same_name(df: DataFrame, name: str, other: str) -> bool:
    """Whether Spark treats two names as the same."""
    if name == other or name.lower() != other.lower():
        return name == other
    return str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true"


def tag_type(view: View, outputs: tuple[str, ...]) -> DataType:
    """The type of a column of tags."""
    from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

    ids: DataType = LongType() if view.has_integer_ids else StringType()
    part = [StructField("id", ids, False), StructField("names", ArrayType(StringType(), False))]
    kinds = {
        "nodes": ArrayType(LongType(), False),
        "subscriptions": ArrayType(ids, False),
        "parts": ArrayType(StructType(part), False),
    }
    if len(outputs) == 1:
        return kinds[outputs[0]]
    return StructType([StructField(name, kinds[name], False) for name in outputs])


def place_snapshot(snapshot: Snapshot | str | Path, spark: Any) -> tuple[Snapshot, str]:
    """Return a snapshot and the directory that contains it.

    A snapshot that exists only in memory is saved to a temporary folder until the process ends,
    because a table that was tagged with it may be computed long after the snapshot is gone. Equal
    snapshots share a folder. A temporary folder is refused if workers may run on other machines,
    which can't read it.
    """
    if not isinstance(snapshot, Snapshot):
        if scheme_of(snapshot):
            path = address_of(snapshot)
        else:
            path = str(local_path(snapshot, "a snapshot").absolute())
        return Snapshot.open(path), path
    if snapshot.address is not None:
        return snapshot, snapshot.address
    if snapshot.path is not None:
        return snapshot, str(snapshot.path)
    # None with Spark Connect, whose server may be on any machine
    context = getattr(spark, "_sc", None)
    if context is not None and not is_local_master(context.master):
        raise TidingsError(
            f"Spark runs at {context.master}, whose machines can't read a temporary folder here; "
            "save the snapshot in a folder that all of them can read, and pass its path"
        )
    if snapshot not in _saved:
        _saved[snapshot] = str(_save(snapshot))
    return snapshot, _saved[snapshot]


def _save(snapshot: Snapshot) -> Path:
    """Save a snapshot in the temporary folder of this process, under its identity."""
    home = process_folder()
    with tempfile.TemporaryDirectory(dir=home) as folder:
        new = Path(folder, "snapshot")
        snapshot.save(new)
        place = home / identity_of(new)
        try:
            new.rename(place)
        except OSError:
            if not place.is_dir():  # a folder at this place holds an equal snapshot
                raise
    return place
