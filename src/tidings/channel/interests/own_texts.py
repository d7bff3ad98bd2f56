"""In channels in which each text has a node of its own: which nodes have the text of an interest.

    'SAP ALV', 'ALV SAP'     one filter, two texts: two nodes; a revision may tell them apart

A topic or a type is named in the filter in SQL, so the filter in SQL is the text. The class of an
application may turn a text into any filter, so the text is the one that the subscriber wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidings.preprocessing import KindName
from tidings.routing.protocol import (
    DEFAULT_DIALECT,
    pack_interest,
    split_dialect,
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
        self._written: dict[int, bytes] = {}  # the texts that the class of the application reads
        self._shared: dict[bytes, int] = {}  # interest, as cursors have it -> node of another text

    def add(self, number: int, interest: bytes) -> None:
        """Note the text of a node."""
        written = self._find_written(interest)
        if written is not None:
            self._written[number] = written

    def remove(self, number: int) -> None:
        """Forget a node."""
        self._written.pop(number, None)

    def share(self, given: Iterable[tuple[bytes, int]]) -> None:
        """Take the interests of named subscriptions, with their nodes. Earlier releases gave the
        same node to all texts of an application that mean the same. A named subscription that has
        such a node stays there, because at another node it would start over."""
        self._shared = {}
        if self._is_application:
            for label, number in given:
                written = self._written.get(number)
                if written is None or label != _label(pack_interest(written, _APPLICATION)):
                    self._shared[label] = number

    def select(self, numbers: Sequence[int], interest: bytes) -> list[int]:
        """Those of some nodes with the same filter as an interest that also have its text."""
        shared = self._shared.get(_label(interest)) if self._shared else None
        written = self._find_written(interest)
        if written is None:
            sql = self._read_sql(interest)
            return [one for one in numbers if one == shared or self._has_sql(one, sql)]
        return [one for one in numbers if one == shared or self._written.get(one) == written]

    def select_like(self, numbers: Sequence[int], number: int) -> list[int]:
        """Those of some nodes with the same filter as a node that also have its text."""
        written = self._written.get(number)
        if written is None:
            sql = self._sql_of(number)
            return [one for one in numbers if self._has_sql(one, sql)]
        return [one for one in numbers if self._written.get(one) == written]

    def _has_sql(self, number: int, sql: str) -> bool:
        return number not in self._written and self._sql_of(number) == sql

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
