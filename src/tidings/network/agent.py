"""The agent of an application: it subscribes and publishes, and notices every loss.

    async with connect("tidings://127.0.0.1:7400") as agent:
        await agent.publish({"price": 95.0}, b"...")        on disk when this returns
        async with agent.subscribe("price > 90") as told:
            async for notification in told: ...

An agent contains a small router, and the application's subscriptions are its neighbours. So a
notification that matches several subscriptions crosses the link only once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.network.link import Link
from tidings.network.lives import draw_life
from tidings.network.router_url import parse_address
from tidings.network.tls import Path, context_for, sentence_of
from tidings.routing.clients import Delivery, Lost, Phase, Publisher, Subscriber
from tidings.routing.forwarding import Cache, Name, Router, Sent
from tidings.routing.protocol import NONE, Break, Span, Times, frames, messages as m

UPSTREAM, LOCAL, PUBLISHER = "<upstream>", "<agent>", "<publisher>"
RETRY = (0.1, 5.0)  # the first and the longest pause in seconds before reconnecting
GREETING = 10.0  # how many seconds the router may take to answer
WINDOW = 4000  # the most publications that are sent and not acknowledged
PIECE = 1000  # the number of notifications that `publish_many` sends together
MOST_PIECES = 8  # the most pieces of `publish_many` that are not acknowledged
FEW = 8  # more publications than this are sent as one piece
MOST_UNREAD = 100_000  # the most unread notifications of one subscription
LARGEST = frames.LARGEST - (1 << 16)
"""The most bytes of a notification's attributes and payload; the rest of a frame is for headers."""


def check_payload(payload: object) -> None:
    """Raise TypeError if a payload is not bytes."""
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise TypeError(f"found a payload of type {type(payload).__name__}, expected bytes")


def _check(content: bytes, payload: bytes) -> None:
    check_payload(payload)
    size = len(content) + len(payload)
    if size > LARGEST:
        raise Refusal(f"found a notification of {size:,} bytes, expected at most {LARGEST:,}")


class Refusal(TidingsError):
    """The router or the rendezvous point refused something; the message says why."""


class TimedOut(EnvironmentProblem, TimeoutError):
    """The network did not answer in the time that the caller allowed."""


class Broken(TidingsError):
    """The journal of the rendezvous point went back in time: the notifications with these `stamps`
    were acknowledged, but are gone. The next `publish` raises Broken and publishes nothing, unless
    the agent has an `on_break`."""

    def __init__(self, what: Break) -> None:
        spans = [f"{one.first}-{one.last}" if one.last > one.first else f"{one.first}"
                 for one in what.stamps[:10]]  # fmt: skip
        more = f" and {len(what.stamps) - 10:,} more" if len(what.stamps) > 10 else ""
        super().__init__(
            f"{what.reason}, with the stamps {', '.join(spans)}{more}; publish those again that "
            "still matter"
        )
        self.stamps: tuple[Span, ...] = what.stamps


