"""Tagging outside the rendezvous point: the nodes of a channel in this process, at a version.

    Describe, Follow ──> channel_view.py ──tag──> life, version, lowest nodes
                            a compiled snapshot, and the changes since

    channel_view.py   the view: changes go in, tags come out
    contents/         the attributes of notifications, as mappings and as columns
    change.py         a change of a node, in the form that snapshots take

A view only tags. The rendezvous point numbers notifications, and corrects tags that are too old.

Used by agents that tag by themselves (network), and through them by the process `tidings
preprocessor` (broker); channel uses `contents`. Start at channel_view.py.
"""

from tidings.preprocessing.channel_view import ChannelView, Place
from tidings.preprocessing.contents import Contents, EventColumns, ExtraFields, Read

__all__ = ["ChannelView", "Contents", "EventColumns", "ExtraFields", "Place", "Read"]
