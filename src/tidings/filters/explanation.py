"""Explain why a notification does or does not match a filter, test by test."""

from __future__ import annotations

import html
import math
from typing import Any

import msgspec

from tidings.filters.canonical.boxes import Box
from tidings.filters.canonical.form import Form
from tidings.filters.canonical.form_to_expression import express_test, express_tree
from tidings.filters.canonical.set_tree import AllOf, Node, Test
from tidings.filters.language.dialect import TestReport
from tidings.filters.language.evaluation import find, term_value
from tidings.filters.language.expression import Attribute, attributes_of
from tidings.filters.language.sql_writer import literal_text, name_text, text_of
from tidings.filters.language.static_types import is_condition
from tidings.filters.values.sets import key
from tidings.model import ABSENT, Event, type_of


class BoxReport(msgspec.Struct, frozen=True):
    """One alternative of the filter: all of its tests must pass."""

    tests: list[TestReport]

    @property
    def failed(self) -> list[TestReport]:
        return [test for test in self.tests if not test.passed]


class Explanation(msgspec.Struct, frozen=True):
    """Whether the filter matches, and a report on each alternative, ordered so that the alternative
    closest to a match comes first."""

    matched: bool
    boxes: list[BoxReport]
    note: str = ""
    """The sentence of `Filter.note`: why the filter can never match, or that it always does."""
    parts: dict[str, bool] = {}
    """The named parts of the filter, and whether each of them is true."""

    @property
    def reason(self) -> str:
        """The reason in one line, from the closest alternative."""
        if not self.boxes:
            return self.note
        best = self.boxes[0]
        if self.matched:
            return "; ".join(str(test) for test in best.tests) or "the filter always matches"
        return "; ".join(str(test) for test in best.failed)

    def __str__(self) -> str:
        lines = ["matches" if self.matched else "does not match"]
        for number, box in enumerate(self.boxes, 1):
            if len(self.boxes) > 1:
                count = len(box.failed)
                verdict = "all pass" if not count else f"{count} of {len(box.tests)} fail"
                lines.append(f"alternative {number} ({verdict}):")
            ordered = sorted(box.tests, key=lambda test: test.passed)
            lines.extend(f"  {test}" for test in ordered)
        if not self.boxes:
            lines.append(f"  {self.note}")
        lines.extend(f"  part {name}: {say_part(true)}" for name, true in self.parts.items())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table of the tests of each alternative, for notebooks."""
        rows = []
        for number, box in enumerate(self.boxes, 1):
            if len(self.boxes) > 1:
                rows.append(f'<tr><th colspan="3">alternative {number}</th></tr>')
            for test in sorted(box.tests, key=lambda test: test.passed):
                found = f"{test.term} is {test.actual}"
                cells = ("passed" if test.passed else "failed", test.expected, found)
                rows.append(
                    "<tr>" + "".join(f"<td>{html.escape(one)}</td>" for one in cells) + "</tr>"
                )
        verdict = "matches" if self.matched else "does not match"
        if not self.boxes:
            verdict += f": {html.escape(self.note)}"
        rows += [
            f"<tr><td>{say_part(true)}</td><td>part {html.escape(name)}</td><td></td></tr>"
            for name, true in self.parts.items()
        ]
        head = "<tr><th>result</th><th>expected</th><th>found</th></tr>" if rows else ""
        return f"<p>{verdict}</p><table>{head}{''.join(rows)}</table>"


def say_part(true: bool) -> str:
    """The word for the result of a named part."""
    return "true" if true else "not true"


def explain(
    form: Form, event: Event, note: str, parts: dict[str, bool] | None = None
) -> Explanation:
    """Run every test of every box on this notification; `note` is the note of the filter, and
    `parts` are the filter's named parts with their results."""
    if form.boxes is not None:
        reports = [BoxReport([_report_test(form, event, Test(t, v)) for t, v in _tests(box)])
                   for box in form.boxes]  # fmt: skip
    else:
        assert form.tree is not None
        clauses = form.tree.items if isinstance(form.tree, AllOf) else (form.tree,)
        reports = [BoxReport([_report_test(form, event, clause) for clause in clauses])]
    reports.sort(key=lambda box: (len(box.failed), len(box.tests)))
    return Explanation(any(not box.failed for box in reports), reports, note, parts or {})


def _tests(box: Box) -> list[tuple[str, Any]]:
    return list(box.items())


def _report_test(form: Form, event: Event, node: Node) -> TestReport:
    if isinstance(node, Test):
        term = form.terms[node.term]
        value = term_value(term, event)
        actual = "unknown" if value is None and is_condition(term) else format_value(value)
        if not isinstance(term, Attribute):
            actual += f" ({_list_values(form, [node.term], event)})"
        expected = text_of(express_test(term, node.values))
        return TestReport(node.term, _shorten(expected), actual, key(value) in node.values)
    passed = Form(None, node, {}, form.terms).holds(event)
    expected = text_of(express_tree(node, form.terms))
    terms = sorted(_terms(node))
    return TestReport(_shorten("one of " + ", ".join(terms)), _shorten(expected),
                      _shorten(_list_values(form, terms, event)), passed)  # fmt: skip


def _terms(node: Node) -> set[str]:
    if isinstance(node, Test):
        return {node.term}
    return set().union(*(_terms(item) for item in node.items))


def _list_values(form: Form, terms: list[str], event: Event) -> str:
    paths = sorted(set().union(*(attributes_of(form.terms[term]) for term in terms)))
    values = (f"{name_text(p)} = {format_value(find(event, p))}" for p in paths)
    return ", ".join(values)


def format_value(value: Any) -> str:
    """Format a value for people to read."""
    if value is ABSENT:
        return "absent"
    if value is None:
        return "null"
    inside = value if isinstance(value, list) else [value]
    if any(type_of(one) in (None, "struct", "list") and one is not None for one in inside):
        return _shorten(repr(value))
    try:
        return _shorten(_write_value(value))
    except (TypeError, ValueError, OverflowError):
        return _shorten(repr(value))


def _write_value(value: Any) -> str:
    """Write a value as in SQL, except that a whole double gets no suffix D: 5.0 instead of 5.0D."""
    if isinstance(value, list):
        return "array(" + ", ".join(_write_value(one) for one in value) + ")"
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    return literal_text(value)


def _shorten(text: str, width: int = 120) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
