"""A log of groups with checksums, a chain and an end mark, shared by all stores.

    00000000000000000001.log   [group 1][group 2] ...    each contains the previous group's chain
    00000000000000000812.log   ...                       the last segment grows
    end                        how far the log was acknowledged

    layout.py     the bytes of segments, groups and records
    walk.py       walks through the groups, and finds damage
    end_mark.py   how far a log was acknowledged
    log.py        the log itself

This folder does not interpret records. The change log and the journal in this room use it, and so
does the outbox of spark; it is not for users. Start at log.py.
"""

from tidings.store.groups.end_mark import EndMark
from tidings.store.groups.layout import Packed
from tidings.store.groups.log import GroupLog, LostEnd
from tidings.store.groups.walk import START, Group, Position, RecordPlace, Walk, end_of

__all__ = [
    "START",
    "EndMark",
    "Group",
    "GroupLog",
    "LostEnd",
    "Packed",
    "Position",
    "RecordPlace",
    "Walk",
    "end_of",
]
