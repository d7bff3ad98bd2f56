"""What routers, rendezvous points and agents say to each other.

    up     Subscribe, Ask, Recover, Publish ...       down   Setup, Beat, Notification, Answer ...

    messages.py          every message, and what it means
    frames.py            messages as bytes; all that a router looks at is in front
    marks.py             the marks of a notification that was just numbered, as columns
    message_merging.py   adjacent messages of the same kind merged
    digests.py           digests of sets: two sides notice that one of them missed something
    limits.py            how much of what others say is kept, and how much is done for them: read
                         as it is from `[limits]` of a router's file
    times.py             the intervals that routers, subscribers and publishers work by
    lineage.py           the lives of a rendezvous point, and whether it still has what it said

A change here is a change of the wire format: frames.py has its version. Messages are handled by
`_UP` in forwarding/downstream.py, `_DOWN` in forwarding/router.py, by root/ and clients/.

For other rooms, not for users; `messages` and `frames` are imported whole (`messages.Publish`).
Start at messages.py.
"""

from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.limits import LONG, NONE, Limits, work_of
from tidings.routing.protocol.lineage import Break, Lineage, Span
from tidings.routing.protocol.marks import pack_marks
from tidings.routing.protocol.messages import Life, Mark, Notification, Range
from tidings.routing.protocol.times import Times

__all__ = [
    "LONG",
    "NONE",
    "Break",
    "Life",
    "Limits",
    "Lineage",
    "Mark",
    "Notification",
    "Range",
    "Span",
    "Times",
    "digest",
    "pack_marks",
    "work_of",
]
