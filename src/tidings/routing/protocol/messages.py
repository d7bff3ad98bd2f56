"""The messages of routers and agents. Those that go down name the life of the rendezvous point as
their epoch, see lineage.py.

    up      Subscribe Unsubscribe               nodes that a neighbour wants, or wants no more
            Resubscribe Wanted Redraw           a digest of them; all of them; send me their graph
            Trace                               which lives were there?
            Ask Count Recover Publish           questions that are passed on towards the root
            Whose                               the nodes that an owner wants
    down    Setup Gone Refuse                   the place of a node; it is dropped; there is none
            Beat Which Graph                    totals and digests; which do you want?; the graph
            Lineage                             the lives of the rendezvous point
            Who                                 which owners want these nodes?
            Notification                        what it is all for
            Answer Counted Recovered Settled Published      answers to questions

Both ends of a link know the same sets, and either can forget: so now and then each sends a digest
of what it believes, and an end whose digest differs asks for the whole set.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""The number of a node, a notification or a request. Others are refused when they are read."""
MOST_NODES = 2_000_000  # in one message
MOST_WANTED = 200_000  # nodes of a Wanted message; more are sent in slices
MOST_RANGES = 1024
MOST_LIVES = 256  # of a rendezvous point that are remembered
Label = Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_NODES)]
LONGEST_NAME = 255  # letters
PartyName = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
"""The name of a node, an owner or a publisher, which others remember."""


class Mark(NamedTuple):
    """A lowest node of a notification, the number that the notification has there, and the label:
    the nodes by which the receiving neighbour knows it. Only the label changes on the way."""

    node: Number
    number: Number
    label: Label


class Digest(NamedTuple):
    """The size of a set, and a number that tells sets of the same size apart."""

    size: Number = 0
    mixed: Number = 0


class Range(NamedTuple):
    """Numbers of a node, both ends included."""

    node: Number
    first: Number
    last: Number


class Life(NamedTuple):
    """A start of a rendezvous point: a random number, and the first serial after it."""

    life: Number
    first: Number


class Slice(NamedTuple):
    """The nodes whose numbers modulo `parts` are `part`. Large sets are handled slice by slice."""

    part: Number = 0
    parts: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1

    def has(self, node: int) -> bool:
        return node % self.parts == self.part


class Edges(NamedTuple):
    """A digest of the edges above some nodes."""

    slice: Slice
    mixed: Number


class Message(msgspec.Struct, frozen=True, array_like=True):
    """The root of all messages."""


# -- between the two ends of a link ----------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """The first message of a connection: who is connecting."""

    name: PartyName
    channel: str = ""
    token: str = ""
    routes: bool = False  # it is a router, and passes on what others publish


