"""Questions and answers of clients that tag, of preprocessors, and of agents that look for a
preprocessor.

A client that tags notifications itself (a pipeline on Spark) is linked directly to the root. Such a
client follows the changes to nodes, and hands its notifications over in parts:

    Describe ──> Described      the definition of the channel
    Follow ──> Changed          the nodes that began and ended since a version, page by page
    HandOver ──> Taken          many tagged notifications as columns; each part is stored once
    Fault                       a predicate fails at the client: switch it off for everybody

A preprocessor also follows the changes, and registers its address with the root. Agents look up
preprocessors, connect to one, and ask it for tags and nodes:

    Register                    a preprocessor says now and then where it listens
    Seek ──> Found              the addresses of preprocessors
    Preprocess ──> Preprocessed, Propose ──> Proposed     between an agent and a preprocessor

An agent that subscribes can let a preprocessor find the place of its filter in the graph. The root
then compares the filter only with newer nodes:

    Propose, with `makes` ──> Suggest ──> Suggested ──> Proposed ──> Ask, with the node

For the places of new nodes, a router can ask a preprocessor instead of the node above the router:

    Locate ──> Located          which nodes cover these nodes, and which do they cover?
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from tidings.routing.protocol.messages.fields import (
    KEY,
    LARGEST_GRANT,
    LONGEST_REASON,
    MOST_LOCATED,
    MOST_NODES,
    MOST_PREPROCESSED,
    MOST_PREPROCESSORS,
    MOST_SUGGESTED,
    MOST_TOGETHER,
    Down,
    Label,
    Message,
    Number,
    PartyName,
    Up,
)
from tidings.routing.protocol.stored_interest import DEFAULT_DIALECT


class Describe(Message, frozen=True, tag="describe"):
    """What is the definition of the channel? Routers pass the question on only if `relayed` is set;
    a client that hands parts over does not set it, and must be linked to the root itself."""

    request: Number
    relayed: bool = False


class Follow(Message, frozen=True, tag="follow"):
    """Which nodes were added or removed since a version? The answer is a page of changes. To get
    the next page, the follower repeats the question, with `upto`, the version of the first page,
    and `after`, the version of the last change that it has received. A follower that asks
    repeatedly gives itself a name; with each question, it acknowledges the version `since`."""

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
        """The total size of all columns, in bytes."""
        starts = len(self.node_starts) + len(self.payload_starts)
        return starts + len(self.nodes) + len(self.payloads)


class Fault(Message, frozen=True, tag="fault"):
    """A predicate fails in the processes of a client that tags. The root switches the predicate
    off, if it still uses this version of the predicate; the next Described says so."""

    predicate: PartyName
    version: PartyName
    reason: Annotated[str, msgspec.Meta(max_length=LONGEST_REASON)]


class Register(Message, frozen=True, tag="register"):
    """A preprocessor of this channel listens at an address, such as `tidings://host:port/channel`.
    The other fields are its status: the life and the version of its nodes, how many notifications
    it has tagged since its start, and the milliseconds since its start (`uptime`)."""

    address: PartyName
    name: PartyName = ""
    life: Number = 0
    version: Number = 0
    tagged: Number = 0
    uptime: Number = 0


class Seek(Message, frozen=True, tag="seek"):
    """Which preprocessors are registered?"""

    request: Number


class Preprocess(Message, frozen=True, tag="preprocess"):
    """Which tags do notifications with these attributes have?"""

    request: Number
    contents: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=MOST_PREPROCESSED)]


class Propose(Message, frozen=True, tag="propose"):
    """Which node belongs to an interest? With `signs`, the sender also asks for a grant for the
    node. With `makes`, the receiver has a node created if there is none."""

    request: Number
    interest: bytes
    dialect: PartyName = DEFAULT_DIALECT
    signs: bool = False
    makes: bool = False


class Suggestion(NamedTuple):
    """A filter in SQL with its identity, the lowest nodes that cover it, and the highest nodes that
    it covers. The number WITHIN + i refers to filter i of the same message."""

    interest: bytes
    key: Annotated[bytes, msgspec.Meta(max_length=KEY)]
    above: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_SUGGESTED)] = ()
    below: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_SUGGESTED)] = ()


class Suggest(Message, frozen=True, tag="suggest"):
    """The places that a preprocessor has found for some filters, among the nodes of a version.
    `known` has newer nodes that were also compared, because the preprocessor suggested them
    itself."""

    request: Number
    life: Number
    version: Number
    filters: Annotated[tuple[Suggestion, ...], msgspec.Meta(max_length=MOST_TOGETHER)]
    known: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_SUGGESTED)] = ()


class Locate(Up, frozen=True, tag="locate"):
    """Which nodes cover each of these nodes, and which nodes does each of them cover?"""

    nodes: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_LOCATED)]
    request: Number = 0


class Described(Down, frozen=True, tag="described"):
    """The definition of the channel, or why it was refused."""

    request: Number
    name: str = ""
    life: Number = 0  # identifies the lineage; it changes after a break
    attributes: dict[str, str] | None = None
    extra: str = ""
    refusal: str = ""
    preprocessor: str = ""  # the kind of interest, as JSON; empty if filters are the only kind


class NodeChange(NamedTuple):
    """A change at a version: a node that was added, with its filter, or a node that was removed,
    without a filter."""

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
    """A part is on the disk, or was refused. If `later` is set, a refused part may be sent again
    later. If `version` is set, the part may be sent again after its notifications were tagged at
    that version or a newer one. Otherwise the part is refused permanently."""

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


class Suggested(Down, frozen=True, tag="suggested"):
    """The nodes of the suggested filters. The node is 0 if a filter was not placed; `refusal` says
    why."""

    request: Number
    nodes: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_TOGETHER)] = ()
    refusal: str = ""


class Preprocessed(Message, frozen=True, tag="preprocessed"):
    """The tags of notifications (see tags.py), or why there are none. The tag of a notification
    that can't be read is empty."""

    request: Number
    tags: tuple[bytes, ...] = ()
    refusal: str = ""


class Proposed(Message, frozen=True, tag="proposed"):
    """The node of an interest at a version, or 0 if it has none; or why the interest is refused.
    The grant (see grants.py) is empty if none was asked for."""

    request: Number
    node: Number = 0
    life: Number = 0
    version: Number = 0
    refusal: str = ""
    grant: Annotated[bytes, msgspec.Meta(max_length=LARGEST_GRANT)] = b""


class NodePlace(NamedTuple):
    """All nodes that cover a node, and all nodes that it covers. If two nodes cover each other, the
    node with the higher number is listed as the one above."""

    node: Number
    above: Label
    below: Label


class Located(Down, frozen=True, tag="located"):
    """The places of nodes among all nodes of the channel at a version. Nodes that do not exist at
    this version, or have very many nodes around them, are left out."""

    request: Number
    version: Number = 0
    places: Annotated[tuple[NodePlace, ...], msgspec.Meta(max_length=MOST_LOCATED)] = ()
