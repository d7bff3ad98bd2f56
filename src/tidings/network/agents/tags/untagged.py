"""Notifications that wait for their tags.

A preprocessor tags up to MOST waiting notifications at once. They are then sent in the order in
which the application published them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from tidings.network.agents.refusals import Refusal
from tidings.routing.protocol import About

MOST = 1000  # the most notifications that are tagged at once

Publish = Callable[[bytes, bytes, About, bytes], asyncio.Future[int]]
Waiting = tuple[bytes, bytes, About, asyncio.Future[int]]


class Untagged:
    """The notifications of an agent that are still to be tagged."""

    def __init__(
        self, tag: Callable[[Sequence[bytes]], Awaitable[list[bytes]]], publish: Publish
    ) -> None:
        self._tag = tag
        self._publish = publish
        self._waiting: deque[Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    def put(self, content: bytes, payload: bytes, about: About) -> asyncio.Future[int]:
        """Publish a notification when it is tagged. The future completes when the rendezvous point
        has it on disk."""
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((content, payload, about, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return done

    def close(self) -> None:
        """Refuse the notifications that were not published yet."""
        if self._task is not None:
            self._task.cancel()
        for *_, done in self._waiting:
            if not done.done():
                done.set_exception(Refusal("the agent was closed before the notification was sent"))
                done.exception()  # prevents a warning if nobody waits for the future
        self._waiting.clear()

    async def _work(self) -> None:
        while self._waiting:
            some = [self._waiting[at] for at in range(min(MOST, len(self._waiting)))]
            tags = await self._tag([content for content, *_ in some])
            for (content, payload, about, done), tag in zip(some, tags, strict=True):
                self._waiting.popleft()
                published = self._publish(content, payload, about, tag)
                published.add_done_callback(partial(_settle, done))


def _settle(done: asyncio.Future[int], published: asyncio.Future[int]) -> None:
    """Give a future the result of another one."""
    if published.cancelled():
        done.cancel()
    elif (problem := published.exception()) is not None:
        if not done.done():
            done.set_exception(problem)
    elif not done.done():
        done.set_result(published.result())
