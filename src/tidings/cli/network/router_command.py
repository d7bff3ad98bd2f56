"""`tidings router`: runs a node of the network."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common.command_errors import remark
from tidings.cli.common.screen import count_of, say
from tidings.cli.common.shutdown import end_with_stdin, wait_for_end
from tidings.cli.network.connecting import beat_forever, run_async
from tidings.model import TidingsError, pause_gc

if TYPE_CHECKING:
    from tidings.broker import Config, Server

# The switch interval: how long a busy event loop may keep the GIL from the thread that writes the
# journal. The thread needs the GIL a dozen times per group of records; with Python's default
# interval, it would wait 5 ms each time.
TURN = 0.0005


_revisions: set[asyncio.Task[None]] = set()


def run_router(
    config: Annotated[str, typer.Option("--config", metavar="FILE", help="The router's file.")],
    log: Annotated[bool, typer.Option("--log", help="Log connections on stderr.")] = False,
    follows_stdin: Annotated[bool, typer.Option("--until-stdin-ends", hidden=True)] = False,
) -> None:
    """Run the router or rendezvous point that FILE describes, until Ctrl-C or SIGTERM.

    On SIGHUP, the tokens in FILE, their permissions and the table [preprocessor] are read again.
    """
    if follows_stdin:
        end_with_stdin()
    if log:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with pause_gc():  # the import creates many objects, and none of them is garbage
        from tidings.broker import load_config, make_node

        loaded = load_config(config)
    for one in loaded.warnings:
        remark(one)
    before = os.umask(0o077)  # only the owner may read a node's files
    try:
        with pause_gc():
            node = make_node(loaded)
        _run_node(node, lambda: _read_again(node, config), follows_stdin)
    finally:
        os.umask(before)


def _run_node(node: Server, again: Callable[[], None], follows_stdin: bool) -> None:
    """Run a node until Ctrl-C or SIGTERM; on SIGHUP, call `again`."""
    from tidings.broker import collect_seldom

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each neighbour needs an open file
    sys.setswitchinterval(TURN)

    async def work() -> None:
        await node.start()
        ending = asyncio.create_task(wait_for_end(again))
        # install the signal handlers first: a program that reads the printed line may send a signal
        await asyncio.sleep(0)
        say(f"{node.machine.name} listens on {node.door.address.host}:{node.port}")
        sys.stdout.flush()
        beside = [asyncio.create_task(collect_seldom())]
        if follows_stdin:
            beside.append(asyncio.create_task(beat_forever(sys.stdout.fileno())))
        await ending
        for task in beside:
            task.cancel()
        await node.stop()

    run_async(work())


def _read_again(node: Server, config: str) -> None:
    """Read the tokens and the kind of interest in the node's file again; a bad file changes
    nothing."""
    from tidings.broker import load_config, renew

    try:
        loaded = load_config(config)
        count = renew(node, loaded)
    except TidingsError as problem:
        remark(f"the tokens are unchanged: {problem}")
        return
    for one in loaded.warnings:
        remark(one)
    remark(f"the tokens were read again, and {count_of(count, 'link')} ended")
    task = asyncio.get_running_loop().create_task(_revise(node, loaded))
    _revisions.add(task)  # the event loop has only weak references to tasks
    task.add_done_callback(_revisions.discard)


async def _revise(node: Server, loaded: Config) -> None:
    from tidings.broker import revise

    try:
        told = await revise(node, loaded)
    except TidingsError as problem:
        told = f"the preprocessor is unchanged: {problem}"
    if told:
        remark(told)
        sys.stderr.flush()
