"""LIKE patterns: split at their wildcards, and told apart by what an index can do with them.

A pattern is a list of parts: a text, ANY for `%`, ONE for `_`. A backslash takes the wildcard's
meaning away (an ESCAPE clause is rewritten to backslashes when it is parsed).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

ANY = "%"
ONE = "_"
_RUNS = re.compile("[^%_]+|[%_]+")
Part = tuple[str, str]  # (kind, text): kind is "text", ANY or ONE


class PatternError(ValueError):
    """An escape that is followed by nothing, or by a character that has no meaning to lose."""


@lru_cache(maxsize=4096)
def split(pattern: str, escape: str = "\\") -> tuple[Part, ...]:
    """The parts of a pattern, runs of text joined, `%%` as one `%`, `_` before `%`."""
    if escape not in pattern:
        return tuple(_unescaped(pattern))
    parts: list[Part] = []
    text: list[str] = []
    wild: list[str] = []

    def close_text() -> None:
        if text:
            parts.append(("text", "".join(text)))
            text.clear()

    def close_wild() -> None:
        parts.extend([(ONE, ONE)] * wild.count(ONE))
        if ANY in wild:
            parts.append((ANY, ANY))
        wild.clear()

    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            if at == len(pattern):
                raise PatternError(f"the pattern ends with its escape character {escape}")
            char = pattern[at]
            if char not in (escape, ANY, ONE):
                raise PatternError(f"the escape character {escape} stands before '{char}'")
        elif char in (ANY, ONE):
            close_text()
            wild.append(char)
            at += 1
            continue
        close_wild()
        text.append(char)
        at += 1
    close_text()
    close_wild()
    return tuple(parts)


def _unescaped(pattern: str) -> Iterator[Part]:
    for run in _RUNS.findall(pattern):
        if run[0] not in (ANY, ONE):
            yield "text", run
            continue
        yield from [(ONE, ONE)] * run.count(ONE)
        if ANY in run:
            yield ANY, ANY


def join(parts: tuple[Part, ...]) -> str:
    """The pattern of these parts, written with backslashes."""
    return "".join(
        re.sub(r"([\\%_])", r"\\\1", text) if kind == "text" else kind for kind, text in parts
    )


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """The pattern as a regular expression; None for a broken one (it came from an attribute)."""
    try:
        parts = split(pattern)
    except PatternError:
        return None
    runs = [""]  # what stands between one % and the next
    for kind, text in parts:
        if kind == ANY:
            runs.append("")
        else:
            runs[-1] += "." if kind == ONE else re.escape(text)
    if len(runs) == 1:
        return re.compile(runs[0], re.DOTALL)
    first, *middle, last = runs
    # The first place where a run fits is as good as any, so the groups are atomic: no going back,
    # which for many % would take time without end.
    found = "".join(f"(?>.*?{run})" for run in middle)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)