class Welcome(Message, frozen=True, tag="welcome"):
    """The name of this node, and the prefix for the names of the newcomer's publishers; empty if
    they are not checked."""

    name: str
    publisher: str = ""


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The link ends here, and why."""

    reason: str


# -- node status: every part is bounded, because reports of neighbours are passed on above ---------

MOST_REPORTED = 1_000  # nodes of a report
MOST_LINKS = 100  # of one node that are listed
MOST_DEPTH = 64  # of a tree
MOST_NAME = 100  # letters
MOST_MILLIS = 2**40

Millis = Annotated[int, msgspec.Meta(ge=0, le=MOST_MILLIS)]
Short = Annotated[str, msgspec.Meta(max_length=MOST_NAME)]
Kind = Literal["above", "router", "agent", "watcher"]


class LinkStatus(msgspec.Struct, frozen=True, array_like=True):
    """A link as one of its ends sees it."""

    name: Short  # of the other end
    kind: Kind
    bytes_in: Number = 0
    bytes_out: Number = 0
    told_in: Number = 0  # notifications from above, publications from below
    told_out: Number = 0
    waiting: Number = 0  # bytes
    dropped: Number = 0  # notifications that the other end was too slow for
    nodes: Number = 0  # that the lower end is subscribed to
    heard: Millis = 0  # since the last message


class NodeStatus(msgspec.Struct, frozen=True, array_like=True):
    """A running node: a process, not one of the content graph."""

    depth: Annotated[int, msgspec.Meta(ge=0, lt=MOST_DEPTH)]  # below the node that reports
    name: Short
    kind: Literal["rendezvous", "router"]
    listen: Short
    uptime: Millis = 0
    age: Millis = 0  # of this status
    nodes: Number = 0  # of the content graph
    epoch: Number = 0
    serial: Number = 0
    published: Number = 0  # from below, over all links ever
    told_in: Number = 0  # from above
    told_out: Number = 0
    dropped: Number = 0
    neighbours: Number = 0  # below
    links: Annotated[tuple[LinkStatus, ...], msgspec.Meta(max_length=MOST_LINKS)] = ()


class Watch(Message, frozen=True, tag="watch"):
    """Send me reports from now on."""


class Report(Message, frozen=True, tag="report"):
    """The status of a node and of all nodes below it, each before those that are below it."""

    nodes: Annotated[tuple[NodeStatus, ...], msgspec.Meta(max_length=MOST_REPORTED)]


# -- up --------------------------------------------------------------------------------------------


class Trace(Message, frozen=True, tag="trace"):
    """Which lives did the rendezvous point have? The sender judges for itself."""

    request: Number


class Up(Message, frozen=True):
    """The life that the sender believes the rendezvous point to be in."""

    epoch: Number


class Subscribe(Up, frozen=True, tag="subscribe"):
    nodes: Label


class Unsubscribe(Up, frozen=True, tag="unsubscribe"):
    nodes: Label


class Resubscribe(Up, frozen=True, tag="resubscribe"):
    """A digest of what the sender wants, and the serial up to which it needs nothing more."""

    wanted: Digest
    done: Number = 0


class Wanted(Up, frozen=True, tag="wanted"):
    """All nodes of a slice that the sender wants: sent when digests differ."""

    nodes: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_WANTED)]
    slice: Slice = Slice()


class Redraw(Up, frozen=True, tag="redraw"):
    """Send me the whole graph: sent when digests differ."""


class Ask(Message, frozen=True, tag="ask"):
    """Which node has an interest? Nobody on the way reads the interest. The node that the asker is
    linked to sets the owner, and routers pass it on."""

    request: Number
    interest: bytes
    owner: PartyName = ""


class Count(Up, frozen=True, tag="count"):
    """How far have a node and those below it counted? Only those that changed since a serial."""

    request: Number
    node: Number
    since: Number = 0


class Recover(Up, frozen=True, tag="recover"):
    request: Number
    ranges: Annotated[tuple[Range, ...], msgspec.Meta(max_length=MOST_RANGES)]


class Whose(Up, frozen=True, tag="whose"):
    """An owner wants these nodes: the answer to Who."""

    owner: PartyName
    nodes: Label


class Publish(Message, frozen=True, tag="publish"):
    """A notification of a publisher, which stamps its own from 1 on; those before `first` are
    acknowledged."""

    publisher: PartyName
    stamp: Number
    first: Number
    content: bytes  # for the preprocessor
    payload: bytes  # for subscribers only


# -- down ------------------------------------------------------------------------------------------


class Down(Message, frozen=True):
    epoch: Number


class Notification(Down, frozen=True, tag="notification"):
    serial: Number  # of all notifications of the channel, from 1 on
    marks: tuple[Mark, ...]
    payload: bytes
    publisher: str = ""
    stamp: Number = 0


class Setup(Down, frozen=True, tag="setup"):
    """The place of a node among those that the neighbour subscribes to, and how many notifications
    matched it up to a serial, perhaps with some after it, up to `seen`."""

    node: Number
    parents: Label
    children: Label
    total: Number
    serial: Number
    seen: Number = 0


class Gone(Down, frozen=True, tag="gone"):
    """The neighbour is not subscribed to these any more."""

    nodes: Label


class Refuse(Down, frozen=True, tag="refuse"):
    """There are no such nodes."""

    nodes: Label


class Beat(Down, frozen=True, tag="beat"):
    """The state up to a serial: the totals that changed of late, and digests of what the neighbour
    is subscribed to, so that it notices every message that was lost. Some beats have edges."""

    serial: Number
    totals: dict[Number, Number]
    subscribed: Digest
    sum: Number  # of the totals of all nodes
    edges: Edges | None = None
    seen: Number = 0  # no total counts anything after this serial


class Graph(Down, frozen=True, tag="graph"):
    """Nodes that the neighbour is subscribed to, with their parents and totals. A large graph comes
    in several, parents first."""

    serial: Number
    parents: dict[Number, Label]
    totals: dict[Number, Number]
    seen: Number = 0


class Which(Down, frozen=True, tag="which"):
    """Send me all nodes that you want: sent when digests differ."""


class Lineage(Down, frozen=True, tag="lineage"):
    """The lives of the rendezvous point; the last one is the epoch."""

    request: Number
    lives: Annotated[tuple[Life, ...], msgspec.Meta(max_length=MOST_LIVES)]


class Who(Down, frozen=True, tag="who"):
    """Which owners below you want these nodes?"""

    nodes: Label


class Answer(Down, frozen=True, tag="answer"):
    """The node of an interest, and the counts at that time; or why it was refused."""

    request: Number
    node: Number = 0
    serial: Number = 0
    total: Number = 0
    counts: dict[Number, Number] = {}
    refusal: str = ""


class Counted(Down, frozen=True, tag="counted"):
    request: Number
    node: Number
    serial: Number
    total: Number
    counts: dict[Number, Number]


class Recovered(Down, frozen=True, tag="recovered"):
    """Some of the missed notifications that were asked for."""

    request: Number
    notifications: tuple[Notification, ...]


class Settled(Down, frozen=True, tag="settled"):
    """That was all that was found; `lost` numbers are nowhere any more."""

    request: Number
    lost: tuple[Range, ...] = ()


class Published(Down, frozen=True, tag="published"):
    """One of three: the stamps from `since` to `stamp` are on the disk, with serials up to
    `serial`; or `stamp` was refused, which says nothing of others; or the rendezvous point lacks
    the stamp `expected` and all after it, although the publisher has settled it."""

    publisher: str
    stamp: Number
    refusal: str = ""
    since: Number = 0
    serial: Number = 0
    expected: Number = 0


LINK = Hello | Welcome | Goodbye | Watch | Report
UP = (Subscribe | Unsubscribe | Resubscribe | Wanted | Redraw | Trace | Ask | Count | Recover
      | Publish | Whose)  # fmt: skip
DOWN = (Notification | Setup | Gone | Refuse | Beat | Graph | Which | Who | Lineage | Answer
        | Counted | Recovered | Settled | Published)  # fmt: skip
