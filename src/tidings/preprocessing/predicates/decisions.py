"""The results of calls of predicates. Filters look them up here, instead of calling predicates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

MOST_KEPT = 50_000  # results, about 200 bytes each

Key = bytes


class PredicateCall(NamedTuple):
    """A call of a predicate. None of its arguments is null."""

    name: str
    arguments: tuple[Any, ...]

    @property
    def key(self) -> Key:
        """Equal calls have equal keys. 1, 1.0 and True are different arguments."""
        return hashlib.blake2b(
            repr(tuple(self)).encode(errors="surrogatepass"), digest_size=16
        ).digest()


class Decisions:
    """Results by call: true, false, or None for null. The oldest are forgotten; a notification that
    needs one of those waits for the predicate again."""

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
        """Keep at least the next `count` results: a notification may need them together."""
        self._most = max(MOST_KEPT, 2 * count)

    def functions(self, names: Iterable[str]) -> dict[str, Callable[..., Any]]:
        """The functions for reading filters that call these predicates. A call that is not
        decided is null; the caller must make sure that no filter needs it (CallIndex)."""

        def look_up(name: str) -> Callable[..., Any]:
            return lambda *values: self._results.get(PredicateCall(name, values).key)

        return {name: look_up(name) for name in names}
