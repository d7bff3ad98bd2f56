"""tidings: subscribe with filters, and be notified once of every event that matches.

    import tidings

    f = tidings.parse("symbol = 'SNE' AND price > 90")
    f.matches({"symbol": "SNE", "price": 95.0})

Each folder here is a room. A room imports only from rooms further down, and only the names that
their folders export:

    cli             the program `tidings`
    studies         workloads and measurements
    spark           tables, streams and backtests
    broker          one running router, root or preprocessor
    channel         a channel as a pipeline sees it
    network         links, agents
    store           durable state
    preprocessing   tagging outside the root
    routing         forwarding by header, no I/O
    snapshots       compiled subscriptions
    graph           content graphs
    relations       near matches
    matching        many filters at speed
    notifications   rows to typed batches
    filters         text to canonical filter
    files           durable and private files
    model           values, types, errors

Users import from `tidings`, and from its spark, snapshots, channel, relations and broker. Start
reading at filters/filter.py and graph/content_graph.py; ARCHITECTURE.md is the map.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidings.filters import (
    Attributes,
    BoxReport,
    Explanation,
    Filter,
    Ontology,
    TestReport,
    parse,
)
from tidings.graph import (
    Authority,
    ContentGraph,
    DynamicPreprocessor,
    InterestNode,
    Node,
    ObjectPreprocessor,
    Preprocessor,
    StatelessPreprocessor,
    StaticPreprocessor,
    SubscriptionObject,
    Tag,
    TypePreprocessor,
)
from tidings.model import (
    AttributesError,
    EnvironmentProblem,
    FilterError,
    GraphError,
    NotificationError,
    RefusedFilters,
    TidingsError,
)

if TYPE_CHECKING:
    from tidings.matching import Matcher
    from tidings.network import (
        Agent,
        BlockingAgent,
        BlockingSubscription,
        Broken,
        Header,
        LinkState,
        Outdated,
        Refusal,
        SignedGrant,
        Subscription,
        TimedOut,
        connect,
        connect_blocking,
    )
    from tidings.routing.clients import Delivery, Interrupted, Lost, Resumed
    from tidings.routing.protocol import Break
    from tidings.snapshots import Snapshot
    from tidings.store import load_ontology

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Attributes",
    "AttributesError",
    "Authority",
    "BlockingAgent",
    "BlockingSubscription",
    "BoxReport",
    "Break",
    "Broken",
    "ContentGraph",
    "Delivery",
    "DynamicPreprocessor",
    "EnvironmentProblem",
    "Explanation",
    "Filter",
    "FilterError",
    "GraphError",
    "Header",
    "InterestNode",
    "Interrupted",
    "LinkState",
    "Lost",
    "Matcher",
    "Node",
    "NotificationError",
    "ObjectPreprocessor",
    "Ontology",
    "Outdated",
    "Preprocessor",
    "Refusal",
    "RefusedFilters",
    "Resumed",
    "SignedGrant",
    "Snapshot",
    "StatelessPreprocessor",
    "StaticPreprocessor",
    "Subscription",
    "SubscriptionObject",
    "Tag",
    "TestReport",
    "TidingsError",
    "TimedOut",
    "TypePreprocessor",
    "connect",
    "connect_blocking",
    "load_ontology",
    "parse",
]

_LATER = {
    "Matcher": "tidings.matching",
    **dict.fromkeys(("Delivery", "Interrupted", "Lost", "Resumed"), "tidings.routing.clients"),
    "Break": "tidings.routing.protocol",
    "Snapshot": "tidings.snapshots",
    **dict.fromkeys(
        (
            "Agent", "BlockingAgent", "BlockingSubscription", "Broken", "Header", "LinkState",
            "Outdated", "Refusal", "SignedGrant", "Subscription", "TimedOut", "connect",
            "connect_blocking",
        ),
        "tidings.network",
    ),
    "load_ontology": "tidings.store",
}  # fmt: skip
"""Names from slow modules, which are imported on first use."""


def __getattr__(name: str) -> Any:
    if name == "spark":  # so that `tidings.spark.tag` works after `import tidings`
        return import_module("tidings.spark")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'tidings' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "spark"]
