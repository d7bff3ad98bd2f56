"""A subscription for code without `async`.

Threads take notifications directly from the inbox of the asynchronous subscription. So the inbox
is the only place in which unread notifications wait, and `most` limits their number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from tidings.network.agents import Refusal, Subscription
from tidings.network.blocking.interruptible_waits import Condition
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
        self._news = Condition()
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
        inbox = self._subscription.inbox
        with self._news:
            self._news.wait_for(lambda: inbox or self._is_closed, timeout)
            if inbox:
                return inbox.popleft()
        if self._is_closed and self._refusal is not None:
            raise self._refusal
        return None

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
        self._end()
        with contextlib.suppress(Refusal):
            self._agent.call_soon(self._subscription.close)

    def __enter__(self) -> BlockingSubscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def pump(self) -> None:
        """Wake the threads that wait whenever something has arrived; runs in the agent's event
        loop."""
        try:
            while await self._subscription.wait_for_news():
                with self._news:
                    self._news.notify_all()
        except Refusal as refusal:
            self._refusal = refusal
        finally:
            self._end()

    def _end(self) -> None:
        """Wake the threads that wait, because nothing more will arrive."""
        with self._news:
            self._is_closed = True
            self._news.notify_all()
