"""The agent that an application uses.

    async with connect("tidings://127.0.0.1:7400") as agent:
        await agent.publish({"price": 95.0}, b"...")        on disk when this returns
        async with agent.subscribe("price > 90") as told:
            async for notification in told: ...
        tea = agent.channel("tea")                          another channel over the same link
        await tea.publish({"grams": 100}, b"...")

An agent subscribes and publishes, and notices every loss.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import uuid
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from tidings.network.agents import (
    Broken,
    LinkState,
    Refusal,
    Subscription,
    TimedOut,
)
from tidings.network.agents.agent_channel import ANONYMOUS, MOST_UNREAD, AgentChannel, Order
from tidings.network.agents.agent_link import AgentLink
from tidings.network.agents.moving import Moving
from tidings.network.agents.publishing import (
    LARGEST,
    LARGEST_WHOLE,
    Tagging,
    check_payload,
)
from tidings.network.router_url import RouterUrl, parse_addresses
from tidings.network.tls import Path, context_for
from tidings.routing.clients import ChoosingTimes
from tidings.routing.protocol import Break, Times, messages as m

__all__ = [
    "LARGEST",
    "LARGEST_WHOLE",
    "MOST_UNREAD",
    "Agent",
    "AgentChannel",
    "Broken",
    "Order",
    "Refusal",
    "Subscription",
    "Tagging",
    "TimedOut",
    "check_payload",
    "connect",
]


class Agent(AgentChannel):
    """One link to a router, with the subscriptions and publications of an application. The agent's
    own methods use the channel that is named in its address; `channel` opens others."""

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
        show_token: bool = False,
        direct: bool = True,
        advice: ChoosingTimes | None = None,
    ) -> None:
        own = places[0].channel
        link = AgentLink(places, m.Hello(name, own, token), tls, times or Times(), on_link)
        super().__init__(
            link, own, on_break=on_break, tag=tag, direct=direct, show_token=show_token
        )
        self._may_be_direct, self._may_show_token = direct, show_token
        self._others: dict[str, AgentChannel] = {}
        if advice is not None:
            self._moving = Moving(link, advice)

    async def start(self, timeout: float | None = None) -> None:
        """Connect; raise EnvironmentProblem or Refusal if that fails."""
        await self._agent_link.start(timeout)
        if self._moving is not None:
            self._tasks.append(asyncio.create_task(self._moving.move_forever()))
        self.begin_tagging()
        await self.wait_for_tagging(timeout)

    @property
    def state(self) -> LinkState:
        """Whether there is a link now, and to which router."""
        state, direct = self._agent_link.state, self.direct
        if direct.is_used:
            state = msgspec.structs.replace(state, direct=direct.address)
        return state

    def channel(
        self,
        name: str,
        *,
        on_break: Callable[[Break], object] | None = None,
        tag: Tagging | None = None,
    ) -> AgentChannel:
        """Return another channel over the link of this agent, with the same methods to subscribe
        and publish as the agent itself. Two calls with the same name return the same object until
        that object is closed. If the router does not serve the channel, `subscribe` and `publish`
        raise Refusal; the agent asks again every few seconds.

        `tag` says which program tags the notifications that are published in this channel, as in
        `connect`; by default, the rendezvous point of the channel does. With "local" and
        "preprocessor", the rendezvous point tags until the agent is ready; `await
        channel.wait_for_tagging()` waits until it is."""
        check_tag(tag or "root")
        if name == self.channel_name:
            _check_same_tag(self, tag)
            return self
        if not name or len(name) > m.LONGEST_NAME:
            raise Refusal(
                f"found a channel name of {len(name)} characters, expected 1 to {m.LONGEST_NAME}"
            )
        found = self._others.get(name)
        if found is None or found.is_closed:
            found = self._others[name] = AgentChannel(
                self._agent_link,
                name,
                on_break=on_break,
                tag=tag or "root",
                direct=self._may_be_direct,
                show_token=self._may_show_token,
            )
            found.begin_tagging()
        _check_same_tag(found, tag)
        return found

    async def close(self) -> None:
        for one in [*self._others.values()]:
            await one.close()
        self.end()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._agent_link.close()


def check_tag(tag: str) -> None:
    """Raise Refusal if `tag` is not one of the allowed values."""
    if tag not in ("root", "local", "preprocessor"):
        raise Refusal(f"found tag={tag!r}, expected 'root', 'local' or 'preprocessor'")


def _check_same_tag(channel: AgentChannel, tag: Tagging | None) -> None:
    if tag is not None and tag != channel.tag:
        raise Refusal(
            f"found tag={tag!r} for the channel {channel.channel_name!r}, which is open with "
            f"tag={channel.tag!r}; close it first"
        )


@contextlib.asynccontextmanager
async def connect(
    address: str | Sequence[str],
    *,
    name: str | None = None,
    token: str | None = "",
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
) -> AsyncIterator[Agent]:
    """Connect an agent to the router at an address, such as "tidings://host:7400/channel", or
    "tidings+tls://host:7400" if the router has a certificate. With several routers, as a list of
    addresses or as "tidings://one:7400,two:7400/channel", the agent uses the first that it can
    reach, and another router when that link is lost.

    `name` distinguishes the agent from others; `token` is needed if the router requires one.
    `authorities` is a file of certificates, which are trusted in place of those that this machine
    trusts. `tls` is used in place of the TLS context that is created here. Raise TimedOut if there
    is no link after `timeout` seconds. Once connected, the agent reconnects by itself: `on_link` is
    called with the reason when the link is lost, and with "" when it is back. If the rendezvous
    point lost the end of its journal, `on_break` is called with a `Break`, which contains the
    stamps of the acknowledged notifications that were lost. Without `on_break`, the next `publish`
    raises `Broken`.

    `tag` says which program tags the notifications of the agent: the rendezvous point ("root"),
    this process ("local"), or a preprocessor that the agent finds through the channel
    ("preprocessor"). For "local" and "preprocessor", the agent needs the right to preprocess. If no
    preprocessor answers, the rendezvous point tags. The agent shows preprocessors a ticket that the
    router signs. With `show_token`, the agent shows them its token if the router signs no tickets.
    Without `show_token`, the agent never shows its token, and preprocessors that need tokens refuse
    the agent.

    If few others want the same notifications, the rendezvous point may offer the agent a second
    link, which leads to the rendezvous point itself. The agent then receives its notifications over
    that link. Without `direct`, the agent never opens a second link. If the second link can't be
    opened, nothing changes.

    With `advice`, the agent asks its channel which routers there are and how busy they are,
    measures round-trip times, and moves to a router that is much better, without losing
    notifications. The address can then be that of any router, or of the rendezvous point.
    """
    check_tag(tag)
    if name is not None and not isinstance(name, str):
        raise Refusal(f"found a name of type {type(name).__name__}, expected a string")
    places = parse_addresses(address)
    tls = context_for(places[0], tls, authorities)
    agent = Agent(
        places,
        name=name or f"{ANONYMOUS}{uuid.uuid4().hex}",
        token=(token or "").strip(),  # files of tokens end with a line break
        tls=tls,
        times=times,
        on_break=on_break,
        on_link=on_link,
        tag=tag,
        show_token=show_token,
        direct=direct,
        advice=ChoosingTimes() if advice is True else advice or None,
    )
    try:
        await agent.start(timeout)
        yield agent
    finally:
        await agent.close()
