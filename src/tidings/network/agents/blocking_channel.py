"""Another channel of a blocking agent, for code without `async`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar

from tidings.network.agents.agent_channel import AgentChannel
from tidings.network.agents.arrow_rows import ArrowRows, Pairs

_Told = TypeVar("_Told")


class Runner(Protocol):
    """A blocking agent, as its channels see it."""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any: ...


class BlockingChannel(Generic[_Told]):
    """One channel over the link of a blocking agent; see `AgentChannel`. Each call waits, so use
    `publish_many` for many notifications."""

    def __init__(
        self,
        agent: Runner,
        channel: AgentChannel,
        subscribe: Callable[..., Coroutine[Any, Any, _Told]],
    ) -> None:
        """`subscribe` makes a blocking subscription, in the loop of the agent."""
        self._agent = agent
        self._channel = channel
        self._subscribe = subscribe

    @property
    def name(self) -> str:
        """The name of the channel."""
        return self._channel.channel_name

    def publish(
        self, attributes: Mapping[str, Any] | bytes, payload: bytes = b"", **how: Any
    ) -> int:
        """Publish a notification; see `Agent.publish`."""
        found: int = self._agent.run(self._channel.publish(attributes, payload, **how))
        return found

    def publish_many(self, notifications: Pairs | ArrowRows) -> int:
        """Publish many notifications; see `Agent.publish_many`."""
        found: int = self._agent.run(self._channel.publish_many(notifications))
        return found

    def subscribe(self, interest: str = "", dialect: str = "sql", **how: Any) -> _Told:
        """Subscribe to a filter; see `BlockingAgent.subscribe`."""
        found: _Told = self._agent.run(self._subscribe(interest, dialect, how, self._channel))
        return found

    def drop_named(self, name: str, timeout: float | None = None) -> None:
        """Give up the name of a subscription in this channel; see `Agent.drop_named`."""
        self._agent.run(self._channel.drop_named(name, timeout))

    def close(self) -> None:
        """End the subscriptions of this channel."""
        self._agent.run(self._channel.close())
