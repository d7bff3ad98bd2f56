"""`tidings router`, `publish` and `subscribe`: run a node of the network, or connect to one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.screen import count_of, emit, say
from tidings.cli.common.shutdown import end_with_stdin, run_until_ended, wait_for_end
from tidings.files import read_secret
from tidings.model import TidingsError

if TYPE_CHECKING:
    from tidings.broker import Server
    from tidings.routing.clients import Lost
    from tidings.routing.protocol import Break

Router = Annotated[
    str,
    typer.Option("--router", metavar="ADDRESS", help="The router to connect to."),
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        metavar="TOKEN",
        envvar="TIDINGS_TOKEN",
        help="The token for the router. On the command line, `ps` shows it to everybody on this "
        "machine; --token-file is safer.",
    ),
]
TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", metavar="FILE", help="A file that contains the token."),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The name that goes with the token."),
]
Authorities = Annotated[
    str | None,
    typer.Option(
        "--authorities", metavar="FILE", help="Trusted certificate authorities, for tidings+tls."
    ),
]
DEFAULT = "tidings://127.0.0.1:7400"
BEAT = 1.0  # seconds between signs of life
PATIENCE = 5.0  # seconds until a note says that an answer is slow
# The switch interval: how long a busy event loop may keep the GIL from the thread that writes the
# journal. That thread needs it a dozen times per group, and would wait 5 ms each time by default.
TURN = 0.0005
T = TypeVar("T")


def run_router(
    config: Annotated[str, typer.Option("--config", metavar="FILE", help="The router's file.")],
    log: Annotated[bool, typer.Option("--log", help="Log connections on stderr.")] = False,
    follows_stdin: Annotated[bool, typer.Option("--until-stdin-ends", hidden=True)] = False,
) -> None:
    """Run the router or rendezvous point that FILE describes, until Ctrl-C or SIGTERM.

    On SIGHUP, the tokens in FILE and their permissions are read again.
    """
    if follows_stdin:
        end_with_stdin()
    if log:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    from tidings.broker import load_config, make_node

    loaded = load_config(config)
    for one in loaded.warnings:
        remark(one)
    before = os.umask(0o077)  # only its owner may read a node's files
    try:
        node = make_node(loaded)
        _run_node(node, lambda: _read_again(node, config), follows_stdin)
    finally:
        os.umask(before)


def _run_node(node: Server, again: Callable[[], None], follows_stdin: bool) -> None:
    """Run a node until it is asked to end; on SIGHUP call `again`."""
    from tidings.broker import collect_seldom

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each neighbour needs an open file
    sys.setswitchinterval(TURN)

    async def work() -> None:
        await node.start()
        ending = asyncio.create_task(wait_for_end(again))
        await asyncio.sleep(0)  # install handlers: the reader of the next line may send a signal
        say(f"{node.machine.name} listens at {node.door.address.host}:{node.port}")
        sys.stdout.flush()
        beside = [asyncio.create_task(collect_seldom())]
        if follows_stdin:
            beside.append(asyncio.create_task(_beat(sys.stdout.fileno())))
        await ending
        for task in beside:
            task.cancel()
        await node.stop()

    run_async(work())


def _read_again(node: Server, config: str) -> None:
    """Read the tokens in the node's file again; a bad file changes nothing."""
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


async def _beat(out: int) -> None:
    """Write an empty line each second, so that the parent process sees that the event loop is
    alive. A parent that does not read does not block the node."""
    os.set_blocking(out, False)
    while True:
        with contextlib.suppress(OSError):
            os.write(out, b"\n")
        await asyncio.sleep(BEAT)


