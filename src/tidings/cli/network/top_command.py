"""`tidings top`: shows a running network."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common import options
from tidings.cli.common.screen import emit, plain_text, show
from tidings.cli.common.shutdown import run_until_ended
from tidings.cli.network.connecting import (
    DEFAULT,
    Authorities,
    Name,
    Router,
    Token,
    TokenFile,
    choose_token,
    run_async,
)
from tidings.model import EnvironmentProblem

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tidings import network
    from tidings.cli.network.network_view import NetworkView

    Watching = AbstractAsyncContextManager[network.Watching]

AGAIN = 1.0  # seconds before reconnecting
REPORTS = 4  # reports after which --once stops waiting for rates

Once = Annotated[bool, typer.Option("--once", help="Show the network once, and end.")]


def show_network(
    router: Router = DEFAULT,
    token: Token = "",
    token_file: TokenFile = None,
    name: Name = None,
    authorities: Authorities = None,
    once: Once = False,
    every: Annotated[bool, typer.Option("--all", help="Show every agent.")] = False,
    json: options.Json = False,
) -> None:
    """Show a node of a running network and everything below it, updated each second, until Ctrl-C.

    A row is a node or an agent. The columns show, for each node of the network: the content-graph
    nodes that it holds or is subscribed to, notifications per second in and out, bytes waiting to
    be sent to it, and notifications dropped because it was too slow.

    With --json, one object each second: nodes, each with its links, rates and counters.
    """
    from rich.console import Group

    from tidings.cli.network.network_view import NetworkView, draw_in_place
    from tidings.network import watch

    token = choose_token(token, token_file)

    def watching() -> Watching:
        return watch(router, name=name, token=token, authorities=authorities)

    view = NetworkView(every)
    live = not once and not json and sys.stdout.isatty()

    async def work() -> None:
        if not live:
            await _feed_view(view, watching(), lambda: _print(view, json), once)
            return
        with draw_in_place() as drawn:
            while True:
                try:
                    await _feed_view(view, watching(), lambda: drawn(view.draw()), once)
                except EnvironmentProblem as problem:
                    if not view.trees:  # never connected
                        raise
                    note = plain_text(f"{problem}; retrying", "yellow")
                    drawn(Group(view.draw(), plain_text(""), note))
                await asyncio.sleep(AGAIN)

    run_async(run_until_ended(work()))


async def _feed_view(
    view: NetworkView, watching: Watching, changed: Callable[[], None], once: bool
) -> None:
    """Feed reports to a view; with `once`, stop as soon as the rates are known."""
    count = 0
    async with watching as reports:
        async for report in reports:
            view.feed(report)
            count += 1
            done = once and (view.has_rates or count >= REPORTS)
            if done or not once:
                changed()
            if done:
                return


def _print(view: NetworkView, json: bool) -> None:
    if json:
        emit(view.record())
    else:
        show(view.draw(), "")
    sys.stdout.flush()
