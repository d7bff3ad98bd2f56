"""`tidings pipeline`: runs and checks the pipeline that a file describes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import remark, report_errors
from tidings.cli.common.screen import (
    count_of,
    emit,
    facts,
    relative_path,
    report_steps,
    show,
    table,
)
from tidings.cli.common.shutdown import handle_end_signals
from tidings.cli.common.subscription_files import MOST_NOTED
from tidings.cli.pipelines.pipeline_files import File, settings_of
from tidings.cli.pipelines.pipeline_init import init_pipeline
from tidings.cli.pipelines.pipeline_status import show_status
from tidings.cli.pipelines.pipeline_verify import verify_pipeline
from tidings.cli.pipelines.pipeline_view import PipelineView
from tidings.model import list_some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidings.spark.pipeline import Settings

LOOK = 0.25  # seconds between checks of the query
GRACE = 3.0  # seconds that the running batch gets to finish after a request to end

pipeline = typer.Typer(rich_markup_mode=None)


@pipeline.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Match a stream of notifications against subscriptions on Spark."""
    if context.invoked_subcommand is None:
        print(context.get_help())


# -- run ---------------------------------------------------------------------------------------


def run_pipeline(
    file: File,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Let Spark print its errors, with stack traces.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Run the pipeline that FILE describes, until Ctrl-C.

    On Ctrl-C or SIGTERM, the running batch gets 3 seconds to finish, and no other batch begins. A
    second Ctrl-C ends the command at once. When it is started again, the pipeline continues where
    it stopped and repeats an unfinished batch. With trigger.available_now, the pipeline ends when
    everything is read.

    With --json, one line per batch: batch, version, rows, matched, told, refused, counters (of
    nodes, after the batch), seconds. With --json, a console sink writes to stderr.

    Exit code: 0 if the pipeline ended normally, 2 if it failed or could not start, 130 after a
    second Ctrl-C.
    """
    settings = settings_of(file)
    from tidings.spark.outbox import Outbox
    from tidings.spark.pipeline import StoppablePipeline, need_driver, need_log, need_places
    from tidings.spark.session import wrap_spark_errors

    need_driver(settings)
    need_log(settings)
    need_places(settings)
    view = PipelineView(settings.name, json)
    outbox = Outbox(settings.at(settings.outbox.path))
    with wrap_spark_errors(), ExitStack() as stack:
        with outbox.hold_lock():  # fail now, not after Spark has started
            pass
        with report_steps() as note:
            note("starting Spark")
            spark = stack.enter_context(_session(settings, verbose))
            note("opening the subscriptions")
            watched = StoppablePipeline(settings, spark, view.add_batch)
            watched.console = sys.stderr if json else None  # stdout is for JSON lines
        stack.callback(watched.close)
        with view.live():
            how = _watch(watched, view)
    view.end(how)


def _watch(watched: Any, view: PipelineView) -> str:
    """Follow a query to its end; raise TidingsError if it failed."""
    asked = threading.Event()
    handle_end_signals(asked.set)
    query = watched.start()
    while query.isActive and not asked.wait(LOOK):
        view.progress = query.lastProgress or view.progress
        batch = watched.batch
        view.state = "waiting for rows" if batch is None else f"in batch {batch}"
        if watched.waiting:
            view.state += f", waiting for the channel: {watched.waiting}"
    if asked.is_set():
        view.state = f"ending after this batch, or in {GRACE:g} s; press Ctrl-C again to end now"
        watched.end(query, GRACE)
    watched.check(query)
    view.state = "ended" if asked.is_set() else "all rows are read"
    return view.state


@contextmanager
def _session(settings: Settings, verbose: bool = False) -> Iterator[SparkSession]:
    """The session of a pipeline; a session that already existed is left running."""
    from tidings.spark.pipeline import session_for
    from tidings.spark.session import prepare_environment

    prepare_environment()
    from pyspark.sql import SparkSession

    there = SparkSession.getActiveSession() is not None
    spark = session_for(settings)
    try:
        if not there and not verbose and settings.spark.remote is None:
            spark.sparkContext.setLogLevel("OFF")  # the command itself reports failures
        yield spark
    finally:
        if not there:
            spark.stop()


# -- check -------------------------------------------------------------------------------------


def check_pipeline(file: File, json: options.Json = False) -> None:
    """Check the pipeline that FILE describes, without starting it.

    Reads the file, opens the source and the subscriptions, and checks that the filters fit the
    columns. The first rows of the first JSON file are decoded. Nothing is written, except the
    compiled subscriptions if they do not exist yet.

    With --json, one object: name, source, path, columns (name, type, compared_with), version,
    subscriptions, nodes, outbox, batches (committed ones), sample (file, rows, refused, reason),
    never (the ids of subscriptions that can never match).

    Exit code: 0 if the pipeline can run, 2 if it can't.
    """
    settings = settings_of(file)
    from tidings.spark.pipeline import inspect
    from tidings.spark.session import wrap_spark_errors

    with wrap_spark_errors(), report_steps() as note, ExitStack() as stack:
        note("inspecting the pipeline")
        found = inspect(settings, lambda: stack.enter_context(_session(settings)))
    if json:
        emit(found)
        return
    rows: list[tuple[str, object]] = [
        ("pipeline", found.name),
        (
            "source",
            found.source
            if found.path is None
            else f"{found.source} in {relative_path(found.path)}",
        ),
        (
            "subscriptions",
            f"{count_of(found.subscriptions, 'subscription')}, "
            f"{count_of(found.nodes, 'node')}, version {found.version}",
        ),
        ("outbox", relative_path(found.outbox)),
        ("committed", count_of(found.batches, "batch", "batches")),
    ]
    if found.sample is not None:
        told = f"{count_of(found.sample.rows, 'row')} of {found.sample.file} read"
        more = f", {found.sample.extra_rows:,} with undeclared fields"
        more = more if found.sample.extra_rows else ""
        rows.append(("sample", f"{told}, {found.sample.refused:,} refused{more}"))
    show(facts(rows), "")
    show(
        table(
            ["column", "type", "filters compare it with"],
            [(one.name, one.type, _describe_families(one.compared_with)) for one in found.columns],
        )
    )
    if found.sample is not None and found.sample.reason is not None:
        remark(f"the first refused row: {found.sample.reason}")
    if found.never:
        many = count_of(len(found.never), "subscription")
        ids = list_some([str(id_) for id_ in found.never], MOST_NOTED)
        remark(f"{many} can never match: {ids}; `tidings check` says why")
    if not found.subscriptions:
        remark("there are no subscriptions, so nothing would match")


def _describe_families(families: list[str] | None) -> str:
    if families is None:
        return ""
    return ", ".join(families) or "(used in expressions)"


pipeline.command("init")(report_errors(init_pipeline))
pipeline.command("run")(report_errors(run_pipeline))
pipeline.command("check")(report_errors(check_pipeline))
pipeline.command("status")(report_errors(show_status))
pipeline.command("verify")(report_errors(verify_pipeline))
