""""""

from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.frames import VERSION
from tidings.routing.protocol.limits import LONG, NONE, Limits, work_of
from tidings.routing.protocol.lineage import Break, Lineage, Span
from tidings.routing.protocol.marks import interleave
from tidings.routing.protocol.messages import Life, Mark, Notification, Range
from tidings.routing.protocol.times import Times

__all__ = [
    "LONG",
    "NONE",
    "VERSION",
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
    "interleave",
    "work_of",
]
