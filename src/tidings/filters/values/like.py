"""LIKE patterns: split them at their wildcards, and match them against strings.

A pattern is a list of parts: literal text, ANY for `%`, ONE for `_`. A backslash makes a wildcard
literal. The parser rewrites an ESCAPE clause to backslashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tidings.filters.values import regular

ANY = "%"
ONE = "_"
_RUNS = re.compile("[^%_]+|[%_]+")
LONGEST_REMEMBERED = 256  # the most characters of a cached pattern; longer ones could fill memory
Part = tuple[str, str]  # (kind, text): kind is "text", ANY or ONE


class PatternError(ValueError):
    """An escape character ends the pattern, or precedes a character that needs no escape."""


class LargeError(ValueError):
    """The pattern has a _ between two %, so it needs a regular expression, but it is too large for
    that."""


def split(pattern: str, escape: str = "\\") -> tuple[Part, ...]:
    """The parts of a pattern; see `_split`. The parts of short patterns are cached."""
    return (_split if len(pattern) > LONGEST_REMEMBERED else _split_cached)(pattern, escape)


def _split(pattern: str, escape: str) -> tuple[Part, ...]:
    """The parts of a pattern. Adjacent texts are joined; in a run of wildcards, all `_` come first,
    followed by at most one `%`."""
    if escape not in pattern:
        return tuple(_split_unescaped(pattern))
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
                raise PatternError(f"the escape character {escape} is followed by '{char}'")
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


_split_cached = lru_cache(maxsize=4096)(_split)


def _split_unescaped(pattern: str) -> Iterator[Part]:
    for run in _RUNS.findall(pattern):
        if run[0] not in (ANY, ONE):
            yield "text", run
            continue
        yield from [(ONE, ONE)] * run.count(ONE)
        if ANY in run:
            yield ANY, ANY


def join(parts: tuple[Part, ...]) -> str:
    """The pattern that consists of these parts, written with backslashes."""
    return "".join(
        re.sub(r"([\\%_])", r"\\\1", text) if kind == "text" else kind for kind, text in parts
    )


class Like:
    """A compiled pattern.

    Each literal between two % is searched for after the end of the previous match. The first match
    is as good as any other, so the search never backtracks and takes linear time. If there is a _
    between two %, this does not work; the whole pattern then becomes a regular expression, and the
    limits of regular expressions apply.
    """

    def __init__(self, parts: tuple[Part, ...]) -> None:
        runs: list[list[Part]] = [[]]  # the parts between one % and the next
        for part in parts:
            if part[0] == ANY:
                runs.append([])
            else:
                runs[-1].append(part)
        self._first, self._last = _Run(runs[0]), _Run(runs[-1])
        self._whole = len(runs) == 1
        self._between = [run[0][1] for run in runs[1:-1] if [kind for kind, _ in run] == ["text"]]
        self._expression: str | None = None
        if len(self._between) < sum(1 for run in runs[1:-1] if run):
            self._expression = expression_of(parts)
            try:
                regular.compile_program(self._expression)
            except regular.RegularError:
                raise LargeError(
                    "the pattern has a _ between two % and is too long, expected at most about "
                    f"{regular.MOST_POSITIONS:,} characters"
                ) from None

    @property
    def regular(self) -> regular.Regular | None:
        """The compiled regular expression, if the pattern needs one."""
        return None if self._expression is None else regular.compile_program(self._expression)

    def holds(self, text: str) -> bool | None:
        """Whether a string matches the pattern; null if the string is too long to decide."""
        if self._expression is not None:
            return regular.compile_program(self._expression).search(text)
        if self._whole:
            return len(text) == self._first.size and self._first.fits(text, 0)
        at, end = self._first.size, len(text) - self._last.size
        if at > end or not self._first.fits(text, 0) or not self._last.fits(text, end):
            return False
        for run in self._between:
            at = text.find(run, at, end)
            if at < 0:
                return False
            at += len(run)
        return True


class _Run:
    """Literals and single-character wildcards that must match at one fixed offset."""

    def __init__(self, parts: list[Part]) -> None:
        self.size = 0
        self._texts: list[tuple[int, str]] = []
        for kind, text in parts:
            if kind == "text":
                self._texts.append((self.size, text))
            self.size += len(text)

    def fits(self, text: str, at: int) -> bool:
        return all(text.startswith(part, at + offset) for offset, part in self._texts)


def expression_of(parts: tuple[Part, ...]) -> str:
    """The pattern as a regular expression for RE2."""
    pieces = {ANY: ".*", ONE: "."}
    written = "".join(pieces.get(kind) or _quote(text) for kind, text in parts)
    return f"(?s)\\A{written}\\z"


def _quote(text: str) -> str:
    return "".join(
        one if one.isascii() and one.isalnum() else f"\\x{{{ord(one):x}}}" for one in text
    )


def compile_pattern(pattern: str) -> Like | None:
    """Compile a pattern that came from an attribute; None if it is malformed or too large."""
    return _compile_short(pattern) if len(pattern) <= LONGEST_REMEMBERED else _compile_long(pattern)


def _compile(pattern: str) -> Like | None:
    try:
        return Like(split(pattern))
    except (PatternError, LargeError):
        return None


_compile_short = lru_cache(maxsize=4096)(_compile)
_compile_long = lru_cache(maxsize=16)(_compile)
