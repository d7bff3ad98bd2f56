"""Messages that go up, towards the rendezvous point.

    Subscribe Unsubscribe       nodes that a neighbour wants, or no longer wants
    Resubscribe Wanted Redraw   a digest of the wanted nodes; all of them; a request for their graph
    Trace                       which lives has the rendezvous point had?
    Ask Count Recover Publish   passed on towards the root
    Resume Confirm              for named subscriptions: how far was this one confirmed?; a
                                confirmation
    Whose                       the nodes that an owner wants
    Apply                       may this agent be linked to the rendezvous point itself?
    Describe Follow HandOver Register Seek    from clients that tag: see taggers.py

A router or a client sends these messages to the node above it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidings.routing.protocol.messages.fields import (
    LONGEST_SUBJECT,
    MOST_DIRECT,
    MOST_RANGES,
    MOST_TAG,
    MOST_WANTED,
    Digest,
    Gaps,
    Label,
    Message,
    Number,
    PartyName,
    Range,
    Slice,
    Up,
    Within,
)
from tidings.routing.protocol.stored_interest import DEFAULT_DIALECT, pack_interest


class Trace(Message, frozen=True, tag="trace"):
    """Which lives has the rendezvous point had? The answer is a Lineage."""

    request: Number


class Subscribe(Up, frozen=True, tag="subscribe"):
    """The sender wants these nodes. If `placed` is set, the sender knows the nodes' places from a
    preprocessor, and needs only their totals."""

    nodes: Label
    placed: bool = False


class Unsubscribe(Up, frozen=True, tag="unsubscribe"):
    nodes: Label


class Resubscribe(Up, frozen=True, tag="resubscribe"):
    """A digest of the nodes that the sender wants, and the serial up to which it needs no more
    notifications."""

    wanted: Digest
    done: Number = 0


class Wanted(Up, frozen=True, tag="wanted"):
    """All nodes of a slice that the sender wants. The message is sent when digests differ."""

    nodes: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_WANTED)]
    slice: Slice = Slice()


class Redraw(Up, frozen=True, tag="redraw"):
    """A request for the whole graph, sent when digests differ."""


class Ask(Message, frozen=True, tag="ask"):
    """Which node belongs to an interest? An interest is text in a dialect; routers do not read it.
    The node to which the asker is linked sets the owner, and each further node on the way prepends
    the name of the router below it. `was` is the node that the asker had, if that node no longer
    exists. `node` is the node that a preprocessor has named for the interest."""

    request: Number
    interest: bytes
    owner: PartyName = ""
    within: Within = ()
    dialect: PartyName = DEFAULT_DIALECT
    was: Number = 0
    node: Number = 0

    @property
    def stored(self) -> bytes:
        """The interest with its dialect, as a rendezvous point stores it."""
        return pack_interest(self.interest, self.dialect)


class Count(Up, frozen=True, tag="count"):
    """What are the counts of a node and of all nodes below it? The answer has only the counts that
    changed since a serial."""

    request: Number
    node: Number
    since: Number = 0


class Recover(Up, frozen=True, tag="recover"):
    request: Number
    ranges: Annotated[tuple[Range, ...], msgspec.Meta(max_length=MOST_RANGES)]
    within: Within = ()


class Resume(Up, frozen=True, tag="resume"):
    """How far was a named subscription confirmed? If the name is new, the subscription begins now.
    The node to which the asker is linked sets the owner. Routers pass the owner on unchanged, so
    that the owner can come back through another router."""

    request: Number
    name: PartyName
    node: Number
    interest: bytes
    owner: PartyName = ""


class Confirm(Up, frozen=True, tag="confirm"):
    """A named subscription has confirmed all notifications up to a serial. `total` says how many
    these are; `counts` has, by node, the number of the last of them at that node. The subscription
    has also confirmed all later notifications up to the serial `upto`, except the serials in
    `gaps`, which are pieces of payloads that were not complete by then. `term` is the term of its
    resumption: the subscriber with the highest term has the name, and subscribers with lower terms
    are told that they have lost it. With `drop`, the subscriber gives up the name; with term 0, the
    name is given up even if another subscriber has it."""

    request: Number
    name: PartyName
    serial: Number = 0
    total: Number = 0
    counts: dict[Number, Number] = msgspec.field(default_factory=dict)
    drop: bool = False
    owner: PartyName = ""
    term: Number = 0
    upto: Number = 0
    gaps: Gaps = ()


class Whose(Up, frozen=True, tag="whose"):
    """The answer to Who: an owner wants these nodes."""

    owner: PartyName
    nodes: Label


class Apply(Up, frozen=True, tag="apply"):
    """May an agent be linked to the rendezvous point itself, because few others want the
    notifications of these nodes? `above` has the nodes that cover them, from the last answer, for
    routers that do not know the agent's own nodes. Each node on the way counts its other neighbours
    that get these notifications, and adds the number to `others`; it names the owner as for Ask,
    and adds the filters that limit the sender's right to subscribe. The first node on the way also
    sets `party`, the owner of named subscriptions, as in Resume."""

    request: Number
    agent: PartyName  # the name of the second link, chosen by the agent
    nodes: Annotated[tuple[Number, ...], msgspec.Meta(min_length=1, max_length=MOST_DIRECT)]
    above: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_DIRECT)] = ()
    others: Number = 0
    owner: PartyName = ""
    party: PartyName = ""
    within: Within = ()


class Publish(Message, frozen=True, tag="publish"):
    """A notification from a publisher. Each publisher numbers its notifications with stamps,
    starting at 1. All stamps before `first` are settled. Subscribers get a body, which contains the
    payload; see bodies.py. A client with the right to preprocess may tag the notification (see
    tags.py), and may then leave the content out."""

    publisher: PartyName
    stamp: Number
    first: Number
    content: bytes  # for the preprocessor
    payload: bytes  # for subscribers only
    shares: bool = False  # whether subscribers also get the content
    subject: Annotated[str, msgspec.Meta(max_length=LONGEST_SUBJECT)] = ""
    time: Number = 0  # microseconds since 1970
    piece: tuple[Number, Number, Number] | None = None  # see bodies.Piece
    fast: bool = False  # not stamped, numbered, journalled or acknowledged
    tag: Annotated[bytes, msgspec.Meta(max_length=MOST_TAG)] = b""

    @property
    def about(self) -> bool:
        """Do subscribers get metadata besides the payload?"""
        return bool(self.time or self.shares or self.subject or self.piece)