class Subscription:
    """The notifications for one interest: an asynchronous iterator.

    A subscription yields `Delivery` with the payload, `Lost` for notifications that nobody has any
    more, and `Break` if it is not known how many were missed.

    A filter that can never match is accepted: `never` is then true, and `note` says why. `note`
    also names a filter that matches everything although it reads attributes. `never` and `note` are
    known once the subscription is in force.
    """

    def __init__(self, agent: Agent, machine: Subscriber, timeout: float | None = None) -> None:
        self._agent = agent
        self._machine = machine
        self._timeout = timeout
        self._news = asyncio.Event()
        self._closed = False

    @property
    def note(self) -> str:
        """What the rendezvous point says about the filter; empty if nothing is odd."""
        return self._machine.note

    @property
    def never(self) -> bool:
        """Whether the filter can never match, given the attributes that the channel declares."""
        return self._machine.never

    async def __aenter__(self) -> Subscription:
        """Wait until the subscription is in force: every notification from then on is delivered.
        Raise Refusal if the filter is refused, and TimedOut after the `timeout` of
        `Agent.subscribe`."""
        try:
            async with asyncio.timeout(self._timeout):
                while self._machine.phase is not Phase.ON:
                    if self._machine.phase is Phase.REFUSED:
                        raise Refusal(self._machine.refusal)
                    await self._agent.wait_for_change()
        except TimeoutError:
            self.close()
            raise self._agent.overdue("the subscription is not in force", self._timeout) from None
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._news.set()
            self._agent.unsubscribe(self._machine)

    def __aiter__(self) -> Subscription:
        return self

    async def next(self, timeout: float | None = None) -> Delivery | Lost | Break | None:
        """The next notification; None if none arrives within `timeout` seconds, or after the
        end."""
        try:
            async with asyncio.timeout(timeout):
                return await anext(self, None)
        except TimeoutError:
            return None

    async def __anext__(self) -> Delivery | Lost | Break:
        while not self._machine.inbox:
            if self._closed:
                raise StopAsyncIteration
            if self._machine.phase is Phase.REFUSED:
                raise Refusal(self._machine.refusal)
            self._news.clear()
            await self._news.wait()
        return self._machine.inbox.popleft()

    def wake(self) -> None:
        if self._machine.inbox or self._machine.phase is Phase.REFUSED:
            self._news.set()


class _Piece(msgspec.Struct):
    """Notifications of `publish_many` that were sent together: their stamps, and the reasons of
    those that were refused. `done` completes when all are settled."""

    first: int
    last: int
    done: asyncio.Future[None]
    refused: dict[int, str] = {}


