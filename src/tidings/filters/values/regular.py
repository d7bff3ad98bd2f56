"""Regular expressions, run by RE2 in time linear in the text, whatever the pattern.

On a text of 28 letters, a backtracking engine takes half a minute for `(a+)+$`. RE2 has no
back-references and no lookaround. A pattern with back-references or lookaround is refused, and the
message says what to write instead. Patterns that mean different things to RE2 and to Java, such as
nested classes or octal escapes, are also refused.

RE2 caches the states it visits, but in the worst case it follows every position of the pattern for
every byte of the text. So there are two limits: MOST_POSITIONS for a pattern, and MOST_STEPS for
positions times bytes. If the text is too long, the result is null. pyarrow also uses RE2, and
batches have the same two limits (matching/rank_space/arrow_functions.py).
"""

from __future__ import annotations

import re
from typing import Any

from tidings.filters.values.program_cache import ProgramCache
from tidings.filters.values.work_limit import spend

MOST_POSITIONS = 1_000
MOST_STEPS = 1 << 24  # the most steps; they take a tenth of a second if every position is followed
MAX_PATTERN = 2_000  # characters
MOST_MEMORY = 512 << 10  # RE2's budget for one program; the program uses about 200 KB
LITTLE_MEMORY = 128 << 10  # the budget for a small program with few states: it uses about 50 KB
SMALL = 64  # instructions
KEPT = 128 << 20  # the most bytes that the programs in the cache take together

# Escapes that RE2 lacks or reads differently, and what to write instead.
_ESCAPES = {
    "Z": r"\Z: write \z for the end, or \n?\z to allow a final line break",
    "G": r"\G: each text is searched only once; write \A for its start",
    "C": r"\C, which matches a single byte: write . for a character",
    "v": r"\v, which is ambiguous: write \x0B, or [\n\x0B\f\r] for line breaks",
    "h": r"\h: write [ \t\xA0]",
    "H": r"\H: write [^ \t\xA0]",
    "R": r"\R: write (?:\r\n|[\n\x0B\f\r])",
    "X": r"\X: write . for a character",
    "N": r"\N: write the character itself or \x{...}",
    "u": r"\u: write the character itself or \x{...}",
    "c": r"\c: write \x01 to \x1F",
    "e": r"\e: write \x1B",
    "k": r"\k, a reference to a group: write the group's expression again, or use two filters",
    "K": r"\K: leave it out, because it does not change whether the text matches",
}
_GROUPS = {
    "(?=": "(?=...), a lookahead: write the two conditions as two RLIKE tests joined with AND",
    "(?!": "(?!...), a negative lookahead: write AND NOT ... RLIKE",
    "(?<=": "(?<=...), a lookbehind: write the preceding text as a part of the expression",
    "(?<!": "(?<!...), a negative lookbehind: write AND NOT ... RLIKE",
    "(?>": "(?>...), an atomic group: write (?:...); there is no backtracking here",
    "(?(": "(?(...), a conditional group: write the two cases with |",
    "(?#": "(?#...), a comment: leave it out",
    "(?P=": "(?P=...), a reference to a group: write the group's expression again",
    "(?P>": "(?P>...), a reference to a group: write the group's expression again",
}
_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:-([A-Za-z]*))?[:)]")
_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_CODE = re.compile(r"\\x\{[0-9A-Fa-f]{1,6}\}")
_ESCAPED = re.compile(rf"\\Q.*?(?:\\E|\Z)|({_CODE.pattern})|\\.", re.DOTALL)
_VERSIONED = re.compile(r"\\[pP]")  # Unicode classes, which may differ between versions of RE2


class RegularError(ValueError):
    """A pattern is malformed, too large, or not supported by RE2."""


class Regular:
    """A compiled pattern."""

    def __init__(self, program: Any, unanchored: Any, positions: int, memory: int) -> None:
        self._program = program
        self.bytes = memory * 2 // 5
        """The most memory that the program takes, measured with its whole budget used up."""
        self.size = int(program.ProgramSize())
        self._unanchored = unanchored
        self.positions = positions
        self.longest = MOST_STEPS // positions
        """The length in bytes of the longest text that is searched."""

    def search(self, text: str) -> bool | None:
        """Whether the pattern matches somewhere in the text; null if the text is too long."""
        if len(text) > self.longest:
            return None
        encoded = encode_text(text)
        if len(encoded) > self.longest:
            return None
        spend(len(encoded) * self.positions)
        spans = self._program.Match(self._unanchored, encoded, 0, len(encoded))
        return bool(spans[0][0] >= 0)


def encode_text(text: str) -> bytes:
    """Encode as UTF-8; an unpaired surrogate, which is not a character, becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


_programs: ProgramCache[Regular] = ProgramCache(KEPT, lambda one: one.bytes)


def forget() -> None:
    """Empty the cache; call this after the limits have changed."""
    _programs.clear()


def compile_pattern(pattern: str) -> Regular:
    """Compile a pattern from a filter; raise RegularError if it is refused."""
    return _programs.get(pattern, lambda: _compile_checked(pattern))


def compile_program(pattern: str) -> Regular:
    """Compile a pattern in RE2's own syntax, and cache it like other patterns."""
    return _programs.get((pattern,), lambda: program_of(pattern))


def _compile_checked(pattern: str) -> Regular:
    if len(pattern) > MAX_PATTERN:
        raise RegularError(
            f"the regular expression has more than {MAX_PATTERN:,} characters; use several filters"
        )
    _refuse_other_meanings(pattern)
    return program_of(pattern)


