"""The calls to predicates that a notification needs, and those among them that are not decided yet.

If a notification passes all plain tests of a filter, the filter needs its calls. Cost: the plain
tests of each filter that calls predicates are evaluated. No index is used, because an index can't
predict the result of a predicate.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.filters import Filter
from tidings.filters.canonical import Form
from tidings.filters.language import (
    Call,
    Expression,
    Literal,
    attributes_of,
    children,
    evaluate,
    text_of,
    variables_of,
)
from tidings.filters.values import Key
from tidings.model import Event, FilterError, Undecided
from tidings.preprocessing.predicates.decisions import Decisions, PredicateCall


class CallIndex:
    """The filters that call predicates, by the numbers of their nodes."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._filters: dict[int, tuple[Form, dict[str, Call]]] = {}
        """For each filter its form, and its calls by their text, inner calls first."""

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, number: int, form: Form) -> None:
        calls = {text_of(call): call for term in form.terms.values() for call in calls_in(term)}
        if calls:
            self._filters[number] = form, calls

    def discard(self, number: int) -> None:
        self._filters.pop(number, None)

    def need_decided(self, event: Event) -> None:
        """Raise Undecided, with the calls that must be decided first, if there are any."""
        missing = self.missing(event) if self._filters else ()
        if missing:
            raise Undecided(missing)

    def missing(self, event: Event) -> tuple[PredicateCall, ...]:
        """The calls that a notification needs, and that are not decided yet. If an argument is
        itself a call to a predicate, only the inner call is listed at first."""
        found: dict[bytes, PredicateCall] = {}
        values: dict[str, Key] = {}
        seen: set[str] = set()
        for form, calls in list(self._filters.values()):  # another thread may add filters
            if calls.keys() <= seen or not form.passes_plain_tests(event, values):
                continue
            for text, call in calls.items():
                if text in seen:
                    continue
                seen.add(text)
                arguments = tuple(evaluate(one, event) for one in call.args[1:])
                if None not in arguments:  # if an argument is null, the result is null
                    one = PredicateCall(_name_of(call), arguments)
                    if one not in self._decisions:
                        found[one.key] = one
        return tuple(found.values())


def calls_in(node: Expression) -> Iterator[Call]:
    """The calls to predicates in an expression, inner calls first."""
    for one in children(node):
        yield from calls_in(one)
    if isinstance(node, Call) and node.name == "apply":
        yield node


def need_callable(filter_: Filter, text: str) -> None:
    """Raises FilterError if a filter calls a predicate that can't be decided in advance."""
    for call in calls_in(filter_.expression):
        name = _name_of(call)
        if variables_of(call):
            raise FilterError(
                f"found an element of a list as an argument of the predicate '{name}', expected "
                "attributes",
                text,
            )
        if not attributes_of(call):
            raise FilterError(
                f"found only constants as arguments of the predicate '{name}', expected at least "
                "one attribute",
                text,
            )


def _name_of(call: Call) -> str:
    name = call.args[0]
    assert isinstance(name, Literal)
    return str(name.value)
