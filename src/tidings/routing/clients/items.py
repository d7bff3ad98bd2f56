"""What a subscription yields: notifications, and words about those that did not come."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.routing.protocol.lineage import Break


class Delivery(msgspec.Struct, frozen=True):
    """A notification that arrived: its payload, its running number at the rendezvous point
    (`serial`, counted over all filters, in the life `epoch`), and the filters of this agent that
    it matches (`matched`). Its `attributes`, its `subject` and the `time` when it was published, in
    seconds since 1970, are there if the publisher sent them."""

    epoch: int
    serial: int
    payload: bytes
    matched: tuple[str, ...] = ()
    subject: str = ""
    time: float | None = None
    content: bytes | None = None
    """The attributes as they were published: JSON."""

    @property
    def attributes(self) -> dict[str, Any] | None:
        """The attributes, decoded; None if the publisher kept them to itself."""
        if self.content is None:
            return None
        return msgspec.json.decode(self.content, type=dict[str, Any])


class Lost(msgspec.Struct, frozen=True):
    """`count` notifications are lost: no router and no disk has them any more."""

    count: int

    @property
    def numbers(self) -> int:
        """The former name of `count`."""
        return self.count


class Interrupted(msgspec.Struct, frozen=True):
    """Nothing arrives for now: the router is gone, or the rendezvous point is not heard. Nothing is
    lost by this alone; `Resumed` follows when it is over."""

    reason: str


class Resumed(msgspec.Struct, frozen=True):
    """An interruption is over, after so many seconds. What was missed meanwhile follows, unless
    `Lost` or `Break` says otherwise."""

    seconds: float


Item = Delivery | Lost | Break | Interrupted | Resumed
Told = Delivery  # its name before
