"""Loads subscriptions from a table on Spark: checks them, or compiles them into a snapshot.

    id, filter ──read──> key ──shuffle by key──> lowest id of each ─shuffle by that──> sorted files
        texts of a file ──gather──> hulls of a file ─┐
                                                     ├─> all hulls, in the driver
        block of hulls ──join──> coverings ─┐        │
                                            ├─> edges, nodes, index: the snapshot

Tasks parse the filters and join the hulls. The tasks write their results to files in a folder,
which the driver and all workers must be able to access; by default, the folder is beside the
snapshot. The driver holds arrays of small integers, but no filters and no forms; it parses a filter
again only if the hulls alone don't decide whether one filter covers another.

Cost in the driver: at most about 500 bytes per filter of the workload `mixed`.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidings.files import address_of, local_path, make_folder, scheme_of
from tidings.filters import Attributes
from tidings.filters.dialects import Context, parse_term
from tidings.matching import Matcher
from tidings.matching.covering import (
    Block,
    Finder,
    HullGathering,
    pairs_path,
    read_pairs,
    write_finder,
)
from tidings.matching.disk import need_place
from tidings.model import MOST_LISTED, AttributesError, TidingsError
from tidings.snapshots import BuiltGraph, BuiltNodes, Forms, Snapshot, build_graph, members_of
from tidings.spark.loading.load_tasks import (
    CHUNK,
    Task,
    make_gatherer,
    make_joiner,
    make_reader,
    read_texts,
)
from tidings.spark.session import is_local_master, send_to_workers
from tidings.store import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Array = npt.NDArray[Any]
Progress = Callable[[str], None]
ROWS = 1 << 17  # the number of filters in a file, and of hulls in a block
# the number of tasks for parsing: at least LEAST_TASKS, and MOST_TASKS if the number of cores is
# not known
LEAST_TASKS, MOST_TASKS = 16, 64
POLL = 0.02  # seconds between two checks for a file
_INTEGERS = ("byte", "short", "integer", "long")


def subscriptions(
    df: DataFrame,
    id: str = "id",
    filter: str = "filter",
    attributes: Attributes | None = None,
) -> DataFrame:
    """Check the filters of a table. The result has one row for each row of the table, with columns

    - `id`, `filter`: as given;
    - `canonical`: the filter's canonical text;
    - `key`: its identity, 16 bytes: equal filters have equal keys, however they are written;
    - `reason`: null for a good row; otherwise one sentence that says what is wrong, and `canonical`
      and `key` are null.

    The arguments `id` and `filter` name the columns to read; ids are strings or integers.
    """
    rows = _select_rows(df, id, filter)
    kind = rows.schema["id"].dataType.simpleString()
    of = f"id {kind}, filter string, canonical string, key binary, reason string"
    return _map_arrow(rows, make_reader(attributes, canonical=True), of)


def build_snapshot(
    df: DataFrame,
    path: str | Path,
    *,
    id: str = "id",
    filter: str = "filter",
    attributes: Attributes | None = None,
    number: int = 1,
    errors: str = "raise",
    work: str | Path | None = None,
    progress: Progress | None = None,
    adopt: bool = False,
    owner: str = "",
) -> Snapshot:
    """Compile the subscriptions of a table into a snapshot at the path, and open it.

    With `adopt`, the path is the folder of a channel, which is created if it does not exist. The
    subscriptions are added to the channel, as one version, which becomes the `number` of the
    snapshot; `owner` is their owner. A filter that has a node in the channel keeps the number of
    that node; other filters get the next numbers of the channel. An id that is already subscribed
    is refused. `attributes` are those of the channel. If a running rendezvous point owns the
    folder, it adopts the subscriptions itself.

    The path may be an address that pyarrow.fs and Spark support, such as s3a://bucket/snapshot.

    The result is the same as that of `Snapshot.build` for these rows in the order of their ids.
    Nodes are numbered from 1 in the order of their lowest ids: integers by value, strings by code
    points. The text of a node is the filter text of its lowest id. `number` is the version.

    Rows without an id or with a bad filter are refused, and the error lists them with their ids.
    With `errors="collect"`, such rows are left out, and written as Parquet to the path plus
    `.skipped`, with the columns id, filter and reason. A repeated id is refused. Filters that can
    never match are kept; `Snapshot.never` lists them. `progress` is called with the name of each
    step as it begins.

    Tasks write their results to a folder inside `work`, which the driver and all workers must be
    able to access; the folder is removed at the end. By default, `work` is the folder of the
    snapshot. If the snapshot is at an address, `work` is by default a temporary folder of this
    machine. A cluster can't reach such a folder, so `work` must be given if Spark runs on a
    cluster.
    """
    if errors not in ("raise", "collect"):
        raise TidingsError(f"found errors={errors!r}, expected 'raise' or 'collect'")
    rows = _select_rows(df, id, filter)
    target: str | Path = address_of(path)
    if adopt:
        target = local_path(path, "the folder of a channel").absolute()
        ChangeLog(target, attributes)  # creates the folder, or raises an error
    elif not scheme_of(path):
        target = local_path(path, "a snapshot").absolute()
        need_place(target)
    with _work_folder(_work_place(rows.sparkSession, target, work)) as folder:
        build = _Build(rows.sparkSession, folder, attributes, progress or (lambda _: None))
        count = build.read(rows, locate_skipped(target) if errors == "collect" else None)
        build.sort(count)
        snapshot = build.compile(number)
        build.progress("saving")
        if adopt:
            log = ChangeLog(target, attributes)
            version = log.adopt(snapshot, owner=owner)
            if not len(snapshot):
                return snapshot  # nothing was adopted
            target = log.bulk_of(version)
        else:
            snapshot.save(target)
    return Snapshot.open(target, attributes)


def locate_skipped(target: str | Path) -> str:
    """The address of the rows that `errors="collect"` left out."""
    address = target.as_uri() if isinstance(target, Path) else target.rstrip("/")
    return f"{address}.skipped"


class _Build:
    """The steps from a table to a snapshot."""

    def __init__(
        self, spark: SparkSession, work: Path, attributes: Attributes | None, progress: Progress
    ) -> None:
        self.spark = spark
        self.work = work
        self.attributes = attributes
        self.progress = progress

    def read(self, rows: DataFrame, skipped: str | None) -> int:
        """Read all filters; return the number of good ones. Bad rows are written to the address
        `skipped`, if there is one."""
        from pyspark.sql import functions as f

        self.progress("reading filters")
        of = f"id {rows.schema['id'].dataType.simpleString()}, filter string, key binary, "
        of += "reason string"
        # Spark reads a small file as one partition
        spread = rows.repartition(_parallelism(self.spark), "id")
        read = _map_arrow(spread, make_reader(self.attributes, canonical=False), of)
        read.write.option("compression", "zstd").parquet(self._uri("read"))
        known = self.spark.read.schema(of).parquet(self._uri("read"))
        bad = known.where("reason IS NOT NULL")
        total, refused = known.agg(f.count("*"), f.count("reason")).first()  # type: ignore[misc]
        if refused and skipped is None:
            some = bad.orderBy("id").limit(MOST_LISTED).collect()
            listed = "; ".join(_name_refused(row["id"], row["reason"]) for row in some)
            more = f"; and {refused - len(some):,} more" if refused > len(some) else ""
            many = f"{refused:,} of {total:,} filters are" if total > 1 else "a filter is"
            raise TidingsError(f"{many} refused; {listed}{more}")
        if skipped is not None:
            bad.select("id", "filter", "reason").write.mode("overwrite").parquet(skipped)
        self.good = known.where("reason IS NULL")
        twice = self.good.groupBy("id").count().where("count > 1")
        many, least = twice.agg(f.count("*"), f.min("id")).first()  # type: ignore[misc]
        if many:
            if many == 1:
                raise TidingsError(f"the id {least!r} occurs more than once")
            raise TidingsError(f"{many:,} ids occur more than once; the first is {least!r}")
        return int(total - refused)

    def sort(self, count: int) -> None:
        """Write all rows to files, sorted by the lowest id of their filter, then by their own id.
        Only the first row of each filter keeps the key and the text."""
        from pyspark.sql import Window, functions as f

        self.progress("sorting")
        parts = max(1, -(-count // ROWS))
        is_first = f.col("id") == f.col("first")
        least = f.min("id").over(Window.partitionBy("key"))
        rows = self.good.repartition(parts, "key").withColumn("first", least)
        rows = rows.select("id", "first", *(f.when(is_first, f.col(n)).alias(n) for n in _TEXT))
        rows = rows.repartitionByRange(parts, "first").sortWithinPartitions("first", "id")
        rows.drop("first").write.option("compression", "zstd").parquet(self._uri("sorted"))
        shutil.rmtree(self.work / "read", ignore_errors=True)

    def compile(self, number: int) -> Snapshot:
        files = sorted(str(file) for file in (self.work / "sorted").glob("part-*.parquet"))
        hulls = self._gather_hulls(files)
        ids, keys, owners = self._members(files)
        texts = self._texts(files)
        forms = Forms(texts, self.attributes)
        self.progress("covering")
        graph: BuiltGraph = build_graph(hulls.finish(), forms, self._join_blocks)
        self.progress("nodes")
        nodes = BuiltNodes(
            np.arange(1, len(keys) + 1),
            keys,
            graph.parent_starts,
            graph.parents,
            *members_of(owners, ids, len(keys)),
        )
        matcher = Matcher.from_segment(graph.segment, texts, self.attributes, background=False)
        return Snapshot(number, nodes, matcher)

    def _gather_hulls(self, files: list[str]) -> HullGathering:
        """The hulls of the filters in all files, in the order of the files."""
        self.progress("gathering")
        folder = self.work / "hulls"
        make_folder(folder)
        self._run(len(files), make_gatherer(files, str(folder), self.attributes))
        hulls = HullGathering()
        node_of = partial(parse_term, context=Context(self.attributes, {}))
        for number in range(len(files)):
            path = folder / CHUNK.format(number)
            hulls.add_packed(path.read_bytes(), node_of)
            path.unlink()
        return hulls

    def _members(self, files: list[str]) -> tuple[Any, Any, Array]:
        """All ids, the keys of the distinct filters, and for each id the index of its filter."""
        tables = [pq.read_table(file, columns=["id", "key"]) for file in files]
        table = pa.concat_tables(tables)
        is_first = pc.is_valid(table.column("key")).to_numpy()
        keys = table.column("key").drop_null().combine_chunks()
        ids = table.column("id").combine_chunks()
        return ids, keys, np.cumsum(is_first) - 1

    def _texts(self, files: list[str]) -> pa.ChunkedArray:
        """The texts of the distinct filters, memory-mapped from a file."""
        path = self._texts_path
        of = pa.schema({"filter": pa.string()})
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, of) as writer:
            for file in files:
                for batch in pq.ParquetFile(file).iter_batches(columns=["filter"]):
                    writer.write_batch(pa.record_batch([batch.column(0).drop_null()], schema=of))
        return read_texts(path)

    @property
    def _texts_path(self) -> str:
        return str(self.work / "texts.arrow")

    def _join_blocks(self, finder: Finder) -> Iterator[Block]:
        """The blocks of a join, in order, as tasks finish them."""
        count = len(finder)
        parts = -(-count // ROWS)
        self.progress(f"joining {count:,} filters")
        folder = self.work / "join"
        write_finder(folder, finder)
        task = make_joiner(str(folder), self._texts_path, self.attributes, ROWS, count)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._run, parts, task)
            for first in range(0, count, ROWS):
                path = pairs_path(folder, first, min(first + ROWS, count))
                while not path.exists():
                    if running.done():
                        running.result()
                        if not path.exists():
                            raise TidingsError(
                                f"the workers wrote nothing to '{folder}', which the driver reads; "
                                "pass as `work` a folder that all machines share"
                            )
                    time.sleep(POLL)
                yield from read_pairs(path, finder.join)
                path.unlink()
            running.result()

    def _run(self, tasks: int, task: Task) -> None:
        """Run a task for each number, counting from 0."""
        if tasks:
            numbers = self.spark.range(0, tasks, 1, tasks)
            _map_arrow(numbers, task, "count long").agg({"count": "sum"}).collect()

    def _uri(self, name: str) -> str:
        return (self.work / name).as_uri()


_TEXT = ("key", "filter")


def _name_refused(id_: object, reason: str) -> str:
    return reason if id_ is None else f"{id_!r}: {reason}"


def _map_arrow(df: DataFrame, task: Task, of: str) -> DataFrame:
    return df.mapInArrow(send_to_workers(df.sparkSession, task), of)


def _select_rows(df: DataFrame, id_: str, filter_: str) -> DataFrame:
    """Check the two columns of a table, and select them as `id` and `filter`."""
    from pyspark.sql import functions as f

    kinds = dict.fromkeys((id_, filter_), "")
    for name in kinds:
        there = [field.dataType for field in df.schema.fields if field.name == name]
        if len(there) != 1:
            found = "no column" if not there else f"{len(there)} columns"
            shown = ", ".join(df.columns[:8]) or "none"
            raise AttributesError(
                f"the table has {found} '{name}', expected one; its columns are {shown}"
            )
        kinds[name] = there[0].typeName().split("(")[0]
    if kinds[filter_] not in ("string", "void"):
        raise AttributesError(f"the column '{filter_}' is {kinds[filter_]}, expected strings")
    if kinds[id_] not in (*_INTEGERS, "string"):
        raise AttributesError(f"the column '{id_}' is {kinds[id_]}, expected strings or integers")
    kind = "long" if kinds[id_] in _INTEGERS else "string"
    columns = f.col(_quote_name(id_)).cast(kind), f.col(_quote_name(filter_)).cast("string")
    return df.select(columns[0].alias("id"), columns[1].alias("filter"))


def _parallelism(spark: SparkSession) -> int:
    """The number of tasks that keeps all cores busy to the end."""
    try:
        return max(LEAST_TASKS, 2 * spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context, and raises its own kind of error
        return MOST_TASKS


def _quote_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _work_place(spark: SparkSession, target: str | Path, work: str | Path | None) -> Path:
    """The folder in which a snapshot is compiled."""
    if work is not None:
        return local_path(work, "the folder `work`").absolute()
    if isinstance(target, Path):
        return target.parent
    context = getattr(spark, "_sc", None)  # None with Spark Connect: its server may be anywhere
    if context is None or not is_local_master(context.master):
        where = "a server of Spark Connect" if context is None else context.master
        raise TidingsError(
            f"Spark runs at {where}, whose machines can't write to a temporary folder here; pass "
            f"as `work` a folder that all of them share"
        )
    return Path(tempfile.gettempdir()).absolute()


@contextmanager
def _work_folder(place: Path) -> Iterator[Path]:
    """A new folder inside `place`, which is removed when the block ends."""
    make_folder(place)
    work = Path(tempfile.mkdtemp(prefix=".tidings-work.", dir=place))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
