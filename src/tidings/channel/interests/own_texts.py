"""In channels in which each text has a node of its own: which nodes have the text of an interest.

    'SAP ALV', 'ALV SAP'     one filter, two texts: two nodes; a revision may tell them apart

A topic or a type is named in the filter in SQL, so the filter in SQL is the text. The class of an
application may turn a text into any filter, so the text is the one that the subscriber wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidings.preprocessing import KindName
from tidings.routing.protocol import (
    DEFAULT_DIALECT,
    split_dialect,
    split_related,
    unpack_interest,
)

_APPLICATION = "application"  # the kind, and also its dialect


class OwnTexts:
    """The texts of nodes."""

    def __init__(
        self, kind: KindName, sql_of: Callable[[int], str], read_sql: Callable[[bytes], str]
    ) -> None:
        """`sql_of` returns the filter of a node in SQL, and `read_sql` that of an interest."""
        self._is_application = kind == _APPLICATION
        self._sql_of = sql_of
        self._read_sql = read_sql
        self._given: dict[int, bytes] = {}  # the interests of the nodes of an application
        # interest, as cursors have it -> nodes of another text
        self._shared: dict[bytes, set[int]] = {}

    def add(self, number: int, interest: bytes) -> None:
        """Note the text of a node."""
        if self._is_application:
            self._given[number] = interest

    def remove(self, number: int) -> None:
        """Forget a node."""
        self._given.pop(number, None)

    def share(self, given: Sequence[tuple[bytes, int]]) -> None:
        """Take the interests of named subscriptions, with their nodes. Earlier releases gave the
        same node to all texts of an application that mean the same. A named subscription that has
        such a node stays there, because at another node it would start over. If another named
        subscription is at a node of the text itself, everybody who asks for the text gets this
        node: a question for a node does not say who asks."""
        self._shared = {}
        if self._is_application:
            own = {
                label
                for label, number in given
                if number in self._given and _label(self._given[number]) == label
            }
            for label, number in given:
                if label not in own:
                    self._shared.setdefault(label, set()).add(number)

    def select(self, numbers: Sequence[int], interest: bytes) -> list[int]:
        """Those of some nodes with the same filter as an interest that also have its text, or are
        shared with it."""
        shared = self._shared.get(_label(interest), ()) if self._shared else ()
        found = [one for one in numbers if one in shared]
        if found:
            return found
        written = self._find_written(interest)
        if written is None:
            related = split_related(interest)
            sql = self._read_sql(interest if related is None else related.exact)
            return [one for one in numbers if self._has_sql(one, sql)]
        return [one for one in numbers if self._written_at(one) == written]

    def select_like(self, numbers: Sequence[int], number: int) -> list[int]:
        """Those of some nodes with the same filter as a node that also have its text."""
        written = self._written_at(number)
        if written is None:
            sql = self._sql_of(number)
            return [one for one in numbers if self._has_sql(one, sql)]
        return [one for one in numbers if self._written_at(one) == written]

    def _has_sql(self, number: int, sql: str) -> bool:
        return self._written_at(number) is None and self._sql_of(number) == sql

    def _written_at(self, number: int) -> bytes | None:
        given = self._given.get(number)
        return None if given is None else self._find_written(given)

    def _find_written(self, interest: bytes) -> bytes | None:
        """The text that the class of the application reads; None for all other interests."""
        if not self._is_application:
            return None
        text, dialect = unpack_interest(interest)
        return text if split_dialect(dialect)[0] == _APPLICATION else None


def _label(interest: bytes) -> bytes:
    """An interest in the form in which the cursors of named subscriptions have it."""
    text, dialect = unpack_interest(interest)
    return text if dialect == DEFAULT_DIALECT else dialect.encode() + b": " + text