def program_of(pattern: str) -> Regular:
    """Compile a pattern in RE2's own syntax, without the cache."""
    import re2

    try:
        encoded = pattern.encode()
    except UnicodeEncodeError:
        raise RegularError(
            "the regular expression has an unpaired surrogate, expected valid Unicode"
        ) from None
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
            "the regular expression has "
            f"{positions:,} positions when its repetitions are written out, expected at most "
            f"{MOST_POSITIONS:,}; use fewer repetitions"
        )
    return Regular(program, re2._re2.RE2.Anchor.UNANCHORED, positions, memory)


def columns_agree(pattern: str) -> bool:
    """Whether the pattern means the same in every version of RE2, including the version in pyarrow;
    Unicode tables grow from version to version."""
    return _VERSIONED.search(pattern) is None and ("(?" not in pattern or pattern.isascii())


def _make_options(re2: Any, memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory
    return options


def _count_positions(re2: Any, pattern: str, program: Any) -> int:
    """The maximum number of positions that a search follows at once. This is the program size of
    the pattern compiled as Latin-1, where each character is one byte. The size of the program for
    UTF-8 would be too high a count: in it, a Unicode class is one position but many
    instructions."""
    options = _make_options(re2, MOST_MEMORY)
    options.encoding = re2.Options.Encoding.LATIN1
    # the pattern is processed escape by escape, so that \\x{41}, an escaped backslash and plain
    # text, is not mistaken for a character code
    short = _ESCAPED.sub(lambda found: "a" if found[1] else found[0], pattern)
    bytewise = re2._re2.RE2(short.encode(), options)
    return max(1, int((bytewise if bytewise.ok() else program).ProgramSize()))


def _explain_error(error: str) -> str:
    """Turn an error of RE2 into a message that also says what to write instead, if that is
    known."""
    what, _, where = error.partition(": ")
    if what == "bad repetition operator":
        if where.endswith("+"):
            why = "a possessive quantifier: leave out the last +; there is no backtracking here"
        else:
            why = "a repetition of a repetition: put (?:...) around the inner one"
        return f"the regular expression has {where}, {why}"
    if what == "invalid repetition size":
        return (
            "the regular expression has "
            f"{where}, expected at most 1,000 repetitions in total: use fewer"
        )
    if what == "pattern too large - compile failed":
        return (
            "the regular expression is too large when its repetitions are written out: "
            "use fewer repetitions"
        )
    if what == "invalid character class range" and where.startswith(("\\p", "\\P")):
        return (
            "the regular expression has "
            f"{where}, which is not a known Unicode class: write one such as \\p{{L}}, "
            "\\p{Lu} or \\p{Greek}, or [A-Za-z]"
        )
    return f"the regular expression does not compile: {error}"


def _refuse_other_meanings(pattern: str) -> None:
    """Raise RegularError for syntax that RE2 lacks or reads differently from Java."""
    at, size, in_class = 0, len(pattern), -1  # in_class: the start of the character class
    while at < size:
        char = pattern[at]
        if char == "\\" and at + 1 < size:
            after = pattern[at + 1]
            if after == "Q" and in_class < 0:
                end = pattern.find("\\E", at + 2)
                at = size if end < 0 else end + 2
                continue
            _refuse_escape(pattern, at, after, in_class >= 0)
            code = _CODE.match(pattern, at)  # skip the code: its braces are not a repetition count
            at = code.end() if code else at + 2
            continue
        if in_class >= 0:
            first = at == in_class + 1 or (at == in_class + 2 and pattern[at - 1] == "^")
            if char == "]" and not first:
                in_class = -1
            elif char == "[":
                raise RegularError(
                    "the regular expression has "
                    r"a [ in a character class, which may begin a nested class: write \["
                )
            elif pattern.startswith("&&", at):
                raise RegularError(
                    "the regular expression has "
                    r"an intersection (&&) in a class: list the characters, or write \&\&"
                )
        elif char == "[":
            in_class = at
        elif char == "(" and pattern.startswith("(?", at):
            _refuse_group(pattern, at)
        elif char == "{":
            found = _COUNT.match(pattern, at)
            if found and found[2] and not found[1]:
                raise RegularError(f"the regular expression has {found[0]}: write {{0,{found[3]}}}")
            # RE2 reads a count with a very long number as literal text
            if found and max(len(found[1]), len(found[3])) > 4:
                shown = found[0][:40]
                raise RegularError(
                    "the regular expression has "
                    f"{shown}, expected at most 1,000 repetitions: use fewer"
                )
        at += 1


def _refuse_escape(pattern: str, at: int, after: str, in_class: bool) -> None:
    if after.isdigit() and after.isascii():
        what = "an octal code" if after == "0" else "a reference to a group or an octal code"
        raise RegularError(
            "the regular expression has "
            rf"\{after}, {what}: write the group's expression again, or the character as \x41"
        )
    if after in _ESCAPES:
        raise RegularError(f"the regular expression has {_ESCAPES[after]}")
    if after in "bB" and not in_class and pattern.startswith("{", at + 2):
        raise RegularError(
            "the regular expression has " rf"\{after}{{...}}, a boundary type: write \{after}"
        )


def _refuse_group(pattern: str, at: int) -> None:
    for start, said in _GROUPS.items():
        if pattern.startswith(start, at):
            raise RegularError(f"the regular expression has {said}")
    flags = _FLAGS.match(pattern, at)
    for flag in (flags[1] + (flags[2] or "")) if flags else "":
        if flag not in "ims":
            raise RegularError(
                f"the regular expression has the flag (?{flag}), expected (?i), (?m) or (?s)"
            )
