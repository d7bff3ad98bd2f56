"""Split text into tokens with positions. One regular expression splits the text without
backtracking. The only exception raised here is FilterError."""

from __future__ import annotations

import re
from typing import NamedTuple

from tidings.model import FilterError

MAX_LENGTH = 250_000
MAX_FOREIGN = 100_000
"""The most characters of a filter in another dialect. The filter's text in SQL may be twice as
long."""

_TOKEN = re.compile(
    r"""
      (?P<space>   (?: \s+ | --[^\n]* | /\*[^*]*\*+(?:[^*/][^*]*\*+)*/ )+ )
    | (?P<unclosed> /\* )
    | (?P<raw>     [rR](?: '[^']*' | "[^"]*" ) )
    | (?P<name>    [^\W\d]\w* )
    | (?P<number>  (?: [0-9]+(?:\.[0-9]*)? | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? (?P<suffix> \w* ) )
    | (?P<string>  '(?: [^'\\] | \\. | '' )*' | "(?: [^"\\] | \\. | "" )*" )
    | (?P<quoted>  `(?: [^`] | `` )+` )
    | (?P<op>      <=> | <= | >= | <> | != | == | \|\| | -> | [=<>()+\-*/%,.!\[\]] )
    | (?P<bad>     . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))|(''|\"\")", re.DOTALL
)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a",
             "%": "\\%", "_": "\\_"}  # fmt: skip
_SUFFIXES = frozenset({"", "L", "S", "Y", "D", "F", "BD"})


class Token(NamedTuple):
    kind: str  # name, quoted, string, number, op, end
    text: str  # the name or operator as written; the value of a string or quoted name
    position: int
    word: str = ""  # for a name, the name in capital letters; for a number, its suffix


def check_length(text: str, most: int) -> None:
    """Raise FilterError if a text has more than `most` characters."""
    if len(text) > most:
        raise FilterError(
            f"the filter has {len(text):,} characters, expected at most {most:,}", text, most
        )


def tokenize(text: str) -> list[Token]:
    """All tokens of a text; the last has the kind "end"."""
    check_length(text, MAX_LENGTH)
    tokens: list[Token] = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "space":
            continue
        piece, at = found.group(), found.start()
        if kind == "name":
            # only ASCII names can be keywords: for other names, upper() could be wrong, as it turns
            # a dotless i into an I
            tokens.append(Token("name", piece, at, piece.upper() if piece.isascii() else piece))
        elif kind == "op":
            if piece == "/" and text.startswith("/*", at):
                raise FilterError(_describe_bad_character(piece, text, at), text, at)
            tokens.append(Token("op", piece, at))
        elif kind == "string":
            tokens.append(Token("string", _unescape(piece, text, at), at))
        elif kind in ("number", "suffix"):
            tokens.append(_read_number(found, text, at))
        elif kind == "raw":
            tokens.append(Token("string", piece[2:-1], at))
        elif kind == "quoted":
            tokens.append(Token("quoted", piece[1:-1].replace("``", "`"), at))
        else:
            raise FilterError(_describe_bad_character(piece, text, at), text, at)
    tokens.append(Token("end", "", len(text)))
    return tokens


def _read_number(found: re.Match[str], text: str, at: int) -> Token:
    suffix = found.group("suffix")
    digits = found.group()[: len(found.group()) - len(suffix)]
    if not suffix.isascii() or suffix.upper() not in _SUFFIXES:
        raise FilterError(
            f"found '{found.group()[:40]}', expected a number or a name in backticks", text, at
        )
    if len(digits) > 400:
        raise FilterError("found a number of more than 400 digits, expected fewer", text, at)
    return Token("number", digits, at, suffix.upper())


def _unescape(piece: str, text: str, at: int) -> str:
    """The value of a string literal: resolves Spark's escapes and doubled quotes."""
    quote, body = piece[0], piece[1:-1]
    if "\\" not in body and quote not in body:
        return body

    def replace_one(found: re.Match[str]) -> str:
        short, long, octal, char, double = found.groups()
        if double is not None:
            return quote if double[0] == quote else double
        if octal is not None:
            return chr(int(octal, 8))
        if char is not None:
            return _CONTROLS.get(char, char)
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise FilterError(
                f"found the escape {found.group()}, which is not a character",
                text,
                at + 1 + found.start(),
            )
        return chr(code)

    return _ESCAPE.sub(replace_one, body)


def _describe_bad_character(piece: str, text: str, at: int) -> str:
    if piece in "'\"":
        return f"found a {piece} that opens a string but no {piece} that closes it"
    if piece == "`":
        return "found a ` that opens a name but no ` that closes it"
    if text.startswith("/*", at):
        return "found a /* that opens a comment but no */ that closes it"
    shown = piece if piece.isprintable() else f"U+{ord(piece):04X}"
    return f"found the character {shown}, expected a name, a value or an operator"
