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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.network.agents import (
    ArrowRows,
    Broken,
    Header,
    LinkState,
    Outdated,
    Pairs,
    Refusal,
    Subscription,
    TimedOut,
    encode_attributes,
    pairs_of,
)
from tidings.network.agents.following import Following
from tidings.network.agents.preprocessors import Preprocessors
from tidings.network.agents.untagged import Untagged
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
ANONYMOUS = "agent-"  # the beginning of the name of an agent that was given no name
BUSY = 1 << 20  # bytes waiting to be sent, beyond which publications are not repeated
Order = Literal["serial", "none"]
Tagging = Literal["root", "local", "preprocessor"]
"""Who tags the notifications of an agent."""
HEADER_PATIENCE = 5.0  # seconds within which a preprocessor for a header must be found
PIECE_BYTES = 4 << 20  # bytes of a piece of a payload that does not fit into a frame
LARGEST = frames.LARGEST - (1 << 16)
"""The most bytes of a notification's attributes and payload; the rest of a frame is for headers. A
larger payload is sent in pieces."""
LARGEST_WHOLE = 1 << 30
"""The most bytes of a payload."""


async def _all_of(waiting: Sequence[asyncio.Future[int]]) -> int:
    """Wait for all answers; return the last stamp, or raise the first problem."""
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
    """Notifications of `publish_many` that were sent together: their stamps, and why some of them
    were refused. `done` completes when all are answered."""

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
        tag: Tagging = "root",
    ) -> None:
        self.name = name
        self._on_break = on_break
        self._on_link = on_link
        self._gone = ""  # why there is no link, as `on_link` was told
        self._since = time.time()  # when the link last changed
        self._places = deque(places)  # routers; the first is connected, or is tried next
        self._tls = tls
        self._is_anonymous = name.startswith(ANONYMOUS) and not token
        self._hello = m.Hello(name, places[0].channel, token)
        self._times = times or Times()
        self._router = Router(name, UPSTREAM, self._times, Cache(1000), draw_life(), NONE)
        # each start of an agent begins again with stamp 1
        self._life = uuid.uuid4().hex
        self._publisher = Publisher(f"{name}/{self._life}", LOCAL, self._times, window=WINDOW)
        self._subscriptions: dict[int, tuple[Subscriber, Subscription]] = {}
        self._texts: dict[int, str] = {}  # filters as the application wrote them
        self._live: tuple[str, ...] | None = None  # filters that the current notification matches
        self._next = 1
        self._link: Link | None = None
        self._refusal = self._reason = ""
        self._lost = asyncio.Event()
        self._change = asyncio.Event()
        self._acks: dict[int, asyncio.Future[int]] = {}
        self._pieces: list[_Piece] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._tagging = tag
        self._following = Following(self._send_up, self._times)
        self._preprocessors = Preprocessors(self._send_up, self._hello, self._times, tls)
        self._seeking = False
        self._untagged = Untagged(self._preprocessors.tag, self._publish_tagged)

    # -- for applications ----------------------------------------------------------------------

    async def start(self, timeout: float | None = None) -> None:
        """Connect; raise EnvironmentProblem or Refusal if that fails."""
        try:
            async with asyncio.timeout(timeout):
                await self._connect_to_any()
        except TimeoutError:
            raise self.overdue(f"there is no link to {self._where}", timeout) from None
        self._tasks = [
            asyncio.create_task(self._tick_forever()),
            asyncio.create_task(self._keep_connected()),
        ]
        if self._tagging == "local":
            self._tasks.append(asyncio.create_task(self._following.follow_forever()))
            try:
                async with asyncio.timeout(timeout):
                    await self._following.ready.wait()
            except TimeoutError:
                raise self.overdue("the nodes of the channel are not known", timeout) from None
            if self._following.refusal:
                raise Refusal(self._following.refusal)
        elif self._tagging == "preprocessor":
            self._seek()
            await self._preprocessors.wait_for_any(min(1.0, timeout or 1.0))

    @property
    def state(self) -> LinkState:
        """Whether there is a link at present, and to which router."""
        linked = self._link is not None
        return LinkState(linked, self._where, "" if linked else self._reason, self._since)

    def _seek(self) -> None:
        """Begin to use preprocessors."""
        if not self._seeking:
            self._seeking = True
            self._tasks.append(asyncio.create_task(self._preprocessors.seek_forever()))

    @property
    def view(self) -> Any:
        """The nodes of the channel in this process, if the agent tags by itself and knows them."""
        return self._following.view

    @property
    def preprocessors(self) -> Preprocessors:
        """The preprocessors that the agent uses."""
        return self._preprocessors

    def send_up(self, message: m.Message) -> bool:
        """Send a message to the router; False if there is no link."""
        return self._send_up(message)

    def _send_up(self, message: m.Message) -> bool:
        if self._link is None:
            return False
        self._link.send(message)
        return True

    async def header(self, attributes: Mapping[str, Any] | bytes) -> Header:
        """Obtain the header of a notification in advance, from the nodes in this process or from a
        preprocessor. Raise EnvironmentProblem if no preprocessor is found, and Refusal if the
        attributes are refused."""
        content = encode_attributes(attributes)
        if self._following.view is not None:
            tag = self._following.tag(content)
        else:
            self._seek()
            if not await self._preprocessors.wait_for_any(HEADER_PATIENCE):
                raise EnvironmentProblem(
                    f"no preprocessor of the channel was found within {HEADER_PATIENCE:g} seconds; "
                    'start one with `tidings preprocessor`, or use connect(..., tag="local")'
                )
            (tag,) = await self._preprocessors.tag([content])
        if not tag:
            raise Refusal("the notification can't be tagged, because its attributes are refused")
        return Header(tag)

    async def node_of(self, interest: str, dialect: str = "sql") -> int:
        """The node of a filter, as known to this process or to a preprocessor; 0 if nobody is
        subscribed to the filter. Other agents can subscribe to the node by its number."""
        view = self._following.view
        if view is not None:
            return int(view.place(interest, dialect).node)
        self._seek()
        await self._preprocessors.wait_for_any(HEADER_PATIENCE)
        found = await self._preprocessors.place(interest, dialect)
        if found is None:
            raise EnvironmentProblem("no preprocessor of the channel answers")
        if found.refusal:
            raise Refusal(found.refusal)
        return found.node

    async def close(self) -> None:
        for machine, subscription in [*self._subscriptions.values()]:
            subscription.close()
            self.unsubscribe(machine)
        for task in self._tasks:
            task.cancel()
        self._untagged.close()
        self._preprocessors.close()
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
        interest: str = "",
        dialect: str = "sql",
        *,
        node: int | None = None,
        name: str = "",
        order: Order = "serial",
        fast: bool = False,
        drop_after: float | None = None,
        most: int = MOST_UNREAD,
        timeout: float | None = None,
    ) -> Subscription:
        """Subscribe to a filter in a dialect. Use `async with` to wait until the subscription is in
        force, for at most `timeout` seconds; it raises Refusal if the rendezvous point refuses the
        filter. The subscription holds at most `most` unread notifications; the rest stays at the
        rendezvous point until there is room. Notifications come in the order of their serials: if
        one is missing, later ones wait until it arrives or is known to be lost. With
        `order="none"`, later notifications do not wait. With `fast`, missing notifications are
        neither noticed nor requested, and the order is arbitrary. After an interruption of more
        than `drop_after` seconds, the subscription ends with a `Break`.

        With a `name` the subscription is durable: the rendezvous point keeps notifications for it
        until they are confirmed (`Subscription.confirm`), even while no agent is connected. An
        agent that subscribes again with the same name, token and filter continues after the last
        confirmed notification.

        Instead of a filter, `node` can be the number of a node that another client obtained
        (`Subscription.node`, `node_of`). The rights and limits of the node's filter apply."""
        if (node is None) == (not interest):
            raise Refusal("found a filter and a node, or neither, expected exactly one of them")
        if node is not None:
            interest, dialect = str(node), m.NODE
        if name and (fast or order != "serial" or len(name) > m.LONGEST_NAME):
            raise Refusal(
                "found a named subscription that is fast, unordered or has a long name, expected "
                f"fast=False, order='serial' and a name of at most {m.LONGEST_NAME} characters"
            )
        if name and self._is_anonymous:
            raise Refusal(
                "found a named subscription of an agent without a name or a token, expected "
                "connect(..., name=...), because subscriptions are stored under the agent's name"
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
        attributes: Mapping[str, Any] | bytes | None = None,
        payload: bytes = b"",
        *,
        header: Header | None = None,
        subject: str = "",
        share: bool = True,
        fast: bool = False,
        timeout: float | None = None,
    ) -> int:
        """Publish a notification, and return its stamp when it is on the disk of the rendezvous
        point. Subscribers get the payload, the subject, and the attributes unless `share` is false.
        The stamps of an agent begin with 1. A payload that is sent in pieces takes several stamps,
        and the last of them is returned. With `fast`, only subscribers that are connected get the
        notification, without a stamp, a serial or the journal; 0 is returned at once, and a loss is
        not noticed. Raise Refusal if the notification was refused, and Broken if earlier
        acknowledged notifications are gone; in that case nothing is published. Raise TimedOut if
        the notification is not acknowledged within `timeout` seconds; the agent still tries to
        publish it. The attributes are a mapping, or bytes that are already encoded as a JSON
        object, a map in MessagePack, or XML.

        `header` is a header that was obtained in advance, with the method `header`. With a header,
        the attributes may be left out, and are then not sent. Raise Outdated if such a header is
        too old."""
        if header is None and attributes is None:
            raise Refusal("found neither attributes nor a header, expected one of them")
        if fast:
            if header is not None:
                raise Refusal("found a fast notification with a header, expected attributes only")
            self.publish_fast(attributes or {}, payload, subject=subject, share=share)
            return 0
        if header is not None:
            bare = attributes is None
            content = b"" if attributes is None else encode_attributes(attributes)
            shared = share and not bare
            done = self.publish_content(
                content, payload, subject=subject, share=shared, tag=header.data
            )
        else:
            done = self.publish_soon(attributes or {}, payload, subject=subject, share=share)
        try:
            async with asyncio.timeout(timeout):
                return await done
        except TimeoutError:
            raise self.overdue("the notification was not acknowledged", timeout) from None

    def publish_soon(
        self,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> asyncio.Future[int]:
        """Publish a notification without waiting. The future completes once it is on the disk."""
        content = encode_attributes(attributes)
        return self.publish_content(content, payload, subject=subject, share=share)

    def publish_fast(
        self,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> None:
        """Send a notification to connected subscribers; see `publish`. It is dropped if there is no
        link, or if too much waits to be sent. Raise Refusal if it does not fit into a frame."""
        content = encode_attributes(attributes)
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
        self,
        content: bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
        tag: bytes = b"",
    ) -> asyncio.Future[int]:
        """Like `publish_soon`, with attributes that are already JSON, MessagePack or XML, and
        perhaps with a tag."""
        self._check(content, payload, subject)
        if self._publisher.breaks:
            raise Broken(self._publisher.breaks.popleft())
        about = About(content if share else None, subject, time.time_ns() // 1000)
        if not tag and self._tagging == "local":
            tag = self._following.tag(content)
        elif not tag and self._tagging == "preprocessor":
            return self._untagged.put(content, payload, about)
        return self._publish_tagged(content, payload, about, tag)

    def _publish_tagged(
        self, content: bytes, payload: bytes, about: About, tag: bytes
    ) -> asyncio.Future[int]:
        if len(content) + len(payload) > LARGEST:
            return self._publish_pieces(content, payload, about, tag)
        return self._publish(content, payload, about, tag)

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

    def _publish(
        self, content: bytes, payload: bytes, about: About, tag: bytes
    ) -> asyncio.Future[int]:
        sent = self._publisher.publish(content, payload, self._now, about, tag)
        stamp = self._publisher.acknowledged + self._publisher.waiting
        done = self._acks[stamp] = asyncio.get_running_loop().create_future()
        self._hand_over(PUBLISHER, sent)
        return done

    def _publish_pieces(
        self, content: bytes, payload: bytes, about: About, tag: bytes
    ) -> asyncio.Future[int]:
        """Publish a payload in pieces; the future completes when all of them are on the disk."""
        first = self._publisher.acknowledged + self._publisher.waiting + 1
        many = -(-len(payload) // PIECE_BYTES)
        view = memoryview(payload)
        waiting = []
        for at in range(many):
            part = bytes(view[at * PIECE_BYTES : (at + 1) * PIECE_BYTES])
            told = msgspec.structs.replace(about, piece=Piece(first, at, many))
            waiting.append(self._publish(content, part, told, tag))
        return asyncio.ensure_future(_all_of(waiting))

    async def publish_many(self, notifications: Pairs | ArrowRows) -> int:
        """Publish pairs of attributes and payload, many at a time, and wait until all are on the
        disk; return how many there were. Arrow data is taken too: each row is a notification, and
        the column `payload`, if there is one, is the payload. If a notification is refused, stop
        publishing, wait for the answers to all that were sent, and raise Refusal."""
        given = pairs_of(notifications)
        waiting: deque[_Piece] = deque()
        count = 0  # acknowledged
        problem: Refusal | None = None  # why no more notifications are sent
        try:
            while True:
                pairs: list[tuple[bytes, bytes]] = []
                try:
                    for attributes, payload in islice(given, 0 if problem else PIECE):
                        content = encode_attributes(attributes)
                        _check_size(content, payload)
                        pairs.append((content, payload))
                except Refusal as found:  # the notifications before this one are sent
                    problem = found
                if pairs:
                    tags = await self._tag_pairs(pairs)
                    waiting.append(self._publish_piece(pairs, tags))
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

    async def _tag_pairs(self, pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
        """The tags of notifications; none if the rendezvous point tags them."""
        if self._tagging == "local":
            return self._following.tag_many([content for content, _ in pairs])
        if self._tagging == "preprocessor":
            return await self._preprocessors.tag([content for content, _ in pairs])
        return []

    def _publish_piece(self, pairs: list[tuple[bytes, bytes]], tags: Sequence[bytes]) -> _Piece:
        publisher = self._publisher
        if publisher.breaks:
            raise Broken(publisher.breaks.popleft())
        sent = publisher.publish_all(pairs, self._now, time.time_ns() // 1000, tags)
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
                self._places.rotate(-1)  # another router may answer at once
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
            elif isinstance(message, m.Described | m.Changed):
                self._following.receive(message)
            elif isinstance(message, m.Found):
                self._tell_found(message)
            elif link.name:
                if isinstance(message, m.Notification):
                    self._live = self._texts_for(message)
                self._dispatch(self._router.receive(UPSTREAM, message, self._now))
                self._live = None
        self._change.set()

    def _tell_found(self, message: m.Found) -> None:
        task = asyncio.create_task(self._preprocessors.receive(message))
        self._tasks = [one for one in self._tasks if not one.done()] + [task]

    async def _tick_forever(self) -> None:
        pause = min(self._times.beat, self._times.retry) / 2
        while True:
            await asyncio.sleep(pause)
            now = self._now
            link = self._link
            if link is not None and now - link.heard > 2 * self._times.silent:
                link.abort("nothing was heard for too long")
            self._dispatch(self._router.tick(now))
            if link is None or link.waiting < BUSY:  # otherwise too many are still unsent
                self._hand_over(PUBLISHER, self._publisher.tick(now))
            for number, (machine, subscription) in [*self._subscriptions.items()]:
                self._hand_over(number, machine.tick(now))
                subscription.wake()

    # -- between the state machines ------------------------------------------------------------

    @property
    def _now(self) -> float:
        return time.monotonic()

    def _hand_over(self, sender: Name, sent: list[Sent]) -> None:
        """Pass the messages of one of our state machines to our router. The router would forward
        publications unchanged. So if there are many, only the first passes through the router,
        which notes where the answers go; the rest is sent directly."""
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
        """The filters of this agent that a notification from above matches: those of the
        subscriptions to which our router forwards it."""
        ways = self._router.ways(tuple([mark.label for mark in message.marks]))
        return tuple([self._texts[one] for one in ways if one in self._texts])

    def _matched(self, number: int, message: m.Notification) -> tuple[str, ...]:
        """The filters that a delivered notification matches. Our router may not know the labels of
        a recovered notification. In that case, only filters that are known to match are returned,
        at least the filter of the subscription `number`."""
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
                waiting.set_exception(
                    Outdated(one.reason, one.version) if one.version else Refusal(one.reason)
                )
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
    tag: Tagging = "root",
) -> AsyncIterator[Agent]:
    """Connect an agent to the router at an address, such as "tidings://host:7400/channel", or
    "tidings+tls://host:7400" if the router has a certificate. With several routers, as a list of
    addresses or as "tidings://one:7400,two:7400/channel", the agent uses the first that it can
    reach, and another one when that link is lost.

    `name` distinguishes the agent from others; `token` is needed if the router requires one.
    `authorities` is a file with the certificates to trust for the router, instead of those that
    this machine trusts; `tls` replaces the TLS context that is created here. Raise TimedOut if
    there is no link after `timeout` seconds. Once connected, the agent reconnects by itself:
    `on_link` is called with the reason when the link is lost, and with "" when it is back. When the
    journal of the rendezvous point has gone back in time, `on_break` is called with a `Break`,
    which has the stamps of the acknowledged notifications that are gone. Without `on_break`, the
    next `publish` raises `Broken`.

    `tag` says who tags what the agent publishes: the rendezvous point ("root"), this process
    ("local"), or a preprocessor that the agent finds through the channel ("preprocessor"). The last
    two need the right to preprocess; if no preprocessor answers, the rendezvous point tags.
    """
    if tag not in ("root", "local", "preprocessor"):
        raise Refusal(f"found tag={tag!r}, expected 'root', 'local' or 'preprocessor'")
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
        tag=tag,
    )
    try:
        await agent.start(timeout)
        yield agent
    finally:
        await agent.close()
