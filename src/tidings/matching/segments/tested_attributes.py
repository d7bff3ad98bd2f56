"""The attributes that filters read, and the kinds of values that they are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from tidings.filters import canonical, language
from tidings.filters.language import Attribute, Expression, attributes_of
from tidings.filters.values import sets
from tidings.matching.segments.segment import Segment

Path = tuple[str, ...]
Tested = dict[Path, set[str]]  # families: boolean, number, string, time, list
_FAMILIES = {
    sets.BOOLEAN: "boolean", sets.NUMBER: "number", sets.NAN: "number", sets.STRING: "string",
    sets.TIME: "time",
}  # fmt: skip


def list_tested(segments: Iterable[Segment]) -> Tested:
    """The attributes by path, with the families of values with which filters compare them directly.

    An attribute has no family if it is only read by functions or tested for null.
    """
    found: Tested = {}
    for segment in segments:
        for term in segment.terms:
            families = {_FAMILIES.get(cut[0]) for cut in term.ranks.cuts if len(cut) > 1}
            if term.elements:
                families = {"list"}
            for path in attributes_of(term.node):
                known = found.setdefault(path, set())
                if isinstance(term.node, Attribute):
                    known |= {family for family in families if family is not None}
        for node in _unindexed_terms(segment):
            for path in attributes_of(node):
                found.setdefault(path, set())
    return found


def null_paths(segment: Segment) -> set[Path]:
    """The attributes for which some filter distinguishes null from absent.

    Cost: one pass over the terms.
    """
    found: set[Path] = set()
    for term in segment.terms:
        if isinstance(term.node, Attribute) and term.ranks.tells_null:
            found.add(term.node.path)
        found |= language.null_paths(term.node)
    for node in segment.opaque.values():
        found |= language.null_paths(node)
    for rest in segment.rest.values():
        if rest.form is not None:
            found |= canonical.null_paths(rest.form)
    return found


def computes(segment: Segment) -> bool:
    """Whether some filter does more than test attributes and topics."""
    indexed = (term.node for term in segment.terms)
    return not all(map(canonical.is_plain_term, chain(indexed, _unindexed_terms(segment))))


def _unindexed_terms(segment: Segment) -> Iterable[Expression]:
    yield from segment.opaque.values()
    for rest in segment.rest.values():
        if rest.form is not None:
            yield from rest.form.terms.values()
