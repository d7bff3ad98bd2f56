"""Filters: parse text, build the canonical form, decide covering, explain matches.

    text ──dialects──> expression ──canonical──> form: boxes, or a tree of sets
                           |                      |
                    evaluation: the          identity, hull, covering
                    reference semantics

    values/      sets of values, patterns, addresses, geography, topics
    language/    the expression tree: build it, check it, evaluate it, write it as text
    dialects/    one folder for each language that filters are written in
    canonical/   the form of a filter, and which filter covers which

`Filter.matches` evaluates the expression exactly as the semantics are defined. Forms, indexes,
batches and Spark are all tested against `Filter.matches`. The module misfits.py finds tests that
don't fit columns of given types. The module oddities.py says in words why a filter can never match,
or that it always matches. The module limiting.py refuses filters that are not covered by given
filters. This room does no I/O and needs only msgspec and RE2.

Users get `parse`, `Filter`, `Attributes`, `Ontology` and the reports of an explanation from
`tidings`. The other names exported here and by the subfolders are for other rooms only. Start at
filter.py; docs/filters.md is the specification.
"""

from tidings.filters.explanation import BoxReport, Explanation, format_value
from tidings.filters.filter import Filter, need_filter, need_mapping, parse
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.dialect import TestReport
from tidings.filters.limiting import refuse_outside
from tidings.filters.misfits import Misfit, domain_of, misfit_of_term, misfit_of_test, misfits_of
from tidings.filters.oddities import (
    ALWAYS_TRUE,
    NEVER_TRUE,
    ODDITIES,
    RESIDUAL_ONLY,
    oddities_of,
)
from tidings.filters.values.topics import Ontology

__all__ = [
    "ALWAYS_TRUE",
    "NEVER_TRUE",
    "ODDITIES",
    "RESIDUAL_ONLY",
    "Attributes",
    "BoxReport",
    "Explanation",
    "Filter",
    "Misfit",
    "Ontology",
    "TestReport",
    "domain_of",
    "format_value",
    "misfit_of_term",
    "misfit_of_test",
    "misfits_of",
    "need_filter",
    "need_mapping",
    "oddities_of",
    "parse",
    "refuse_outside",
]
