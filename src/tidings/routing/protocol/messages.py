"""The messages of routers, rendezvous points and clients. Messages that go down carry the life of
the rendezvous point as their epoch; see lineage.py.

    up      Subscribe Unsubscribe               nodes that a neighbour wants, or no longer wants
            Resubscribe Wanted Redraw           a digest of the wanted nodes; all of them; a request
                                                for their graph
            Trace                               which lives has the rendezvous point had?
            Ask Count Recover Publish           passed on towards the root
            Resume Confirm                      how far was I?; I have all this: for named
                                                subscriptions
            Whose                               the nodes that an owner wants
            Describe Follow HandOver Register   for the root itself: see below
            Seek                                which preprocessors are there?
    down    Setup Gone Refuse                   the place of a node; it was dropped; no such node
            Beat Which Graph                    totals and digests; what do you want?; the graph
            Lineage                             the lives of the rendezvous point
            Who                                 which owners want these nodes?
            Notification Skipped                a notification with its marks; some may be missing
            Answer Counted Recovered Settled Published      answers to questions
            Resumption Confirmed                answers to named subscriptions
            Described Changed Taken Found       answers to clients that tag

A client that tags notifications itself (a pipeline on Spark) is linked directly to the root. Such a
client follows the changes of nodes, and hands its notifications over in parts:

    Describe ──> Described      the definition of the channel
    Follow ──> Changed          the nodes that began and ended since a version, page by page
    HandOver ──> Taken          many tagged notifications as columns; each part is taken once

A preprocessor follows the changes too, and registers its address with the root. Agents look up
preprocessors, link themselves to one, and ask it for tags and nodes:

    Register                    a preprocessor says now and then where it listens
    Seek ──> Found              the addresses of preprocessors
    Preprocess ──> Preprocessed, Propose ──> Proposed     between an agent and a preprocessor

Both ends of a link keep the same sets, and either can miss a message. So each end sends a digest of
its sets now and then; if the digests differ, the other end asks for the whole set.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec

from tidings.routing.protocol.stored_interest import pack_interest

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""The number of a node, a notification or a request. Numbers outside the range are refused."""
MOST_NODES = 2_000_000  # in one message
MOST_PREPROCESSED = 10_000  # notifications in one message
MOST_PREPROCESSORS = 100
MOST_WANTED = 200_000  # nodes in a Wanted message; larger sets are sent in slices
MOST_RANGES = 1024
MOST_LIVES = 256  # lives of a rendezvous point that are remembered
Label = Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_NODES)]
LONGEST_NAME = 255  # characters
LONGEST_SUBJECT = 1024
NODE = "node"
"""The dialect of an interest that is the number of a node, which somebody else obtained."""
MOST_TAG = 8 * (2 + 65_535)  # bytes; a tag has at most as many nodes as a notification has marks
PartyName = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
"""The name of a node, an owner or a publisher. Its length is limited, because nodes store it."""
LONGEST_WITHIN = 4096  # characters
Within = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=LONGEST_WITHIN)], ...], msgspec.Meta(max_length=8)
]
"""Filters, each of which must cover what a subscriber asks for. The nodes on the way to the root
set these filters, from the rights of the neighbour that asks."""


class Mark(NamedTuple):
    """One of the lowest nodes of a notification, the number of the notification at that node, and
    the label: the nodes that stand for the mark at the receiving neighbour. Only the label changes
    on the way."""

    node: Number
    number: Number
    label: Label


class Digest(NamedTuple):
    """The size of a set, and a number that distinguishes sets of the same size."""

    size: Number = 0
    mixed: Number = 0


class Range(NamedTuple):
    """A range of numbers at a node, both ends included."""

    node: Number
    first: Number
    last: Number


class Life(NamedTuple):
    """One start of a rendezvous point: a random number, and the first serial after the start."""

    life: Number
    first: Number


class Slice(NamedTuple):
    """The nodes whose number modulo `parts` is `part`. Large sets are handled slice by slice."""

    part: Number = 0
    parts: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1

    def has(self, node: int) -> bool:
        return node % self.parts == self.part


class Edges(NamedTuple):
    """A digest of the edges to the parents of the nodes of a slice."""

    slice: Slice
    mixed: Number


class Message(msgspec.Struct, frozen=True, array_like=True):
    """The base class of all messages."""


# -- between the two ends of a link ----------------------------------------------------------------


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


# -- node status: every field is bounded, because nodes pass on the reports of their neighbours ----

MOST_REPORTED = 1_000  # nodes in one report
MOST_LINKS = 100  # links of one node in a report
MOST_DEPTH = 64  # levels of the tree of nodes
MOST_NAME = 100  # characters
MOST_MILLIS = 2**40

