"""The status of nodes, and advice about routers for agents. Every field is bounded, because nodes
pass on the reports of other nodes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tidings.routing.protocol.messages.fields import MOST_PREPROCESSORS, Down, Message, Number

MOST_REPORTED = 1_000  # nodes in one report
MOST_LINKS = 100  # links of one node in a report
MOST_CARRIED = 50  # channels of one node in a report
MOST_SOURCES = 50  # pipelines of one node in a report
MOST_NAMED = 50  # named subscriptions of one node in a report
MOST_DEPTH = 64  # levels of the tree of nodes
MOST_NAME = 100  # characters
MOST_MILLIS = 2**40
MOST_LEARNT = 1_000  # combinations of terms in an answer about relations
MOST_TOPICS = 100  # terms in an answer about relations
LONGEST_CONTEXT = 1 << 16  # bytes

Millis = Annotated[int, msgspec.Meta(ge=0, le=MOST_MILLIS)]
Short = Annotated[str, msgspec.Meta(max_length=MOST_NAME)]
Kind = Literal["above", "router", "agent", "watcher", "direct"]


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


class PreprocessorStatus(msgspec.Struct, frozen=True, array_like=True):
    """A preprocessor, as it registered with the reporting rendezvous point."""

    name: Short
    address: Short
    tagged: Number = 0  # notifications that it has tagged since its start
    version: Number = 0  # of its nodes
    behind: Number = 0  # changes to nodes that it still lacked when it registered
    uptime: Millis = 0
    heard: Millis = 0  # milliseconds since it registered


class ChannelStatus(msgspec.Struct, frozen=True, array_like=True):
    """A channel, as seen by the reporting node."""

    name: Short
    nodes: Number = 0
    subscriptions: Number = 0  # subscriptions of agents that are linked to this node
    told: Number = 0  # notifications that were forwarded since the channel was opened
    asleep: bool = False
    kind: Short = ""  # the kind of interest; only the channel's rendezvous point knows it
    followers: Number = 0  # processes that tag for the channel; only its root knows them


class SourceStatus(msgspec.Struct, frozen=True, array_like=True):
    """A pipeline that hands over batches, as seen by the rendezvous point. A client that knows the
    name of a stream can hand over batches in the pipeline's place, so only the beginning of the
    name is reported."""

    name: Short  # the pipeline's name; empty if it has not connected since the node started
    stream: Short
    batch: Number | None = None  # the last batch; None if none is left after a loss of data
    parts: Number = 0  # how many parts of this batch are stored
    whole: bool = False  # whether the whole batch is stored
    taken: Number = 0  # notifications since the start of the node
    heard: Millis | None = None  # milliseconds since the last part; None if none since the start


class NameStatus(msgspec.Struct, frozen=True, array_like=True):
    """A named subscription, as seen by the rendezvous point."""

    owner: Short
    name: Short
    serial: Number = 0  # everything up to this serial is confirmed
    behind: Number = 0  # matching notifications after `serial`, some of which may be confirmed too


class NodeStatus(msgspec.Struct, frozen=True, array_like=True):
    """The status of a node of the network: a process, not a node of the content graph."""

    depth: Annotated[int, msgspec.Meta(ge=0, lt=MOST_DEPTH)]  # levels below the reporting node
    name: Short
    kind: Literal["rendezvous", "router"]
    listen: Short
    uptime: Millis = 0
    age: Millis = 0  # the age of this status
    nodes: Number = 0  # nodes of the content graphs of all channels
    epoch: Number = 0
    serial: Number = 0
    published: Number = 0  # publications from below, over all links since the start
    told_in: Number = 0  # notifications from above
    told_out: Number = 0
    dropped: Number = 0
    neighbours: Number = 0  # below
    links: Annotated[tuple[LinkStatus, ...], msgspec.Meta(max_length=MOST_LINKS)] = ()
    undeclared: Number = 0  # attributes that publications have but the channel does not declare
    channels: Number = 1
    asleep: Number = 0  # channels without traffic
    defined: Short = ""  # identifies the kind of interest in the file of a rendezvous point
    renewed: Number = 0  # the version of the last change to how filters are read
    followers: Number = 0  # processes that tag for the channel
    acknowledged: Number = 0  # processes that have this version or a later one
    switched_off: Short = ""  # the names of predicates that are switched off
    reached: Short = ""  # the address for agents; empty if agents should not use the node
    most: Number = 0  # the most neighbours that the node accepts
    rate: Number = 0  # notifications per second to neighbours, since the last report
    waiting: Number = 0  # bytes in the queues of all links
    preprocessors: Annotated[
        tuple[PreprocessorStatus, ...], msgspec.Meta(max_length=MOST_PREPROCESSORS)
    ] = ()
    carried: Annotated[tuple[ChannelStatus, ...], msgspec.Meta(max_length=MOST_CARRIED)] = ()
    early: Number = 0  # bytes of bodies that were sent early
    early_used: Number = 0  # bytes of early bodies to which a notification referred later
    refused: Number = 0  # requests that a client had no right to make
    strangers: Number = 0  # connections that were refused because of their greetings
    pipelines: Number = 0  # all pipelines; `sources` may have fewer
    sources: Annotated[tuple[SourceStatus, ...], msgspec.Meta(max_length=MOST_SOURCES)] = ()
    named: Number = 0  # all named subscriptions; `names` may have fewer
    names: Annotated[tuple[NameStatus, ...], msgspec.Meta(max_length=MOST_NAMED)] = ()
    located: Number = 0  # places of nodes that preprocessors gave to the router


class RouterLoad(msgspec.Struct, frozen=True, array_like=True):
    """A router that agents may use, and how busy it was lately."""

    name: Short
    neighbours: Number = 0
    most: Number = 0  # the most neighbours that the node accepts
    waiting: Number = 0  # bytes in the queues of the router
    rate: Number = 0  # notifications per second to its neighbours
    address: Short = ""  # as `tidings://host:port`


class Advise(Message, frozen=True, tag="advise"):
    """Which routers may an agent use? The rendezvous point answers this question."""

    request: Number


class Advised(Down, frozen=True, tag="advised"):
    """The routers that agents may use, with their loads."""

    request: Number
    routers: Annotated[tuple[RouterLoad, ...], msgspec.Meta(max_length=MOST_REPORTED)] = ()


class Watch(Message, frozen=True, tag="watch"):
    """A request for reports from now on."""


class Report(Message, frozen=True, tag="report"):
    """The status of a node and of all nodes below it, from the top down."""

    nodes: Annotated[tuple[NodeStatus, ...], msgspec.Meta(max_length=MOST_REPORTED)]


class LearntNode(msgspec.Struct, frozen=True, array_like=True):
    """A combination of terms that was forwarded to one neighbour."""

    context: Annotated[bytes, msgspec.Meta(max_length=LONGEST_CONTEXT)]
    hop: Short  # the neighbour
    ids: Number  # nodes of the content graph for which the combination was forwarded
    uses: Number


class LearntTopic(msgspec.Struct, frozen=True, array_like=True):
    """A term, and the neighbour that has the highest merit for a notification with this term."""

    context: Annotated[bytes, msgspec.Meta(max_length=LONGEST_CONTEXT)]  # of one term
    hop: Short
    merit: float
    uses: Number = 0  # how often combinations with this term were used


class LearntBy(msgspec.Struct, frozen=True, array_like=True):
    """The settings of the node that has learnt: those of `tidings.relations.Weights` and of
    clusters. `names` is a digest of the files with names; empty if it is not known."""

    ancestor: float
    descendant: float
    people: dict[Short, float]
    near_km: float
    near_days: float
    height: float
    links: Number
    best: Number
    radius_km: float
    radius_days: float
    names: Annotated[bytes, msgspec.Meta(max_length=64)] = b""


class Inspect(Message, frozen=True, tag="inspect"):
    """What have you learnt about the relations of this channel?"""

    request: Number


class Inspected(Message, frozen=True, tag="inspected"):
    """What a node has learnt, most used first; or the reason why it refuses to tell."""

    request: Number
    name: Short = ""  # of the node
    channel: Short = ""
    total: Number = 0  # all combinations of terms; `nodes` may have fewer
    pending: Number = 0  # combinations that wait to be learnt
    left_out: Number = 0  # frames from which the node did not learn, because there were too many
    early: Number = 0  # bytes, as in NodeStatus
    early_used: Number = 0
    nodes: Annotated[tuple[LearntNode, ...], msgspec.Meta(max_length=MOST_LEARNT)] = ()
    refusal: str = ""
    by: LearntBy | None = None
    # all terms, those with the highest merit first; empty if there are too many
    topics: Annotated[tuple[LearntTopic, ...], msgspec.Meta(max_length=MOST_TOPICS)] = ()
