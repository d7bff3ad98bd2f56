"""The semantic relation store: it turns names into values, and knows how values are related.

    name ──term──> Term(context, value) ──expand, weights──> related values, each with its weight
                         │
                         ├─ place    gazetteer ───┬─ a tree of names, which can grow (tree)
                         ├─ tag      thesaurus ───┘
                         ├─ time     calendar         a tree that is computed
                         └─ person   acquaintances    a graph, which can grow

    name that is missing ──name_lookups──> dictionary ──Entry──> grow: the tree or graph has it
    terms ──term_bytes──> the context of a frame

    term_values.py     places, spans of time, tags and people; the distance of two places
    tree.py            names under broader names; it can grow
    gazetteer.py       places with coordinates, in a tree
    calendar.py        years, months, days, holidays and seasons, in a tree
    thesaurus.py, words.py    tags by meaning; words of a text, by libraries
    acquaintances.py   people, nicknames and links
    dictionary.py      external dictionaries, which are asked about names
    name_lookups.py    the names that wait until a dictionary is asked
    weights.py         the weight of each kind of relation, and which distances are near
    term_bytes.py      the terms of a message as bytes, for frames
    semantic_store.py  uses all of them: terms of names, and the values that a term looks for

This folder does not deal with messages that were forwarded. Users get these names from
`tidings.relations`, which also loads the store from files. Start at semantic_store.py.
"""

from tidings.relations.semantic.acquaintances import People
from tidings.relations.semantic.calendar import (
    DAY,
    WEEKDAYS,
    Calendar,
    YearlyRule,
    day_of,
    day_span,
)
from tidings.relations.semantic.dictionary import (
    Dictionary,
    Entry,
    TableDictionary,
    join_dictionaries,
)
from tidings.relations.semantic.gazetteer import Gazetteer
from tidings.relations.semantic.name_lookups import Growth, NameLookup
from tidings.relations.semantic.semantic_store import Edge, SemanticStore
from tidings.relations.semantic.term_bytes import decode_terms, encode_terms
from tidings.relations.semantic.term_values import (
    CONTEXTS,
    Context,
    Place,
    Recurring,
    Term,
    TimeSpan,
    Value,
    name_key,
    place_distance,
)
from tidings.relations.semantic.thesaurus import Thesaurus
from tidings.relations.semantic.tree import NameTree
from tidings.relations.semantic.weights import Weights
from tidings.relations.semantic.words import Words

__all__ = [
    "CONTEXTS",
    "DAY",
    "WEEKDAYS",
    "Calendar",
    "Context",
    "Dictionary",
    "Edge",
    "Entry",
    "Gazetteer",
    "Growth",
    "NameLookup",
    "NameTree",
    "People",
    "Place",
    "Recurring",
    "SemanticStore",
    "TableDictionary",
    "Term",
    "Thesaurus",
    "TimeSpan",
    "Value",
    "Weights",
    "Words",
    "YearlyRule",
    "day_of",
    "day_span",
    "decode_terms",
    "encode_terms",
    "join_dictionaries",
    "name_key",
    "place_distance",
]
