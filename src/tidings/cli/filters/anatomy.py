"""Takes a filter apart: canonical form, tests, residuals, warnings."""

from __future__ import annotations

import msgspec

from tidings import Filter
from tidings.filters import format_value, oddities_of
from tidings.filters.canonical import (
    AllOf,
    Form,
    Node,
    Test,
    express_test,
    express_tree,
    is_opaque,
    reads,
)
from tidings.filters.language import find, name_text, text_of
from tidings.model import Event

SEVERAL = "(several)"  # shown as the term of a clause that has several terms


class FilterPart(msgspec.Struct, frozen=True):
    """One test, as SQL: a term, and the set of its values."""

    term: str
    set: str
    residual: bool


class Anatomy(msgspec.Struct, frozen=True):
    """What `tidings check` reports; the fields are those of `--json`."""

    filter: str
    canonical: str
    identity: str
    wide: bool
    boxes: list[list[FilterPart]]
    residuals: list[str]
    attributes: list[str]
    warnings: list[str]
    note: str  # why the filter can never match, or a note that it always matches; otherwise empty


def dissect(filter_: Filter, text: str) -> Anatomy:
    """Take apart a filter that was written as `text`."""
    form = filter_.form
    return Anatomy(
        filter=text.strip(),
        canonical=filter_.canonical().sql(),
        identity=filter_.key.hex(),
        wide=form.boxes is None,
        boxes=_boxes(form),
        residuals=filter_.residuals,
        attributes=sorted(name_text(path) for path in reads(form)),
        warnings=oddities_of(form),
        note=filter_.note,
    )


def _boxes(form: Form) -> list[list[FilterPart]]:
    """The tests of each box. For a wide form, the result is a single list: the clauses that must
    all hold."""
    if form.boxes is not None:
        return [[_part(form, Test(term, s)) for term, s in box.items()] for box in form.boxes]
    assert form.tree is not None
    clauses = form.tree.items if isinstance(form.tree, AllOf) else (form.tree,)
    return [[_part(form, clause) for clause in clauses]]


def _part(form: Form, node: Node) -> FilterPart:
    if isinstance(node, Test):
        term = form.terms[node.term]
        return FilterPart(node.term, text_of(express_test(term, node.values)), is_opaque(term))
    return FilterPart(SEVERAL, text_of(express_tree(node, form.terms)), False)


def describe_values(filter_: Filter, event: Event) -> str:
    """The attributes that a filter reads, with their values in an event."""
    paths = sorted(reads(filter_.form))
    return ", ".join(f"{name_text(path)} = {format_value(find(event, path))}" for path in paths)
