"""Sets of values, and the meaning of patterns, addresses, places, topics and subjects.

    absent null | false true | -Inf ... Inf | NaN | strings | times | lists and others
                            [----)        a set: the cuts at which membership flips

    sets.py                    sets of values, as sorted cuts in one total order of all values
    like.py, regular.py        LIKE patterns; regular expressions by RE2, with limits on their work
    program_cache.py           the cache of compiled patterns
    work_limit.py              the limit on work for one event
    inet.py, geography.py      addresses as sortable strings; boxes and circles on the globe
    topics/, subjects.py       ontologies, their revisions and file formats; dotted subjects
    casts.py                   CAST: a value converted to a type, as Spark's try_cast does
    overlap.py                 whether two lists have a value in common

Nothing here depends on expressions. These modules are for other rooms; users get `Ontology` from
`tidings`. Start at sets.py, whose sets make up every canonical form.
"""

from tidings.filters.values.geography import circle_box, distance_km
from tidings.filters.values.sets import NUMBER, STRING, TIME, Cut, Key, ValueSet, key, points
from tidings.filters.values.topics import Ontology, Revision, read_ontology, revise
from tidings.filters.values.work_limit import WorkError, limit_work, look

__all__ = [
    "NUMBER",
    "STRING",
    "TIME",
    "Cut",
    "Key",
    "Ontology",
    "Revision",
    "ValueSet",
    "WorkError",
    "circle_box",
    "distance_km",
    "key",
    "limit_work",
    "look",
    "points",
    "read_ontology",
    "revise",
]
