"""A subscription for code without `async`."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from tidings.network.agents import Refusal, Subscription
from tidings.network.blocking.interruptible_waits import cut_wait
from tidings.routing.clients import Delivery, Item


class Runner(Protocol):
    """A blocking agent, as its subscriptions see it."""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any: ...

    def call_soon(self, work: Callable[[], object]) -> None: ...

    def check_thread(self) -> None: ...


class BlockingSubscription:
    """The notifications that match one filter. Iterating waits for the next notification, and ends
    when the subscription or its agent is closed."""

    def __init__(self, agent: Runner, subscription: Subscription) -> None:
        self._agent = agent
        self._subscription = subscription
        self._told: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._is_closed = False
        self._refusal: Refusal | None = None

    @property
    def note(self) -> str:
        """A remark of the rendezvous point about the filter, if it is unusual; else empty."""
        return self._subscription.note

    @property
    def never(self) -> bool:
        """Whether the filter can never match, given the attributes that the channel declares."""
        return self._subscription.never

    @property
    def node(self) -> int:
        """The number of the filter's node, to which others can subscribe."""
        return self._subscription.node

    def next(self, timeout: float | None = None) -> Item | None:
        """Return the next notification, or None. The result is None if no notification arrives
        within `timeout` seconds, or if the subscription has ended."""
        self._agent.check_thread()
        if self._is_closed and self._told.empty():
            self._check()
            return None
        for seconds in cut_wait(timeout):
            try:
                one = self._told.get(timeout=seconds)
            except queue.Empty:
                continue
            if one is None:  # None marks the end; put it back for the other waiting threads
                self._told.put(None)
                self._check()
            return one
        return None

    def _check(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def __iter__(self) -> Iterator[Item]:
        while (one := self.next()) is not None:
            yield one

    def confirm(self, one: Delivery, timeout: float | None = None) -> None:
        """Confirm a notification and all before it; see `Subscription.confirm`."""
        self._agent.run(self._subscription.confirm(one, timeout))

    def confirm_soon(self, one: Delivery) -> None:
        """Confirm a notification and all before it, without waiting."""
        self._agent.call_soon(lambda: self._subscription.confirm_soon(one))

    def drop(self, timeout: float | None = None) -> None:
        """End the subscription and drop its name."""
        self._agent.run(self._subscription.drop(timeout))

    def close(self) -> None:
        """End the subscription. Notifications that have arrived can still be read."""
        self._is_closed = True
        with contextlib.suppress(Refusal):
            self._agent.call_soon(self._subscription.close)

    def __enter__(self) -> BlockingSubscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def pump(self) -> None:
        """Pass notifications to the threads that read them; runs in the agent's event loop."""
        try:
            async for one in self._subscription:
                self._told.put(one)
        except Refusal as refusal:
            self._refusal = refusal
        finally:
            self._is_closed = True
            self._told.put(None)
