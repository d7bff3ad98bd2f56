"""LIKE patterns: their parts, their text again, and what they match."""

from __future__ import annotations

import random

import pytest

from tidings.filters.values.like import ANY, ONE, Part, PatternError, compile_pattern, join, split


def parts(*words: str) -> tuple[Part, ...]:
    """`%` and `_` alone are wildcards, all else is text."""
    return tuple((word if word in (ANY, ONE) else "text", word) for word in words)


SPLIT = [
    ("", parts()),
    ("abc", parts("abc")),
    ("%", parts("%")),
    ("%%", parts("%")),
    ("_", parts("_")),
    ("a%b_c", parts("a", "%", "b", "_", "c")),
    ("%_%", parts("_", "%")),
    ("_%_", parts("_", "_", "%")),
    ("a%%_%b", parts("a", "_", "%", "b")),
    (r"100\%", parts("100%")),
    (r"a\_b", parts("a_b")),
    (r"a\\b", parts("a\\b")),
    (r"\\%", parts("\\", "%")),
    ("a\nb", parts("a\nb")),
]


@pytest.mark.parametrize(("pattern", "expected"), SPLIT)
def test_split(pattern: str, expected: tuple[Part, ...]) -> None:
    assert split(pattern) == expected
    assert split(join(expected)) == expected


def test_without_an_escape_the_parts_are_the_same(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2000):
        pattern = "".join(rng.choices("%_ab\n", k=rng.randint(0, 8)))
        *others, (kind, text) = split(pattern + r"b\_")
        assert (kind, text[-2:]) == ("text", "b_")
        last = [("text", text[:-2])] if text[:-2] else []
        assert split(pattern) == (*others, *last)


@pytest.mark.parametrize(
    ("pattern", "escape", "again"),
    [
        ("a!%b%", "!", r"a\%b%"),
        ("a!!b", "!", "a!b"),
        (r"a\b!_", "!", r"a\\b\_"),
        ("%%_", "%", r"\%_"),  # the escape may be a wildcard
        ("__%", "_", r"\_%"),
        ("a%_b", "!", "a_%b"),
    ],
)
def test_another_escape_becomes_a_backslash(pattern: str, escape: str, again: str) -> None:
    assert join(split(pattern, escape)) == again


@pytest.mark.parametrize(
    ("pattern", "escape", "reason"),
    [
        ("a\\", "\\", "ends with its escape character"),
        ("\\\\\\", "\\", "ends with its escape character"),
        (r"a\b", "\\", "is followed by 'b'"),
        ("a!b", "!", "is followed by 'b'"),
        ("!\\", "!", "is followed by"),
    ],
)
def test_escapes_of_nothing_are_refused(pattern: str, escape: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        split(pattern, escape)


def test_a_broken_pattern_compiles_to_nothing() -> None:
    assert compile_pattern(r"a\b") is None


def slow_match(text: str, pattern: tuple[Part, ...]) -> bool:
    """By the definition: every place where a % may end is tried."""
    if not pattern:
        return not text
    (kind, word), rest = pattern[0], pattern[1:]
    if kind == ANY:
        return any(slow_match(text[at:], rest) for at in range(len(text) + 1))
    if kind == ONE:
        return bool(text) and slow_match(text[1:], rest)
    return text.startswith(word) and slow_match(text[len(word) :], rest)


def matches(text: str, pattern: str) -> bool:
    found = compile_pattern(pattern)
    assert found is not None
    held = found.holds(text)
    assert held is not None
    return held


def test_matching_agrees_with_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    hits = 0
    for _ in range(5_000):
        pattern = "".join(
            rng.choices(("a", "b", "\n", ".", "%", "%", "_", r"\%"), k=rng.randint(0, 6))
        )
        text = "".join(rng.choices("aab\n.%", k=rng.randint(0, 7)))
        expected = slow_match(text, split(pattern))
        assert matches(text, pattern) == expected, (text, pattern)
        hits += expected
    assert 100 < hits < 4_900


@pytest.mark.timeout(120)
def test_many_wildcards_take_no_time() -> None:
    assert not matches("a" * 5_000, "%a" * 200 + "b")
    assert matches("a" * 5_000 + "b", "%a" * 200 + "b")
