"""Tags a user's own table or stream with subscriptions that change while the stream runs.

    stream   ──> each task reads the log when it begins, and takes its latest version
    table    ──> one version for all rows: the latest when `tag_live` is called. So if
                 `foreachBatch` calls it, each micro-batch has a version of its own

The column `version` says which version a row was matched with. A pipeline also records the version
before each batch starts, so a retried batch uses the same version.

All columns that filters can test are sent to the workers, because a filter that is added later may
test any of them. Cost: each task reads the changes since the last compiled snapshot; after 1,000
changes a separate process compiles a new one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidings.files import local_path
from tidings.filters import Attributes
from tidings.model import AttributesError, TidingsError
from tidings.snapshots import View
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.spark.session import send_to_workers
from tidings.spark.tagging.column_checks import check_columns, family_of, warn_never
from tidings.spark.tagging.tagging import tag_type, tags_column
from tidings.spark.tagging.worker import join_batches, lists_of
from tidings.store import LOCK, ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSION = "version"
OUTPUTS = ("nodes", "subscriptions")
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_followed: dict[tuple[str, str], FollowedSubscriptions] = {}
_reported: set[str] = set()  # missing columns that have already been reported


def tag_live(
    df: DataFrame,
    subscriptions: str | Path | ChangeLog,
    output: str = "subscriptions",
    *,
    columns: Sequence[str] | None = None,
    attributes: Attributes | None = None,
) -> DataFrame:
    """Return the table or stream with two more columns: `subscriptions` (the ids that match) or
    `nodes`, as `output` says, and `version`, the version of the subscriptions.

    `subscriptions` is the folder of a change log, which every worker can read, or the log itself.
    Changes to the log take effect while a stream runs: each task takes the latest version when it
    begins, so the rows of a micro-batch may have different versions. A table gets one version.

    `columns` are the columns that filters may test; the default is all. `attributes` are those that
    the channel declares; if the channel declares none yet, they become its first declaration.
    Raises AttributesError if a current filter tests a column that is missing or has another type.
    If a filter that is added later tests a missing column, it matches nothing, and a worker logs a
    warning. A NeverTrueWarning names current subscriptions that can never match.
    """
    from pyspark.sql import functions as f

    if output not in OUTPUTS:
        raise TidingsError(f"found the output {output!r}, expected one of {', '.join(OUTPUTS)}")
    ignores_case = str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true"
    for name in df.columns:
        if (name.lower() if ignores_case else name) in (output, VERSION):
            raise AttributesError(f"the table already has a column '{name}'; rename it first")
    if isinstance(subscriptions, ChangeLog):
        attributes = subscriptions.attributes if attributes is None else attributes
        subscriptions = subscriptions.path
    path = local_path(subscriptions, "a log of subscriptions").absolute()
    if not (path / LOCK).exists():
        raise TidingsError(
            f"there is no log of subscriptions in {path}; `tidings subscriptions add` creates one"
        )
    followed = FollowedSubscriptions(path, attributes)
    version = followed.version
    view = _check_view(df, followed, version)
    warn_never(view)
    if not df.isStreaming:
        tags = tags_column(df, followed.pin(version), view, (output,))
        return df.withColumn(output, tags).withColumn(VERSION, f.lit(version).cast("bigint"))
    names = _columns_to_send(df, columns)
    arrow_udf: Any = f.arrow_udf  # type: ignore[attr-defined]
    kinds = f"{VERSION} bigint, {output} {tag_type(view, (output,)).simpleString()}"
    kind = _id_type(view, output)
    tagger = make_live_tagger(str(path), attributes, names or ["none"], output, kind)
    run = send_to_workers(df.sparkSession, tagger)
    # The function is marked as not deterministic, so that Spark does not call it for each of the
    # two columns separately.
    udf = arrow_udf(run, kinds).asNondeterministic()
    sent = [f.col(f"`{name.replace('`', '``')}`") for name in names] or [f.lit(True)]
    kept = [f.col(f"`{name.replace('`', '``')}`") for name in df.columns]
    both = df.select(*kept, udf(*sent).alias("_tidings"))
    return both.select(*kept, f.col(f"_tidings.{output}"), f.col(f"_tidings.{VERSION}"))


def _check_view(df: DataFrame, followed: FollowedSubscriptions, version: int) -> View:
    """The view of a version, after checking that it fits the columns. A filter that was dropped
    after the last compilation does not count: if the check fails, the log is compiled again, and
    checked again."""
    view = followed.view(version)
    try:
        check_columns(df.schema, view)
    except AttributesError:
        followed.compile_latest()
        view = followed.view(version)
        check_columns(df.schema, view)
    return view


def _columns_to_send(df: DataFrame, given: Sequence[str] | None) -> list[str]:
    names = [one.name for one in df.schema.fields if family_of(one.dataType) is not None]
    if given is None:
        return names
    for name in given:
        if name not in df.columns:
            raise AttributesError(f"the table has no column '{name}', which `columns` names")
    return [name for name in names if name in given]


def _id_type(view: View, output: str) -> str:
    return "int64" if output == "nodes" or view.has_integer_ids else "string"


def make_live_tagger(
    log: str, attributes: Attributes | None, names: list[str], output: str, kind: str
) -> Callable[..., Any]:
    """Make a function that maps batches of columns to structs of a version and a list of tags."""
    declared = None if attributes is None else attributes.to_declared()
    lists = pa.list_(pa.type_for_alias(kind))

    # PySpark derives the kind of UDF from these annotations
    def tag(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        version, view = _latest_view(log, declared)
        _report_missing(view, names)
        for batch in join_batches(_name_columns(batches, names)):
            for _, _, matched in view.pieces(*view.match_places(batch)):
                found = lists_of(view, output, matched).cast(lists)
                versions = pa.array(np.full(len(found), version, np.int64))
                yield pa.StructArray.from_arrays([versions, found], [VERSION, output])

    return tag


def _name_columns(batches: Iterable[Any], names: list[str]) -> Iterator[pa.RecordBatch]:
    for given in batches:
        # a single column is not passed as a tuple
        arrays = list(given) if isinstance(given, tuple) else [given]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def _latest_view(log: str, declared: Any) -> tuple[int, View]:
    """The latest version of a log, and its view, cached in this process."""
    key = log, repr(declared)
    with _lock:
        if key not in _followed:
            known = None if declared is None else Attributes.from_declared(declared)
            _followed[key] = FollowedSubscriptions(Path(log), known)
        followed = _followed[key]
        version = followed.version
        return version, followed.view(version)


def _report_missing(view: View, names: list[str]) -> None:
    missing = {path[0] for path in view.matcher.list_tested()} - set(names) - _reported
    for name in sorted(missing):
        _reported.add(name)
        _log.warning("filters test the column '%s', which the stream does not have", name)
