"""Tokens: kinds, escapes, numbers, comments, and where errors point."""

from __future__ import annotations

import pytest

from tidings.filters.language.tokens import MAX_LENGTH, tokenize
from tidings.model import FilterError


def kinds(text: str) -> list[tuple[str, str]]:
    """(kind, text) of all tokens but the end."""
    *found, end = tokenize(text)
    assert end == ("end", "", len(text), "")
    return [(token.kind, token.text) for token in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n\u00a0\u2028", []),
        ("a", [("name", "a")]),
        ("_a1 é ſtraße", [("name", "_a1"), ("name", "é"), ("name", "ſtraße")]),
        ("a.b", [("name", "a"), ("op", "."), ("name", "b")]),
        ("`a b`", [("quoted", "a b")]),
        ("`a``b`", [("quoted", "a`b")]),
        ("`a'\\n`", [("quoted", "a'\\n")]),
        ("a<=>b", [("name", "a"), ("op", "<=>"), ("name", "b")]),
        ("<=>=<>!===<>", [("op", "<=>"), ("op", "="), ("op", "<>"), ("op", "!="), ("op", "=="),
                          ("op", "<>")]),
        ("||!", [("op", "||"), ("op", "!")]),
        ("()+-*/%,.[]<>=", [("op", c) for c in ("(", ")", "+", "-", "*", "/", "%", ",", ".", "[",
                                                "]", "<>", "=")]),
        ("a--b", [("name", "a")]),
        ("a--b\nc", [("name", "a"), ("name", "c")]),
        ("a-b", [("name", "a"), ("op", "-"), ("name", "b")]),
        ("a/**/b", [("name", "a"), ("name", "b")]),
        ("a/* ' ` */b", [("name", "a"), ("name", "b")]),
        ("a/***/b/*/*/c", [("name", "a"), ("name", "b"), ("name", "c")]),
        ("/* -- */a -- /*", [("name", "a")]),
        ("a/b*c", [("name", "a"), ("op", "/"), ("name", "b"), ("op", "*"), ("name", "c")]),
        ("'--' '/*'", [("string", "--"), ("string", "/*")]),
        ("r 'a'", [("name", "r"), ("string", "a")]),
    ],
)  # fmt: skip
def test_tokens(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("''", ""),
        ('""', ""),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ('"a""b"', 'a"b'),
        ("'a\"\"b'", 'a""b'),  # the other quote is nothing special
        ("\"it''s\"", "it''s"),
        (r"'it\'s'", "it's"),
        (r"'\n\r\t\b\0\Z'", "\n\r\t\b\0\x1a"),
        (r"'\\'", "\\"),
        (r"'\%\_'", r"\%\_"),  # LIKE sees the escape
        (r"'\a\x\8'", "ax8"),
        (r"'\u00e9\U0001F600'", "é😀"),
        (r"'\u00E'", "u00E"),
        (r"'\101\377\000'", "A\xff\0"),
        (r"'\400\08\18'", "400\x00818"),
        (r"'\0012'", "\x012"),
        ("'\\\n'", "\n"),
        ("'a\nb'", "a\nb"),
        (r"r'\d+\n'", r"\d+\n"),
        (r'R"\"', "\\"),
        ("r''", ""),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert kinds(text) == [("string", value)]


@pytest.mark.parametrize(
    ("text", "digits", "suffix"),
    [
        ("0", "0", ""),
        ("007", "007", ""),
        ("1.", "1.", ""),
        (".5", ".5", ""),
        ("1.50", "1.50", ""),
        ("1e5", "1e5", ""),
        ("1.E+05", "1.E+05", ""),
        (".5e-3", ".5e-3", ""),
        ("5L", "5", "L"),
        ("5s", "5", "S"),
        ("5y", "5", "Y"),
        ("1.5d", "1.5", "D"),
        ("1e5F", "1e5", "F"),
        ("5bd", "5", "BD"),
        ("9" * 400, "9" * 400, ""),
    ],
)
def test_numbers(text: str, digits: str, suffix: str) -> None:
    number, _ = tokenize(text)
    assert number == ("number", digits, 0, suffix)


@pytest.mark.parametrize(
    ("text", "word"), [("and", "AND"), ("Price", "PRICE"), ("lıke", "lıke"), ("ſ", "ſ")]
)
def test_only_ascii_letters_make_keywords(text: str, word: str) -> None:
    assert tokenize(text)[0] == ("name", text, 0, word)


def test_positions_count_characters() -> None:
    text = "é = 'a' -- c\n  AND `b`>=1.5"
    assert [token.position for token in tokenize(text)] == [0, 2, 4, 15, 19, 22, 24, 27]


BAD = [
    ("a = 'b", 4, "found a ' that opens a string but no ' that closes it"),
    ("a = 'b\\'", 4, "found a ' that opens a string"),
    ("a = 'b''", 7, "found a ' that opens a string"),
    ('a = "b', 4, 'found a " that opens a string but no " that closes it'),
    ("r'a", 1, "found a ' that opens a string"),
    ("a = `b", 4, "found a ` that opens a name but no ` that closes it"),
    ("``", 0, "found a ` that opens a name"),
    ("a /* b", 2, "found a /* that opens a comment but no */ that closes it"),
    ("a /*/", 2, "found a /* that opens a comment"),
    ("/* a */ /* b", 8, "found a /* that opens a comment"),
    ("a ; b", 2, "found the character ;, expected a name, a value or an operator"),
    ("a | b", 2, "found the character |"),
    ("a & b", 2, "found the character &"),
    ("\0", 0, "found the character U+0000"),
    ("a \ufeff", 2, "found the character U+FEFF"),
    ("٣", 0, "found the character ٣"),
    ("😀", 0, "found the character 😀"),
    ("a = 5x", 4, "found '5x', expected a number or a name in backticks"),
    ("1st = 1", 0, "found '1st', expected a number or a name in backticks"),
    ("0x1F", 0, "found '0x1F'"),
    ("1_000", 0, "found '1_000'"),
    ("1e", 0, "found '1e'"),
    ("5ſ", 0, "found '5ſ'"),  # in capitals it is an S
    ("a = " + "9" * 401, 4, "found a number of more than 400 digits"),
    (r"a = 'x\ud800'", 6, r"found the escape \ud800, which is not a character"),
    (r"'\uDFFF'", 1, r"found the escape \uDFFF"),
    (r"'ab\U00110000'", 3, r"found the escape \U00110000"),
]


@pytest.mark.parametrize(("text", "position", "reason"), BAD, ids=[text[:20] for text, *_ in BAD])
def test_what_is_refused_and_where(text: str, position: int, reason: str) -> None:
    with pytest.raises(FilterError) as refused:
        tokenize(text)
    assert refused.value.reason.startswith(reason)
    assert refused.value.position == position
    assert refused.value.text == text


def test_the_longest_text() -> None:
    assert len(tokenize(" " * MAX_LENGTH)) == 1
    with pytest.raises(FilterError, match="250,001 characters, expected at most 250,000"):
        tokenize(" " * (MAX_LENGTH + 1))
