"""The second link of an agent's channel, to the rendezvous point itself.

    Apply ──(through the tree)──> Offered: an address, a ticket ──> link ──> move to it
      ^                              └── nothing: move back to the tree, and close the link
      └── every half minute while there is a second link; less and less often while there is none

If the second link can't be made, for example because of a firewall, nothing changes. If the second
link is lost, the subscriptions continue through the tree, and the agent applies again later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from tidings.model import TidingsError
from tidings.network.agents.agent_link import AgentLink
from tidings.network.router_url import parse_address
from tidings.routing.forwarding import MovingRouter, Sent
from tidings.routing.protocol import messages as m

DIRECT = "<direct>"
"""The name under which the router of an agent knows the rendezvous point."""
SETTLED = 1.0  # the agent applies after this many seconds without a change of subscriptions
PAUSES = (30.0, 600.0)  # the first and the longest pause in seconds after a failed attempt
GREETING = 10.0  # how many seconds the rendezvous point may take to answer
PARTS = 4  # a ticket is renewed after a quarter of its lifetime


class DirectLink:
    """The second link of one channel. For that link, this object is the only channel."""

    def __init__(
        self,
        home: AgentLink,
        channel: str,
        router: MovingRouter,
        wanted: Callable[[], Sequence[int] | None],
        send_up: Callable[[m.Message], bool],
        dispatch: Callable[[list[Sent]], None],
        received: Callable[[m.Message], None],
        ended: Callable[[str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        *,
        enabled: bool,
    ) -> None:
        """`wanted` returns the nodes of the subscriptions. It returns no nodes if there are too
        many, and None if some subscriptions are not in force yet. `send_up` sends a message to the
        router of the tree; `dispatch` sends the messages of the agent's own router. `received` and
        `ended` are called for the messages and the end of this link."""
        self.channel_name = channel
        self.refusal = ""
        self._home = home
        self._router = router
        self._wanted = wanted
        self._send_up = send_up
        self._dispatch = dispatch
        self._received = received
        self._ended = ended
        self._spawn = spawn
        self._is_enabled = enabled
        self._link: AgentLink | None = None
        self._is_connecting = False
        self._request = 0
        self._nodes: tuple[int, ...] = ()  # the nodes that the last `Apply` named
        self._above: tuple[int, ...] = ()  # the nodes above `_nodes`, according to the last answer
        self._changed = float("inf")  # when the wanted nodes changed last
        self._due = 0.0
        self._pause = PAUSES[0]
        self.address = ""

    @property
    def is_used(self) -> bool:
        """Do the notifications of the channel arrive over this link?"""
        return self._router.upstream == DIRECT

    def send(self, message: m.Message) -> None:
        if self._link is not None:
            self._link.send(self, message)

    def close(self) -> None:
        """End the link for good."""
        self._is_enabled = False
        self._end("the agent was closed")

    # -- applying ------------------------------------------------------------------------------

    def tend(self, now: float) -> None:
        """Apply for a link, or for its renewal, if it is time."""
        if not self._is_enabled or self._is_connecting:
            return
        if self._link is not None and not self.is_used and not self._router.is_moving:
            self._back_off(now)
            self._end("the subscriptions are in the tree")
        wanted = self._wanted()
        if wanted is None:
            return
        nodes = tuple(sorted(wanted))
        if nodes != self._nodes:
            self._nodes, self._above, self._changed = nodes, (), now
        if now - self._changed >= SETTLED:
            self._changed, self._due, self._pause = float("inf"), now, PAUSES[0]
        if now >= self._due and self._changed == float("inf"):
            self._apply(now)

    def _apply(self, now: float) -> None:
        self._due = now + self._pause
        if not self._nodes:
            if self._link is not None:
                self._dispatch(self._router.move(self._router.home, now))
            return
        self._request += 1
        name = self._home.hello.name
        self._send_up(m.Apply(self._router.epoch, self._request, name, self._nodes, self._above))

    def take(self, message: m.Offered) -> None:
        """Handle the answer of the rendezvous point."""
        now = time.monotonic()
        if message.request != self._request or not self._is_enabled or self._is_connecting:
            return
        self._above = message.above
        if not message.address:
            self._back_off(now)
            if self._link is not None:
                self._dispatch(self._router.move(self._router.home, now))
            return
        self._due = now + max(1.0, message.seconds / PARTS)
        if self._link is not None:
            self.send(m.Present(self._request, message.ticket.encode()))
            self._dispatch(self._router.move(DIRECT, now))  # subscriptions may be moving back
        else:
            self._is_connecting = True
            self._spawn(self._connect(message))

    def _back_off(self, now: float) -> None:
        self._due = now + self._pause
        self._pause = min(2 * self._pause, PAUSES[1])

    async def _connect(self, offered: m.Offered) -> None:
        """Make the link. The link uses TLS if the link to the router does; if the rendezvous point
        can't be reached, nothing changes."""
        link: AgentLink | None = None
        try:
            place = parse_address(f"tidings://{offered.address}/{self.channel_name}")
            hello = msgspec.structs.replace(
                self._home.hello, channel=self.channel_name, token=offered.ticket
            )
            link = AgentLink([place], hello, self._home.tls, self._home.times, None)
            link.add(self)
            self._link, self.address = link, offered.address
            await link.start(GREETING)
        except (TidingsError, asyncio.CancelledError) as problem:
            self._back_off(time.monotonic())
            self._link, self.address = None, ""
            if link is not None:
                await link.close()
            if isinstance(problem, asyncio.CancelledError):
                raise
        finally:
            self._is_connecting = False

    def _end(self, reason: str) -> None:
        link, self._link, self.address = self._link, None, ""
        if link is not None:
            self._spawn(_close(link))
            self._dispatch(self._router.end_link(DIRECT, time.monotonic()))
            self._ended(reason)

    # -- for the link --------------------------------------------------------------------------

    def join(self, publisher: str) -> None:
        """The rendezvous point has answered: begin to move the subscriptions to this link."""
        self._pause = PAUSES[0]
        self._dispatch(self._router.move(DIRECT, time.monotonic()))

    def interrupt(self, reason: str) -> None:
        """Handle the loss of the link."""
        self._back_off(time.monotonic())
        self._end(reason)

    def refuse(self, reason: str) -> None:
        """The channel has the number 0 on this link, and can't be refused."""

    def displace(self, reason: str) -> None:
        """Another link now uses the name of this one. The agent's link to its router continues."""
        self.interrupt(reason)

    def receive(self, message: m.Message) -> None:
        if isinstance(message, m.Presented):
            if message.refusal:
                self.interrupt(message.refusal)
        else:
            self._received(message)

    def tick(self, now: float) -> None:
        """The periodic work is all done by the agent's own channel."""


async def _close(link: AgentLink) -> None:
    await link.close()
