"""Another channel of a blocking agent, for code without `async`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from tidings.network.agents.agent_channel import MOST_UNREAD, AgentChannel, Order
from tidings.network.agents.agent_link import LinkState
from tidings.network.agents.arrow_rows import ArrowRows, Pairs
from tidings.network.agents.grants import SignedGrant
from tidings.network.agents.tags.header import Header
from tidings.routing.protocol import DEFAULT_DIALECT

_Told = TypeVar("_Told")


class Runner(Protocol):
    """A blocking agent, as its channels see it."""

    @property
    def state(self) -> LinkState: ...

    def run(self, work: Coroutine[Any, Any, Any]) -> Any: ...

    def publish_soon_in(
        self,
        channel: AgentChannel,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes,
        subject: str,
        share: bool,
    ) -> Future[int]: ...


class BlockingChannel(Generic[_Told]):
    """One channel over the link of a blocking agent; see `AgentChannel`. A blocking channel has the
    methods of the agent, for this channel."""

    def __init__(
        self,
        agent: Runner,
        channel: AgentChannel,
        subscribe: Callable[..., Coroutine[Any, Any, _Told]],
    ) -> None:
        """`subscribe` makes a blocking subscription; it runs in the event loop of the agent."""
        self._agent = agent
        self._channel = channel
        self._subscribe = subscribe

    @property
    def name(self) -> str:
        """The name of the channel."""
        return self._channel.channel_name

    @property
    def state(self) -> LinkState:
        """Whether the agent has a link now, and to which router."""
        return self._agent.state

    @property
    def preprocessed(self) -> int:
        """How many notifications preprocessors tagged for this channel."""
        return self._channel.preprocessors.asked

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
        """Publish a notification; see `Agent.publish`."""
        found: int = self._agent.run(
            self._channel.publish(
                attributes, payload, header=header, subject=subject, share=share, fast=fast,
                timeout=timeout,
            )
        )  # fmt: skip
        return found

    def publish_soon(
        self,
        attributes: Mapping[str, Any] | bytes,
        payload: bytes = b"",
        *,
        subject: str = "",
        share: bool = True,
    ) -> Future[int]:
        """Publish a notification without waiting; see `BlockingAgent.publish_soon`."""
        return self._agent.publish_soon_in(self._channel, attributes, payload, subject, share)

    def publish_many(self, notifications: Pairs | ArrowRows) -> int:
        """Publish many notifications; see `Agent.publish_many`."""
        found: int = self._agent.run(self._channel.publish_many(notifications))
        return found

    def header(self, attributes: Mapping[str, Any] | bytes) -> Header:
        """Obtain the header of a notification in advance; see `Agent.header`."""
        found: Header = self._agent.run(self._channel.header(attributes))
        return found

    def node_of(self, interest: str, dialect: str = DEFAULT_DIALECT) -> int:
        """The node of a filter in this channel; see `Agent.node_of`."""
        found: int = self._agent.run(self._channel.node_of(interest, dialect))
        return found

    def grant(self, interest: str, dialect: str = DEFAULT_DIALECT) -> SignedGrant:
        """Obtain a signed grant for the node of a filter; see `Agent.grant`."""
        found: SignedGrant = self._agent.run(self._channel.grant(interest, dialect))
        return found

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
    ) -> _Told:
        """Subscribe to a filter; see `BlockingAgent.subscribe`."""
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
        found: _Told = self._agent.run(self._subscribe(interest, dialect, how, self._channel))
        return found

    def drop_named(self, name: str, timeout: float | None = None) -> None:
        """End a named subscription in this channel; see `Agent.drop_named`."""
        self._agent.run(self._channel.drop_named(name, timeout))

    def close(self) -> None:
        """End the subscriptions of this channel."""
        self._agent.run(self._channel.close())