class Agent:
    """One link to a router, with the subscriptions and publications of an application."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        name: str,
        channel: str = "",
        token: str = "",
        tls: ssl.SSLContext | None = None,
        times: Times | None = None,
        on_break: Callable[[Break], object] | None = None,
        on_link: Callable[[str], object] | None = None,
    ) -> None:
        self.name = name
        self._on_break = on_break
        self._on_link = on_link
        self._gone = ""  # why there is no link, as `on_link` was informed
        self._address = host, port
        self._tls = tls
        self._hello = m.Hello(name, channel, token)
        self._times = times or Times()
        self._router = Router(name, UPSTREAM, self._times, Cache(1000), draw_life(), NONE)
        # each start of an agent begins again with stamp 1
        self._life = uuid.uuid4().hex
        self._publisher = Publisher(f"{name}/{self._life}", LOCAL, self._times, window=WINDOW)
        self._subscriptions: dict[int, tuple[Subscriber, Subscription]] = {}
        self._next = 1
        self._link: Link | None = None
        self._refusal = ""
        self._lost = asyncio.Event()
        self._change = asyncio.Event()
        self._acks: dict[int, asyncio.Future[int]] = {}
        self._pieces: list[_Piece] = []
        self._tasks: list[asyncio.Task[None]] = []

    # -- for applications ----------------------------------------------------------------------

    async def start(self, timeout: float | None = None) -> None:
        """Connect; EnvironmentProblem or Refusal if that fails."""
        try:
            async with asyncio.timeout(timeout):
                await self._connect()
        except TimeoutError:
            where = ":".join(map(str, self._address))
            raise self.overdue(f"there is no link to {where}", timeout) from None
        self._tasks = [
            asyncio.create_task(self._tick_forever()),
            asyncio.create_task(self._keep_connected()),
        ]

    async def close(self) -> None:
        for machine, subscription in [*self._subscriptions.values()]:
            subscription.close()
            self.unsubscribe(machine)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        link = self._link
        if link is not None:
            link.close("the agent was closed")
        unacknowledged = "the agent was closed before the notification was acknowledged"
        for waiting in self._acks.values():
            if not waiting.done():
                waiting.set_exception(Refusal(unacknowledged))
                waiting.exception()  # prevents a warning if nobody waits for the future
        for piece in self._pieces:
            if not piece.done.done():
                piece.done.set_exception(Refusal(unacknowledged))
                piece.done.exception()
        await asyncio.sleep(0)
        if link is not None:
            await link.wait_gone()

    def subscribe(
        self,
        interest: str,
        dialect: str = "sql",
        *,
        most: int = MOST_UNREAD,
        timeout: float | None = None,
    ) -> Subscription:
        """Subscribe to a filter. Enter the subscription to wait until it is in force, for at most
        `timeout` seconds. It holds at most `most` unread notifications; the rest stays at the
        rendezvous point until there is room. The rendezvous point reads the filter, in its
        dialect, and refuses it when the subscription is entered."""
        number, self._next = self._next, self._next + 1
        machine = Subscriber(number, LOCAL, interest.encode(), self._times, most, dialect)
        subscription = Subscription(self, machine, timeout)
        self._subscriptions[number] = machine, subscription
        self._hand_over(number, machine.start(self._now))
        return subscription

    def unsubscribe(self, machine: Subscriber) -> None:
        number = machine.name
        assert isinstance(number, int)
        if self._subscriptions.pop(number, None) is not None:
            self._hand_over(number, machine.stop(self._now))
            self._router.context.now = self._now
            self._router.drop(number)
            self._dispatch(self._router.drain_outgoing())

    async def publish(
        self, attributes: Mapping[str, Any], payload: bytes = b"", *, timeout: float | None = None
    ) -> int:
        """Publish a notification, and return its stamp when it is on the disk of the rendezvous
        point. The stamps of an agent begin with 1. Raise Refusal if the notification was refused.
        Raise Broken if earlier acknowledged notifications are gone; then nothing is published.
        Raise TimedOut if the notification is not acknowledged within `timeout` seconds; the agent
        still tries to publish it."""
        done = self.publish_soon(attributes, payload)
        try:
            async with asyncio.timeout(timeout):
                return await done
        except TimeoutError:
            raise self.overdue("the notification was not acknowledged", timeout) from None

    def publish_soon(
        self, attributes: Mapping[str, Any], payload: bytes = b""
    ) -> asyncio.Future[int]:
        """Publish a notification without waiting. The future completes once the notification is on
        the disk."""
        return self.publish_content(msgspec.json.encode(attributes), payload)

    def publish_content(self, content: bytes, payload: bytes = b"") -> asyncio.Future[int]:
        """Like `publish_soon`, with attributes that are already encoded as JSON."""
        _check(content, payload)
        if self._publisher.breaks:
            raise Broken(self._publisher.breaks.popleft())
        sent = self._publisher.publish(content, payload, self._now)
        stamp = self._publisher.acknowledged + self._publisher.waiting
        done = self._acks[stamp] = asyncio.get_running_loop().create_future()
        self._hand_over(PUBLISHER, sent)
        return done

    async def publish_many(self, notifications: Iterable[tuple[Mapping[str, Any], bytes]]) -> int:
        """Publish pairs of attributes and payload, many at a time, and wait until all are on the
        disk; return how many there were. If one is refused, stop publishing, wait for the answers
        to all that were sent, and raise Refusal."""
        given = iter(notifications)
        waiting: deque[_Piece] = deque()
        count = 0  # acknowledged
        problem: Refusal | None = None  # why no more are sent
        try:
            while True:
                pairs: list[tuple[bytes, bytes]] = []
                try:
                    for attributes, payload in islice(given, 0 if problem else PIECE):
                        content = msgspec.json.encode(attributes)
                        _check(content, payload)
                        pairs.append((content, payload))
                except Refusal as found:  # those before it are sent
                    problem = found
                if pairs:
                    waiting.append(self._publish_piece(pairs))
                if not waiting:
                    if problem is not None:
                        raise Refusal(f"notification {count + 1}: {problem}")
                    return count
                if len(pairs) < PIECE or len(waiting) >= MOST_PIECES:
                    piece = waiting.popleft()
                    await piece.done
                    if piece.refused:
                        stamp, reason = min(piece.refused.items())
                        at = count + stamp - piece.first + 1
                        raise Refusal(f"notification {at}: {reason}")
                    count += piece.last - piece.first + 1
        finally:
            await asyncio.gather(*(one.done for one in waiting), return_exceptions=True)

    def _publish_piece(self, pairs: list[tuple[bytes, bytes]]) -> _Piece:
        publisher = self._publisher
        if publisher.breaks:
            raise Broken(publisher.breaks.popleft())
        sent = publisher.publish_all(pairs, self._now)
        last = publisher.acknowledged + publisher.waiting
        done = asyncio.get_running_loop().create_future()
        piece = _Piece(last - len(pairs) + 1, last, done, {})
        self._pieces.append(piece)
        self._hand_over(PUBLISHER, sent)
        return piece

    def overdue(self, what: str, timeout: float | None) -> TimedOut:
        """The error for something that did not happen in time."""
        why = f": {self._gone}" if self._gone else ""
        return TimedOut(f"{what} after {timeout or 0:g} seconds{why}")

    async def wait_for_change(self) -> None:
        """Wait until a message comes or the link ends."""
        self._change.clear()
        await self._change.wait()

    # -- the link ------------------------------------------------------------------------------

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._lost.clear()
        self._refusal = ""
        host, port = self._address
        patience = self._times.silent
        try:
            async with asyncio.timeout(patience):
                _, link = await loop.create_connection(
                    lambda: Link(
                        self._receive,
                        self._handle_end,
                        patience=patience,
                        largest=frames.LARGEST_DOWN,
                    ),
                    host,
                    port,
                    ssl=self._tls,
                )
        except TimeoutError:
            sentence = f"can't connect to {host}:{port}: no answer within {patience:g} seconds"
            raise EnvironmentProblem(sentence) from None
        except (OSError, ssl.SSLError) as problem:
            raise EnvironmentProblem(
                f"can't connect to {host}:{port}: {sentence_of(problem)}"
            ) from None
        link.send(self._hello)
        try:
            async with asyncio.timeout(min(GREETING, patience)):
                while not link.name and not self._lost.is_set():
                    await self.wait_for_change()
        except TimeoutError:
            link.close("the greeting was not answered in time")
            raise EnvironmentProblem(
                f"{host}:{port} does not answer, expected a tidings router there"
            ) from None
        except asyncio.CancelledError:
            link.close("the agent no longer waits for an answer")
            raise
        if not link.name:
            raise Refusal(f"{host}:{port}: {self._refusal}")

    async def _keep_connected(self) -> None:
        pause = RETRY[0]
        while True:
            await self._lost.wait()
            if not self._gone:
                self._tell_link(self._refusal)
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY[1])
            try:
                await self._connect()
                pause = RETRY[0]
                self._tell_link("")
            except TidingsError as problem:
                self._refusal = str(problem)
                if isinstance(problem, Refusal):  # the router is back, but refuses this agent
                    self._tell_link(self._refusal)
                self._lost.set()  # try again

    def _tell_link(self, gone: str) -> None:
        """Report that the link is gone, and why, or that it is back."""
        if gone != self._gone:
            self._gone = gone
            if self._on_link is not None:
                asyncio.get_running_loop().call_soon(self._on_link, gone)

    def _handle_end(self, link: Link, reason: str) -> None:
        if self._link is link or self._link is None:
            self._link = None
            if not link.name:
                reason += " before it answered"
                if self._tls:
                    reason += "; over TLS this can mean that a certificate was refused"
            self._refusal = self._refusal or reason
            self._lost.set()
            self._change.set()

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            message = frames.decode(buffer, start)
            if isinstance(message, m.Welcome):
                link.name = UPSTREAM
                self._link = link
                self._publisher.base = f"{message.publisher or self.name}/{self._life}"
                self._dispatch(self._router.join_upstream(self._now))
            elif isinstance(message, m.Goodbye):
                self._refusal = message.reason
                link.close("goodbye")
            elif link.name:
                self._dispatch(self._router.receive(UPSTREAM, message, self._now))
        self._change.set()

    async def _tick_forever(self) -> None:
        pause = min(self._times.beat, self._times.retry) / 2
        while True:
            await asyncio.sleep(pause)
            now = self._now
            link = self._link
            if link is not None and now - link.heard > 2 * self._times.silent:
                link.abort("nothing was heard for too long")
            self._dispatch(self._router.tick(now))
            self._hand_over(PUBLISHER, self._publisher.tick(now))
            for number, (machine, _) in [*self._subscriptions.items()]:
                self._hand_over(number, machine.tick(now))

    # -- between the state machines ------------------------------------------------------------

    @property
    def _now(self) -> float:
        return time.monotonic()

    def _hand_over(self, sender: Name, sent: list[Sent]) -> None:
        """Pass the messages of one of our state machines to our router. It would pass publications
        on as they are, so of many only the first goes there, to note where the answers go."""
        if sender == PUBLISHER and len(sent) > FEW and self._link is not None:
            rest = [message for _, message in sent[1:]]
            if all(isinstance(one, m.Publish) for _, one in sent):
                self._dispatch(self._router.receive(sender, sent[0][1], self._now))
                self._link.send_all(rest)
                return
        for _, message in sent:
            self._dispatch(self._router.receive(sender, message, self._now))

    def _dispatch(self, sent: list[Sent]) -> None:
        """Send the messages of our router over the link, or to one of our state machines."""
        for to, message in sent:
            if to == UPSTREAM:
                if self._link is not None:
                    self._link.send(message)
            elif to == PUBLISHER:
                self._hand_over(PUBLISHER, self._publisher.receive(message, self._now))
                self._acknowledge()
            elif to in self._subscriptions:
                machine, subscription = self._subscriptions[to]
                self._hand_over(to, machine.receive(message, self._now))
                subscription.wake()

    def _acknowledge(self) -> None:
        while self._on_break is not None and self._publisher.breaks:
            what = self._publisher.breaks.popleft()
            asyncio.get_running_loop().call_soon(self._on_break, what)
        for one in self._publisher.refused:  # earlier stamps may not be acknowledged yet
            waiting = self._acks.pop(one.stamp, None)
            if waiting is not None and not waiting.done():
                waiting.set_exception(Refusal(one.reason))
            for piece in self._pieces:
                if piece.first <= one.stamp <= piece.last:
                    piece.refused[one.stamp] = one.reason
        self._publisher.refused.clear()
        while self._pieces and self._pieces[0].last <= self._publisher.acknowledged:
            settled = self._pieces.pop(0).done
            if not settled.done():
                settled.set_result(None)
        for stamp in [*self._acks]:
            if stamp > self._publisher.acknowledged:
                break
            done = self._acks.pop(stamp)
            if not done.done():
                done.set_result(stamp)


@contextlib.asynccontextmanager
async def connect(
    address: str,
    *,
    name: str | None = None,
    token: str = "",
    tls: ssl.SSLContext | None = None,
    authorities: Path | None = None,
    times: Times | None = None,
    timeout: float | None = None,
    on_break: Callable[[Break], object] | None = None,
    on_link: Callable[[str], object] | None = None,
) -> AsyncIterator[Agent]:
    """Connect an agent to the router at an address, such as "tidings://host:7400/channel", or
    "tidings+tls://host:7400" if the router has a certificate.

    `name` distinguishes the agent from others; `token` is needed if the router requires one.
    `authorities` is a file with the certificates to trust for the router, instead of those that
    this machine trusts; `tls` replaces the TLS context that is created here. Raise TimedOut if
    there is no link after `timeout` seconds. Once connected, the agent reconnects by itself:
    `on_link` is called with the reason when the link is lost, and with "" when it is back. When the
    journal of the rendezvous point has gone back in time, `on_break` is called with a `Break`,
    which has the stamps of the acknowledged notifications that are gone. Without `on_break`, the
    next `publish` raises `Broken`.
    """
    host, port, channel, _ = place = parse_address(address)
    tls = context_for(place, tls, authorities)
    agent = Agent(
        host,
        port,
        name=name or f"agent-{uuid.uuid4().hex}",
        channel=channel,
        token=token,
        tls=tls,
        times=times,
        on_break=on_break,
        on_link=on_link,
    )
    await agent.start(timeout)
    try:
        yield agent
    finally:
        await agent.close()
