"""Turns the interests of a channel into filters, and notifications into events for the filters."""

from __future__ import annotations

import re

from tidings.filters import Attributes, Filter, parse
from tidings.model import Event, FilterError
from tidings.preprocessing.kinds.definition import KindDefinition
from tidings.preprocessing.predicates import Decisions
from tidings.preprocessing.predicates.call_index import need_callable
from tidings.routing.protocol import DEFAULT_DIALECT

CONTENT = KindDefinition()


class Kind:
    """The kind `content`: interests are filters. The other kinds inherit from it."""

    def __init__(
        self,
        attributes: Attributes | None = None,
        definition: KindDefinition = CONTENT,
    ) -> None:
        self.attributes = attributes
        self.definition = definition
        self.decisions = Decisions()
        """The results of predicates."""
        self.functions = self.decisions.functions(definition.callable_predicates)
        """The predicates that filters may call, as functions that look up their results in
        `decisions`."""

    def parse(
        self, text: str, dialect: str = DEFAULT_DIALECT, most_parts: int | None = None
    ) -> Filter:
        """The filter of an interest; raises FilterError if the interest is refused."""
        try:
            found = parse(
                text, dialect, attributes=self.attributes, functions=self.functions,
                most_parts=most_parts,
            )  # fmt: skip
        except FilterError as problem:
            self._tell_off(text, problem)
            raise
        if self.functions:
            need_callable(found, text)
        return found

    def _tell_off(self, text: str, problem: FilterError) -> None:
        """If a filter is refused because it calls a predicate that is switched off, say so."""
        for name, reason in self.definition.off.items():
            call = re.search(rf"\b{re.escape(name)}\s*\(", text)
            if call is not None and f"'{name}'" in problem.reason:
                told = f"the predicate '{name}' is switched off: {reason}"
                raise FilterError(told, text, call.start()) from None

    def type_of(self, content: bytes) -> str:
        """The declared type of an accepted notification; empty if the kind has no types."""
        return ""

    def type_interest(self, type_: str) -> str:
        """The interest in a declared type, as a filter in SQL. Only for kinds with types, which
        override this method: in all others, `type_of` finds no type to ask for."""
        raise NotImplementedError  # so a new kind with types can't forget it

    def type_in(self, found: Filter) -> str:
        """The declared type that an interest asks for; empty if it asks for anything else, such as
        a type with a condition."""
        return ""

    def read(self, event: Event) -> Event:
        """The event that filters test, except that its values are not yet converted to the declared
        types; raises NotificationError if the notification is refused."""
        return event
