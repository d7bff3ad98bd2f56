"""Builds function calls by name: functions of the table, of the application and of other dialects,
and functions that have checks of their own, such as `isa`, `cidr` and `within_km`."""

from __future__ import annotations

import difflib
import math

from tidings.filters.language.builders.calls import CallBuilder
from tidings.filters.language.builders.checker import describe
from tidings.filters.language.dialect import SqlFunction, sql_functions
from tidings.filters.language.expression import (
    Attribute,
    Call,
    Expression,
    IsNull,
    Literal,
    Not,
    is_absent,
)
from tidings.filters.language.functions import ALIASES, FUNCTIONS, OPERATORS
from tidings.filters.language.named_parts import make_named, problem_of_name
from tidings.filters.language.sql_writer import name_text
from tidings.filters.values import inet, subjects
from tidings.filters.values.casts import CAST_NAMES
from tidings.model import FilterError, article, is_number

# `byte`, `short` and `real` are types in CAST, but not functions
_CASTS = frozenset(CAST_NAMES) - {"byte", "short", "real", "timestamp_ltz"}
_PRIVATE = frozenset({"apply", "cast", "foreign", "subject_matches", "negative"}) | OPERATORS
_SPECIAL = frozenset({"subject", "isa", "preorder", "cidr", "within_box", "within_km", "array",
                      "isnull", "isnotnull", "isabsent", "like", "ilike", "if"})  # fmt: skip
_LIMITS = {"south": (-90, 90), "north": (-90, 90), "west": (-180, 180), "east": (-180, 180),
           "lat0": (-90, 90), "lon0": (-180, 180), "km": (0, 20038)}  # fmt: skip


