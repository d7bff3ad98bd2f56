"""An interest as a rendezvous point stores it: the text, or its dialect and the text.

    price > 90                          SQL, and all interests stored before there were dialects
    0  eventbridge  0  {"price": ...}   another dialect: its name between two zero bytes
    0  sql+related=0.7  0  city = ...   the dialect adds notifications related by at least 0.7

No SQL text begins with a zero byte, so the two forms can be told apart.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_DIALECT = "sql"
_RELATED = "+related="


class RelatedInterest(NamedTuple):
    """An interest in notifications that match a filter, or are related to it by at least
    `least`."""

    exact: bytes
    """The filter alone, as a rendezvous point stores it."""
    dialect: str
    least: float


def relate_dialect(dialect: str, least: float) -> str:
    """The dialect of an interest that also includes notifications that are related by at least
    `least`."""
    return f"{dialect}{_RELATED}{float(least)!r}"


def split_dialect(dialect: str) -> tuple[str, str]:
    """Split a dialect into the dialect of the filter and the text of the lowest weight, which is
    empty if only matches are wanted."""
    exact, _, least = dialect.partition(_RELATED)
    return exact, least


def split_related(stored: bytes) -> RelatedInterest | None:
    """The filter and the lowest weight of a stored interest; None if only matches are wanted. If
    the text of the weight is not a number, the weight is -1, which no channel accepts."""
    if stored[:1] != b"\0":
        return None
    text, dialect = unpack_interest(stored)
    exact, given = split_dialect(dialect)
    if not given:
        return None
    try:
        least = float(given)
    except ValueError:
        least = -1.0
    return RelatedInterest(pack_interest(text, exact), exact, least)


def pack_interest(text: bytes, dialect: str) -> bytes:
    return text if dialect == DEFAULT_DIALECT else b"\0%b\0%b" % (dialect.encode(), text)


def unpack_interest(stored: bytes) -> tuple[bytes, str]:
    """The text and its dialect. Other bytes that begin with a zero byte are treated as SQL, and the
    SQL parser refuses them."""
    if stored[:1] == b"\0":
        dialect, found, text = stored[1:].partition(b"\0")
        if found and dialect.isascii():
            return text, dialect.decode()
    return stored, DEFAULT_DIALECT
