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
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.network.agents import Broken, LinkState, Refusal, Subscription, TimedOut
from tidings.network.link import Link
from tidings.network.lives import draw_life
from tidings.network.router_url import RouterUrl, parse_addresses
from tidings.network.tls import Path, context_for, sentence_of
from tidings.routing.clients import Publisher, Subscriber
from tidings.routing.forwarding import Cache, Name, Router, Sent
from tidings.routing.protocol import NONE, About, Break, Piece, Times, frames, messages as m

__all__ = [
    "LARGEST",
    "LARGEST_WHOLE",
    "Agent",
    "Broken",
    "Refusal",
    "Subscription",
    "TimedOut",
    "check_payload",
    "connect",
]

UPSTREAM, LOCAL, PUBLISHER = "<upstream>", "<agent>", "<publisher>"
RETRY = (0.1, 5.0)  # the first and the longest pause in seconds before reconnecting
GREETING = 10.0  # how many seconds the router may take to answer
WINDOW = 4000  # the most publications that are sent and not acknowledged
PIECE = 1000  # the number of notifications that `publish_many` sends together
MOST_PIECES = 8  # the most pieces of `publish_many` that are not acknowledged
FEW = 8  # more publications than this are sent as one piece
MOST_UNREAD = 100_000  # the most unread notifications of one subscription
ANONYMOUS = "agent-"  # the beginning of the names of agents that were given none
BUSY = 1 << 20  # bytes that wait to be sent; beyond it, nothing is repeated
Order = Literal["serial", "none"]
PIECE_BYTES = 4 << 20  # bytes of a piece of a payload that does not fit into a frame
LARGEST = frames.LARGEST - (1 << 16)
"""The most bytes of a notification's attributes and payload; the rest of a frame is for headers. A
larger payload is sent in pieces."""
LARGEST_WHOLE = 1 << 30
"""The most bytes of a payload."""


