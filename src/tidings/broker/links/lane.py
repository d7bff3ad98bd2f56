"""Lanes: one for each channel of a link. A link is itself the lane of the channel with number 0."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.model import TidingsError
from tidings.network import Link
from tidings.routing.protocol import messages as m


class ChannelLane:
    """One channel on a link, identified by its number. Queues treat each lane as a separate link,
    so the messages of one channel do not wait for those of another."""

    __slots__ = ("_reasons", "link", "number")

    def __init__(self, link: Link, number: int) -> None:
        self.link = link
        self.number = number
        self._reasons: set[str] = set()  # for not reading

    @property
    def name(self) -> str:
        return self.link.name

    @property
    def owner(self) -> str:
        return self.link.owner

    @property
    def routes(self) -> bool:
        return self.link.routes

    @property
    def is_over(self) -> bool:
        return self.link.is_over

    @property
    def waiting(self) -> int:
        return self.link.waiting

    def send(self, message: m.Message) -> None:
        self.link.send(message, self.number)

    def send_all(self, messages: Iterable[m.Message]) -> None:
        self.link.send_all(messages, self.number)

    def read(self, why: str, *, on: bool) -> None:
        """Remove a reason for not reading if `on` is true; otherwise, add one. Frames of one
        channel can't be read without the frames of the other channels, so the whole link waits."""
        (self._reasons.discard if on else self._reasons.add)(why)
        self.link.read(f"{why} {self.number}", on=on)

    def read_again(self) -> None:
        """Remove all reasons for not reading, because the channel is closed."""
        for why in [*self._reasons]:
            self.read(why, on=True)

    def refuse(self, problem: TidingsError) -> None:
        self.link.refuse(problem)

    def close(self, reason: str) -> None:
        self.link.close(reason)


Lane = Link | ChannelLane
