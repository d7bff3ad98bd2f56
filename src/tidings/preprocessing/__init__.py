"""Tagging outside the rendezvous point: the nodes of a channel in this process, at a version.

    Describe, Follow ──> channel_view.py ──tag──> life, version, lowest nodes
                            a compiled snapshot, and the changes since

    channel_view.py   the view: changes go in, tags come out
    contents/         the attributes of notifications, as mappings and as columns
    kinds/            kinds of interest: filters, topics, types, those of an application
    surroundings.py   the nodes above and below a node, for routers
    change.py         a change of a node, in the form that snapshots take

A view only tags. The rendezvous point numbers notifications, and corrects tags that are too old.

Used by agents that tag by themselves (network), and through them by the process `tidings
preprocessor` (broker). channel uses `contents` and `kinds`; broker, spark and cli use `kinds`.
Start at channel_view.py.
"""

from tidings.preprocessing.channel_view import ChannelView, Place
from tidings.preprocessing.contents import Contents, EventColumns, ExtraFields, Read
from tidings.preprocessing.kinds import (
    DIALECTS,
    Kind,
    KindDefinition,
    KindName,
    Replaced,
    declare,
    make_kind,
    replace_definition,
    restore_attributes,
    version_of,
)

__all__ = [
    "DIALECTS",
    "ChannelView",
    "Contents",
    "EventColumns",
    "ExtraFields",
    "Kind",
    "KindDefinition",
    "KindName",
    "Place",
    "Read",
    "Replaced",
    "declare",
    "make_kind",
    "replace_definition",
    "restore_attributes",
    "version_of",
]
