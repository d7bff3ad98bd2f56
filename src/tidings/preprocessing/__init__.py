"""Tagging outside the rendezvous point: the nodes of a channel in this process, at a version.

    Describe, Follow ──> channel_view.py ──tag──> life, version, lowest nodes
                            a compiled snapshot, and the changes since

    channel_view.py   the view: changes go in, tags come out
    contents/         the attributes of notifications, as mappings and as columns
    kinds/            kinds of interest: filters, topics, types, those of an application
    predicates/       programs of the operator that filters call by name
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
    PREDICATE_MILLIS,
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
from tidings.preprocessing.predicates import (
    PREDICATES,
    CallIndex,
    Decisions,
    PredicateCall,
    need_predicates,
)

__all__ = [
    "DIALECTS",
    "PREDICATES",
    "PREDICATE_MILLIS",
    "CallIndex",
    "ChannelView",
    "Contents",
    "Decisions",
    "EventColumns",
    "ExtraFields",
    "Kind",
    "KindDefinition",
    "KindName",
    "Place",
    "PredicateCall",
    "Read",
    "Replaced",
    "declare",
    "make_kind",
    "need_predicates",
    "replace_definition",
    "restore_attributes",
    "version_of",
]
