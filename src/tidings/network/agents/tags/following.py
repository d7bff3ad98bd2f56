"""An agent that tags by itself: it follows the nodes of its channel.

    Describe ──> Follow ──> view ──(pause)──> Follow ──> view ...      tags are of the latest view

If the link is lost, so may be the answer; an unanswered request is therefore sent again.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tidings.model import TidingsError
from tidings.network.agents.refusals import Refusal
from tidings.routing.clients import Follower
from tidings.routing.protocol import Times, messages as m

if TYPE_CHECKING:
    from tidings.preprocessing import ChannelView

EVERY = 0.1  # seconds between two requests for changes
FIRST = 1 << 50  # the first request number; the agent's other requests have lower numbers

_log = logging.getLogger(__name__)


class Following:
    """A copy of a channel's nodes, which an agent keeps up to date."""

    def __init__(self, send: Callable[[m.Message], bool], times: Times) -> None:
        """`send` sends a message to the router; False if there is no link."""
        self._send = send
        self._times = times
        self._request = FIRST
        self._name = uuid.uuid4().hex
        self._follower: Follower | None = None
        self._answered = asyncio.Event()
        self.view: ChannelView | None = None
        self.refusal = ""
        """Why the rendezvous point refuses to send its nodes."""
        self.ready = asyncio.Event()
        """Set when the nodes are known or the request for them was refused."""

    def receive(self, message: m.Message) -> None:
        """Process an answer."""
        if self._follower is not None and self._follower.receive(message):
            self._answered.set()

    def tag(self, content: bytes) -> bytes:
        """The tag of a notification; empty if the rendezvous point must tag it."""
        if self.view is None:
            return b""
        try:
            return self.view.tag(content)
        except TidingsError:
            return b""  # no tag, so the rendezvous point reports the problem

    def tag_many(self, contents: Sequence[bytes]) -> list[bytes]:
        if self.view is None or not self.view.version:
            return [b""] * len(contents)
        return self.view.tag_many(contents)

    async def follow_forever(self) -> None:
        """Keep the view up to date."""
        while True:
            try:
                await self._follow()
            except Refusal as problem:
                if not self.refusal:
                    _log.warning("the agent can't tag by itself: %s", problem)
                self.refusal, self.view = str(problem), None
                self.ready.set()
                await asyncio.sleep(self._times.silent)  # rights may change
            except Exception:  # if there is no view, the rendezvous point tags
                _log.exception("the nodes of the channel could not be followed")
                self.view = None
                await asyncio.sleep(self._times.retry)

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        # importing NumPy, Numba and Arrow takes seconds, during which links must stay alive
        await loop.run_in_executor(None, importlib.import_module, "tidings.preprocessing")
        from tidings.preprocessing import ChannelView

        described = (await self._ask(m.Describe(self._next(), relayed=True))).described
        assert described is not None
        try:
            view = ChannelView(described)
        except TidingsError as problem:  # the class of an application may not be installed here
            raise Refusal(str(problem)) from None
        try:
            await self._put_forever(view)
        finally:
            view.close()  # otherwise, the process can't end before a running `put` is complete

    async def _put_forever(self, view: ChannelView) -> None:
        """Apply changes, until the rendezvous point sends all nodes again."""
        loop = asyncio.get_running_loop()
        while True:
            question = m.Follow(
                self._next(), view.version, view.life, relayed=True, follower=self._name
            )
            changed = (await self._ask(question)).changed
            assert changed is not None
            if view.version and (changed.whole or changed.life != view.life):
                return  # the definition of the channel may be a new one too
            same = view.version, view.epoch
            if changed.changes or (changed.version, changed.epoch) != same or not view.version:
                await loop.run_in_executor(None, view.put, changed)
            self.view, self.refusal = view, ""
            self.ready.set()
            await asyncio.sleep(EVERY)

    def _next(self) -> int:
        self._request += 1 << 20  # the numbers in between are for further pages of an answer
        return self._request

    async def _ask(self, question: m.Describe | m.Follow) -> Follower:
        """Ask until the answer is complete; raise Refusal if the answer is a refusal."""
        follower = self._follower = Follower(question)
        while not follower.is_done:
            self._answered.clear()
            asked = follower.question
            self._send(asked)
            try:
                async with asyncio.timeout(self._times.retry):
                    while follower.question is asked and not follower.is_done:
                        await self._answered.wait()
                        self._answered.clear()
            except TimeoutError:
                continue
        if follower.refusal:
            raise Refusal(follower.refusal)
        return follower
