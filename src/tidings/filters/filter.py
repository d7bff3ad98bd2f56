"""The public class Filter: a condition on notifications. The modules behind this class are
private."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from tidings.filters import explanation, oddities
from tidings.filters.canonical import covering, form, form_to_expression, rules
from tidings.filters.canonical.set_tree import is_opaque
from tidings.filters.dialects import registry
from tidings.filters.explanation import BoxReport, Explanation
from tidings.filters.language import evaluation, sql_writer
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.dialect import DIALECTS, Context, OwnWords
from tidings.filters.language.expression import MAX_DEPTH, And, Expression, Not, Or, depth_of
from tidings.filters.language.foreign import program_of, programs_of
from tidings.filters.language.named_parts import may_have_names, parts_in, without_names
from tidings.model import Event, FilterError, NotificationError


def parse(
    text: registry.Source,
    dialect: str = "sql",
    *,
    attributes: Attributes | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    most_parts: int | None = None,
) -> Filter:
    """Parse a filter; raise FilterError with a position if the text is not valid.

    `dialect` names the language of the text; docs/dialects.md lists them. A dialect that is written
    in JSON also accepts the parsed object.

    `attributes` are those that the channel declares; the filter's names and types are checked
    against them. `functions` are the application's own functions, by name. The application's
    functions must always return the same result for the same arguments.

    `most_parts` limits the number of attributes, comparisons and calls; a filter with more raises
    LimitError. By default there is no limit.
    """
    context = Context(attributes, functions or {}, most_parts or 1 << 62)
    node = registry.read(text, dialect, context)
    found = Filter(node, attributes)
    if may_have_names(registry.as_text(text)):
        found._take_names(node)
    words = DIALECTS[dialect].words
    if words is not None:
        found._written = words, registry.as_text(text)
    return found


def need_filter(value: object) -> None:
    """Raise FilterError unless the value is a Filter."""
    if not isinstance(value, Filter):
        raise FilterError(f"found {type(value).__name__}, expected a Filter; parse() returns one")


def need_mapping(event: object) -> None:
    """Raise NotificationError unless the event is a mapping of names to values."""
    if type(event) is not dict and not isinstance(event, Mapping):
        raise NotificationError(
            f"found {type(event).__name__}, expected a mapping of names to values"
        )


SURELY_PARSED = MAX_DEPTH // 3  # each level of an expression takes at most three levels of text


def _need_depth(text: str) -> None:
    """Raise FilterError if a text is nested too deeply to be parsed again."""
    try:
        registry.read(text, "sql", Context())
    except FilterError as problem:
        if "nested more than" in problem.reason:
            raise FilterError(f"in the combined filter, {problem.reason}", text) from None


def _declaration_of(attributes: Attributes | None) -> Any:
    return None if attributes is None else attributes.to_declared()


class Filter:
    """A condition on notifications. A filter is immutable; two filters are equal if their forms
    are.

    Create a filter with `tidings.parse`.
    """

    def __init__(self, expression: Expression, attributes: Attributes | None = None) -> None:
        self._expression: Expression | None = expression
        self._attributes = attributes
        # the filter's text, if its dialect explains filters in its own words
        self._written: tuple[OwnWords, str] | None = None
        # the expression with the names of its parts, if any part has a name
        self._named: Expression | None = None

    def _take_names(self, node: Expression) -> None:
        """Store an expression twice: with the names of its parts, and without them. Names do not
        change the meaning of a filter."""
        plain = without_names(node)
        if plain is not node:
            self._expression, self._named = plain, node

    @property
    def expression(self) -> Expression:
        """The expression tree without names of parts, for the rooms that compile it."""
        return (
            form_to_expression.express_form(self.form)
            if self._expression is None
            else self._expression
        )

    def slim(self) -> None:
        """Free the expression and the bytes; keep the form, the identity and named parts. Nothing
        is lost, because the expression and the bytes can be rebuilt from the form; for a long
        filter, they take more memory than the form and the identity."""
        _ = self.key, self.note  # computed now: the note quotes the expression
        self.__dict__.pop("encoded", None)
        self._expression = None

    @cached_property
    def form(self) -> form.Form:
        """The canonical form, for the rooms that index it."""
        return rules.form_of(self.expression, self._attributes)

    @cached_property
    def encoded(self) -> bytes:
        """The bytes of the canonical form."""
        return form.encode(self.form)

    @cached_property
    def key(self) -> bytes:
        """The identity of the filter: 16 bytes that are the same in every process and release."""
        return form.digest(self.encoded)

    def matches(self, event: Event) -> bool:
        """Whether a notification matches, according to the reference semantics."""
        need_mapping(event)
        return evaluation.truth(self.expression, event) is True

    @cached_property
    def parts(self) -> Mapping[str, Filter]:
        """The named parts of the filter, in the order of its text: `named('late', delay > 60)` is
        the part `late`. Several parts with the same name count as one part: the OR of their
        conditions."""
        if self._named is None:
            return {}
        found = parts_in(self._named).items()
        return {name: Filter(node, self._attributes) for name, node in found}

    def matched_parts(self, event: Event) -> list[str]:
        """The names of the parts that are true for a notification, according to the reference
        semantics, whether or not the whole filter matches the notification."""
        need_mapping(event)
        return [name for name, part in self.parts.items() if part.matches(event)]

    def covers(self, other: Filter) -> bool:
        """Whether every notification that matches the other filter also matches this one.

        True is certain. False may also mean that covering could not be proven.
        """
        need_filter(other)
        return self.key == other.key or covering.covers(self.form, other.form)

    def canonical(self) -> Filter:
        """The same filter, rewritten in canonical form, without names of parts."""
        same = Filter(form_to_expression.express_form(self.form), self._attributes)
        same.__dict__["form"] = self.form
        return same

    def explain(self, event: Event) -> Explanation:
        """Report which tests passed and which failed, with expected and actual values. An event
        pattern is explained field by field, in the words of the pattern; every other filter is
        explained as SQL."""
        need_mapping(event)
        written = self._written or self._restore()
        if written is None:
            parts = {name: part.matches(event) for name, part in self.parts.items()}
            return explanation.explain(self.form, event, self.note, parts)
        words, text = written
        matched = self.matches(event)
        return Explanation(matched, [BoxReport(words.explain(text, event, matched))], self.note)

    def _restore(self) -> tuple[OwnWords, str] | None:
        """If the filter can be restored in a dialect that explains filters in its own words: the
        hooks of that dialect, and the filter's text in it. Otherwise None."""
        node, declared = self._expression, self._attributes
        if node is None:
            return None
        called = {one.function for one in programs_of(node)}
        for dialect in DIALECTS.values() if called else ():
            if dialect.words and dialect.function and dialect.function.name in called:
                text = dialect.words.restore(node)
                is_alone = program_of(node) is not None
                if text and (is_alone or parse(text, dialect.name, attributes=declared) == self):
                    return dialect.words, text
        return None

    def sql(self) -> str:
        """The filter as SQL, the default dialect, with the names of its parts; parsing the text
        gives an equal filter."""
        return sql_writer.text_of(self._tree)

    @property
    def _tree(self) -> Expression:
        """The expression, with the names of its parts."""
        return self.expression if self._named is None else self._named

    @property
    def never(self) -> bool:
        """True if it is proven that no notification can match."""
        return self.form.never

    @property
    def always(self) -> bool:
        """True if it is proven that every notification matches."""
        return self.form.always

    @property
    def residuals(self) -> list[str]:
        """The conditions that no index can decide; each is evaluated by itself."""
        return [text for text, term in self.form.terms.items() if is_opaque(term)]

    @cached_property
    def note(self) -> str:
        """One sentence about a filter that was probably not meant as written, because it can never
        match (the sentence says why), or because it always matches although it reads attributes.
        For all other filters, the note is empty."""
        return oddities.sentence_of(self.expression, self.form, self._attributes)

    # -- combinations --------------------------------------------------------------------------

    def __and__(self, other: object) -> Filter:
        """`a & b` matches an event if both filters match it."""
        found: Filter = self._join(other, And)
        return found

    def __or__(self, other: object) -> Filter:
        """`a | b` matches an event if at least one of the filters matches it."""
        found: Filter = self._join(other, Or)
        return found

    def __invert__(self) -> Filter:
        """`~a` is NOT (a), as in SQL: it does not match an event for which `a` is unknown."""
        node = self._tree
        return self._make(node.item if isinstance(node, Not) else Not(node))

    def _join(self, other: object, kind: type[And] | type[Or]) -> Any:
        if not isinstance(other, Filter):
            return NotImplemented
        mine, theirs = self._attributes, other._attributes
        if mine is not theirs and _declaration_of(mine) != _declaration_of(theirs):
            raise FilterError(
                "found filters that were parsed with different attributes, expected the same; "
                "parse both with the attributes of the channel"
            )
        items: list[Expression] = []
        for one in (self._tree, other._tree):
            items.extend(one.items if isinstance(one, kind) else [one])
        return self._make(kind(tuple(items)))

    def _make(self, node: Expression) -> Filter:
        if depth_of(node) > SURELY_PARSED:
            _need_depth(sql_writer.text_of(node))
        found = Filter(node, self._attributes)
        found._take_names(node)
        return found

    def __bool__(self) -> bool:
        raise TypeError(
            "a filter is neither true nor false; use &, | and ~ instead of `and`, `or` and `not`"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        text = self.sql()
        return f"Filter({text if len(text) <= 200 else text[:197] + '...'})"