def publish_notification(
    attributes: Annotated[
        str, typer.Argument(metavar="JSON", help="Its attributes; - reads lines.", hidden=True)
    ],
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="TEXT", help="The payload that subscribers get."),
    ] = None,
    router: Router = DEFAULT,
    token: Token = "",
    token_file: TokenFile = None,
    name: Name = None,
    authorities: Authorities = None,
) -> None:
    """Publish a notification: the JSON object of its attributes, or - for one per line of stdin.

    When the command ends, the rendezvous point has the notification on disk. Without --payload, the
    payload is the JSON itself.
    """
    from tidings.network import connect

    token = choose_token(token, token_file)

    async def work() -> int:
        at = count = 0
        async with connect(router, name=name, token=token, authorities=authorities) as agent:
            waiting: list[asyncio.Future[int]] = []
            async for line in stdin_lines() if attributes == "-" else _one_line(attributes):
                at += 1
                text = line.strip()
                if not text and attributes == "-":
                    continue
                try:
                    content = _parse_object(text)
                except BadInput as problem:
                    if attributes != "-":
                        raise
                    await asyncio.gather(*waiting)
                    sentence = f"line {at}, after publishing {count:,}: {problem}"
                    raise BadInput(sentence) from None
                told = text if payload is None else payload
                waiting.append(agent.publish_soon(content, told.encode("utf-8", "surrogateescape")))
                count += 1
                if len(waiting) >= 1000:
                    await _remark_if_slow(asyncio.gather(*waiting))
                    waiting.clear()
            await _remark_if_slow(asyncio.gather(*waiting))
        return count

    count = run_async(run_until_ended(work()))
    if count is None:  # Ctrl-C
        raise KeyboardInterrupt
    say(f"published {count:,}" if attributes == "-" else "published")


def subscribe_to(
    interest: Annotated[str, typer.Argument(metavar="FILTER", help="The filter.", hidden=True)],
    most: Annotated[
        int | None, typer.Option("--most", metavar="N", min=1, help="End after N notifications.")
    ] = None,
    router: Router = DEFAULT,
    token: Token = "",
    token_file: TokenFile = None,
    name: Name = None,
    authorities: Authorities = None,
    json: options.Json = False,
) -> None:
    """Print the payload of each notification that matches FILTER, as it arrives, until Ctrl-C.

    Lost notifications are reported on stderr. With --json, one object per line: serial, payload.
    """
    from tidings.network import connect
    from tidings.routing.clients import Told

    token = choose_token(token, token_file)

    async def work() -> None:
        count = 0
        async with (
            connect(router, name=name, token=token, authorities=authorities) as agent,
            agent.subscribe(interest) as told,
        ):
            remark(f"subscribed to {interest}")
            sys.stderr.flush()
            async for one in told:
                if not isinstance(one, Told):
                    remark(_describe_loss(one))
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

    run_async(run_until_ended(work()))


def choose_token(given: str, file: str | None) -> str:
    """The token in the file if one is named, else the given token. So a file takes precedence over
    the environment."""
    if file is None:
        return given
    token, warning = read_secret(file)
    if warning:
        remark(warning)
    return token


def _describe_loss(one: Lost | Break) -> str:
    from tidings.routing.protocol import Break

    if isinstance(one, Break):
        return f"notifications may have been missed: {one.reason}"
    return f"{count_of(one.numbers, 'notification')} lost"


async def _remark_if_slow(work: Awaitable[T]) -> T:
    """Wait for work, and print a note if it takes longer than PATIENCE."""
    late = asyncio.get_running_loop().call_later(
        PATIENCE, remark, "the rendezvous point has not answered yet; still waiting"
    )
    try:
        return await work
    finally:
        late.cancel()


def _parse_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise BadInput(f"found {text[:40]!r}, expected a JSON object: {problem}") from None


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    with contextlib.suppress(ImportError):
        import uvloop  # type: ignore[import-not-found]

        return uvloop.run(work)
    return asyncio.run(work)


async def stdin_lines() -> AsyncIterator[str]:
    """Yield lines of stdin as they arrive. A daemon thread reads them, so the process can exit
    without waiting for it."""
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[bytes] = asyncio.Queue(4)

    read1 = sys.stdin.buffer.read1  # type: ignore[union-attr]

    def read() -> None:
        chunk = b"."
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while chunk:
                chunk = read1(1 << 16)
                asyncio.run_coroutine_threadsafe(found.put(chunk), loop).result()

    threading.Thread(target=read, daemon=True).start()
    rest = b""
    while chunk := await found.get():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "backslashreplace")
    if rest:
        yield rest.decode("utf-8", "backslashreplace")


async def _one_line(text: str) -> AsyncIterator[str]:
    yield text
