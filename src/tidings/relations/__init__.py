"""The relation repository: what was forwarded before, and what is related to it.

    name, text ──semantic──> terms: a place, a time, tags, a person ──> what each is related to
    terms, hop, ids ──clusters──> what was forwarded before with related terms, and where to
    event ──merit──> frames: at once where merit says so, then after the exact search

    semantic/          places, times, tags and people: names to values, and how values are related
    clusters/          what was forwarded before, to which hop, found by place, time, tag and person
    merit/             merits of hops, the exact search, subscriptions with related=...
    relation_files.py  loads the semantic store; the only module here that reads files
    examples/          a file of each kind: countries and cities, holidays and seasons, tags, people

Not joined yet: no router or root uses this room, and no frame on the wire has terms. A root would
call `propose` before it tags a notification and send these frames, then `complete`, with its own
search in place of `exact`, and `work` when its queues are empty; a filter with `related` would be a
node beside its exact one. A router would hold a `ClusterStore` of labels, `find` with the terms of
a frame, and pass on only frames that say that they were sent for their merit. Under overload a
queue would be ordered by the merit of a proposal. What is missing for that: terms and merit in
frames, protection against loops, and waiting messages on disk.

Users import from `tidings.relations`; docs/relations.md shows how. Start at merit/repository.py.
"""

from tidings.relations.clusters import ClusterStore, Elements, ForwardedNode, Hit, StoreSettings
from tidings.relations.merit import Frame, Limit, Proposal, Reading, RelatedMatch, Repository
from tidings.relations.relation_files import EXAMPLES, load_dictionary, load_relations
from tidings.relations.semantic import (
    Dictionary,
    Edge,
    Entry,
    Place,
    Recurring,
    SemanticStore,
    Span,
    TableDictionary,
    Term,
    Thesaurus,
    Weights,
    Words,
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
    "Repository",
    "SemanticStore",
    "Span",
    "StoreSettings",
    "TableDictionary",
    "Term",
    "Thesaurus",
    "Weights",
    "Words",
    "load_dictionary",
    "load_relations",
]
