"""Messages between the two ends of a link."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidings.routing.protocol.messages.fields import LARGEST_GRANT, Message, Number, PartyName


class Hello(Message, frozen=True, tag="hello"):
    """The first message of a connection, which says who is connecting."""

    name: PartyName
    channel: str = ""
    token: str = ""
    routes: bool = False  # whether the sender is a router, which passes on the messages of others


class Welcome(Message, frozen=True, tag="welcome"):
    """The answer to Hello: the name of the answering node, and the prefix that the names of the
    newcomer's publishers must have. The prefix is empty if these names are not checked."""

    name: str
    publisher: str = ""


class Present(Message, frozen=True, tag="present"):
    """A signed grant, for the node at the other end of the link; see grants.py. It holds until it
    expires, also for later links."""

    request: Number
    grant: Annotated[bytes, msgspec.Meta(max_length=LARGEST_GRANT)]


class Presented(Message, frozen=True, tag="presented"):
    """A grant was accepted, or why it was refused."""

    request: Number
    refusal: str = ""


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The sender closes the link, and gives the reason."""

    reason: str
