"""Regular expressions by RE2, which takes time in proportion to the text, whatever the pattern.

A backtracking engine takes half a minute for `(a+)+$` and 28 letters. RE2 has no back-references
and no lookaround; a pattern that uses them is refused, with what to write instead. So is a pattern
to which RE2 and Java give different meanings: nested classes, octal escapes.

The states that RE2 goes through are remembered, but at worst it follows every position of the
pattern for every byte of the text. So there are two bounds: MOST_POSITIONS of a pattern, and
MOST_STEPS, positions times bytes; on a longer text the outcome is null. pyarrow has RE2 too, and
batches keep to the same two (matching/rank_space/arrow_functions.py).
"""

from __future__ import annotations

import re
from typing import Any

from tidings.filters.values.programs import ProgramCache
from tidings.filters.values.work import spend

MOST_POSITIONS = 1_000
MOST_STEPS = 1 << 24  # a tenth of a second where every position is followed
MAX_PATTERN = 2_000  # characters
MOST_MEMORY = 512 << 10  # that RE2 may use for one program; it takes some 200 KB of it
LITTLE_MEMORY = 128 << 10  # where a program is small, and has few states: some 50 KB
SMALL = 64  # instructions
KEPT = 128 << 20  # bytes of all programs that are kept

# What RE2 does not have, or has for something else; and what says the same.
_ESCAPES = {
    "Z": r"\Z: write \z for the end, or \n?\z where a last line break may follow",
    "G": r"\G: there is one search in a text; write \A for its beginning",
    "C": r"\C, half a character: write . for one",
    "v": r"\v, which has two meanings: write \x0B, or [\n\x0B\f\r] for line breaks",
    "h": r"\h: write [ \t\xA0]",
    "H": r"\H: write [^ \t\xA0]",
    "R": r"\R: write (?:\r\n|[\n\x0B\f\r])",
    "X": r"\X: write . for one character",
    "N": r"\N: write the character itself or \x{...}",
    "u": r"\u: write the character itself or \x{...}",
    "c": r"\c: write \x01 to \x1F",
    "e": r"\e: write \x1B",
    "k": r"\k, a reference to a group: write the group's expression again, or use two filters",
    "K": r"\K: only whether there is a match counts; leave it out",
}
_GROUPS = {
    "(?=": "(?=...), a lookahead: write the two conditions as two RLIKE with AND",
    "(?!": "(?!...), a negative lookahead: write AND NOT ... RLIKE",
    "(?<=": "(?<=...), a lookbehind: write what stands before as a part of the expression",
    "(?<!": "(?<!...), a negative lookbehind: write AND NOT ... RLIKE",
    "(?>": "(?>...), an atomic group: write (?:...), as nothing is tried twice here",
    "(?(": "(?(...), a conditional group: write the two cases with |",
    "(?#": "(?#...), a comment: leave it out",
    "(?P=": "(?P=...), a reference to a group: write the group's expression again",
    "(?P>": "(?P>...), a reference to a group: write the group's expression again",
}
_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:-([A-Za-z]*))?[:)]")
_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_CODE = re.compile(r"\\x\{[0-9A-Fa-f]{1,6}\}")
_ESCAPED = re.compile(rf"\\Q.*?(?:\\E|\Z)|({_CODE.pattern})|\\.", re.DOTALL)
_VERSIONED = re.compile(r"\\[pP]")  # classes of Unicode, which one RE2 may know and another not


class RegularError(ValueError):
    """A pattern that is malformed, that RE2 can't express, or that is too large."""


class Regular:
    """A compiled pattern."""

    def __init__(self, program: Any, unanchored: Any, positions: int, memory: int) -> None:
        self._program = program
        self.bytes = memory * 2 // 5
        """The most memory that it takes, as measured when all of its budget was used."""
        self.size = int(program.ProgramSize())
        self._unanchored = unanchored
        self.positions = positions
        self.longest = MOST_STEPS // positions
        """Bytes of the longest text that it is searched in."""

    def found(self, text: str) -> bool | None:
        """Whether it is found somewhere in a text; null in one that is too long."""
        if len(text) > self.longest:
            return None
        encoded = encode_text(text)
        if len(encoded) > self.longest:
            return None
        spend(len(encoded) * self.positions)
        spans = self._program.Match(self._unanchored, encoded, 0, len(encoded))
        return bool(spans[0][0] >= 0)


def encode_text(text: str) -> bytes:
    """A text in UTF-8; half a surrogate pair, which is no character, counts as U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


_programs: ProgramCache[Regular] = ProgramCache(KEPT, lambda one: one.bytes)


def forget() -> None:
    """Empty the cache, after the rules have changed."""
    _programs.clear()


def compile_pattern(pattern: str) -> Regular:
    """The program of a pattern that was written in a filter; RegularError for what is refused."""
    return _programs.get(pattern, lambda: _compile_checked(pattern))


def cached_program(pattern: str) -> Regular:
    """The program of a pattern in RE2's own language, which is kept like the others."""
    return _programs.get((pattern,), lambda: program_of(pattern))


def _compile_checked(pattern: str) -> Regular:
    if len(pattern) > MAX_PATTERN:
        raise RegularError(f"has more than {MAX_PATTERN:,} characters; use several filters")
    _refuse_other_meanings(pattern)
    return program_of(pattern)


