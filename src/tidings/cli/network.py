"""`tidings router`, `publish` and `subscribe`: a node of the network, and what is said over it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Coroutine
from typing import Annotated, Any

import msgspec
import typer

from tidings.cli import options
from tidings.cli.errors import BadInput, remark
from tidings.cli.screen import emit, say

Router = Annotated[
    str,
    typer.Option("--router", metavar="ADDRESS", help="The router to connect to."),
]
Token = Annotated[
    str,
    typer.Option(
        "--token", metavar="TOKEN", envvar="TIDINGS_TOKEN", help="By which one is let in."
    ),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The name that goes with the token."),
]
Authorities = Annotated[
    str | None,
    typer.Option(
        "--authorities", metavar="FILE", help="Whose certificates are trusted, for tidings+tls."
    ),
]
DEFAULT = "tidings://127.0.0.1:7400"
LAST_WORDS = 5.0  # seconds to end in


def run_router(
    config: Annotated[str, typer.Option("--config", metavar="FILE", help="The router's file.")],
    log: Annotated[bool, typer.Option("--log", help="Say on stderr who comes and goes.")] = False,
    leashed: Annotated[bool, typer.Option("--until-stdin-ends", hidden=True)] = False,
) -> None:
    """Run a router, or a rendezvous point, as FILE describes, until Ctrl-C or SIGTERM."""
    if leashed:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    if log:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    from tidings.broker.config import load_config, make_node

    node = make_node(load_config(config))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each neighbour is an open file

    async def work() -> None:
        await node.start()
        say(f"{node.machine.name} listens at {node.door.address.host}:{node.port}")
        sys.stdout.flush()
        await ended()
        await node.stop()

    run_async(work())


def publish_notification(
    attributes: Annotated[
        str, typer.Argument(metavar="JSON", help="Its attributes; - reads lines.", hidden=True)
    ],
    payload: Annotated[
        str, typer.Option("--payload", metavar="TEXT", help="What subscribers get with it.")
    ] = "",
    router: Router = DEFAULT,
    token: Token = "",
    name: Name = None,
    authorities: Authorities = None,
) -> None:
    """Publish a notification: the JSON object of its attributes, or - for one per line of stdin.

    When the command has ended, it is on the disk of the rendezvous point. Without --payload the
    payload is the JSON itself.
    """
    from tidings.network.agent import connect

    lines = sys.stdin if attributes == "-" else [attributes]

    async def work() -> int:
        count = 0
        async with connect(router, name=name, token=token, authorities=authorities) as agent:
            waiting: list[asyncio.Future[None]] = []
            for at, line in enumerate(lines, start=1):
                text = line.strip()
                if not text and attributes == "-":
                    continue
                try:
                    content = _object(text)
                except BadInput as problem:
                    if attributes != "-":
                        raise
                    await asyncio.gather(*waiting)
                    sentence = f"line {at}, after {count:,} were published: {problem}"
                    raise BadInput(sentence) from None
                waiting.append(agent.publish_soon(content, (payload or text).encode()))
                count += 1
                if len(waiting) >= 1000:
                    await asyncio.gather(*waiting)
                    waiting.clear()
            await asyncio.gather(*waiting)
        return count

    count = run_async(work())
    say(f"published {count:,}" if attributes == "-" else "published")


def subscribe_to(
    interest: Annotated[str, typer.Argument(metavar="FILTER", help="What is wanted.", hidden=True)],
    most: Annotated[
        int | None, typer.Option("--most", metavar="N", min=1, help="End after so many.")
    ] = None,
    router: Router = DEFAULT,
    token: Token = "",
    name: Name = None,
    authorities: Authorities = None,
    json: options.Json = False,
) -> None:
    """Print the payload of every notification that matches FILTER, as they come, until Ctrl-C.

    What could not be had any more is said on stderr. With --json, one object per line: serial,
    payload.
    """
    from tidings.network.agent import connect
    from tidings.routing.subscriber import Told

    async def work() -> None:
        count = 0
        async with (
            connect(router, name=name, token=token, authorities=authorities) as agent,
            agent.subscribe(interest) as told,
        ):
            remark(f"told of {interest}")
            sys.stderr.flush()
            async for one in told:
                if not isinstance(one, Told):
                    remark(f"something is missing: {one}")
                    continue
                text = one.payload.decode("utf-8", "backslashreplace")
                if json:
                    emit({"serial": one.serial, "payload": text})
                else:
                    print(text)
                sys.stdout.flush()
                count += 1
                if count == most:
                    return

    run_async(until_ended(work()))


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise BadInput(f"found {text[:40]!r}, expected a JSON object: {problem}") from None


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    with contextlib.suppress(ImportError):
        import uvloop  # type: ignore[import-not-found]

        return uvloop.run(work)
    return asyncio.run(work)


def _end_with_stdin() -> None:
    """End this process when whoever holds the other end of stdin is gone, even if it hangs."""
    while os.read(0, 1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST_WORDS)
    os._exit(1)


async def ended() -> None:
    """Wait for Ctrl-C, SIGTERM, or the end of the terminal."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup has its way
        ends.append(signal.SIGHUP)
    for one in ends:
        loop.add_signal_handler(one, event.set)
    await event.wait()


async def until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Do work until it is done, or until Ctrl-C or SIGTERM."""
    tasks = {asyncio.create_task(work), asyncio.create_task(ended())}
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    for task in done:
        task.result()
