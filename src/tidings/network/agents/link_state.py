"""The state of an agent's link."""

from __future__ import annotations

import msgspec


class LinkState(msgspec.Struct, frozen=True):
    """Whether an agent is linked to a router: if so, to which one (`router`, as "host:port");
    otherwise the reason why it is not, and the router that it tries next or tried last. `since` is
    the time of the last change, in seconds since 1970."""

    linked: bool
    router: str
    reason: str
    since: float
