"""`tidings bench build`: measures compiling many subscriptions on Spark."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from tidings.cli.common import options
from tidings.cli.common.amounts import read_amount
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.screen import emit, facts, report_steps, show

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot
    from tidings.studies import Workload
    from tidings.studies.host import Peaks


class BuildRun(msgspec.Struct, frozen=True):
    """The measurements of one run. Bytes are peaks."""

    workload: str
    filters: int
    nodes: int
    edges: int
    seconds: float
    processor: float
    """Processor time of all processes together, in seconds."""
    steps: dict[str, tuple[float, float]]
    """Seconds and processor time of each step."""
    together_bytes: int
    """The peak memory of all processes together; shared pages are counted for each process."""
    driver_bytes: int
    java_bytes: int
    worker_bytes: list[int]
    """The largest workers."""
    same: bool | None
    """Whether nodes and edges equal those of `ContentGraph.build`; null if not checked."""


def bench_build(
    workload: Annotated[
        str,
        typer.Option(
            "--workload", metavar="NAME", help="mixed, equality, ranges, prefix or flights."
        ),
    ] = "mixed",
    filters: Annotated[
        str, typer.Option("--filters", metavar="N", help="How many filters, such as 100k or 5M.")
    ] = "100k",
    cores: options.Cores = 2,
    heap: Annotated[
        str, typer.Option("--heap", metavar="SIZE", help="Memory of the Java process.")
    ] = "2g",
    check: Annotated[
        bool, typer.Option("--check", help="Compare the graph with ContentGraph.build.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Measure how long Spark on this machine takes to compile a table of subscriptions.

    Writing the table and starting Spark are not measured.

    With --json, one object: workload, filters, nodes, edges, seconds, processor (seconds of all
    processes), steps (both times of each), together_bytes, driver_bytes, java_bytes, worker_bytes,
    same (null without --check). Bytes are peaks.
    """
    count = read_amount(filters, "--filters")
    load_pyarrow()
    from tidings import studies
    from tidings.spark import build_snapshot, local_session
    from tidings.studies.host import processor_seconds, watch_peaks

    work = studies.make_workload(workload, count, 1)
    with tempfile.TemporaryDirectory(prefix="tidings-build-") as folder, report_steps() as note:
        note("writing the table")
        table = Path(folder, "table.parquet")
        _write(table, work)
        spark = local_session("tidings-build", cores, **{"spark.driver.memory": heap})
        steps: dict[str, tuple[float, float]] = {}
        began = [("", time.perf_counter(), processor_seconds(os.getpid()))]

        def show_step(step: str) -> None:
            now, used = time.perf_counter(), processor_seconds(os.getpid())
            name, start, before = began[-1]
            steps[name] = now - start, used - before
            began.append((step.partition(" ")[0], now, used))
            note(f"{workload}, {count:,} filters: {step}")

        with watch_peaks() as peaks:
            df = spark.read.parquet(table.as_uri())
            snapshot = build_snapshot(df, Path(folder, "snapshot"), progress=show_step)
            show_step("")
        seconds = began[-1][1] - began[0][1], began[-1][2] - began[0][2]
        steps.pop("", None)
        note("checking")
        same = _is_same(snapshot, work) if check else None
        run = _run(workload, count, snapshot, seconds, steps, peaks, same)
        spark.stop()
    if json:
        emit(run)
    else:
        show(facts(_rows(run)), "")


def _write(path: Path, work: Workload) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    of = pa.schema({"id": pa.int64(), "filter": pa.string()})
    size, ids, texts = 1 << 16, list[int](), list[str]()
    with pq.ParquetWriter(path, of, compression="zstd") as writer:
        for id_, text in work.texts():
            ids.append(id_)
            texts.append(text)
            if len(ids) == size:
                writer.write_table(pa.table([ids, texts], schema=of))
                ids, texts = [], []
        writer.write_table(pa.table([ids, texts], schema=of))


def _is_same(snapshot: Snapshot, work: Workload) -> bool:
    from tidings.filters import parse
    from tidings.graph import ContentGraph

    filters = [parse(text) for _, text in work.texts()]
    graph = ContentGraph.build(filters)
    node_of = [graph.node(one) for one in filters]
    number_of: dict[Any, int] = {}
    subscribed = snapshot.nodes_by_id()
    for id_, node in enumerate(node_of):
        if number_of.setdefault(node, subscribed[id_]) != subscribed[id_]:
            return False
    parents = {
        number_of[node]: sorted(number_of[parent] for parent in graph.parents(node))
        for node in graph
    }
    nodes: list[int] = snapshot.numbers.tolist()
    return parents == {node: sorted(snapshot.parents(node)) for node in nodes}


def _run(
    workload: str, count: int, snapshot: Snapshot, seconds: tuple[float, float],
    steps: dict[str, tuple[float, float]], peaks: Peaks, same: bool | None,
) -> BuildRun:  # fmt: skip
    stats = snapshot.stats()
    others = [size for name, sizes in peaks.by_name.items() for size in sizes
              if name not in ("driver", "java")]  # fmt: skip
    return BuildRun(
        workload=workload,
        filters=count,
        nodes=stats["nodes"],
        edges=stats["edges"],
        seconds=seconds[0],
        processor=seconds[1],
        steps=steps,
        together_bytes=peaks.together,
        driver_bytes=max(peaks.by_name.get("driver", [0])),
        java_bytes=max(peaks.by_name.get("java", [0])),
        worker_bytes=sorted(others, reverse=True)[:4],
        same=same,
    )


def _seconds(seconds: float, processor: float) -> str:
    return f"{seconds:,.1f}, processor time {processor:,.1f}"


def _rows(run: BuildRun) -> list[tuple[str, object]]:
    mega = [f"{size / 1e6:,.0f}" for size in run.worker_bytes]
    rows: list[tuple[str, object]] = [
        ("filters", f"{run.filters:,} {run.workload}"),
        ("nodes", f"{run.nodes:,}"),
        ("edges", f"{run.edges:,}"),
        ("seconds", _seconds(run.seconds, run.processor)),
        *((f"  {step}", _seconds(*used)) for step, used in run.steps.items()),
        ("peak MB", f"{run.together_bytes / 1e6:,.0f}"),
        ("  driver", f"{run.driver_bytes / 1e6:,.0f}"),
        ("  Java", f"{run.java_bytes / 1e6:,.0f}"),
        ("  workers", ", ".join(mega)),
    ]
    if run.same is not None:
        rows.append(("graph is right", "yes" if run.same else "NO"))
    return rows
