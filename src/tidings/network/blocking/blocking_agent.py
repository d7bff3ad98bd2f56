"""The agent for scripts and notebooks: it has the methods of the asynchronous agent, but needs no
`async`.

    with connect_blocking("tidings://127.0.0.1:7400") as agent:
        agent.publish({"price": 95.0}, b"...")          on disk when this returns
        with agent.subscribe("price > 90") as told:
            for notification in told: ...

Inside, a thread runs the asynchronous agent in its own event loop, so it does not matter whether
the caller has an event loop. All methods may be called from several threads. Publications are
passed to the loop many at a time, because waking a thread costs more than publishing.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, TypeVar

from tidings.model import EnvironmentProblem, TidingsError
from tidings.network.agent import (
    MOST_UNREAD,
    Agent,
    AgentChannel,
    Order,
    Tagging,
    check_payload,
    connect,
)
from tidings.network.agents import (
    ArrowRows,
    Header,
    LinkState,
    Pairs,
    Refusal,
    SignedGrant,
    check_pair,
    encode_attributes,
    pairs_of,
)
from tidings.network.agents.blocking_channel import BlockingChannel
from tidings.network.blocking.blocking_subscription import BlockingSubscription
from tidings.network.blocking.interruptible_waits import Acknowledgment, Condition, await_result
from tidings.network.tls import Path
from tidings.routing.clients import ChoosingTimes
from tidings.routing.protocol import DEFAULT_DIALECT, Break, Times

MOST_UNDER_WAY = 10_000  # publishing waits while this many publications are unacknowledged
AT_EXIT = 2.0  # how many seconds closing an agent may take when the interpreter ends

_T = TypeVar("_T")
_CLOSED = "the agent is closed"
_UNANSWERED = "the notification was not acknowledged"


class BlockingAgent:
    """One link to a router, with the subscriptions and publications of an application."""

    def __init__(
        self, connecting: Callable[[], contextlib.AbstractAsyncContextManager[Agent]]
    ) -> None:
        self._connecting = connecting
        self._started: Future[None] = Future()
        self._agent: Agent
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._task: asyncio.Task[Any] | None = None
        self._lock = Condition()
        self._is_closed = False
        self._under_way = 0
        self._abandoned: set[Future[int]] = set()  # their callers have timed out
        self._todo: deque[tuple[AgentChannel, bytes, bytes, str, bool, Future[int]]] = deque()
        self._is_woken = False
        self._pumps: set[asyncio.Task[None]] = set()
        # a daemon thread, so that the interpreter does not wait for it at exit
        self._thread = threading.Thread(target=self._run, name="tidings agent", daemon=True)

    # -- for applications ----------------------------------------------------------------------

    def publish(
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
        """Publish a notification, wait until it is on the disk of the rendezvous point, and return
        its stamp. Subscribers get the payload and the subject, and also the attributes unless
        `share` is false. The stamps of an agent start from 1. Raise Refusal if the notification was
        refused. Raise Broken, and publish nothing, if notifications that were acknowledged earlier
        have been lost. Raise TimedOut if the notification is not acknowledged within `timeout`
        seconds; the agent still tries to publish it, until the agent is closed. For `fast` and
        `header`, see `Agent.publish`."""
        self.check_thread()
        if header is not None or attributes is None:
            return self.run(
                self._agent.publish(
                    attributes, payload, header=header, subject=subject, share=share, fast=fast,
                    timeout=timeout,
                )
            )  # fmt: skip
        if fast:
            self.run(self._publish_fast(encode_attributes(attributes), payload, subject, share))
            return 0
        deadline = None if timeout is None else time.monotonic() + timeout
        done = self._publish(self._agent, attributes, payload, timeout, subject, share)
        try:
            return done.result(None if deadline is None else deadline - time.monotonic())
        except TimeoutError:
            with self._lock:
                if not done.done():
                    self._abandoned.add(done)
                    raise self._agent.overdue(_UNANSWERED, timeout) from None
            return done.result()

    def publish_soon(
        self,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> Future[int]:
        """Publish a notification without waiting, unless 10,000 are unacknowledged. The future
        completes when the rendezvous point has the notification on disk."""
        return self._publish(self._agent, attributes, payload, None, subject, share)

    def publish_soon_in(
        self,
        channel: AgentChannel,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes,
        subject: str,
        share: bool,
    ) -> Future[int]:
        """Like `publish_soon`, in a channel; for `BlockingChannel`."""
        return self._publish(channel, attributes, payload, None, subject, share)

    def _publish(
        self,
        channel: AgentChannel,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes,
        timeout: float | None,
        subject: str,
        share: bool,
    ) -> Future[int]:
        check_payload(payload)
        # encode now, because the caller may change the attributes later
        content = encode_attributes(attributes)
        done = Acknowledgment()
        done.set_running_or_notify_cancel()  # from now on, the future can't be cancelled
        with self._lock:
            if self._under_way >= MOST_UNDER_WAY and not self._is_closed:
                self.check_thread()
                if not self._lock.wait_for(self._has_room, timeout):
                    many = f"{MOST_UNDER_WAY:,} notifications are not acknowledged"
                    raise self._agent.overdue(many, timeout)
            if self._is_closed:
                raise Refusal(_CLOSED)
            self._under_way += 1
            self._todo.append((channel, content, payload, subject, share, done))
            if not self._is_woken:
                self._is_woken = True
                self._loop.call_soon_threadsafe(self._publish_all)
        return done

    def _has_room(self) -> bool:
        return self._under_way < MOST_UNDER_WAY or self._is_closed

    def publish_many(self, notifications: Pairs | ArrowRows) -> int:
        """Publish pairs of attributes and payload in large groups, wait until the rendezvous point
        has all of them on disk, and return their number. For Arrow data, see `Agent.publish_many`.
        If a notification is refused, stop publishing, wait for the answers to all that were sent,
        and raise Refusal."""
        self.check_thread()
        waiting: deque[Future[int]] = deque()
        done = 0

        def settle(most: int) -> None:
            nonlocal done
            while len(waiting) > most or (waiting and waiting[0].done()):
                done += 1
                try:
                    waiting.popleft().result()
                except Refusal as problem:
                    raise Refusal(f"notification {done}: {problem}") from None

        try:
            for at, one in enumerate(pairs_of(notifications), 1):
                try:
                    waiting.append(self.publish_soon(*check_pair(one)))
                except Refusal as problem:
                    raise Refusal(f"notification {at}: {problem}") from None
                settle(MOST_UNDER_WAY)
            settle(0)
        except TidingsError:
            for left in waiting:
                left.exception()
            raise
        return done

    def header(self, attributes: Mapping[str, Any] | bytes) -> Header:
        """Obtain the header of a notification in advance; see `Agent.header`."""
        return self.run(self._agent.header(attributes))

    def node_of(self, interest: str, dialect: str = DEFAULT_DIALECT) -> int:
        """The node of a filter; see `Agent.node_of`."""
        return self.run(self._agent.node_of(interest, dialect))

    def grant(self, interest: str, dialect: str = DEFAULT_DIALECT) -> SignedGrant:
        """Obtain a signed grant for the node of a filter; see `Agent.grant`."""
        return self.run(self._agent.grant(interest, dialect))

    def subscribe(
        self,
        interest: str | Mapping[str, Any] = "",
        dialect: str = DEFAULT_DIALECT,
        *,
        node: int | None = None,
        grant: SignedGrant | None = None,
        name: str = "",
        order: Order = "serial",
        fast: bool = False,
        drop_after: float | None = None,
        most: int = MOST_UNREAD,
        timeout: float | None = None,
        related: float | None = None,
    ) -> BlockingSubscription:
        """Subscribe to a filter. The subscription is in force when this method returns. Raise
        Refusal if the filter is refused, and TimedOut if there is no answer within `timeout`
        seconds. For the rest, see `Agent.subscribe`."""
        how = {
            "node": node,
            "grant": grant,
            "name": name,
            "order": order,
            "fast": fast,
            "drop_after": drop_after,
            "most": most,
            "timeout": timeout,
            "related": related,
        }
        return self.run(self._subscribe(interest, dialect, how))

    def drop_named(self, name: str, timeout: float | None = None) -> None:
        """End a named subscription of this agent; see `Agent.drop_named`."""
        self.run(self._agent.drop_named(name, timeout))

    def channel(
        self,
        name: str,
        *,
        on_break: Callable[[Break], object] | None = None,
        tag: Tagging | None = None,
    ) -> BlockingChannel[BlockingSubscription]:
        """Another channel over the link of this agent; see `Agent.channel`. With `tag`, this method
        waits until notifications can be tagged in that way. `on_break` is called in the agent's
        thread, so it can't wait for the agent."""
        return self.run(self._open_channel(name, on_break, tag))

    @property
    def preprocessed(self) -> int:
        """How many notifications preprocessors tagged for this agent."""
        return self._agent.preprocessors.asked

    @property
    def state(self) -> LinkState:
        """Whether there is a link now, and to which router."""
        return self._agent.state

    def close(self, timeout: float | None = None) -> None:
        """Close everything and end the thread. The publications that are not acknowledged by then
        are refused."""
        self.check_thread()
        atexit.unregister(self._close_at_exit)
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
            self._lock.notify_all()
        if is_first:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout)

    def __enter__(self) -> BlockingAgent:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the agent. If there was no exception, first wait for the acknowledgments of all
        publications, except those that timed out."""
        try:
            with self._lock:
                while kind is None and self._under_way > len(self._abandoned):
                    self._lock.wait()
        finally:
            self.close()

    # -- between the threads -------------------------------------------------------------------

    def start(self) -> None:
        """Connect; raise EnvironmentProblem or Refusal if that fails."""
        self._thread.start()
        try:
            await_result(self._started)
        except BaseException:
            self._is_closed = True
            if self._task is not None and not self._started.done():  # interrupted by Ctrl-C
                self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(AT_EXIT)
            raise
        atexit.register(self._close_at_exit)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the loop, and wait for its result."""
        try:
            self.check_thread()
            with self._lock:
                if self._is_closed:
                    raise Refusal(_CLOSED)
                doing = asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise
        try:
            return await_result(doing)
        except CancelledError:
            raise Refusal(_CLOSED) from None
        except KeyboardInterrupt:
            doing.cancel()
            raise

    def call_soon(self, work: Callable[[], object]) -> None:
        """Call a function in the agent's event loop; raise Refusal if the agent is closed."""
        with self._lock:
            if self._is_closed:
                raise Refusal(_CLOSED)
            self._loop.call_soon_threadsafe(work)

    def check_thread(self) -> None:
        """Raise EnvironmentProblem in code that runs in the event loop, such as a callback of a
        future, because such code can't wait for the loop."""
        if threading.current_thread() is self._thread:
            raise EnvironmentProblem(
                "the thread of the agent can't wait for itself; call this from another thread"
            )

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as problem:
            if not self._started.done():
                self._started.set_exception(problem)
        finally:
            with self._lock:
                self._is_closed = True
                self._lock.notify_all()
                left = [*self._todo]
                self._todo.clear()
            for *_, done in left:
                reason = "the agent was closed before the notification was published"
                self._settle(done, Refusal(reason))

    async def _live(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._task = asyncio.current_task()
        async with self._connecting() as self._agent:
            self._started.set_result(None)
            await self._stop.wait()
            self._publish_all()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _open_channel(
        self, name: str, on_break: Callable[[Break], object] | None, tag: Tagging | None
    ) -> BlockingChannel[BlockingSubscription]:
        channel = self._agent.channel(name, on_break=on_break, tag=tag)
        await channel.wait_for_tagging()
        return BlockingChannel(self, channel, self._subscribe)

    async def _subscribe(
        self,
        interest: str | Mapping[str, Any],
        dialect: str,
        how: dict[str, Any],
        channel: AgentChannel | None = None,
    ) -> BlockingSubscription:
        subscription = (channel or self._agent).subscribe(interest, dialect, **how)
        await subscription.__aenter__()
        told = BlockingSubscription(self, subscription)
        pump = asyncio.create_task(told.pump())
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        return told

    async def _publish_fast(
        self, attributes: bytes, payload: bytes, subject: str, share: bool
    ) -> None:
        self._agent.publish_fast(attributes, payload, subject=subject, share=share)

    def _publish_all(self) -> None:
        with self._lock:
            self._is_woken = False
            todo, self._todo = self._todo, deque()
        for channel, content, payload, subject, share, done in todo:
            try:
                acknowledged = channel.publish_content(
                    content, payload, subject=subject, share=share
                )
            except TidingsError as problem:
                self._settle(done, problem)
            else:
                acknowledged.add_done_callback(partial(self._acknowledge, done))

    def _acknowledge(self, done: Future[int], one: asyncio.Future[int]) -> None:
        problem = Refusal(_CLOSED) if one.cancelled() else one.exception()
        self._settle(done, one.result() if problem is None else problem)

    def _settle(self, done: Future[int], how: int | BaseException) -> None:
        if isinstance(how, int):
            done.set_result(how)
        else:
            done.set_exception(how)
        with self._lock:
            self._under_way -= 1
            self._abandoned.discard(done)
            left = self._under_way - len(self._abandoned)
            if left <= 0 or self._under_way == MOST_UNDER_WAY // 2:  # waking threads is costly
                self._lock.notify_all()

    def _close_at_exit(self) -> None:
        self.close(AT_EXIT)


def connect_blocking(
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
    show_token: bool = False,
    direct: bool = True,
    advice: bool | ChoosingTimes = False,
) -> BlockingAgent:
    """Connect an agent to the router at an address, for code without `async`; see `connect`. Close
    the agent, or use it in a `with` statement. `on_break` and `on_link` are called in the agent's
    thread, so they can't wait for the agent."""
    agent = BlockingAgent(
        lambda: connect(
            address, name=name, token=token, tls=tls, authorities=authorities, times=times,
            timeout=timeout, on_break=on_break, on_link=on_link, tag=tag,
            show_token=show_token, direct=direct, advice=advice,
        )
    )  # fmt: skip
    agent.start()
    return agent
