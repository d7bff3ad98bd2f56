""""""

from tidings.filters.values.ontology import Ontology
from tidings.filters.values.sets import NUMBER, STRING, Cut, Key, ValueSet, key, points
from tidings.filters.values.topic_texts import read_ontology
from tidings.filters.values.work import WorkError, limit_work, look

__all__ = [
    "NUMBER",
    "STRING",
    "Cut",
    "Key",
    "Ontology",
    "ValueSet",
    "WorkError",
    "key",
    "limit_work",
    "look",
    "points",
    "read_ontology",
]
