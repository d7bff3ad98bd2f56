"""Tagging outside the rendezvous point: the nodes of a channel in this process, at a version.

    Describe, Follow ──> channel_view.py ──tag──> life, version, lowest nodes
                            a compiled snapshot, and the changes since

    channel_view.py   the view: changes go in, tags come out
    contents/         the attributes of notifications, as mappings and as columns
    kinds/            kinds of interest: filters, topics, types, those of an application
    surroundings.py   the nodes above and below a node, for routers
    predicates/       programs of the operator that filters call by name
    node_change.py    a change to a node, in the form that snapshots use

A view does nothing but tag. The rendezvous point numbers notifications, and corrects tags that are
too old.

Used by agents that tag by themselves (network), and through them by the process `tidings
preprocessor` (broker). channel uses `contents` and `kinds`; broker, spark and cli use `kinds`.
Start at channel_view.py.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
    CallIndex,
    Decisions,
    PredicateCall,
    calls_in,
    need_predicates,
)

if TYPE_CHECKING:
    from tidings.preprocessing.channel_view import ChannelView, NodeAtVersion
    from tidings.preprocessing.contents import (
        BatchEvents,
        Contents,
        EventColumns,
        ExtraFields,
        Read,
    )

__all__ = [
    "DIALECTS",
    "PREDICATE_MILLIS",
    "BatchEvents",
    "CallIndex",
    "ChannelView",
    "Contents",
    "Decisions",
    "EventColumns",
    "ExtraFields",
    "Kind",
    "KindDefinition",
    "KindName",
    "NodeAtVersion",
    "PredicateCall",
    "Read",
    "Replaced",
    "calls_in",
    "declare",
    "make_kind",
    "need_predicates",
    "replace_definition",
    "restore_attributes",
    "version_of",
]

_LATER = {
    **dict.fromkeys(("ChannelView", "NodeAtVersion"), "tidings.preprocessing.channel_view"),
    **dict.fromkeys(
        ("BatchEvents", "Contents", "EventColumns", "ExtraFields", "Read"),
        "tidings.preprocessing.contents",
    ),
}
"""Names from modules that load the kernels. Routers need only the definitions of kinds."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
