"""The attributes of notifications.

    b'{"price": 95.0}' ──content_reader──> {"price": 95.0}
    many of them       ──event_columns───> a record batch

    content_reader.py     one notification, from bytes to a mapping; limits, undeclared fields
    event_columns.py      many notifications, from JSON to columns
    declared_columns.py   the columns of declared attributes

Used by channel, which tags at the rendezvous point, and inside `preprocessing`. Start at
content_reader.py.
"""

from tidings.preprocessing.contents.content_reader import BatchEvents, Contents, ExtraFields
from tidings.preprocessing.contents.event_columns import EventColumns, Read

__all__ = ["BatchEvents", "Contents", "EventColumns", "ExtraFields", "Read"]
