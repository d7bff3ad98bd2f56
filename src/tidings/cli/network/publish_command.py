"""`tidings publish`: publishes notifications, and waits until they are on disk."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
import typer

from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.screen import count_of, say
from tidings.cli.common.shutdown import run_until_ended
from tidings.cli.network import connecting
from tidings.cli.network.connecting import choose_token, note_link, run_async
from tidings.model import EnvironmentProblem

PATIENCE = 5.0  # seconds until a note says that an answer is slow
TOGETHER = 1000  # publications in flight before it waits for them


def publish_notification(
    attributes: Annotated[
        str, typer.Argument(metavar="JSON", help="Its attributes; - reads lines.", hidden=True)
    ],
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="TEXT", help="The payload that subscribers get."),
    ] = None,
    timeout: Annotated[
        float | None,
        connecting.timeout_option("Fail after this many seconds without an answer."),
    ] = None,
    router: connecting.Router = connecting.DEFAULT,
    token: connecting.Token = "",
    token_file: connecting.TokenFile = None,
    name: connecting.Name = None,
    authorities: connecting.Authorities = None,
) -> None:
    """Publish a notification: the JSON object of its attributes, or - for one per line of stdin.

    When the command ends, the rendezvous point has the notification on disk. Without --payload, the
    payload is the JSON itself. With --timeout, the command fails if the router or the rendezvous
    point does not answer within that time; a notification that was not acknowledged may still have
    been published. A note says when the router is gone, and when it is back.
    """
    from tidings.network import connect

    token = choose_token(token, token_file)
    is_stream = attributes == "-"

    async def work() -> int:
        at = count = 0
        async with connect(
            router, name=name, token=token, authorities=authorities, timeout=timeout,
            on_link=note_link,
        ) as agent:  # fmt: skip
            waiting: list[asyncio.Future[int]] = []
            async for line in stdin_lines() if is_stream else _one_line(attributes):
                at += 1
                text = line.strip()
                if not text and is_stream:
                    continue
                try:
                    content = _parse_object(text)
                except BadInput as problem:
                    if not is_stream:
                        raise
                    await _settle(waiting, count, timeout)
                    sentence = f"line {at}, after publishing {count:,}: {problem}"
                    raise BadInput(sentence) from None
                told = text if payload is None else payload
                waiting.append(agent.publish_soon(content, told.encode("utf-8", "surrogateescape")))
                count += 1
                if len(waiting) >= TOGETHER:
                    await _settle(waiting, count, timeout)
                    waiting.clear()
            await _settle(waiting, count, timeout)
        return count

    count = run_async(run_until_ended(work()))
    if count is None:  # Ctrl-C
        raise KeyboardInterrupt
    say(f"published {count:,}" if is_stream else "published")


async def _settle(waiting: list[asyncio.Future[int]], count: int, limit: float | None) -> None:
    """Wait until all are acknowledged; print a note if that takes long. EnvironmentProblem if none
    of them is acknowledged for `limit` seconds."""
    late = asyncio.get_running_loop().call_later(
        PATIENCE, remark, "the rendezvous point has not answered yet; still waiting"
    )
    left: set[asyncio.Future[int]] = set(waiting)
    try:
        while left:
            done, left = await asyncio.wait(
                left, timeout=limit, return_when=asyncio.FIRST_COMPLETED
            )
            for one in done:
                one.result()
            if not done:
                raise EnvironmentProblem(
                    f"found no answer for {limit:g} seconds; of {count_of(count, 'notification')}, "
                    f"{count - len(left):,} are acknowledged, and the others may still have been "
                    "published"
                )
    finally:
        late.cancel()


def _parse_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise BadInput(f"found {text[:40]!r}, expected a JSON object: {problem}") from None


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
