"""Kinds of interest: what subscribers of a channel may ask for, besides filters.

    content       filters in any dialect; the default
    topics        a topic of an ontology:                'baseball', 'baseball WHERE innings > 9'
    types         a type, with the types that inherit:   'quote', 'quote WHERE price > 90'
    application   a text that an installed class turns into a filter

Every interest becomes a filter on attributes. So all kinds share one content graph, one numbering
and one store, and nothing after this step depends on the kind. A channel of any kind also accepts
filters in every dialect.

    definition.py    a channel's definition of its kind, as the journal stores it
    kind.py          the base class, which is the kind `content`
    topic_kind.py    topics, and the test that every notification has one
    type_kind.py     types with their attributes
    application.py   classes that are installed as entry points
    making.py        makes a kind from its definition; replaces a definition with a later one

Used by channel and by the view of a channel; broker reads definitions from files. Start at kind.py.
"""

from tidings.preprocessing.kinds.application import InterestClass, version_of
from tidings.preprocessing.kinds.definition import (
    DIALECTS,
    PREDICATE_MILLIS,
    KindDefinition,
    KindName,
)
from tidings.preprocessing.kinds.kind import Kind
from tidings.preprocessing.kinds.making import (
    Replaced,
    declare,
    make_kind,
    replace_definition,
    restore_attributes,
)

__all__ = [
    "DIALECTS",
    "PREDICATE_MILLIS",
    "InterestClass",
    "Kind",
    "KindDefinition",
    "KindName",
    "Replaced",
    "declare",
    "make_kind",
    "replace_definition",
    "restore_attributes",
    "version_of",
]
