"""The results of calls to predicates, which filters look up here instead of calling predicates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

MOST_KEPT = 50_000  # the most results that are kept, each of about 200 bytes

Key = bytes


class PredicateCall(NamedTuple):
    """A call to a predicate; none of the arguments is null."""

    name: str
    arguments: tuple[Any, ...]

    @property
    def key(self) -> Key:
        """Equal calls have equal keys. 1, 1.0 and True are different arguments."""
        return hashlib.blake2b(
            repr(tuple(self)).encode(errors="surrogatepass"), digest_size=16
        ).digest()


class Decisions:
    """The results of calls: true, false, or None for null. The oldest results are dropped; a
    notification that needs a dropped result waits for the predicate again."""

    def __init__(self) -> None:
        self._results: dict[Key, bool | None] = {}
        self._most = MOST_KEPT

    def __contains__(self, call: PredicateCall) -> bool:
        return call.key in self._results

    def put(self, call: PredicateCall, result: bool | None) -> None:
        while len(self._results) >= self._most:
            del self._results[next(iter(self._results))]
        self._results[call.key] = result

    def make_room(self, count: int) -> None:
        """Keep at least the next `count` results, because a notification may need all of them."""
        self._most = max(MOST_KEPT, 2 * count)

    def functions(self, names: Iterable[str]) -> dict[str, Callable[..., Any]]:
        """Functions that look up results, with which filters that call these predicates are parsed.
        A call that is not decided returns null, so the caller must make sure that no filter needs
        such a call (CallIndex)."""

        def look_up(name: str) -> Callable[..., Any]:
            return lambda *values: self._results.get(PredicateCall(name, values).key)

        return {name: look_up(name) for name in names}