class Builder(CallBuilder):
    """Builds expressions for one text in one context."""

    def function(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        """Build a function call by the name in the text; some functions have checks of their
        own."""
        lower = ALIASES.get(name.lower(), name.lower())
        if lower in _SPECIAL:
            return self._build_special(lower, args, places, at)
        if lower in _CASTS:
            return self.cast(lower, args, at)
        if lower in FUNCTIONS and (lower not in _PRIVATE or lower == "%"):
            return self.call(lower, args, places, at)
        foreign = sql_functions()
        if lower in foreign:
            return self._embed(foreign[lower], args, places, at)
        if name in self.functions:
            for arg, where in zip(args, places, strict=True):
                self.need_value(arg, where, f"for {name}")
            return Call("apply", (Literal(name), *args), self.functions[name])
        known = [*FUNCTIONS, *ALIASES, *_SPECIAL, *_CASTS, *foreign, *self.functions]
        close = [f for f in difflib.get_close_matches(lower[:80], known, n=3) if f not in _PRIVATE]
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        self.fail(f"there is no function '{name[:40]}'{hint}", at)

    def build_named(
        self, name: Expression, condition: Expression, places: tuple[int, int], at: int
    ) -> Expression:
        """Build a condition with a name."""
        self.count(at)
        text = self.need_string("named", name, places[0])
        problem = problem_of_name(text)
        if problem:
            self.fail(problem, places[0])
        self.need_condition(condition, places[1])
        return make_named(text, condition)

    def _build_special(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        self.count(at)
        if name == "array":
            values = [self.need_constant(name, a, p) for a, p in zip(args, places, strict=True)]
            return Literal(tuple(values))
        if name == "if":
            if len(args) != 3:
                self.fail(f"if takes a condition and two values, not {len(args)} arguments", at)
            self.need_condition(args[0], places[0])
            return self.case([(args[0], args[1])], args[2], at)
        if name in ("isnull", "isnotnull"):
            if len(args) != 1:
                self.fail(f"{name} takes one argument, not {len(args)}", at)
            return IsNull(args[0]) if name == "isnull" else Not(IsNull(args[0]))
        if name == "isabsent":
            if len(args) != 1 or not isinstance(args[0], Attribute):
                self.fail("isabsent takes one attribute, such as isabsent(price)", at)
            return is_absent(args[0])
        if name in ("like", "ilike"):
            if len(args) not in (2, 3):
                self.fail(f"{name} takes two or three arguments, not {len(args)}", at)
            escape = self.need_constant(name, args[2], places[2]) if len(args) == 3 else None
            if escape is not None and not (isinstance(escape, str) and len(escape) == 1):
                self.fail(f"{name} takes a single character as its escape character", places[2])
            return self.like(name, args[0], args[1], escape, places[:2])  # type: ignore[arg-type]
        if name == "subject":
            return self._build_subject(args, places, at)
        if name in ("isa", "preorder"):
            return self._build_topic(name, args, places, at)
        if name == "cidr":
            return self._build_cidr(args, places, at)
        return self._build_place(name, args, places, at)

    def _build_subject(
        self, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        if len(args) != 1:
            self.fail(f"subject takes one pattern, such as 'quotes.*.nyse', not {len(args)}", at)
        pattern = self.need_string("subject", args[0], places[0])
        problem = subjects.pattern_problem(pattern)
        if problem:
            self.fail(f"found the pattern '{pattern[:60]}': {problem}", places[0])
        return Call("subject_matches", (Attribute(("subject",)), args[0]))

    def _build_topic(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        if not (2 if name == "isa" else 1) <= len(args) <= 2 or not isinstance(args[0], Attribute):
            self.fail(f"{name} takes an attribute{' and a topic' if name == 'isa' else ''}", at)
        path = args[0].path
        if self.type(args[0]) not in (None, "string"):
            self.fail(
                f"{name} takes a string here, found {name_text(path)}, "
                f"{article(self.type(args[0]) or '')}",
                places[0],
            )
        ontology = self.attributes.ontology(path) if self.attributes else None
        if name == "preorder":
            if ontology is None:
                self.fail(f"{name_text(path)} has no ontology, which preorder needs", places[0])
            # numbers from different ontologies can't be compared, so the term names its ontology
            mark = ontology.fingerprint
            if len(args) == 2 and self.need_string(name, args[1], places[1]) != mark:
                self.fail(
                    f"found the fingerprint of another ontology, expected '{mark}'", places[1]
                )
            return Call(name, (args[0], Literal(mark)), ontology)
        topic = self.need_string(name, args[1], places[1])
        if ontology is not None and topic not in ontology:
            near = ontology.near(topic)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            found = f"there is no topic '{topic[:60]}' in the ontology of {name_text(path)}"
            self.fail(f"{found}{hint}", places[1])
        return Call(name, args, ontology)

    def _embed(
        self, function: SqlFunction, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        """Build the expression for text in another dialect; the text is the argument of that
        dialect's function."""
        self.count(at)
        name = function.name
        if len(args) != 1:
            self.fail(f"{name} takes {function.argument}, not {len(args)} arguments", at)
        text = self.need_string(name, args[0], places[0])
        try:
            found = function.read(text, self.context)
        except FilterError as problem:
            raise type(problem)(problem.reason, self.text, places[0]) from None
        self.count(at, found.parts)
        return found.node

    def _build_cidr(
        self, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        if len(args) != 2:
            self.fail(f"cidr takes an address and a network, not {len(args)} arguments", at)
        network = self.need_string("cidr", args[1], places[1])
        try:
            inet.network(network)
        except ValueError:
            self.fail(f"found '{network[:60]}', expected a network like 10.0.0.0/8", places[1])
        return self.call("cidr", args, places, at)

    def _build_place(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        names = {"within_box": "lat, lon, south, west, north, east",
                 "within_km": "lat, lon, lat0, lon0, km"}[name]  # fmt: skip
        if len(args) != len(names.split(", ")):
            self.fail(f"{name} takes {names}; found {len(args)} arguments", at)
        for what, arg, where in list(zip(names.split(", "), args, places, strict=True))[2:]:
            value = self.need_constant(name, arg, where)
            if not is_number(value) or not math.isfinite(value):
                self.fail(f"{name} takes a number as {what}, found {describe(arg)}", where)
            low, high = _LIMITS[what]
            if not low <= value <= high:
                self.fail(f"{what} is {value}, expected {low} to {high}", where)
        return self.call(name, args, places, at)
