"""Messages between the two ends of a link."""

from __future__ import annotations

from tidings.routing.protocol.messages.fields import Message, PartyName


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


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The sender closes the link, and gives the reason."""

    reason: str
