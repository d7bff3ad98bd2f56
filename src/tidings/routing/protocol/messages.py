"""What routers and agents say to each other. A message that goes down names the life of its
rendezvous point as its epoch, see lineage.py.

    up      Subscribe Unsubscribe               which nodes a neighbour wants
            Resubscribe Wanted Redraw           that it still does; all of them; what is their graph
            Trace                               which lives there were
            Ask Count Recover Publish           questions that are passed on towards the root
            Whose                               which nodes an owner wants
    down    Setup Gone Refuse                   where a node belongs; that it is dropped
            Beat Which Graph                    how much there was; which are wanted; the graph
            Lineage                             the lives that there were
            Who                                 whose are nodes that are wanted?
            Notification                        what it is all for
            Answer Counted Recovered Settled Published

Neighbours keep sets in step that one of them could forget: each says what it believes as a digest,
now and then, and whoever finds another asks for the whole.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Of a node, a notification, a request: whatever is counted. Others are refused when read."""
MOST_NODES = 2_000_000  # in one message
MOST_WANTED = 200_000  # of a Wanted: who wants more says it slice by slice
MOST_RANGES = 1024
MOST_LIVES = 256  # of a rendezvous point that are remembered
Label = Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_NODES)]
LONGEST_NAME = 255  # letters
PartyName = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
"""The name of a node or a publisher, which others remember."""


class Mark(NamedTuple):
    """A lowest node of a notification, the number it has there, and the label: by which nodes the
    neighbour that gets it knows it. Only the label changes from router to router."""

    node: Number
    number: Number
    label: Label


class Digest(NamedTuple):
    """How many there are, and a number that tells sets of as many apart."""

    size: Number = 0
    mixed: Number = 0


class Range(NamedTuple):
    """Numbers of a node, both ends included."""

    node: Number
    first: Number
    last: Number


class Life(NamedTuple):
    """A start of a rendezvous point: a number drawn at random, and the first serial after it."""

    life: Number
    first: Number


class Slice(NamedTuple):
    """Nodes whose numbers leave `part` when divided by `parts`: of large sets some are looked at
    now, others later."""

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
    """Whoever connects says who it is, before anything else."""

    name: PartyName
    channel: str = ""
    token: str = ""
    routes: bool = False  # it is a router: it passes on what others publish


