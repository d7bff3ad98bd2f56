"""The filters of the CloudEvents Subscriptions API: one filter, or an array of filters that must
all be true.

    {"any": [{"prefix": {"type": "com.example."}}, {"sql": "INT(priority) > 5"}]}

`named`, a filter with a name, is an addition of tidings; the name does not change the meaning of
the filter.

A filter is true or false, never an error. `exact`, `prefix` and `suffix` are false if the attribute
is missing, and `sql` is false if an error occurs; a `not` around such a filter is then true.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import msgspec

from tidings.filters.dialects.cesql import parser, syntax
from tidings.filters.dialects.cesql.translate import Translator
from tidings.filters.language.dialect import Context
from tidings.filters.language.expression import And, Expression, IsTruth, Literal, Not, Or
from tidings.filters.language.named_parts import make_named, problem_of_name
from tidings.filters.values import like
from tidings.model import FilterError

MOST_LEVELS = 30
_NAME = re.compile("[a-z0-9]+", re.ASCII)
_ANY = (like.ANY, like.ANY)
_KINDS = "exact, prefix, suffix, all, any, not, sql, named"


def parse(text: str, context: Context) -> Expression:
    """Parse a filter; a FilterError names the JSON pointer of the invalid part."""
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError) as problem:
        found = re.search(r"\(byte (\d+)\)", str(problem))
        at = len(text.encode()[: int(found[1])].decode(errors="ignore")) if found else len(text)
        raise FilterError(f"this is not JSON: {problem}", text, at) from None
    reader = _Reader(text, context)
    if isinstance(value, list):
        return _join(And, reader.filters(value, "")) if value else Literal(True)
    return reader.filter(value, "")


def _escape(name: str) -> str:
    """Escape a name for use in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _join(kind: type[And] | type[Or], items: list[Expression]) -> Expression:
    return items[0] if len(items) == 1 else kind(tuple(items))


class _Reader:
    def __init__(self, text: str, context: Context) -> None:
        self.text = text
        self.context = context
        self.translator = Translator(context.attributes)

    def fail(self, at: str, found: Any, expected: str) -> NoReturn:
        shown = found if isinstance(found, str) else msgspec.json.encode(found).decode()
        shown = (shown if len(shown) <= 60 else shown[:57] + "...") or "nothing"
        self.refuse(at, f"found {shown}, expected {expected}")

    def refuse(self, at: str, reason: str) -> NoReturn:
        raise FilterError(f"at {at}: {reason}" if at else reason, self.text)

    def filters(self, found: list[Any], at: str) -> list[Expression]:
        return [self.filter(one, f"{at}/{place}") for place, one in enumerate(found)]

    def filter(self, found: Any, at: str) -> Expression:
        if at.count("/") > 2 * MOST_LEVELS:
            self.fail(at, found, f"filters nested at most {MOST_LEVELS} deep")
        if not isinstance(found, dict) or len(found) != 1:
            self.fail(at, found, f"an object with one of {_KINDS}")
        ((kind, body),) = found.items()
        at = f"{at}/{_escape(kind)}"
        match kind:
            case "exact" | "prefix" | "suffix":
                return self.tests(kind, body, at)
            case "all" | "any":
                if not isinstance(body, list) or not body:
                    self.fail(at, body, "an array of at least one filter")
                return _join(And if kind == "all" else Or, self.filters(body, at))
            case "not":
                return Not(IsTruth(self.filter(body, at), True))
            case "sql":
                return self.sql(body, at)
            case "named":
                return self.build_named(body, at)
        self.fail(at, kind, f"one of {_KINDS}")

    def build_named(self, body: Any, at: str) -> Expression:
        """Parse `named`, an object of names and filters: all filters must be true, and each is a
        named part."""
        if not isinstance(body, dict) or not body:
            self.fail(at, body, "an object of names and filters")
        items: list[Expression] = []
        for name, one in body.items():
            place = f"{at}/{_escape(name)}"
            problem = problem_of_name(name)
            if problem:
                self.refuse(place, problem)
            items.append(make_named(name, self.filter(one, place)))
        return _join(And, items)

    def tests(self, kind: str, body: Any, at: str) -> Expression:
        if not isinstance(body, dict) or not body:
            self.fail(at, body, "an object of attributes and values")
        places = [(name, value, f"{at}/{_escape(name)}") for name, value in body.items()]
        return _join(And, [self.test(kind, *one) for one in places])

    def test(self, kind: str, name: str, value: Any, at: str) -> Expression:
        if not _NAME.fullmatch(name):
            self.fail(at, name, "an attribute name of lower-case letters and digits")
        if not isinstance(value, str) or not value:
            self.fail(at, value, "a nonempty string")
        problem = self.context.attributes and self.context.attributes.problem((name,))
        if problem:
            self.refuse(at, problem)
        attribute, text = syntax.Name(name), ("text", value)
        if kind == "exact":
            equal = syntax.Compare("=", attribute, syntax.Constant(value))
            return self.translator.condition(equal).true
        return self.translator.like(
            attribute, (text, _ANY) if kind == "prefix" else (_ANY, text)
        ).true

    def sql(self, body: Any, at: str) -> Expression:
        if not isinstance(body, str):
            self.fail(at, body, "an expression as a string")
        try:
            return self.translator.true(parser.read(body, self.context.attributes))
        except FilterError as problem:
            self.refuse(at, str(problem))
