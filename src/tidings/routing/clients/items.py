"""What a subscription yields: notifications, and words about those that did not come."""

from __future__ import annotations

import msgspec

from tidings.routing.protocol.lineage import Break


class Delivery(msgspec.Struct, frozen=True):
    """A notification that arrived: its payload, its running number at the rendezvous point
    (`serial`, counted over all filters, in the life `epoch`), and the filters of this agent that
    it matches (`matched`)."""

    epoch: int
    serial: int
    payload: bytes
    matched: tuple[str, ...] = ()


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
