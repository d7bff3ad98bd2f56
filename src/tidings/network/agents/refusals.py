"""The errors of agents."""

from __future__ import annotations

from tidings.model import EnvironmentProblem, TidingsError
from tidings.routing.protocol import Break, StampRange


class Refusal(TidingsError):
    """The router or the rendezvous point refused something; the message says why."""


class Outdated(Refusal):
    """Notifications were tagged at a version that is so old that the root no longer accepts it.
    They must be tagged again, at `version` or a later version."""

    def __init__(self, reason: str, version: int) -> None:
        super().__init__(reason)
        self.version = version


class TimedOut(EnvironmentProblem, TimeoutError):
    """The network did not answer within the timeout that the caller set."""


class Broken(TidingsError):
    """The journal of the rendezvous point went back in time: notifications with these `stamps`,
    which were acknowledged, are now lost. The next `publish` raises this and publishes nothing,
    unless the agent has an `on_break`."""

    def __init__(self, what: Break) -> None:
        spans = [f"{one.first}-{one.last}" if one.last > one.first else f"{one.first}"
                 for one in what.stamps[:10]]  # fmt: skip
        more = f" and {len(what.stamps) - 10:,} more" if len(what.stamps) > 10 else ""
        super().__init__(
            f"{what.reason}, with the stamps {', '.join(spans)}{more}; publish again those that "
            "still matter"
        )
        self.stamps: tuple[StampRange, ...] = what.stamps