Millis = Annotated[int, msgspec.Meta(ge=0, le=MOST_MILLIS)]
Short = Annotated[str, msgspec.Meta(max_length=MOST_NAME)]
Kind = Literal["above", "router", "agent", "watcher"]


class LinkStatus(msgspec.Struct, frozen=True, array_like=True):
    """A link, as seen by the reporting node."""

    name: Short  # the name of the other end
    kind: Kind
    bytes_in: Number = 0
    bytes_out: Number = 0
    told_in: Number = 0  # notifications from above, publications from below
    told_out: Number = 0
    waiting: Number = 0  # bytes
    dropped: Number = 0  # notifications that were dropped because the other end was too slow
    nodes: Number = 0  # nodes that the lower end is subscribed to
    heard: Millis = 0  # milliseconds since the last message


class NodeStatus(msgspec.Struct, frozen=True, array_like=True):
    """The status of a process of the network, which is not a node of the content graph."""

    depth: Annotated[int, msgspec.Meta(ge=0, lt=MOST_DEPTH)]  # levels below the reporting node
    name: Short
    kind: Literal["rendezvous", "router"]
    listen: Short
    uptime: Millis = 0
    age: Millis = 0  # the age of this status
    nodes: Number = 0  # nodes of the content graph
    epoch: Number = 0
    serial: Number = 0
    published: Number = 0  # publications from below, over all links since the start
    told_in: Number = 0  # notifications from above
    told_out: Number = 0
    dropped: Number = 0
    neighbours: Number = 0  # below
    links: Annotated[tuple[LinkStatus, ...], msgspec.Meta(max_length=MOST_LINKS)] = ()
    undeclared: Number = 0  # attributes in publications that the channel does not declare
    defined: Short = ""  # identifies the kind of interest in the file of a rendezvous point
    renewed: Number = 0  # the version since which filters are read as they are now
    followers: Number = 0  # processes that tag for the channel
    acknowledged: Number = 0  # those of them that have this version or a later one


class Watch(Message, frozen=True, tag="watch"):
    """A request for reports from now on."""


class Report(Message, frozen=True, tag="report"):
    """The status of a node and of all nodes below it, from the top down."""

    nodes: Annotated[tuple[NodeStatus, ...], msgspec.Meta(max_length=MOST_REPORTED)]


# -- up --------------------------------------------------------------------------------------------


class Trace(Message, frozen=True, tag="trace"):
    """Which lives has the rendezvous point had? The answer is a Lineage."""

    request: Number


class Up(Message, frozen=True):
    """A message that carries the rendezvous point's current epoch, as far as the sender knows."""

    epoch: Number


class Subscribe(Up, frozen=True, tag="subscribe"):
    nodes: Label


class Unsubscribe(Up, frozen=True, tag="unsubscribe"):
    nodes: Label


class Resubscribe(Up, frozen=True, tag="resubscribe"):
    """A digest of the nodes that the sender wants, and the serial up to which it needs nothing."""

    wanted: Digest
    done: Number = 0


class Wanted(Up, frozen=True, tag="wanted"):
    """All nodes of a slice that the sender wants: sent when digests differ."""

    nodes: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_WANTED)]
    slice: Slice = Slice()


class Redraw(Up, frozen=True, tag="redraw"):
    """A request for the whole graph, sent when digests differ."""


class Ask(Message, frozen=True, tag="ask"):
    """Which node belongs to an interest? An interest is a text in a dialect, which routers do not
    read. The node to which the asker is linked sets the owner; the name of each router on the way
    is put in front."""

    request: Number
    interest: bytes
    owner: PartyName = ""
    within: Within = ()
    dialect: PartyName = "sql"

    @property
    def stored(self) -> bytes:
        """The interest with its dialect, as a rendezvous point stores it."""
        return pack_interest(self.interest, self.dialect)


class Count(Up, frozen=True, tag="count"):
    """What are the counts of a node and of all nodes below it that changed since a serial?"""

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
    """A named subscription has everything up to a serial: `total` notifications, and the numbers in
    `counts` at their nodes. With `drop`, the subscriber gives up the name."""

    request: Number
    name: PartyName
    serial: Number = 0
    total: Number = 0
    counts: dict[Number, Number] = {}
    drop: bool = False
    owner: PartyName = ""


class Whose(Up, frozen=True, tag="whose"):
    """An owner wants these nodes: the answer to Who."""

    owner: PartyName
    nodes: Label


