"""The items of a subscription, as an asynchronous iterator."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from tidings.network.agents.refusals import Refusal, TimedOut
from tidings.routing.clients import Confirming, Delivery, Item, Phase, Subscriber


class Owner(Protocol):
    """The part of an agent that its subscriptions use."""

    refusal: str  # why the node above does not serve the channel; empty if it does

    async def wait_for_change(self) -> None: ...
    def overdue(self, what: str, timeout: float | None) -> TimedOut: ...
    def unsubscribe(self, machine: Subscriber) -> None: ...
    def confirm(self, machine: Subscriber, serial: int) -> None: ...
    def drop_name(self, machine: Subscriber) -> None: ...


class Subscription:
    """The notifications that match one filter: an asynchronous iterator.

    It yields `Delivery` with the payload, `Lost` for notifications that no node has any more,
    `Break` when an unknown number of notifications was missed, `Interrupted` when the connection to
    the rendezvous point is lost, and `Resumed` when it is back.

    A filter that can never match is accepted: `never` is then true, and `note` says why. If a
    filter matches everything although it reads attributes, `note` says this too. `never` and `note`
    are known once the subscription is in force.
    """

    def __init__(self, agent: Owner, machine: Subscriber, timeout: float | None = None) -> None:
        self._agent = agent
        self._machine = machine
        self._timeout = timeout
        self._news = asyncio.Event()
        self._closed = False
        self._is_entered = False

    @property
    def note(self) -> str:
        """A remark of the rendezvous point about an unusual filter; empty for other filters."""
        return self._machine.note

    @property
    def node(self) -> int:
        """The number of the filter's node; 0 if it is not known yet. Other clients can subscribe to
        the node."""
        return self._machine.node

    @property
    def never(self) -> bool:
        """Whether the filter can never match, given the attributes that the channel declares."""
        return self._machine.never

    async def __aenter__(self) -> Subscription:
        """Wait until the subscription is in force: every notification from then on is delivered.
        Raise Refusal if the filter is refused, and TimedOut after the `timeout` of
        `Agent.subscribe`."""
        self._is_entered = True
        try:
            async with asyncio.timeout(self._timeout):
                while not self._is_in_force:
                    refusal = self._agent.refusal or self._machine.refusal
                    if self._agent.refusal or self._machine.phase is Phase.REFUSED:
                        raise Refusal(refusal)
                    await self._agent.wait_for_change()
        except TimeoutError:
            self.close()
            raise self._agent.overdue("the subscription was not confirmed", self._timeout) from None
        except BaseException:
            self.close()
            raise
        return self

    @property
    def _is_in_force(self) -> bool:
        """Will every notification be delivered from now on? A named subscription must also be
        claimed, which means that no other program uses its name any more."""
        state = self._machine.confirming
        return self._machine.phase is Phase.ON and (state is None or state.claimed)

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._news.set()
            self._agent.unsubscribe(self._machine)

    def confirm_soon(self, one: Delivery) -> None:
        """Confirm a notification and all before it, without waiting. Raise Refusal if the
        subscription has no name."""
        self._confirming()
        self._agent.confirm(self._machine, one.serial)

    async def confirm(self, one: Delivery, timeout: float | None = None) -> None:
        """Confirm a notification and all before it, and wait until the rendezvous point has the
        confirmation on disk. Raise TimedOut after `timeout` seconds."""
        self.confirm_soon(one)
        state = self._confirming()
        await self._wait(
            lambda: state.stored >= one.serial, "the confirmation was not stored", timeout
        )

    async def drop(self, timeout: float | None = None) -> None:
        """End the subscription and drop its name. No more notifications are kept for it."""
        state = self._confirming()
        self._agent.drop_name(self._machine)
        await self._wait(lambda: state.dropped, "the name was not dropped", timeout)
        self.close()

    def _confirming(self) -> Confirming:
        found = self._machine.confirming
        if found is None:
            raise Refusal("found a subscription without a name, expected subscribe(..., name=...)")
        return found

    async def _wait(self, is_so: Callable[[], bool], otherwise: str, timeout: float | None) -> None:
        state = self._confirming()
        try:
            async with asyncio.timeout(timeout):
                while not is_so():
                    if state.refusal:
                        refusal, state.refusal = state.refusal, ""
                        raise Refusal(refusal)
                    if self._machine.phase is Phase.REFUSED:  # it stays so
                        raise Refusal(self._machine.refusal)
                    await self._agent.wait_for_change()
        except TimeoutError:
            raise self._agent.overdue(otherwise, timeout) from None

    def __aiter__(self) -> Subscription:
        return self

    async def next(self, timeout: float | None = None) -> Item | None:
        """Return the next notification, or None. The result is None if no notification arrives
        within `timeout` seconds, or if the subscription has ended."""
        try:
            async with asyncio.timeout(timeout):
                return await anext(self, None)
        except TimeoutError:
            return None

    async def __anext__(self) -> Item:
        if not self._is_entered:
            raise Refusal(
                "the subscription may not be in force yet; enter it before reading from it, with "
                "`async with agent.subscribe(...) as told`"
            )
        while not self._machine.inbox:
            if self._closed:
                raise StopAsyncIteration
            if self._machine.phase is Phase.REFUSED:
                raise Refusal(self._machine.refusal)
            self._news.clear()
            await self._news.wait()
        return self._machine.inbox.popleft()

    @property
    def inbox(self) -> deque[Item]:
        """What has arrived and was not read yet."""
        return self._machine.inbox

    async def wait_for_news(self) -> bool:
        """Wait until more may have arrived; return False if the subscription has ended. Raise
        Refusal if it was refused. For a reader that takes items from `inbox` itself."""
        if self._closed:
            return False
        if self._machine.phase is Phase.REFUSED:
            raise Refusal(self._machine.refusal)
        self._news.clear()
        await self._news.wait()
        return True

    def wake(self) -> None:
        if self._machine.phase is Phase.STOPPED:  # dropped after a long loss of the link
            self.close()
        if self._machine.inbox or self._machine.phase is Phase.REFUSED:
            self._news.set()