class Welcome(Message, frozen=True, tag="welcome"):
    """Who is here, and what the names of publishers of the one that comes in begin with; empty
    where nobody looks at them."""

    name: str
    publisher: str = ""


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The link ends here, and why."""

    reason: str


# -- how nodes stand: bounded in every part, for what a neighbour reports is passed on above -------

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
    dropped: Number = 0  # notifications that it was too slow for
    nodes: Number = 0  # that the lower end is subscribed to
    heard: Millis = 0  # since when nothing came


class NodeStatus(msgspec.Struct, frozen=True, array_like=True):
    """A running node: a process, not one of the content graph."""

    depth: Annotated[int, msgspec.Meta(ge=0, lt=MOST_DEPTH)]  # below the one that reports
    name: Short
    kind: Literal["rendezvous", "router"]
    listen: Short
    uptime: Millis = 0
    age: Millis = 0  # of what is said here
    nodes: Number = 0  # of the content graph
    epoch: Number = 0
    serial: Number = 0
    published: Number = 0  # from below, over all links that there ever were
    told_in: Number = 0  # from above
    told_out: Number = 0
    dropped: Number = 0
    neighbours: Number = 0  # below
    links: Annotated[tuple[LinkStatus, ...], msgspec.Meta(max_length=MOST_LINKS)] = ()


class Watch(Message, frozen=True, tag="watch"):
    """Send me reports from now on."""


class Report(Message, frozen=True, tag="report"):
    """A node and all that are known below it, each before those that are below it."""

    nodes: Annotated[tuple[NodeStatus, ...], msgspec.Meta(max_length=MOST_REPORTED)]


# -- up --------------------------------------------------------------------------------------------


class Trace(Message, frozen=True, tag="trace"):
    """Which lives did the rendezvous point have? The sender judges by them itself."""

    request: Number


class Up(Message, frozen=True):
    """The life that the sender believes the rendezvous point to be in."""

    epoch: Number


class Subscribe(Up, frozen=True, tag="subscribe"):
    nodes: Label


class Unsubscribe(Up, frozen=True, tag="unsubscribe"):
    nodes: Label


class Resubscribe(Up, frozen=True, tag="resubscribe"):
    """What the sender wants, as a digest; and up to which serial it needs nothing any more."""

    wanted: Digest
    done: Number = 0


class Wanted(Up, frozen=True, tag="wanted"):
    """All nodes that the sender wants, of a slice: when digests differ."""

    nodes: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_WANTED)]
    slice: Slice = Slice()


class Redraw(Up, frozen=True, tag="redraw"):
    """Send me the whole graph: when digests differ."""


class Ask(Message, frozen=True, tag="ask"):
    """Which node is that of an interest? Nobody on the way reads it. Whose it is says the node that
    the asker is linked to, whatever was said before; routers pass on what those below them said."""

    request: Number
    interest: bytes
    owner: PartyName = ""


class Count(Up, frozen=True, tag="count"):
    """How far have a node and those beneath it counted, of those that changed since a serial?"""

    request: Number
    node: Number
    since: Number = 0


class Recover(Up, frozen=True, tag="recover"):
    request: Number
    ranges: Annotated[tuple[Range, ...], msgspec.Meta(max_length=MOST_RANGES)]


class Whose(Up, frozen=True, tag="whose"):
    """An owner wants some of the nodes that were asked for."""

    owner: PartyName
    nodes: Label


class Publish(Message, frozen=True, tag="publish"):
    """A notification of a publisher, which counts its own from 1; those before `first` are
    acknowledged."""

    publisher: PartyName
    stamp: Number
    first: Number
    content: bytes  # for the preprocessor
    payload: bytes  # for nobody but subscribers


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
    """Where a node belongs among those that the neighbour subscribes to, and how many notifications
    matched it up to a serial, and perhaps some after it, up to the one that was seen."""

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
    """Where everything stands up to a serial: how many notifications matched each node whose number
    changed of late; and digests of what the neighbour is subscribed to, so that nothing that was
    lost on the way stays lost. Edges are in some of them."""

    serial: Number
    totals: dict[Number, Number]
    subscribed: Digest
    sum: Number  # of the totals of all nodes
    edges: Edges | None = None
    seen: Number = 0  # no total has more than what came up to here


class Graph(Down, frozen=True, tag="graph"):
    """Nodes that the neighbour is subscribed to, with their parents and totals. A large graph comes
    in several, parents first."""

    serial: Number
    parents: dict[Number, Label]
    totals: dict[Number, Number]
    seen: Number = 0


class Which(Down, frozen=True, tag="which"):
    """Send me all nodes that you want: when digests differ."""


class Lineage(Down, frozen=True, tag="lineage"):
    """The lives of the rendezvous point, the last of which is the epoch."""

    request: Number
    lives: Annotated[tuple[Life, ...], msgspec.Meta(max_length=MOST_LIVES)]


class Who(Down, frozen=True, tag="who"):
    """Say whose neighbours of yours want these nodes."""

    nodes: Label


class Answer(Down, frozen=True, tag="answer"):
    """The node of an interest, and where everything stood then; or why it was refused."""

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
    """Some of what was asked for."""

    request: Number
    notifications: tuple[Notification, ...]


class Settled(Down, frozen=True, tag="settled"):
    """That was all; these are nowhere any more."""

    request: Number
    lost: tuple[Range, ...] = ()


class Published(Down, frozen=True, tag="published"):
    """All from `since` up to this one are on the disk, with serials up to one; or this one was
    refused, which says nothing of others; or the rendezvous point expects one that the publisher
    has done with: it lacks that and those after it."""

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
