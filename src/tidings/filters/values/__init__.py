""""""

from tidings.filters.values.ontology import Ontology
from tidings.filters.values.sets import NUMBER, STRING, Cut, Key, ValueSet, key, points
from tidings.filters.values.topic_texts import read_ontology
from tidings.filters.values.work import WorkError, look, metered

__all__ = [
    "NUMBER",
    "STRING",
    "Cut",
    "Key",
    "Ontology",
    "ValueSet",
    "WorkError",
    "key",
    "look",
    "metered",
    "points",
    "read_ontology",
]
