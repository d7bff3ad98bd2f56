"""The relation repository: messages that were forwarded before, and how their values are related to
others.

    name, text ──semantic──> terms: a place, a time, tags, a person ──> their related values
    terms, hop, ids ──clusters──> what was forwarded before with related terms, and to which hop
    event ──merit──> frames: at once to hops with enough merit, then after the exact search

    semantic/          places, times, tags and people: names to values, and how values are related
    clusters/          what was forwarded before, to which hop, found by place, time, tag and person
    merit/             merits of hops, the exact search, subscriptions with related=...
    relation_settings.py    what a node of a network knows about the relations of a channel
    relation_files.py  loads the semantic store; the only module here that reads files
    examples/          a file of each kind: countries and cities, holidays and seasons, tags, people

In the network, the rendezvous point of a channel with relations finds the subscribers who want a
related notification (channel/related). It also writes the terms of each notification into its
frames, in the form that `encode_terms` returns. Each node of the channel has a `ClusterStore` of
the notifications that it forwarded (routing/learning), and sends bodies early to neighbours with
enough merit (broker/early).

Users import from `tidings.relations`; docs/relations.md shows how. Start at merit/repository.py.
"""

from tidings.relations.clusters import ClusterStore, Elements, ForwardedNode, Hit, StoreSettings
from tidings.relations.merit import Frame, Limit, Proposal, Reading, RelatedMatch, Repository
from tidings.relations.relation_files import EXAMPLES, load_dictionary, load_relations
from tidings.relations.relation_settings import RelationSettings
from tidings.relations.semantic import (
    Dictionary,
    Edge,
    Entry,
    Place,
    Recurring,
    SemanticStore,
    TableDictionary,
    Term,
    Thesaurus,
    TimeSpan,
    Weights,
    Words,
    decode_terms,
    encode_terms,
)

__all__ = [
    "EXAMPLES",
    "ClusterStore",
    "Dictionary",
    "Edge",
    "Elements",
    "Entry",
    "ForwardedNode",
    "Frame",
    "Hit",
    "Limit",
    "Place",
    "Proposal",
    "Reading",
    "Recurring",
    "RelatedMatch",
    "RelationSettings",
    "Repository",
    "SemanticStore",
    "StoreSettings",
    "TableDictionary",
    "Term",
    "Thesaurus",
    "TimeSpan",
    "Weights",
    "Words",
    "decode_terms",
    "encode_terms",
    "load_dictionary",
    "load_relations",
]
