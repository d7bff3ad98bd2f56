"""The relation repository: what was forwarded before, and what is related to it.

    name, text ──semantic──> terms: a place, a time, tags, a person ──> what each is related to
    terms, hop, ids ──clusters──> what was forwarded before with related terms, and where to

    semantic/    places, times, tags and people: names to values, and how values are related
    clusters/    what was forwarded before, to which hop, found by place, time, tag and person
    loading.py   loads the semantic store; the only module here that reads files
    examples/    a file of each kind: countries and cities, holidays and seasons, tags, people

Not joined yet: nothing outside this room uses it. Users import from `tidings.relations`;
docs/relations.md shows how. Start at semantic/semantic_store.py.
"""

from tidings.relations.clusters import ClusterStore, Elements, ForwardedNode, Hit, StoreSettings
from tidings.relations.loading import EXAMPLES, load_dictionary, load_relations
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
    "Hit",
    "Place",
    "Recurring",
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
