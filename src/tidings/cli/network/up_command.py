"""`tidings up`: starts a whole tree of routers from one file."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.screen import count_of, plain_text, relative_path, say, show, table
from tidings.cli.common.shutdown import wait_for_end
from tidings.cli.network.connecting import run_async
from tidings.model import TidingsError

if TYPE_CHECKING:
    from tidings.broker import RunningTree, Tree
    from tidings.cli.network.network_view import NetworkView

NAMES = ("network.toml", "tidings.toml")
SENTENCES = 5  # sentences shown below the table
EACH = 0.5  # seconds between redraws
AGAIN = 1.0  # seconds before reconnecting to the rendezvous point for reports


def start_tree(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The tree's file.", hidden=True)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only read FILE, and show what it describes.")
    ] = False,
) -> None:
    """Start the rendezvous points, routers and preprocessors that FILE describes, as processes.

    The processes run until Ctrl-C or SIGTERM. A process that dies or stops responding is restarted.
    On SIGHUP, the tokens and grants in FILE are read again. By default, FILE is network.toml or
    tidings.toml in the current folder.
    """
    from tidings.broker import load_tree

    tree = load_tree(_find_file() if file is None else file)
    for warning in tree.warnings:
        remark(warning)
    for one in tree.open_to_others:
        remark(f"{one.name} listens on {one.listen.host}, and without [tokens] anybody may connect")
    if check:
        _show_plan(tree)
    else:
        run_async(_run(tree))


def _find_file() -> str:
    for name in NAMES:
        if Path(name).is_file():
            return name
    raise BadInput(f"found neither {' nor '.join(NAMES)} here; give the name of the file")


def _show_plan(tree: Tree) -> None:
    rows = [
        (
            one.name,
            one.kind,
            f"{one.listen.host}:{one.listen.port or '(a free port)'}",
            ", ".join(one.upstreams),
        )
        for one in tree.members
    ]
    show(table(["node", "kind", "listens on", "upstream"], rows), "")
    say(f"{count_of(len(rows), 'node')}, with their files in {relative_path(str(tree.folder))}")


async def _run(tree: Tree) -> None:
    """Run the tree until Ctrl-C or SIGTERM."""
    from tidings.broker import RunningTree, load_tree

    screen = _Screen(sys.stdout.isatty())
    running = RunningTree(tree, screen.add)

    def read_again() -> None:
        try:
            running.renew(load_tree(tree.path))
        except TidingsError as problem:
            screen.add(f"the tokens are unchanged: {problem}")
        else:
            screen.add("the tokens were read again")

    over = asyncio.create_task(wait_for_end(read_again))
    work = asyncio.create_task(_start_and_show(running, screen))
    try:
        await asyncio.wait({over, work}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        for task in (over, work):
            task.cancel()
        await asyncio.gather(over, work, return_exceptions=True)
        await running.stop()
    say(f"{count_of(len(tree.members), 'node')} ended")


async def _start_and_show(running: RunningTree, screen: _Screen) -> None:
    """Start the tree, and show it while it runs."""
    from tidings.cli.network.network_view import NetworkView

    members = running.tree.members
    view = NetworkView(expected=[(one.name, one.upstream) for one in members])
    tasks: set[asyncio.Future[None]] = {running.failure}
    if screen.live:
        tasks.add(asyncio.create_task(_draw(running, view, screen)))
    try:
        await running.start()
        address, *_ = running.watch_address()
        folder = relative_path(str(running.tree.folder))
        screen.add(f"{count_of(len(members), 'node')} running, with their files in {folder}")
        trusted = "" if running.authorities is None else f" --authorities {running.authorities}"
        screen.add(f"tidings top --router {address}{trusted} shows them too")
        if screen.live:
            tasks.add(asyncio.create_task(_feed(running, view)))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _feed(running: RunningTree, view: NetworkView) -> None:
    """Feed the reports of the rendezvous point to the view."""
    from tidings.network import watch

    while True:
        address, name, token = running.watch_address()
        with contextlib.suppress(TidingsError):  # if the node is down, it will be restarted
            async with watch(
                address, name=name, token=token, authorities=running.authorities
            ) as reports:
                async for report in reports:
                    view.feed(report)
        await asyncio.sleep(AGAIN)


async def _draw(running: RunningTree, view: NetworkView, screen: _Screen) -> None:
    from rich.console import Group

    from tidings.cli.network.network_view import draw_in_place

    with draw_in_place() as drawn:
        while True:
            sentences = [plain_text(line, "dim") for line in screen.sentences]
            picture = view.draw(_notes(running), _places(running))
            drawn(Group(picture, plain_text(""), *sentences))
            await asyncio.sleep(EACH)


def _notes(running: RunningTree) -> dict[str, str]:
    """Remarks on those nodes that are not running, by name."""
    from tidings.broker import ProcessState

    notes = {}
    for name, branch in running.branches.items():
        if branch.state is ProcessState.STARTING:
            notes[name] = "starting"
        elif branch.state is ProcessState.AGAIN:
            left = max(0.0, branch.again - time.monotonic())
            notes[name] = f"restarts in {left:.0f} s" if left > 0.5 else "restarting"
    return notes


def _places(running: RunningTree) -> dict[str, str]:
    """The addresses of the preprocessors; preprocessors send no reports."""
    return {
        name: f"{branch.address()}, preprocessor"
        for name, branch in running.branches.items()
        if branch.member.tagger is not None
    }


class _Screen:
    """Shows sentences below the table, or prints them if there is no table."""

    def __init__(self, live: bool) -> None:
        self.live = live
        self.sentences: deque[str] = deque(maxlen=SENTENCES)

    def add(self, sentence: str) -> None:
        if self.live:
            self.sentences.append(f"{time.strftime('%H:%M:%S')}  {sentence}")
        else:
            say(sentence)
            sys.stdout.flush()
