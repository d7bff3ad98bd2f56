"""The rules of the canonical form, one by one: fixtures/canonical/<rule>.sql has pairs of a filter
and the same filter after the rules up to this one, each with a semicolon at the end of its line.
`-- types: name = type` above a pair declares an attribute; other comments are for readers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, cast

import pytest

from tidings import Attributes, Filter, Ontology, parse
from tidings.filters.canonical import form_to_expression, rules, set_tree
from tidings.filters.canonical.boxes import Union
from tidings.filters.canonical.form import Form
from tidings.filters.canonical.rewrites import REWRITES
from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_fully
from tidings.filters.language.expression import And, Expression, IsTruth, Not, Or
from tidings.filters.language.sql_writer import text_of

FOLDER = Path(__file__).parent / "fixtures" / "canonical"
DOCS = Path(__file__).parents[2] / "docs" / "filters.md"
NAMES = [rule.name for rule in rules.RULES]


class Case(NamedTuple):
    rule: str
    before: str
    after: str
    attributes: Attributes | None


def read_cases(name: str) -> Iterator[Case]:
    declared: Attributes | None = None
    texts: list[str] = []
    for line in (FOLDER / f"{name}.sql").read_text().splitlines():
        if line.startswith("-- types: "):
            declared = declare(line.removeprefix("-- types: "))
        elif line and not line.startswith("--"):
            assert line.endswith(";"), line
            texts.append(line[:-1])
            if len(texts) == 2:
                yield Case(name, texts[0], texts[1], declared)
                texts, declared = [], None
    assert not texts, f"a filter without its result: {texts}"


def declare(text: str) -> Attributes:
    name, _, kind = text.partition(" = ")
    if not kind.startswith("ontology "):
        return Attributes({name: cast(Any, kind)})
    rows = (row.partition(": ") for row in kind.removeprefix("ontology ").split(", "))
    return Attributes({name: Ontology({above: below.split() for above, _, below in rows})})


CASES = [case for name in NAMES for case in read_cases(name)]


# -- the state after a rule --------------------------------------------------------------------


def after_rule(name: str, node: Expression, attributes: Attributes | None) -> Expression:
    """The filter after the rules up to this one."""
    at = NAMES.index(name)
    if at < 3:
        return rewrite_everywhere(node, [rule.apply for rule in rules.RULES[1 : at + 1]])
    builder = set_tree.SetTreeBuilder(attributes)
    tree = builder.build(node)
    if rules.RULES[at].stage == "tree":
        return form_to_expression.express_tree(tree, builder.terms)
    if name == "keep_tree":
        kept = rules.keep_tree(tree, builder)
        assert rules.multiply_out(kept) is None
        return form_to_expression.express_tree(kept, builder.terms)
    union = rules.multiply_out(tree)
    assert union is not None
    for rule in rules.REPEATED[: max(0, at - NAMES.index("multiply_out"))]:
        union = rule(union, builder)
    if name == "sort_boxes":
        union = list(rules.sort_boxes(union))
    return spell_union(union, builder)


def spell_union(union: Union, builder: set_tree.SetTreeBuilder) -> Expression:
    return form_to_expression.express_form(Form(tuple(union), None, {}, builder.terms))


def rewrite_everywhere(node: Expression, rewrites: list[Any]) -> Expression:
    match node:
        case And(items):
            return And(tuple(rewrite_everywhere(item, rewrites) for item in items))
        case Or(items):
            return Or(tuple(rewrite_everywhere(item, rewrites) for item in items))
        case Not(item):
            return Not(rewrite_everywhere(item, rewrites))
        case IsTruth(item, truth):
            return IsTruth(rewrite_everywhere(item, rewrites), truth)
    for rewrite in rewrites:
        plainer = rewrite(node)
        if plainer is not node:
            return rewrite_everywhere(plainer, rewrites)
    return node


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.before}")
def test_rule(case: Case) -> None:
    node = parse_fully(case.before, Context(case.attributes))
    found = text_of(after_rule(case.rule, node, case.attributes))
    assert re.sub("'[0-9a-f]{16}'", "'{fingerprint}'", found) == case.after


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.before}")
def test_a_rule_keeps_the_filter(case: Case) -> None:
    """Before and after have one canonical form."""
    before = parse(case.before, attributes=case.attributes)
    node = after_rule(case.rule, before.expression, case.attributes)
    assert Filter(node, case.attributes).encoded == before.encoded


# -- the tuple ---------------------------------------------------------------------------------


def test_each_rule_has_a_fixture_in_which_something_happens() -> None:
    assert {path.stem for path in FOLDER.glob("*.sql")} == set(NAMES)
    assert len(set(NAMES)) == len(NAMES)
    assert {case.rule for case in CASES if case.before != case.after} == set(NAMES)


def test_each_rule_says_what_becomes_of_what() -> None:
    for rule in rules.RULES:
        assert "   ->   " in (rule.apply.__doc__ or ""), rule.name


def test_the_tuple_has_the_rules_that_are_applied() -> None:
    applied = [rule.apply for rule in rules.RULES]
    assert applied[1:3] == list(REWRITES)
    assert applied[10:12] == list(rules.REPEATED)


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_takes_part_in_parsing(name: str) -> None:
    """Parsing the filters of a fixture, and asking for their forms, runs the rule."""
    (rule,) = (rule for rule in rules.RULES if rule.name == name)
    code = cast(Any, rule.apply).__code__
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for case in read_cases(name):
            assert parse(case.before, attributes=case.attributes).form is not None
    finally:
        sys.setprofile(before)
    assert code in called


def test_the_page_numbers_the_same_rules() -> None:
    section = DOCS.read_text().split("\n### Rules\n")[1].split("\n## ")[0]
    numbers = [int(found) for found in re.findall(r"^\*\*(\d+)\. ", section, re.MULTILINE)]
    assert numbers == list(range(1, len(NAMES) + 1))
