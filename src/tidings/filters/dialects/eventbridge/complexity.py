"""Measures how complex the wildcards of a field are, because EventBridge refuses wildcards that are
too complex.

The measure is event-ruler's: the largest number of wildcard prefixes that one value can match at
once. A prefix is a wildcard pattern cut off after some character. The value `"ab` matches:

    *b      the prefixes  "*  and  "*b        2, with the quotes that JSON has around a string
    a*ab    the prefix    "a*                 1

Each state of an automaton stands for a prefix, and the states that are active at the same time are
counted. Patterns share the states up to and including their first star; a shared state counts once
for each pattern. AWS does not publish its limit; the authors of an EventBridge emulator measured a
limit of ten.

The cost is the number of reachable sets of states. Each such set has at most MOST states, and at
most MOST_SETS sets are visited.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence

MOST = 10
MOST_SETS = 2_000  # a field that needs more sets than this counts as too complex
_STAR = -1
_TOKENS = re.compile(r"\\(.)|(.)", re.DOTALL)


class _State:
    """The state after a prefix: the states that follow on one byte or on any byte, and the patterns
    that start with the prefix."""

    __slots__ = ("any", "on", "patterns", "shared")

    def __init__(self) -> None:
        # token -> the next state, which several patterns may share
        self.shared: dict[int, _State] = {}
        self.on: dict[int, list[_State]] = {}
        self.any: list[_State] = []
        self.patterns: set[Hashable] = set()


def measure(patterns: Iterable[Sequence[str]]) -> int:
    """The complexity of the patterns that test one field; MOST + 1 stands for all higher values
    too. A pattern is one wildcard, or the wildcards of one `anything-but`."""
    start = _State()
    distinct = {tuple(sorted(set(one))) for one in patterns}
    for identity in distinct:
        end = _State()
        for text in identity:
            _add(start, _tokens_of(text), identity, end)
    return _measure(start) if distinct else 0


def _tokens_of(wildcard: str) -> list[int]:
    """The bytes of a wildcard as JSON, and _STAR for a star that is not escaped."""
    out = [0x22]
    for escaped, plain in _TOKENS.findall(wildcard):
        out += [_STAR] if plain == "*" else (escaped or plain).encode()
    return [*out, 0x22]


def _add(start: _State, tokens: list[int], identity: Hashable, end: _State) -> None:
    before, state, is_shared = start, start, True
    for at, token in enumerate(tokens):
        is_last = at == len(tokens) - 1
        if is_last:
            following = end
        else:
            following = state.shared.setdefault(token, _State()) if is_shared else _State()
        if token == _STAR:
            is_shared = False
            if following not in state.any:
                state.any.append(following)
                following.any.append(following)
        else:
            _link(state, token, following)
            if at and tokens[at - 1] == _STAR:  # the star may match the empty string
                _link(before, token, following)
        following.patterns.add(identity)
        before, state = state, following


def _link(state: _State, token: int, following: _State) -> None:
    there = state.on.setdefault(token, [])
    if following not in there:
        there.append(following)


def _measure(start: _State) -> int:
    most, pending, seen = 0, [frozenset([start])], set[frozenset[_State]]()
    while pending:
        active = pending.pop()
        found = {one for state in active for one in state.any}
        # -2 stands for any byte that no pattern contains
        for token in {-2}.union(*(state.on for state in active)):
            after = found.union(*(state.on.get(token, ()) for state in active))
            # if a star follows one of these prefixes, the longer prefix with the star matches too
            further = [one for state in after for one in state.any if one not in after]
            most = max(most, sum(len(one.patterns) for one in (*after, *further)))
            if most > MOST or len(seen) > MOST_SETS:
                return MOST + 1
            if after and frozenset(after) not in seen:
                seen.add(frozenset(after))
                pending.append(frozenset(after))
    return most
