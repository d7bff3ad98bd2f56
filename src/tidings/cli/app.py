"""The program `tidings`: its commands, its version, its help."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tidings.cli.backtests.backtest_command import run_backtest
from tidings.cli.bench.bench_chain import bench_chain
from tidings.cli.bench.bench_command import bench
from tidings.cli.bench.bench_route import bench_route
from tidings.cli.bench.bench_spark import bench_spark, bench_stream
from tidings.cli.common.command_errors import guard
from tidings.cli.common.shutdown import INTERRUPTED, end_in_time
from tidings.cli.demo.demo_command import show_demo
from tidings.cli.filters.check_command import check_filters
from tidings.cli.filters.convert_command import convert_filters
from tidings.cli.filters.doctor_command import examine_file
from tidings.cli.filters.explain_command import explain_event
from tidings.cli.filters.graph_command import show_graph
from tidings.cli.filters.match_command import match_events
from tidings.cli.network.channel_command import channel
from tidings.cli.network.key_command import make_key
from tidings.cli.network.preprocessor_command import run_preprocessor
from tidings.cli.network.publish_command import publish_notification
from tidings.cli.network.router_command import run_router
from tidings.cli.network.subscribe_command import subscribe_to
from tidings.cli.network.top_command import show_network
from tidings.cli.network.up_command import start_tree
from tidings.cli.pipelines.dead_letters_command import dead_letters
from tidings.cli.pipelines.outbox_command import outbox
from tidings.cli.pipelines.pipeline_command import pipeline
from tidings.cli.pipelines.types_command import show_types
from tidings.cli.subscriptions.snapshot_command import snapshot
from tidings.cli.subscriptions.subscriptions_command import subscriptions

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tidings import __version__

        print(f"tidings {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def tidings(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Match events against filters, and see why they match.

    A filter is a condition as in SQL's WHERE: origin = 'EWR' AND dep_delay > 60
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("check")(guard(check_filters))
app.command("convert")(guard(convert_filters))
app.command("types")(guard(show_types))
app.command("match")(guard(match_events))
app.command("explain")(guard(explain_event))
app.command("doctor")(guard(examine_file))
app.command("graph")(guard(show_graph))
app.command("backtest")(guard(run_backtest))
app.command("router")(guard(run_router))
app.command("preprocessor")(guard(run_preprocessor))
app.command("key")(guard(make_key))
app.command("up")(guard(start_tree))
app.command("top")(guard(show_network))
app.command("publish")(guard(publish_notification))
app.command("subscribe")(guard(subscribe_to))
app.command("demo")(guard(show_demo))
bench.command("chain")(guard(bench_chain))
bench.command("route")(guard(bench_route))
bench.command("spark")(guard(bench_spark))
bench.command("stream")(guard(bench_stream))
app.add_typer(channel, name="channel")
app.add_typer(pipeline, name="pipeline")
app.add_typer(outbox, name="outbox")
app.add_typer(dead_letters, name="dead-letters")
app.add_typer(subscriptions, name="subscriptions")
app.add_typer(snapshot, name="snapshot")
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command line."""
    end_in_time()
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal can't show are escaped, so that printing does not fail. A
        # stream that was closed before the start is None.
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app(prog_name="tidings")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
