"""Messages that go down, away from the rendezvous point.

    Setup Gone Refuse           the place of a node; it was dropped; there is no such node
    Beat Which Graph            totals and digests; which nodes do you want?; the graph of these
    Lineage                     the lives of the rendezvous point
    Who                         which owners want these nodes?
    Notification Skipped        a notification with its marks; notifications may be missing
    Answer Counted Recovered Settled Published    answers to questions
    Resumption Confirmed        answers for named subscriptions
    Offered                     where an agent may be linked to the rendezvous point itself
    Described Changed Taken Found    answers to clients that tag: see taggers.py

All of these messages except `Skipped` carry the life of the rendezvous point as their epoch; see
lineage.py.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidings.routing.protocol.messages.fields import (
    LONGEST_TICKET,
    MOST_DIRECT,
    MOST_LIVES,
    Digest,
    Down,
    Edges,
    Gaps,
    Label,
    Life,
    Mark,
    Message,
    Number,
    PartyName,
    Range,
    Steps,
)


class Notification(Down, frozen=True, tag="notification"):
    """A notification with its marks. A notification that was published as `fast` has no numbers:
    its serial, its stamp and the numbers of its marks are 0."""

    serial: Number  # the running number in the channel, starting at 1
    marks: tuple[Mark, ...]
    payload: bytes
    publisher: str = ""
    stamp: Number = 0


class Skipped(Message, frozen=True, tag="skipped"):
    """Notifications before this message may be missing, because the sender or a node above it
    dropped some, or had lost its link. An ordered subscriber waits until it knows which
    notifications are missing."""


class Setup(Down, frozen=True, tag="setup"):
    """The place of a node among the nodes that the neighbour subscribes to, and how many
    notifications matched it up to `serial`. The total may include later notifications, up to
    `seen`. If the neighbour already knows the place (`placed`), parents and children are left
    out."""

    node: Number
    parents: Label
    children: Label
    total: Number
    serial: Number
    seen: Number = 0
    placed: bool = False


class Gone(Down, frozen=True, tag="gone"):
    """The neighbour is no longer subscribed to these nodes."""

    nodes: Label


class Refuse(Down, frozen=True, tag="refuse"):
    """These nodes do not exist."""

    nodes: Label


class Beat(Down, frozen=True, tag="beat"):
    """The state up to a serial: the totals that changed recently, and a digest of the neighbour's
    subscriptions. The totals and the digest show the neighbour whether it missed a message. Some
    beats also have a digest of edges."""

    serial: Number
    totals: dict[Number, Number]
    subscribed: Digest
    sum: Number  # the sum of the totals of the neighbour's nodes
    edges: Edges | None = None
    seen: Number = 0  # no total includes a notification after this serial
    behind: bool = False  # a node on the way and the one above it disagree about subscriptions


class Graph(Down, frozen=True, tag="graph"):
    """Nodes that the neighbour is subscribed to, with their parents and totals. A large graph is
    sent in several messages, parents first."""

    serial: Number
    parents: dict[Number, Label]
    totals: dict[Number, Number]
    seen: Number = 0


class Which(Down, frozen=True, tag="which"):
    """Which nodes do you want? The question is asked when digests differ; the answer is Wanted."""


class Lineage(Down, frozen=True, tag="lineage"):
    """The lives of the rendezvous point; the last one is the current epoch."""

    request: Number
    lives: Annotated[tuple[Life, ...], msgspec.Meta(max_length=MOST_LIVES)]


class Who(Down, frozen=True, tag="who"):
    """Which owners below you want these nodes?"""

    nodes: Label


class Answer(Down, frozen=True, tag="answer"):
    """The node of an interest with its counts at `serial`, or why the interest was refused. If an
    interest can never match, or always matches, it is accepted with a note that says so. If the
    subscriber had another node before, `steps` has the revisions that lead from that node to this
    one; `steps` is empty if the rendezvous point does not know these revisions."""

    request: Number
    node: Number = 0
    serial: Number = 0
    total: Number = 0
    counts: dict[Number, Number] = msgspec.field(default_factory=dict)
    refusal: str = ""
    note: str = ""
    never: bool = False  # whether the interest can never match
    steps: Steps = ()


class Resumption(Down, frozen=True, tag="resumption"):
    """How far a named subscription was confirmed: the answer to Resume. `steps` are the revisions
    since that confirmation. If the subscription starts over at `serial`, `note` says why. Each
    resumption has a higher `term` than those before it. `upto` and `gaps` are as in Confirm."""

    request: Number
    serial: Number = 0
    total: Number = 0
    counts: dict[Number, Number] = msgspec.field(default_factory=dict)
    refusal: str = ""
    note: str = ""
    steps: Steps = ()
    term: Number = 0
    upto: Number = 0
    gaps: Gaps = ()


class Confirmed(Down, frozen=True, tag="confirmed"):
    """A confirmation is on the disk, or was refused. `displaced` says that another subscriber has
    claimed the name since this subscriber did."""

    request: Number
    refusal: str = ""
    displaced: bool = False


class Offered(Down, frozen=True, tag="offered"):
    """The answer to Apply: an address ("host:port"), and a ticket that admits the agent there for
    some seconds. Without an address, the agent stays at its router, or returns to it. `above` has
    nodes that cover nodes of the agent and that other neighbours want."""

    request: Number
    address: PartyName = ""
    ticket: Annotated[str, msgspec.Meta(max_length=LONGEST_TICKET)] = ""
    seconds: Number = 0
    above: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_DIRECT)] = ()


class Counted(Down, frozen=True, tag="counted"):
    request: Number
    node: Number
    serial: Number
    total: Number
    counts: dict[Number, Number]


class Recovered(Down, frozen=True, tag="recovered"):
    """Some of the missed notifications that a Recover message asked for."""

    request: Number
    notifications: tuple[Notification, ...]


class Settled(Down, frozen=True, tag="settled"):
    """The end of the answer to a Recover message. Notifications with the `lost` numbers no longer
    exist."""

    request: Number
    lost: tuple[Range, ...] = ()


class Published(Down, frozen=True, tag="published"):
    """One of three answers to a publisher. First, the stamps from `since` to `stamp` are on the
    disk, with serials up to `serial`. Second, `stamp` was refused; other stamps are not affected.
    If its tag is too old, the publication must be tagged again at a newer `version`. Third, the
    rendezvous point lacks the stamp `expected` and all stamps after it, although the publisher
    considers them settled."""

    publisher: str
    stamp: Number
    refusal: str = ""
    since: Number = 0
    serial: Number = 0
    expected: Number = 0
    version: Number = 0
