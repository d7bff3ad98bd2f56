"""Watching a node: a watcher connects like an agent. A watcher gets a report about once a second,
or asks once what the node has learnt about relations."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import uuid
from collections.abc import AsyncIterator, Callable

from tidings.model import EnvironmentProblem
from tidings.network.agents import Refusal
from tidings.network.link import Link
from tidings.network.router_url import RouterUrl, parse_address
from tidings.network.tls import Path, context_for, sentence_of
from tidings.routing.protocol import frames, messages as m

PATIENCE = 10.0  # watching fails after this many seconds without a report


class Watching:
    """An asynchronous iterator of reports; only the latest is kept. The iterator raises
    EnvironmentProblem when the link ends, or Refusal if the node has refused the watcher."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._latest: m.Report | None = None
        self._over: Exception | None = None
        self._news = asyncio.Event()

    def __aiter__(self) -> Watching:
        return self

    async def __anext__(self) -> m.Report:
        while self._latest is None:
            if self._over is not None:
                raise self._over
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), PATIENCE)
            except TimeoutError:
                raise EnvironmentProblem(
                    f"{self._where}: no report arrived for {PATIENCE:.0f} seconds"
                ) from None
        found, self._latest = self._latest, None
        return found

    def receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            message = frames.decode(buffer, start)
            if isinstance(message, m.Welcome):
                link.name = message.name
                link.send(m.Watch())
            elif isinstance(message, m.Report):
                self._latest = message
                self._news.set()
                link.send(m.Watch())  # because silent neighbours are disconnected
            elif isinstance(message, m.Goodbye):
                if not link.name:
                    self._over = Refusal(message.reason)
                link.close(message.reason)

    def handle_end(self, _: Link, reason: str) -> None:
        self._over = self._over or EnvironmentProblem(f"{self._where}: {reason}")
        self._news.set()


class _Inspecting:
    """One request, and its answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[m.Inspected] = asyncio.get_running_loop().create_future()

    def receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            message = frames.decode(buffer, start)
            if isinstance(message, m.Welcome):
                link.name = message.name
                link.send(m.Inspect(1))
            elif isinstance(message, m.Inspected):
                self._end(Refusal(message.refusal) if message.refusal else None, message)
            elif isinstance(message, m.Goodbye):
                self._end(Refusal(message.reason))
                link.close(message.reason)

    def handle_end(self, _: Link, reason: str) -> None:
        self._end(EnvironmentProblem(reason))

    def _end(self, problem: Exception | None, answer: m.Inspected | None = None) -> None:
        if self.answer.done():
            return
        if problem is not None:
            self.answer.set_exception(problem)
        elif answer is not None:
            self.answer.set_result(answer)


async def inspect(
    address: str,
    *,
    name: str | None = None,
    token: str = "",
    tls: ssl.SSLContext | None = None,
    authorities: Path | None = None,
) -> m.Inspected:
    """What the node at this address has learnt about the relations in the channel. For the
    arguments, see `connect`."""
    host, port, channel, _ = place = parse_address(address)
    found = _Inspecting()
    link = await _connect(
        lambda: Link(found.receive, found.handle_end, largest=frames.LARGEST_DOWN),
        place, context_for(place, tls, authorities),
    )  # fmt: skip
    link.send(m.Hello(name or f"watch-{uuid.uuid4().hex}", channel, token))
    try:
        return await asyncio.wait_for(found.answer, PATIENCE)
    except TimeoutError:
        raise EnvironmentProblem(f"{host}:{port}: no answer within {PATIENCE:.0f} seconds") \
            from None  # fmt: skip
    finally:
        link.close("the watcher was closed")
        await asyncio.sleep(0)


async def _connect(make: Callable[[], Link], place: RouterUrl, tls: ssl.SSLContext | None) -> Link:
    host, port = place.host, place.port
    try:
        _, link = await asyncio.get_running_loop().create_connection(make, host, port, ssl=tls)
    except (OSError, ssl.SSLError) as problem:
        raise EnvironmentProblem(f"can't connect to {host}:{port}: {sentence_of(problem)}") \
            from None  # fmt: skip
    return link


@contextlib.asynccontextmanager
async def watch(
    address: str,
    *,
    name: str | None = None,
    token: str = "",
    tls: ssl.SSLContext | None = None,
    authorities: Path | None = None,
) -> AsyncIterator[Watching]:
    """Watch the node at an address and the nodes below it; see `connect`."""
    host, port, channel, _ = place = parse_address(address)
    tls = context_for(place, tls, authorities)
    watching = Watching(f"{host}:{port}")
    link = await _connect(lambda: Link(watching.receive, watching.handle_end), place, tls)
    link.send(m.Hello(name or f"watch-{uuid.uuid4().hex}", channel, token))
    try:
        yield watching
    finally:
        link.close("the watcher was closed")
        await asyncio.sleep(0)
