"""The link from a pipeline to the owner of a channel, for code without `async`."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.channel.changes import Changes, Description
from tidings.channel.part import Part

TIMEOUT = 60.0  # seconds for an answer, reconnecting included
MOST_UNDER_WAY = 8  # parts that are not acknowledged


class ChannelLink:
    """One connection to the owner of a channel. It connects when it is first needed, and again
    after it was lost, until `timeout` seconds have passed without an answer: then TimedOut. Refusal
    if the owner refuses. It may be used by one thread at a time."""

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        authorities: str | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._address = address
        self._token = token
        self._authorities = authorities
        self._timeout = timeout

    def describe(self) -> Description:
        """The definition of the channel."""
        raise NotImplementedError

    def changes(self, since: int = 0, life: int = 0) -> Changes:
        """The changes of nodes since a version, as the owner knows them now."""
        raise NotImplementedError

    def hand_over(self, parts: Iterable[Part]) -> int:
        """Hand parts over, and return their number when all are on the owner's disk. Parts that it
        has already are acknowledged again."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection."""

    def __enter__(self) -> ChannelLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
