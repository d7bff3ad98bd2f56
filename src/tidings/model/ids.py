"""Subscription ids: strings or 64-bit integers.

All rooms check ids with these functions, so no room refuses an id that another room has accepted.
The ids of one channel are all strings or all integers, because a column holds one type. The room
that stores the ids of a channel also checks that all of them have one type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tidings.model.errors import TidingsError

Id = str | int


def need_id(id_: object) -> None:
    """Raise TidingsError unless JSON and Arrow can store the id and return it unchanged."""
    if type(id_) is str:
        if id_.isascii():
            return
        try:
            id_.encode()
            return
        except UnicodeEncodeError:
            found = "a string that is not valid Unicode"
    elif type(id_) is int:
        if -(2**63) <= id_ < 2**63:
            return
        found = "an integer of more than 64 bits"
    else:
        found = type(id_).__name__
    raise TidingsError(f"found {found} as an id, expected a string or a 64-bit integer")


def id_pairs(
    given: Iterable[tuple[Any, Any]] | Mapping[Any, Any],
) -> Iterator[tuple[Any, Any]]:
    """Yield the (id, filter) pairs of a mapping or an iterable; raise TidingsError for anything
    else."""
    for pair in given.items() if isinstance(given, Mapping) else given:
        try:
            id_, other = pair
        except (TypeError, ValueError):
            raise TidingsError(f"found {pair!r:.80}, expected an (id, filter) pair") from None
        yield id_, other


def list_some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are: `'a', 'b', 'c' and 7 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
