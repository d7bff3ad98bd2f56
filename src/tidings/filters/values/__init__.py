"""What is known about values alone: sets of them, and what patterns, addresses and topics mean.

    absent | false true | -Inf ... Inf | NaN | strings | times | lists and others
                            [----)        a set: the cuts at which membership flips

    sets.py                    sets of values as sorted cuts on one line that holds every value
    like.py, regular.py        LIKE patterns; regular expressions by RE2, with bounds on their work
    programs.py, work.py       compiled patterns that are kept; the meter of one event's work
    inet.py, geography.py      addresses as text that sorts; boxes and circles on the globe
    ontology.py, topic_texts.py, subjects.py    topics under topics, as texts; dotted subjects
    overlap.py                 whether two lists have a value in common

Nothing here knows expressions. For other rooms; users get `Ontology` from `tidings`. Start at
sets.py: every canonical form is made of its sets.
"""

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
