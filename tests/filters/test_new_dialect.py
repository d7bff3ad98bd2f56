"""A dialect is one object and one registration: parsing, forms, SQL, hints follow from its hooks.

The dialect here is `words`: `berlin, urgent` is true of a headline that has all of these words,
in any order, as words of their own. No set of strings says that, so it brings a program.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import tidings
from tidings import FilterError, parse
from tidings.cli.filters.hints import AttributeWatch
from tidings.filters import Attributes
from tidings.filters.dialects import DIALECTS, Context, Dialect, register
from tidings.filters.language import nested_attributes, text_of, without_nested
from tidings.filters.language.dialect import Embedded, SqlFunction, sql_functions
from tidings.filters.language.expression import (
    And,
    Attribute,
    Call,
    Compare,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)
from tidings.filters.language.foreign import NestedSplit, call_program
from tidings.filters.values import sets
from tidings.model import LimitError

HEADLINE = Attribute(("headline",))
NESTED = Call("isnested", (HEADLINE,))
IS_TEXT = Compare(">=", HEADLINE, Literal(""))


class Words:
    """All of these words are in a headline, or in one of a list of headlines."""

    function = "words"
    kind = "boolean"

    def __init__(self, words: frozenset[str]) -> None:
        self.words = words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    def call(self) -> Call:
        return call_program(self, ", ".join(sorted(self.words)), [HEADLINE.path])

    def null_paths(self) -> list[tuple[str, ...]]:
        return []

    def value(self, values: Sequence[Any]) -> bool | None:
        (found,) = values
        if isinstance(found, list):
            return any(self.value([one]) for one in found)
        if not isinstance(found, str):
            return None
        return self.words <= set(re.findall(r"\w+", found.lower()))

    def necessary(self, attributes: Attributes | None) -> list[Expression]:
        return [Or((IS_TEXT, NESTED))]

    def split_nested(self, node: Expression, attributes: Attributes | None) -> NestedSplit | None:
        assert isinstance(node, Or)
        if not isinstance(node.items[0], Compare):
            return None
        return NestedSplit(node.items[0], [HEADLINE.path], [HEADLINE.path])

    def where_single(self) -> Expression | None:
        """One word alone is that word, where there is no list. (As if headlines were words.)"""
        return Compare("=", HEADLINE, Literal(min(self.words))) if len(self.words) == 1 else None


def read_words(text: str) -> Words:
    words = frozenset(word.strip().lower() for word in text.split(","))
    for word in sorted(words):
        if not re.fullmatch(r"\w+", word):
            raise FilterError(f"found '{word}', expected words with commas between", text)
    return Words(words)


def parse_words(text: str, context: Context) -> Expression:
    problem = context.attributes and context.attributes.problem(HEADLINE.path)
    if problem:
        raise FilterError(problem, text)
    program = read_words(text)
    single = program.where_single()
    if single is None:
        return program.call()
    return Or((single, And((NESTED, program.call()))))


def embed_words(text: str, context: Context) -> Embedded:
    program = read_words(text)
    return Embedded(program.call(), len(program.words))


WORDS = Dialect(
    "words", parse_words, function=SqlFunction("words", "words with commas", embed_words)
)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register(WORDS)
    yield
    del DIALECTS["words"]


def test_its_texts_are_parsed() -> None:
    both = parse("Urgent, berlin", "words")
    assert both.matches({"headline": "Berlin: URGENT call"})
    assert not both.matches({"headline": "Berliner: urgent call"})
    assert not both.matches({"headline": 5})
    with pytest.raises(FilterError, match="found 'a b', expected words with commas between"):
        parse("a b", "words")
    with pytest.raises(FilterError, match="there is no attribute 'headline'"):
        parse("a", "words", attributes=Attributes({"price": "double"}))


def test_it_is_offered_where_dialects_are_named() -> None:
    with pytest.raises(FilterError, match=r"expected one of: cesql, cloudevents, .*, words"):
        parse("a", "other")
    with pytest.raises(FilterError, match=r"there is no function 'wods'; did you mean words\?"):
        parse("wods('a')")


def test_its_filters_have_a_canonical_form() -> None:
    one, other = parse("urgent, berlin", "words"), parse("berlin,urgent,berlin", "words")
    assert one == other
    assert one.key == other.key
    assert one.residuals == ["words('berlin, urgent')"]
    assert one.form.hull["headline"] == sets.STRINGS | sets.LISTS  # by `necessary`
    assert parse("headline IS NOT NULL").covers(one)
    assert not one.covers(parse("headline IS NOT NULL"))
    for event in ({"headline": "urgent Berlin"}, {"headline": ["a", "Berlin urgent"]}, {}):
        assert one.form.holds(event) is one.matches(event)


def test_a_program_for_nested_values_gets_its_boxes() -> None:
    form = parse("urgent", "words").form
    assert form.boxes is not None
    assert [sorted(box) for box in form.boxes] == [["headline"], ["headline", "words('urgent')"]]
    assert form.holds({"headline": "urgent"})
    assert form.holds({"headline": ["Urgent!"]})
    assert not form.holds({"headline": ["calm"]})


@pytest.mark.parametrize("text", ["urgent", "urgent, berlin"])
def test_its_filters_have_sql(text: str) -> None:
    one = parse(text, "words")
    assert parse(one.sql()) == one
    assert parse(one.canonical().sql()) == one


def test_sql_holds_texts_of_it() -> None:
    one = parse("price > 5 AND words('Urgent, berlin')")
    assert one.sql() == "price > 5 AND words('berlin, urgent')"
    assert one.matches({"price": 6, "headline": "Berlin urgent"})
    with pytest.raises(FilterError) as refused:
        parse("price > 5 AND words('a b')")
    assert refused.value.reason == "found 'a b', expected words with commas between"
    assert refused.value.position == 20
    with pytest.raises(FilterError, match="words takes words with commas, not 2 arguments"):
        parse("words('a', 'b')")
    with pytest.raises(LimitError, match="more than 3 parts"):
        parse("words('a, b, c')", most_parts=3)


def test_hints_know_that_it_reads_any_type() -> None:
    event = {"headline": ["a", "b"]}
    compared = AttributeWatch([(1, parse("headline = 'urgent'"))])
    compared.look(event)
    (note,) = compared.notes()
    assert "compares headline with strings" in note
    watch = AttributeWatch([(1, parse("urgent, berlin", "words"))])
    watch.look(event)
    assert list(watch.notes()) == []


def test_what_is_left_of_it_without_nested_values() -> None:
    one = parse("urgent", "words").expression
    assert nested_attributes(one) == ["headline"]
    assert text_of(without_nested(one)) == "headline = 'urgent'"
    assert without_nested(call := parse("a, b", "words").expression) is call
    assert text_of(without_nested(Not(IsNull(HEADLINE)))) == "headline IS NOT NULL"


# -- nobody else names a dialect ---------------------------------------------------------------

SOURCE = Path(tidings.__file__).parent
FOLDER = SOURCE / "filters" / "dialects"


def names_of_dialects() -> list[str]:
    """Without SQL: expressions are written in it, and it is the default everywhere."""
    return sorted({*DIALECTS, *sql_functions()} - {"sql", "words"})


def mentions(source: str) -> Iterator[str]:
    """Every identifier, module and string of a file but its docstrings and comments."""
    tree = ast.parse(source)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docs:
                yield node.value
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def found_in(source: str) -> list[str]:
    said = " ".join(mentions(source)).lower()
    return [name for name in names_of_dialects() if name in said]


def test_a_mention_is_found() -> None:
    assert names_of_dialects() == ["cesql", "cloudevents", "event_pattern", "eventbridge"]
    assert found_in("from tidings.filters.dialects.cesql import parser") == ["cesql"]
    assert found_in("if name == 'event_pattern':\n    pass") == ["event_pattern"]
    assert found_in("def _cloudevents(x):\n    pass") == ["cloudevents"]
    assert found_in('"""About cesql."""\n# and eventbridge\nx = 1') == []


# It writes filters in all dialects, so that the chain can be measured with them.
WRITERS = {"studies/chain/chain_rows.py"}


def test_no_module_outside_its_folder_names_a_dialect() -> None:
    found = {
        str(path.relative_to(SOURCE)): names
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.is_relative_to(FOLDER) and (names := found_in(path.read_text()))
    }
    assert found.keys() == WRITERS


def test_only_the_registry_names_dialects_among_their_folders() -> None:
    for path in FOLDER.glob("*.py"):
        assert bool(found_in(path.read_text())) is (path.name == "registry.py"), path


def test_each_dialect_but_this_one_is_a_folder() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/dialect.py")}
    assert folders == DIALECTS.keys() - {"words"}
