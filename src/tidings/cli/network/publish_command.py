"""`tidings publish`: publishes notifications, and waits until they are on disk."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.events import PUBLISHED, Content, read_contents
from tidings.cli.common.input_files import STDIN, format_of, open_stdin
from tidings.cli.common.screen import count_of, say
from tidings.cli.common.shutdown import leave_unfinished, run_until_ended
from tidings.cli.network import connecting
from tidings.cli.network.connecting import choose_token, note_link, run_async
from tidings.model import EnvironmentProblem

PATIENCE = 5.0  # seconds until a note says that an answer is slow
TOGETHER = 1000  # how many publications are in flight before the command waits for them
MOST_LISTED = 10  # the most refused notifications that an error lists
PIECE = 100  # how many events of files the reading thread passes on together
Item = TypeVar("Item")


def publish_notification(
    attributes: Annotated[
        str | None,
        typer.Argument(metavar="JSON", help="Its attributes; - reads lines.", hidden=True),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="FILE", help="A file of notifications (- is stdin)."),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"Format of the events: {', '.join(PUBLISHED)}; by default from the extension.",
            show_default=False,
        ),
    ] = None,
    nulls: options.Nulls = None,
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="TEXT", help="The payload that subscribers get."),
    ] = None,
    subject: Annotated[
        str, typer.Option("--subject", metavar="TEXT", help="The subject that subscribers get.")
    ] = "",
    private: Annotated[
        bool, typer.Option("--private", help="Don't send the attributes to subscribers.")
    ] = False,
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Send only to connected subscribers; don't wait for the disk."),
    ] = False,
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
    """Publish a notification, given as the JSON object of its attributes; with -, publish one for
    each line of stdin.

    With --events, publish each event of a file, of a folder, or of the files that a quoted pattern
    such as 'in/*.json.gz' matches: JSON (lines, an array, or objects that span lines), CSV,
    Parquet, XML documents, maps in MessagePack, or an Arrow stream.

    When the command ends, the rendezvous point has the notification on disk. Without --payload, the
    payload is the JSON itself, or the XML. With --timeout, the command fails if the router or the
    rendezvous point does not answer within that time. Notifications that were not acknowledged may
    have been published nevertheless. Notes say when the link to the router is lost, and when it is
    restored.
    """
    from tidings.network import connect

    token = choose_token(token, token_file)
    if (attributes is None) == (events is None):
        raise BadInput("expected either the JSON of a notification, or --events FILE")
    if format_ is not None:
        format_of("", format_, PUBLISHED, "--format")  # before connecting
    given = _Given(attributes, events, format_, nulls or [])

    async def work() -> int:
        count = 0
        async with connect(
            router, name=name, token=token, authorities=authorities, timeout=timeout,
            on_link=note_link,
        ) as agent:  # fmt: skip
            sending = _Sending(given.are_many, timeout)
            try:
                async for content, text in given.notifications():
                    told = text if payload is None else payload
                    body = told.encode("utf-8", "surrogateescape")
                    if fast:
                        agent.publish_fast(content, body, subject=subject, share=not private)
                        count += 1
                        continue
                    count += 1
                    sending.add(
                        agent.publish_soon(content, body, subject=subject, share=not private)
                    )
                    if len(sending.waiting) >= TOGETHER:
                        await sending.settle()
            except BadInput as problem:
                if not given.are_many:
                    raise
                await sending.settle()
                sentence = f"after publishing {count:,}: {problem}"
                raise BadInput(sentence, problem.pointer) from None
            await sending.settle()
        return count

    count = run_async(run_until_ended(work()))
    if count is None:
        leave_unfinished()
    say(f"published {count:,}" if given.are_many else "published")


class _Given(NamedTuple):
    """What is to be published, as given on the command line."""

    attributes: str | None
    events: str | None
    format: str | None
    nulls: list[str]

    @property
    def are_many(self) -> bool:
        return self.events is not None or self.attributes == "-"

    async def notifications(self) -> AsyncIterator[tuple[Content, str]]:
        """The attributes and the text of each notification: JSON, or XML."""
        if self.events is not None:
            async for piece in _from_thread(self._read_pieces(self.events)):
                for one in piece:
                    yield one
        elif self.attributes == "-":
            at = 0
            async for line in stdin_lines():
                at += 1
                text = line.strip()
                if text:
                    yield _parse_object(text, f"line {at}: "), text
        elif self.attributes is not None:
            text = self.attributes.strip()
            yield _parse_object(text), text

    def _read_pieces(self, path: str) -> Iterator[list[tuple[Content, str]]]:
        """The events of files, in pieces. Events from stdin are yielded one at a time, because the
        next one may arrive much later."""
        size = 1 if path == STDIN else PIECE
        piece: list[tuple[Content, str]] = []
        try:
            for one in read_contents(path, self.format, self.nulls):
                piece.append(one)
                if len(piece) == size:
                    yield piece
                    piece = []
        except BadInput:  # publish the events before the bad one
            yield piece
            raise
        yield piece


class _Sending:
    """Notifications that are not acknowledged yet."""

    def __init__(self, are_many: bool, limit: float | None) -> None:
        self.waiting: dict[asyncio.Future[int], int] = {}  # positions, counted from 1
        self._are_many, self._limit = are_many, limit
        self._count = 0

    def add(self, one: asyncio.Future[int]) -> None:
        self._count += 1
        self.waiting[one] = self._count

    async def settle(self) -> None:
        """Wait until all notifications are acknowledged; print a note if that takes a long time.
        Raise EnvironmentProblem if no acknowledgment arrives within the limit. Raise Refusal,
        with the first positions, if some were refused."""
        late = asyncio.get_running_loop().call_later(
            PATIENCE, remark, "the rendezvous point has not answered yet; still waiting"
        )
        left, refused = set(self.waiting), dict[int, Exception]()
        try:
            while left:
                done, left = await asyncio.wait(
                    left, timeout=self._limit, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    raise EnvironmentProblem(
                        f"no answer arrived for {self._limit:g} seconds: "
                        f"{self._count - len(left):,} of {self._count:,} notifications are "
                        "acknowledged, and the others may have been published too"
                    )
                for one in done:
                    problem = one.exception()
                    if isinstance(problem, Exception):
                        refused[self.waiting[one]] = problem
        finally:
            late.cancel()
        self.waiting.clear()
        if refused:
            raise self._refusal(refused)

    def _refusal(self, refused: dict[int, Exception]) -> Exception:
        from tidings.network import Refusal

        if not self._are_many:
            return refused[1]
        listed = [f"notification {at}: {refused[at]}" for at in sorted(refused)[:MOST_LISTED]]
        if len(refused) > MOST_LISTED:
            listed.append(f"and {len(refused) - MOST_LISTED:,} more")
        return Refusal(
            f"published {self._count - len(refused):,} of "
            f"{count_of(self._count, 'notification')}, and the others were refused; "
            + "; ".join(listed)
        )


def _parse_object(text: str, where: str = "") -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise BadInput(f"{where}found {text[:40]!r}, expected a JSON object: {problem}") from None


async def stdin_lines() -> AsyncIterator[str]:
    """Yield lines of stdin as they arrive."""
    read1 = open_stdin().read1  # type: ignore[attr-defined]
    rest = b""
    async for chunk in _from_thread(iter(lambda: read1(1 << 16), b"")):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "backslashreplace")
    if rest:
        yield rest.decode("utf-8", "backslashreplace")


async def _from_thread(items: Iterator[Item]) -> AsyncIterator[Item]:
    """Yield items as they arrive. The items are read by a daemon thread: links stay alive while it
    waits for an item, and the process can exit without waiting for the thread."""
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[Item | BaseException] = asyncio.Queue(4)

    def hand_over(item: Item | BaseException) -> None:
        put = found.put(item)
        try:
            asyncio.run_coroutine_threadsafe(put, loop).result()
        finally:
            put.close()  # once the loop is closed, only this closes the coroutine `put`

    def read() -> None:
        last: BaseException = StopAsyncIteration()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            try:
                for item in items:
                    hand_over(item)
            except Exception as problem:
                last = problem
            hand_over(last)

    threading.Thread(target=read, daemon=True).start()
    while True:
        item = await found.get()
        if isinstance(item, StopAsyncIteration):
            return
        if isinstance(item, BaseException):
            raise item
        yield item
