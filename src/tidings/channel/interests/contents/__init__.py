"""The attributes of notifications.

    contents.py       one notification, from bytes to a mapping; limits, undeclared fields
    event_columns.py  many notifications, from JSON to columns

Used only inside `channel`. Start at contents.py.
"""

from tidings.channel.interests.contents.contents import Contents, ExtraFields
from tidings.channel.interests.contents.event_columns import EventColumns, Read

__all__ = ["Contents", "EventColumns", "ExtraFields", "Read"]
