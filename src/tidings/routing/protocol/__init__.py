"""The messages that routers, rendezvous points and agents exchange.

    up     Subscribe, Ask, Recover, Publish ...       down   Setup, Beat, Notification, Answer ...

    messages/            every message, and what it means
    frames.py            messages as bytes; everything that a router reads comes first
    contents/            what follows the labels of a notification: its context and its body
    grants.py            a signed grant: an agent may subscribe to a node
    tickets.py           a signed ticket: what a node says about its client
    signed_bodies.py     a signature and a body: the form of grants and tickets
    tags.py              the tag of a publication that was tagged elsewhere
    marks.py             the marks of a newly numbered notification, as columns
    message_merging.py   merges adjacent messages of the same kind
    stored_interest.py   an interest with its dialect, as it is stored
    digests.py           digests of sets, which show that one end of a link missed a message
    limits.py            limits on what others can make a node keep and do; enforced where it is
                         kept: forwarding/, root/, channel/interests, store/journal, broker/
    times.py             the intervals and timeouts of routers, subscribers and publishers
    lineage.py           the lives of a rendezvous point, and whether it still has what it sent

A change to a message changes the wire format, whose version is in frames.py. For messages from
below, broker/admission/permissions.py decides who may send a message, and broker/server.py which
queue it waits in. The tables `_UP` (forwarding/downstream.py) and `_DOWN` (forwarding/router.py)
list the handlers; root/ and clients/ have handlers of their own. Nodes handle messages about
channels in channels/: Open, Close and Closed in channels/channels.py, Pulse and Repeat in
channels/channel_link.py, Credit in channels/node_links.py; all other messages of a link in
broker/server.py, broker/connections.py and broker/preprocessors. Agents: network/agents.

This folder is for other rooms, not for users. Import `messages` and `frames` as modules
(`messages.Publish`). Start at messages/upward.py.
"""

from tidings.routing.protocol.contents.bodies import (
    About,
    Piece,
    body_of,
    read_about,
    unwrap,
    wrap,
)
from tidings.routing.protocol.contents.envelopes import MAGIC, Envelope, make_front, open_body
from tidings.routing.protocol.contents.relation_reasons import (
    Reason,
    Related,
    decode_found,
    encode_found,
    find_exact,
)
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.grants import Grant, pack_grant, split_grant, unpack_grant
from tidings.routing.protocol.limits import LONG, NONE, Limits, work_of
from tidings.routing.protocol.lineage import Break, Lineage, StampRange, mark_revised
from tidings.routing.protocol.marks import pack_marks
from tidings.routing.protocol.messages import KEY_ID, MOST_STEPS, Life, Mark, Notification, Range
from tidings.routing.protocol.stored_interest import (
    DEFAULT_DIALECT,
    pack_interest,
    relate_dialect,
    split_dialect,
    split_related,
    unpack_interest,
)
from tidings.routing.protocol.tags import Tag, pack_tag, unpack_tag
from tidings.routing.protocol.tickets import Ticket, pack_ticket, split_ticket, unpack_ticket
from tidings.routing.protocol.times import Times

__all__ = [
    "DEFAULT_DIALECT",
    "KEY_ID",
    "LONG",
    "MAGIC",
    "MOST_STEPS",
    "NONE",
    "About",
    "Break",
    "Envelope",
    "Grant",
    "Life",
    "Limits",
    "Lineage",
    "Mark",
    "Notification",
    "Piece",
    "Range",
    "Reason",
    "Related",
    "StampRange",
    "Tag",
    "Ticket",
    "Times",
    "body_of",
    "decode_found",
    "digest",
    "encode_found",
    "find_exact",
    "make_front",
    "mark_revised",
    "open_body",
    "pack_grant",
    "pack_interest",
    "pack_marks",
    "pack_tag",
    "pack_ticket",
    "read_about",
    "relate_dialect",
    "split_dialect",
    "split_grant",
    "split_related",
    "split_ticket",
    "unpack_grant",
    "unpack_interest",
    "unpack_tag",
    "unpack_ticket",
    "unwrap",
    "work_of",
    "wrap",
]