def program_of(pattern: str) -> Regular:
    """The program of a pattern in RE2's own language."""
    import re2

    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        raise RegularError("has half a surrogate pair, expected valid Unicode") from None
    memory = LITTLE_MEMORY
    program = re2._re2.RE2(encoded, _make_options(re2, memory))
    if not program.ok() or program.ProgramSize() > SMALL:
        memory = MOST_MEMORY
        program = re2._re2.RE2(encoded, _make_options(re2, memory))
    if not program.ok():
        raise RegularError(_explain_error(bytes(program.error()).decode(errors="replace")))
    positions = _count_positions(re2, pattern, program)
    if positions > MOST_POSITIONS:
        raise RegularError(
            f"has {positions:,} positions when its repetitions are written out, expected at most "
            f"{MOST_POSITIONS:,}; ask for fewer repetitions"
        )
    return Regular(program, re2._re2.RE2.Anchor.UNANCHORED, positions, memory)


def columns_agree(pattern: str) -> bool:
    """Whether another RE2, such as pyarrow's, is sure to mean the same by a pattern: the tables of
    Unicode grow from version to version."""
    return _VERSIONED.search(pattern) is None and ("(?" not in pattern or pattern.isascii())


def _make_options(re2: Any, memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory
    return options


def _count_positions(re2: Any, pattern: str, program: Any) -> int:
    """How many places a search can be at together, at most: the size of the program, characters
    taken for one byte each, because a class of Unicode is one place and many instructions."""
    options = _make_options(re2, MOST_MEMORY)
    options.encoding = re2.Options.Encoding.LATIN1
    # walked escape by escape: what follows an escaped backslash is no code
    short = _ESCAPED.sub(lambda found: "a" if found[1] else found[0], pattern)
    bytewise = re2._re2.RE2(short.encode(), options)
    return max(1, int((bytewise if bytewise.ok() else program).ProgramSize()))


def _explain_error(error: str) -> str:
    """What RE2 says of a pattern, with what to write instead where we know."""
    what, _, where = error.partition(": ")
    if what == "bad repetition operator":
        if where.endswith("+"):
            why = "a possessive quantifier: leave the last + out, as nothing is tried twice here"
        else:
            why = "a repetition of a repetition: put (?:...) around the first"
        return f"has {where}, {why}"
    if what == "invalid repetition size":
        return f"has {where}, expected at most 1,000 repetitions in all: ask for fewer"
    if what == "pattern too large - compile failed":
        return "is too large when its repetitions are written out: ask for fewer repetitions"
    if what == "invalid character class range" and where.startswith(("\\p", "\\P")):
        return (
            f"has {where}, which is no class of Unicode here: write one such as \\p{{L}}, "
            "\\p{Lu} or \\p{Greek}, or [A-Za-z]"
        )
    return f"does not compile: {error}"


def _refuse_other_meanings(pattern: str) -> None:
    """RegularError for what RE2 lacks and for what it takes for something else than Java does."""
    at, size, in_class = 0, len(pattern), -1  # in_class: where the class began
    while at < size:
        char = pattern[at]
        if char == "\\" and at + 1 < size:
            after = pattern[at + 1]
            if after == "Q" and in_class < 0:
                end = pattern.find("\\E", at + 2)
                at = size if end < 0 else end + 2
                continue
            _refuse_escape(pattern, at, after, in_class >= 0)
            code = _CODE.match(pattern, at)  # its braces are no count
            at = code.end() if code else at + 2
            continue
        if in_class >= 0:
            first = at == in_class + 1 or (at == in_class + 2 and pattern[at - 1] == "^")
            if char == "]" and not first:
                in_class = -1
            elif char == "[":
                raise RegularError(r"has a [ in a class, which may be a class in it: write \[")
            elif pattern.startswith("&&", at):
                raise RegularError(r"has && in a class, an intersection: write it out, or \&\&")
        elif char == "[":
            in_class = at
        elif char == "(" and pattern.startswith("(?", at):
            _refuse_group(pattern, at)
        elif char == "{":
            found = _COUNT.match(pattern, at)
            if found and found[2] and not found[1]:
                raise RegularError(f"has {found[0]}: write {{0,{found[3]}}}")
            if found and max(len(found[1]), len(found[3])) > 4:  # RE2 takes it for a text
                raise RegularError(f"has {found[0][:40]}, expected at most 1,000: ask for fewer")
        at += 1


def _refuse_escape(pattern: str, at: int, after: str, in_class: bool) -> None:
    if after.isdigit() and after.isascii():
        what = "an octal code" if after == "0" else "a reference to a group or an octal code"
        raise RegularError(
            rf"has \{after}, {what}: write the group's expression again, or the character as \x41"
        )
    if after in _ESCAPES:
        raise RegularError(f"has {_ESCAPES[after]}")
    if after in "bB" and not in_class and pattern.startswith("{", at + 2):
        raise RegularError(rf"has \{after}{{...}}, a kind of boundary: write \{after}")


def _refuse_group(pattern: str, at: int) -> None:
    for start, said in _GROUPS.items():
        if pattern.startswith(start, at):
            raise RegularError(f"has {said}")
    flags = _FLAGS.match(pattern, at)
    for flag in (flags[1] + (flags[2] or "")) if flags else "":
        if flag not in "ims":
            raise RegularError(f"has the flag (?{flag}), expected (?i), (?m) or (?s)")
