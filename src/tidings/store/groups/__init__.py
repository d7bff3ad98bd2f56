"""A log of groups: checksums, a chain and an end mark, once for all stores.

layout.py     the bytes of segments, groups and records
end_mark.py   how far a log was acknowledged
log.py        the log itself: begin reading here
"""

from tidings.store.groups.end_mark import Mark
from tidings.store.groups.log import GroupLog, LostEnd
from tidings.store.groups.walk import START, Group, Place, Position, Walk, end_of

__all__ = ["START", "Group", "GroupLog", "LostEnd", "Mark", "Place", "Position", "Walk", "end_of"]
