"""Messages between the two ends of a link."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidings.routing.protocol.messages.fields import (
    LARGEST_GRANT,
    LARGEST_TICKET,
    Message,
    Number,
    PartyName,
)

MOST_CHANNELS = 100_000  # channels in one message
ChannelNumber = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
"""The number of a channel on one link: the lower end chooses it. Number 0 is the channel that Hello
names."""


class Hello(Message, frozen=True, tag="hello"):
    """The first message of a connection, which says who is connecting. With `opens`, no channel has
    number 0; the sender opens its channels by name. Preprocessors accept a ticket (tickets.py)
    instead of a token."""

    name: PartyName
    channel: str = ""
    token: str = ""
    routes: bool = False  # whether the sender is a router, which passes on the messages of others
    opens: bool = False
    ticket: Annotated[bytes, msgspec.Meta(max_length=LARGEST_TICKET)] = b""


class Welcome(Message, frozen=True, tag="welcome"):
    """The answer to Hello: the name of the answering node, and the prefix that the names of the
    newcomer's publishers must have. The prefix is empty if these names are not checked."""

    name: str
    publisher: str = ""


class Present(Message, frozen=True, tag="present"):
    """A signed grant, which the sender presents to the node at the other end of the link; see
    grants.py. The grant is valid until it expires, also for later links. An agent presents a new
    ticket to a preprocessor in the same way."""

    request: Number
    grant: Annotated[bytes, msgspec.Meta(max_length=LARGEST_GRANT)]


class Presented(Message, frozen=True, tag="presented"):
    """The answer to Present: the grant was accepted, or it was refused, and why."""

    request: Number
    refusal: str = ""


REPLACED = "it was replaced by another link of the same name"
"""The reason for closing a link when another link takes its name. The agent of the closed link does
not connect again."""


class Identify(Message, frozen=True, tag="identify"):
    """A request for a signed ticket (see tickets.py) for the sender, in the channel of this
    message."""

    request: Number


class Identified(Message, frozen=True, tag="identified"):
    """A ticket, or why there is none at present. The ticket and the reason are empty if the node
    signs no tickets."""

    request: Number
    ticket: Annotated[bytes, msgspec.Meta(max_length=LARGEST_TICKET)] = b""
    refusal: str = ""


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The sender closes the link, and gives the reason."""

    reason: str


class Open(Message, frozen=True, tag="open"):
    """From now on, a number identifies a channel on this link. The lower end chooses a number that
    it has not used before. The lower end does not wait for an answer, because only a refusal is
    answered, with Closed."""

    number: ChannelNumber
    channel: PartyName


class Close(Message, frozen=True, tag="close"):
    """The lower end no longer uses a number."""

    number: ChannelNumber


class Closed(Message, frozen=True, tag="closed"):
    """The upper end does not serve the channel with this number; `reason` says why."""

    number: ChannelNumber
    reason: str


class Pulse(Message, frozen=True, tag="pulse"):
    """The sender repeats its last message in every channel: a Beat on the way down, a Resubscribe
    on the way up. `size` and `mixed` are a digest of these messages. From now on, the sender leaves
    out the channels whose numbers are in `gone`."""

    size: Number
    mixed: Number
    gone: Annotated[tuple[ChannelNumber, ...], msgspec.Meta(max_length=MOST_CHANNELS)] = ()


class Credit(Message, frozen=True, tag="credit"):
    """For some channels of a link, how many bytes of frames the other end may send in total,
    counted since the link began."""

    upto: Annotated[dict[ChannelNumber, Number], msgspec.Meta(max_length=MOST_CHANNELS)]


class Repeat(Message, frozen=True, tag="repeat"):
    """A request for all messages that pulses repeat. The request is sent when digests differ."""