async def _all_of(waiting: Sequence[asyncio.Future[int]]) -> int:
    """The last stamp, when all are acknowledged; the first problem, when all are answered."""
    found = await asyncio.gather(*waiting, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    last = found[-1]
    assert isinstance(last, int)
    return last


def check_payload(payload: object) -> None:
    """Raise TypeError if a payload is not bytes."""
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise TypeError(f"found a payload of type {type(payload).__name__}, expected bytes")


def _check_size(content: bytes, payload: bytes) -> None:
    check_payload(payload)
    size = len(content) + len(payload)
    if size > LARGEST:
        raise Refusal(f"found a notification of {size:,} bytes, expected at most {LARGEST:,}")


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
        places: Sequence[RouterUrl],
        *,
        name: str,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        times: Times | None = None,
        on_break: Callable[[Break], object] | None = None,
        on_link: Callable[[str], object] | None = None,
    ) -> None:
        self.name = name
        self._on_break = on_break
        self._on_link = on_link
        self._gone = ""  # why there is no link, as `on_link` was told
        self._since = time.time()  # of the last change of the link
        self._places = deque(places)  # routers; the first one is tried next, or is linked
        self._tls = tls
        self._is_anonymous = name.startswith(ANONYMOUS) and not token
        self._hello = m.Hello(name, places[0].channel, token)
        self._times = times or Times()
        self._router = Router(name, UPSTREAM, self._times, Cache(1000), draw_life(), NONE)
        # each start of an agent begins again with stamp 1
        self._life = uuid.uuid4().hex
        self._publisher = Publisher(f"{name}/{self._life}", LOCAL, self._times, window=WINDOW)
        self._subscriptions: dict[int, tuple[Subscriber, Subscription]] = {}
        self._texts: dict[int, str] = {}  # of subscriptions, as the application wrote them
        self._live: tuple[str, ...] | None = None  # those that match what is being received
        self._next = 1
        self._link: Link | None = None
        self._refusal = self._reason = ""
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
                await self._connect_to_any()
        except TimeoutError:
            raise self.overdue(f"there is no link to {self._where}", timeout) from None
        self._tasks = [
            asyncio.create_task(self._tick_forever()),
            asyncio.create_task(self._keep_connected()),
        ]

    @property
    def state(self) -> LinkState:
        """Whether there is a link at present, and to which router."""
        linked = self._link is not None
        return LinkState(linked, self._where, "" if linked else self._reason, self._since)

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
        name: str = "",
        order: Order = "serial",
        fast: bool = False,
        drop_after: float | None = None,
        most: int = MOST_UNREAD,
        timeout: float | None = None,
    ) -> Subscription:
        """Subscribe to a filter. Enter the subscription to wait until it is in force, for at most
        `timeout` seconds. It holds at most `most` unread notifications; the rest stays at the
        rendezvous point until there is room. The rendezvous point reads the filter, in its
        dialect, and refuses it when the subscription is entered. Notifications come in the order of
        their serials: a gap holds back what follows, for at most 5 seconds. With `order="none"`,
        nothing is held back. With `fast`, what is missing is neither noticed nor asked for, and
        comes in any order. After an interruption of more than `drop_after` seconds, the
        subscription ends with a `Break`.

        With a `name` the subscription is durable: the rendezvous point keeps notifications for it
        until they are confirmed (`Subscription.confirm`), also while nobody is linked. Whoever
        comes back under the name, with the same token and filter, goes on after the last one that
        was confirmed."""
        if name and (fast or order != "serial" or len(name) > m.LONGEST_NAME):
            raise Refusal(
                "found a named subscription that is fast, in no order, or whose name has more than "
                f"{m.LONGEST_NAME} characters, expected none of these"
            )
        if name and self._is_anonymous:
            raise Refusal(
                "found a named subscription of an agent without a name or a token, expected "
                "connect(..., name=...), because the name of the subscription belongs to the agent"
            )
        if order not in ("serial", "none"):
            raise Refusal(f"found the order {order!r}, expected 'serial' or 'none'")
        text = interest
        number, self._next = self._next, self._next + 1
        machine = Subscriber(
            number, LOCAL, interest.encode(), self._times, most, dialect,
            partial(self._matched, number),
            ordered=order == "serial", fast=fast, drop_after=drop_after, durable=name,
        )  # fmt: skip
        self._texts[number] = text
        subscription = Subscription(self, machine, timeout)
        self._subscriptions[number] = machine, subscription
        self._hand_over(number, machine.start(self._now))
        return subscription

    def confirm(self, machine: Subscriber, serial: int) -> None:
        assert isinstance(machine.name, int)
        self._hand_over(machine.name, machine.confirm(serial, self._now))

    def drop_name(self, machine: Subscriber) -> None:
        assert isinstance(machine.name, int)
        self._hand_over(machine.name, machine.drop_name(self._now))

    def unsubscribe(self, machine: Subscriber) -> None:
        number = machine.name
        assert isinstance(number, int)
        if self._subscriptions.pop(number, None) is not None:
            del self._texts[number]
            self._hand_over(number, machine.stop(self._now))
            self._router.context.now = self._now
            self._router.drop(number)
            self._dispatch(self._router.drain_outgoing())

    async def publish(
        self,
        attributes: Mapping[str, Any],
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
        fast: bool = False,
        timeout: float | None = None,
    ) -> int:
        """Publish a notification, and return its stamp when it is on the disk of the rendezvous
        point. Subscribers get the payload, the subject, and the attributes unless `share` is false.
        The stamps of an agent begin with 1; a payload that is sent in pieces takes several, and its
        stamp is the last. With `fast`, it goes to those who are there, without a stamp, a serial
        or the journal; this returns 0 at once, and nobody notices if it is lost. Refusal if it was
        refused; Broken if earlier acknowledged notifications are gone, and then nothing is
        published. TimedOut if it is not acknowledged within `timeout` seconds; the agent still
        tries to publish it."""
        if fast:
            self.publish_fast(attributes, payload, subject=subject, share=share)
            return 0
        done = self.publish_soon(attributes, payload, subject=subject, share=share)
        try:
            async with asyncio.timeout(timeout):
                return await done
        except TimeoutError:
            raise self.overdue("the notification was not acknowledged", timeout) from None

    def publish_soon(
        self,
        attributes: Mapping[str, Any],
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> asyncio.Future[int]:
        """Publish a notification without waiting. The future completes once it is on the disk."""
        content = msgspec.json.encode(attributes)
        return self.publish_content(content, payload, subject=subject, share=share)

    def publish_fast(
        self,
        attributes: Mapping[str, Any],
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> None:
        """Send a notification to those who are there; see `publish`. It is dropped if there is no
        link, or if too much waits to be sent. Refusal if it does not fit into a frame."""
        content = msgspec.json.encode(attributes)
        self._check(content, payload, subject)
        if len(content) + len(payload) > LARGEST:
            size = len(content) + len(payload)
            raise Refusal(
                f"found a fast notification of {size:,} bytes, expected at most {LARGEST:,}"
            )
        link = self._link
        if link is None or link.waiting > link.most_waiting:
            return
        message = m.Publish(
            self._publisher.name, 0, 0, content, payload, share, subject,
            time.time_ns() // 1000, fast=True,
        )  # fmt: skip
        self._hand_over(PUBLISHER, [(LOCAL, message)])

    def publish_content(
        self, content: bytes, payload: bytes = b"", *, subject: str = "", share: bool = True
    ) -> asyncio.Future[int]:
        """The same, with attributes that are already encoded as JSON."""
        self._check(content, payload, subject)
        if self._publisher.breaks:
            raise Broken(self._publisher.breaks.popleft())
        about = About(content if share else None, subject, time.time_ns() // 1000)
        if len(content) + len(payload) > LARGEST:
            return self._publish_pieces(content, payload, about)
        return self._publish(content, payload, about)

    def _check(self, content: bytes, payload: bytes, subject: str) -> None:
        """Raise Refusal if a notification is too large."""
        check_payload(payload)
        if len(subject) > m.LONGEST_SUBJECT:
            raise Refusal(
                f"found a subject of {len(subject):,} characters, expected at most "
                f"{m.LONGEST_SUBJECT:,}"
            )
        for what, size, most in (("attributes", len(content), LARGEST - PIECE_BYTES),
                                 ("a payload", len(payload), LARGEST_WHOLE)):  # fmt: skip
            if size > most:
                raise Refusal(f"found {what} of {size:,} bytes, expected at most {most:,}")

    def _publish(self, content: bytes, payload: bytes, about: About) -> asyncio.Future[int]:
        sent = self._publisher.publish(content, payload, self._now, about)
        stamp = self._publisher.acknowledged + self._publisher.waiting
        done = self._acks[stamp] = asyncio.get_running_loop().create_future()
        self._hand_over(PUBLISHER, sent)
        return done

    def _publish_pieces(self, content: bytes, payload: bytes, about: About) -> asyncio.Future[int]:
        """Publish a payload in pieces; the future completes when all of them are on the disk."""
        first = self._publisher.acknowledged + self._publisher.waiting + 1
        many = -(-len(payload) // PIECE_BYTES)
        view = memoryview(payload)
        waiting = []
        for at in range(many):
            part = bytes(view[at * PIECE_BYTES : (at + 1) * PIECE_BYTES])
            told = msgspec.structs.replace(about, piece=Piece(first, at, many))
            waiting.append(self._publish(content, part, told))
        return asyncio.ensure_future(_all_of(waiting))

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
                        _check_size(content, payload)
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
        sent = publisher.publish_all(pairs, self._now, time.time_ns() // 1000)
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

    @property
    def _where(self) -> str:
        return f"{self._places[0].host}:{self._places[0].port}"

    async def _connect_to_any(self) -> None:
        """Connect to the first router that can be reached. If none can, raise the first problem."""
        problems: list[TidingsError] = []
        for _ in range(len(self._places)):
            try:
                await self._connect()
                return
            except TidingsError as problem:
                problems.append(problem)
                self._places.rotate(-1)
        refusals = (one for one in problems if isinstance(one, Refusal))
        raise next(refusals, problems[0])

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._lost.clear()
        self._refusal = ""
        host, port = self._places[0][:2]
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
                self._places.rotate(-1)  # another one may be there at once
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY[1])
            try:
                await self._connect_to_any()
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
            if self._link is link:
                self._since, self._reason = time.time(), reason
                for machine, subscription in self._subscriptions.values():
                    machine.interrupt(self._refusal or reason, self._now)
                    subscription.wake()
            self._link = None
            if not link.name:
                reason += " before it answered"
                if self._tls:
                    reason += "; over TLS this can mean that a certificate was refused"
            self._refusal = self._reason = self._refusal or reason
            self._lost.set()
            self._change.set()

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            message = frames.decode(buffer, start)
            if isinstance(message, m.Welcome):
                link.name = UPSTREAM
                self._link, self._since = link, time.time()
                self._publisher.base = f"{message.publisher or self.name}/{self._life}"
                self._dispatch(self._router.join_upstream(self._now))
            elif isinstance(message, m.Goodbye):
                self._refusal = message.reason
                link.close("goodbye")
            elif link.name:
                if isinstance(message, m.Notification):
                    self._live = self._texts_for(message)
                self._dispatch(self._router.receive(UPSTREAM, message, self._now))
                self._live = None
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
            if link is None or link.waiting < BUSY:  # else they are still being sent
                self._hand_over(PUBLISHER, self._publisher.tick(now))
            for number, (machine, subscription) in [*self._subscriptions.items()]:
                self._hand_over(number, machine.tick(now))
                subscription.wake()

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

    def _texts_for(self, message: m.Notification) -> tuple[str, ...]:
        """The filters of this agent that a notification from above matches: our router passes it
        on to exactly these."""
        ways = self._router.ways(tuple([mark.label for mark in message.marks]))
        return tuple([self._texts[one] for one in ways if one in self._texts])

    def _matched(self, number: int, message: m.Notification) -> tuple[str, ...]:
        """The same when one of them is delivered. One that was missed and recovered has labels that
        our router may not know. Then these are the filters that are known to match it: at least
        the one that recovered it."""
        if self._live is not None:
            return self._live
        known = dict.fromkeys((self._texts[number], *self._texts_for(message)))
        for other, (machine, _) in self._subscriptions.items():
            if machine.tracks(message.marks):
                known[self._texts[other]] = None
        return tuple(known)

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
    address: str | Sequence[str],
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
    "tidings+tls://host:7400" if the router has a certificate. With several routers, as a list of
    addresses or as "tidings://one:7400,two:7400/channel", the agent uses the first that it can
    reach, and another one when that is gone.

    `name` distinguishes the agent from others; `token` is needed if the router requires one.
    `authorities` is a file with the certificates to trust for the router, instead of those that
    this machine trusts; `tls` replaces the TLS context that is created here. Raise TimedOut if
    there is no link after `timeout` seconds. Once connected, the agent reconnects by itself:
    `on_link` is called with the reason when the link is lost, and with "" when it is back. When the
    journal of the rendezvous point has gone back in time, `on_break` is called with a `Break`,
    which has the stamps of the acknowledged notifications that are gone. Without `on_break`, the
    next `publish` raises `Broken`.
    """
    places = parse_addresses(address)
    tls = context_for(places[0], tls, authorities)
    agent = Agent(
        places,
        name=name or f"{ANONYMOUS}{uuid.uuid4().hex}",
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