class Publish(Message, frozen=True, tag="publish"):
    """A notification from a publisher. Each publisher stamps its notifications from 1 on. All
    stamps before `first` are settled. Subscribers get a body, which contains the payload: see
    bodies.py. A client with the right to preprocess may tag the notification (see tags.py), and may
    then leave the content out."""

    publisher: PartyName
    stamp: Number
    first: Number
    content: bytes  # for the preprocessor
    payload: bytes  # for subscribers only
    shares: bool = False  # subscribers get the content, too
    subject: Annotated[str, msgspec.Meta(max_length=LONGEST_SUBJECT)] = ""
    time: Number = 0  # microseconds since 1970
    piece: tuple[Number, Number, Number] | None = None  # see bodies.Piece
    fast: bool = False  # without a stamp; not numbered, journalled or acknowledged
    tag: Annotated[bytes, msgspec.Meta(max_length=MOST_TAG)] = b""

    @property
    def about(self) -> bool:
        """Do subscribers get metadata besides the payload?"""
        return bool(self.time or self.shares or self.subject or self.piece)


# -- from clients that tag, to the rendezvous point ------------------------------------------------


class Describe(Message, frozen=True, tag="describe"):
    """What is the definition of the channel? Routers pass the question on if `relayed` is set; a
    client that hands parts over must be linked to the root itself."""

    request: Number
    relayed: bool = False


class Follow(Message, frozen=True, tag="follow"):
    """Which nodes began or ended since a version? The answer is a page of changes. To get the next
    page, the same question names the version of the first page (`upto`), and the version of the
    last change so far (`after`). A follower that asks again and again gives itself a name: with
    each question it acknowledges the version `since`."""

    request: Number
    since: Number = 0
    life: Number = 0
    upto: Number = 0
    after: Number = 0
    relayed: bool = False
    follower: PartyName = ""


class HandOver(Message, frozen=True, tag="hand over"):
    """A part of a batch of tagged notifications, as columns of 64-bit little-endian integers. The
    nodes of notification i are nodes[node_starts[i] : node_starts[i + 1]]; its payload is found in
    the same way. `version` is the version at which the nodes were found."""

    source: PartyName
    batch: Number
    part: Number
    last: bool  # the last part of its batch
    life: Number
    version: Number
    node_starts: bytes
    nodes: bytes
    payload_starts: bytes
    payloads: bytes

    @property
    def size(self) -> int:
        """Bytes of all columns."""
        starts = len(self.node_starts) + len(self.payload_starts)
        return starts + len(self.nodes) + len(self.payloads)


# -- preprocessors ---------------------------------------------------------------------------------


class Register(Message, frozen=True, tag="register"):
    """A preprocessor of this channel listens at an address, as `tidings://host:port/channel`."""

    address: PartyName


class Seek(Message, frozen=True, tag="seek"):
    """Which preprocessors are registered?"""

    request: Number


class Preprocess(Message, frozen=True, tag="preprocess"):
    """Which tags do notifications with these attributes have?"""

    request: Number
    contents: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=MOST_PREPROCESSED)]


class Propose(Message, frozen=True, tag="propose"):
    """Which node belongs to an interest?"""

    request: Number
    interest: bytes
    dialect: PartyName = "sql"


# -- down ------------------------------------------------------------------------------------------


class Down(Message, frozen=True):
    epoch: Number


class Notification(Down, frozen=True, tag="notification"):
    """A notification with its marks. A notification that was published as `fast` has no numbers:
    its serial, its stamp and the numbers of its marks are 0."""

    serial: Number  # the running number in the channel, from 1 on
    marks: tuple[Mark, ...]
    payload: bytes
    publisher: str = ""
    stamp: Number = 0


class Skipped(Message, frozen=True, tag="skipped"):
    """Notifications before this message may be missing, because the sender or a node above it
    dropped some, or had lost its link. An ordered subscriber waits until it knows which ones are
    missing."""


class Setup(Down, frozen=True, tag="setup"):
    """The place of a node among the nodes that the neighbour subscribes to, and how many
    notifications matched it up to `serial`. The total may include later notifications, up to
    `seen`."""

    node: Number
    parents: Label
    children: Label
    total: Number
    serial: Number
    seen: Number = 0


class Gone(Down, frozen=True, tag="gone"):
    """The neighbour is no longer subscribed to these nodes."""

    nodes: Label


class Refuse(Down, frozen=True, tag="refuse"):
    """These nodes do not exist."""

    nodes: Label


class Beat(Down, frozen=True, tag="beat"):
    """The state up to a serial: the totals that changed recently, and a digest of the neighbour's
    subscriptions, which show the neighbour every lost message. Some beats have a digest of
    edges."""

    serial: Number
    totals: dict[Number, Number]
    subscribed: Digest
    sum: Number  # the sum of the totals of the neighbour's nodes
    edges: Edges | None = None
    seen: Number = 0  # no total includes a notification after this serial


class Graph(Down, frozen=True, tag="graph"):
    """Nodes that the neighbour is subscribed to, with their parents and totals. A large graph is
    sent in several messages, parents first."""

    serial: Number
    parents: dict[Number, Label]
    totals: dict[Number, Number]
    seen: Number = 0


