"""The program `tidings`: its commands, its version, its help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from functools import cache
from typing import Annotated

import typer

from tidings.cli.common.command_errors import report_errors
from tidings.cli.common.shutdown import INTERRUPTED, end_in_time
from tidings.model import block_pandas

Command = Callable[..., int | None]
NAMES = (
    "check", "convert", "types", "match", "explain", "doctor", "graph", "relations", "backtest",
    "router", "preprocessor", "key", "up", "top", "publish", "subscribe", "demo",
    "channel", "pipeline", "outbox", "dead-letters", "subscriptions", "snapshot", "bench",
)  # fmt: skip
"""The commands and the groups of commands. The help lists the groups last."""
NODES = frozenset({"router", "preprocessor"})  # they import pandas only for application code


@cache
def load_command(name: str) -> Command | typer.Typer:
    """Import a command or a group of commands. Each command is imported separately, because
    importing all of them and registering their options would take a third of the time of a short
    command."""
    match name:
        case "check":
            from tidings.cli.filters.check_command import check_filters

            return check_filters
        case "convert":
            from tidings.cli.filters.convert_command import convert_filters

            return convert_filters
        case "types":
            from tidings.cli.pipelines.types_command import show_types

            return show_types
        case "match":
            from tidings.cli.filters.match_command import match_events

            return match_events
        case "explain":
            from tidings.cli.filters.explain_command import explain_event

            return explain_event
        case "doctor":
            from tidings.cli.filters.doctor_command import examine_file

            return examine_file
        case "graph":
            from tidings.cli.filters.graph_command import show_graph

            return show_graph
        case "relations":
            from tidings.cli.relations.relations_command import show_relations

            return show_relations
        case "backtest":
            from tidings.cli.backtests.backtest_command import run_backtest

            return run_backtest
        case "router":
            from tidings.cli.network.router_command import run_router

            return run_router
        case "preprocessor":
            from tidings.cli.network.preprocessor_command import run_preprocessor

            return run_preprocessor
        case "key":
            from tidings.cli.network.key_command import make_key

            return make_key
        case "up":
            from tidings.cli.network.up_command import start_tree

            return start_tree
        case "top":
            from tidings.cli.network.top_command import show_network

            return show_network
        case "publish":
            from tidings.cli.network.publish_command import publish_notification

            return publish_notification
        case "subscribe":
            from tidings.cli.network.subscribe_command import subscribe_to

            return subscribe_to
        case "demo":
            from tidings.cli.demo.demo_command import show_demo

            return show_demo
        case "channel":
            from tidings.cli.network.channel_command import channel
            from tidings.cli.subscriptions.declare_command import (
                create_channel,
                declare_attributes,
                show_channel,
            )
            from tidings.cli.subscriptions.import_command import import_channel

            channel.command("create")(report_errors(create_channel))
            channel.command("import")(report_errors(import_channel))
            channel.command("declare")(report_errors(declare_attributes))
            channel.command("show")(report_errors(show_channel))
            return channel
        case "pipeline":
            from tidings.cli.pipelines.pipeline_command import pipeline

            return pipeline
        case "outbox":
            from tidings.cli.pipelines.outbox_command import outbox

            return outbox
        case "dead-letters":
            from tidings.cli.pipelines.dead_letters_command import dead_letters

            return dead_letters
        case "subscriptions":
            from tidings.cli.subscriptions.subscriptions_command import subscriptions

            return subscriptions
        case "snapshot":
            from tidings.cli.subscriptions.snapshot_command import snapshot

            return snapshot
        case "bench":
            from tidings.cli.bench.bench_bdd import bench_bdd
            from tidings.cli.bench.bench_chain import bench_chain
            from tidings.cli.bench.bench_command import bench
            from tidings.cli.bench.bench_relations import bench_relations
            from tidings.cli.bench.bench_route import bench_route
            from tidings.cli.bench.bench_spark import bench_spark, bench_stream

            bench.command("bdd")(report_errors(bench_bdd))
            bench.command("chain")(report_errors(bench_chain))
            bench.command("relations")(report_errors(bench_relations))
            bench.command("route")(report_errors(bench_route))
            bench.command("spark")(report_errors(bench_spark))
            bench.command("stream")(report_errors(bench_stream))
            return bench
    raise LookupError(name)


def make_app(names: Collection[str] = NAMES) -> typer.Typer:
    """The program with the given commands."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(tidings)
    for name in names:
        found = load_command(name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(report_errors(found))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from tidings import __version__

        print(f"tidings {__version__}")
        raise typer.Exit


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


def main() -> None:
    """Run the command line."""
    end_in_time()
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal can't show are escaped, so that printing does not fail. A
        # stream is None if it was closed before the program started.
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    if first in NODES:
        block_pandas()
    try:
        # the help and the message about an unknown command list all commands
        make_app([first] if first in NAMES else NAMES)(prog_name="tidings")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