class Which(Down, frozen=True, tag="which"):
    """Which nodes do you want? Asked when digests differ; the answer is Wanted."""


class Lineage(Down, frozen=True, tag="lineage"):
    """The lives of the rendezvous point; the last one is the current epoch."""

    request: Number
    lives: Annotated[tuple[Life, ...], msgspec.Meta(max_length=MOST_LIVES)]


class Who(Down, frozen=True, tag="who"):
    """Which owners below you want these nodes?"""

    nodes: Label


class Answer(Down, frozen=True, tag="answer"):
    """The node of an interest with its counts at `serial`, or why the interest was refused. If an
    interest can never match, or always matches, it is accepted with a note that says so."""

    request: Number
    node: Number = 0
    serial: Number = 0
    total: Number = 0
    counts: dict[Number, Number] = {}
    refusal: str = ""
    note: str = ""
    never: bool = False  # whether the interest can never match


class Resumption(Down, frozen=True, tag="resumption"):
    """How far a named subscription was confirmed: the answer to Resume. A note says why the
    subscription starts over at `serial`."""

    request: Number
    serial: Number = 0
    total: Number = 0
    counts: dict[Number, Number] = {}
    refusal: str = ""
    note: str = ""


class Confirmed(Down, frozen=True, tag="confirmed"):
    """A confirmation is on the disk, or was refused."""

    request: Number
    refusal: str = ""


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
    disk, with serials up to `serial`. Second, `stamp` was refused, which says nothing about other
    stamps; if its tag is too old, the publication must be tagged again at a newer `version`. Third,
    the rendezvous point lacks the stamp `expected` and all after it, although the publisher
    considers them settled."""

    publisher: str
    stamp: Number
    refusal: str = ""
    since: Number = 0
    serial: Number = 0
    expected: Number = 0
    version: Number = 0


class Described(Down, frozen=True, tag="described"):
    """The definition of the channel, or why it was refused."""

    request: Number
    name: str = ""
    life: Number = 0  # identifies the lineage; it changes after a break
    attributes: dict[str, str] | None = None
    extra: str = ""
    refusal: str = ""
    preprocessor: str = ""  # the kind of interest, as JSON; empty for content


class NodeChange(NamedTuple):
    """A node that began at a version, with its filter; or a node that ended, without a filter."""

    version: Number
    node: Number
    filter: str | None


class Changed(Down, frozen=True, tag="changed"):
    """A page of the answer to Follow, with changes in the order of their versions. All changes are
    on the disk. If the answer is `whole`, its pages list all current nodes."""

    request: Number
    life: Number = 0
    version: Number = 0
    whole: bool = False
    changes: Annotated[tuple[NodeChange, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    more: bool = False
    refusal: str = ""


class Taken(Down, frozen=True, tag="taken"):
    """A part is on the disk, or was refused. A refused part may be sent again `later`, or after its
    notifications were tagged again at a newer `version`; otherwise it is refused for good."""

    source: str
    batch: Number
    part: Number
    refusal: str = ""
    later: bool = False
    version: Number = 0


class Found(Down, frozen=True, tag="found"):
    """The addresses of the registered preprocessors."""

    request: Number
    addresses: Annotated[tuple[PartyName, ...], msgspec.Meta(max_length=MOST_PREPROCESSORS)] = ()


class Preprocessed(Message, frozen=True, tag="preprocessed"):
    """The tags of notifications (see tags.py), or why there are none. The tag of a notification
    that can't be read is empty."""

    request: Number
    tags: tuple[bytes, ...] = ()
    refusal: str = ""


class Proposed(Message, frozen=True, tag="proposed"):
    """The node of an interest at a version, 0 if it has none; or why the interest is refused."""

    request: Number
    node: Number = 0
    life: Number = 0
    version: Number = 0
    refusal: str = ""


LINK = Hello | Welcome | Goodbye | Watch | Report | Preprocess | Preprocessed | Propose | Proposed
UP = (Subscribe | Unsubscribe | Resubscribe | Wanted | Redraw | Trace | Ask | Count | Recover
      | Publish | Whose | Resume | Confirm | Describe | Follow | HandOver | Register
      | Seek)  # fmt: skip
DOWN = (Notification | Setup | Gone | Refuse | Beat | Graph | Which | Who | Lineage | Answer
        | Counted | Recovered | Settled | Skipped | Published | Described | Changed
        | Resumption | Confirmed
        | Taken | Found)  # fmt: skip
TAGGING = Describe | Follow | HandOver | Register
"""Messages of clients that tag. They need a right of their own, and only a rendezvous point
answers them."""
ANSWERS = (
    Answer | Counted | Recovered | Settled | Resumption | Confirmed | Described | Changed | Found
)
"""Answers to questions that routers pass on."""
