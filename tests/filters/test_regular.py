"""Regular expressions take time in proportion to the text; what RE2 lacks is refused by name."""

from __future__ import annotations

import random
import time

import pytest

from tidings import FilterError, parse
from tidings.filters.values import like, regular
from tidings.model import LimitError

HANGING = 20.0  # seconds of processor time; a matcher that goes back would take hours


@pytest.mark.timeout(120)
@pytest.mark.parametrize("letters", [28, 100_000])
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)+$", "(a|aa)+$", "(.*)*x", "(a?){30}a{30}b"])
def test_no_pattern_goes_back(letters: int, pattern: str) -> None:
    text = "a" * letters + "!"
    one = parse(f"s RLIKE '{pattern}'")
    one.matches({"s": "a"})
    began = time.process_time()
    assert not one.matches({"s": text})
    assert time.process_time() - began < HANGING


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "pattern", ["%a%a%a%a%b", "%a" * 50 + "b", "%aaaa" * 50 + "%b%", "%a_a%a_a%b", "%a______a%b"]
)
def test_no_like_goes_back(pattern: str) -> None:
    one = parse(f"s LIKE '{pattern}'")
    began = time.process_time()
    assert not one.matches({"s": "a" * 100_000})
    assert time.process_time() - began < HANGING


REFUSED = [
    ("(?=a)b", "two RLIKE tests joined with AND"),
    ("(?!a)b", "AND NOT ... RLIKE"),
    ("(?<=a)b", "preceding text"),
    ("(?<!a)b", "AND NOT ... RLIKE"),
    ("(?>a)b", "(?:...)"),
    (r"(a)\1", "write the group's expression again"),
    (r"(?P<x>a)(?P=x)", "write the group's expression again"),
    (r"(?<x>a)\k<x>", "write the group's expression again"),
    ("a*+", "leave out the last +"),
    ("a++", "leave out the last +"),
    ("a{2}+", "leave out the last +"),
    ("a**", "put (?:...) around the inner one"),
    (r"a\Z", r"write \z"),
    (r"\h", r"[ \t\xA0]"),
    (r"\R", "(?:"),
    (r"\u0041", r"\x{...}"),
    (r"\0101", r"\x41"),
    (r"\v", r"\x0B"),
    (r"\C", "write ."),
    (r"\b{g}", r"write \b"),
    (r"\p{Alpha}", r"\p{L}"),
    ("[[a-z]]", r"write \["),
    ("[[:alpha:]]", r"write \["),
    ("[a-z&&[b]]", "list the characters"),
    ("(?x) a", "(?i), (?m) or (?s)"),
    ("(?U)a", "(?i), (?m) or (?s)"),
    ("a{,5}", "{0,5}"),
    ("a{2000}", "use fewer"),
    ("a{99999999999}", "use fewer"),
    ("(a{1000}){1000}", "use fewer"),
    ("(?:[a-z]{100}){15}", "use fewer"),
    ("a" * 2_001, "use several filters"),
    ("(", "does not compile"),
    ("[a", "does not compile"),
]


@pytest.mark.parametrize(("pattern", "instead"), REFUSED)
def test_what_is_refused_says_what_to_write(pattern: str, instead: str) -> None:
    with pytest.raises(LimitError) as found:
        parse(f"s RLIKE r'{pattern}'")
    assert found.value.reason.startswith("the regular expression ")
    assert instead in found.value.reason
    assert found.value.position == 8


@pytest.mark.parametrize("text", ["s RLIKE p", "regexp_like(s, lower(p))", "s RLIKE lower(p)"])
def test_a_pattern_that_is_no_constant_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match="RLIKE takes a pattern in quotes"):
        parse(text)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a.c$", "abc", True),
        ("^a.c$", "a\nc", False),
        ("(?s)^a.c$", "a\nc", True),
        ("(?m)^b$", "a\nb", True),
        ("a$", "a\n", False),
        (r"\d", "٣", False),
        (r"\pL", "é", True),
        (r"\Q(?=\E", "x(?=", True),
        (r"[\[&]&", "[&", True),
        ("[^]a]", "b", True),
        ("[]a]", "]", True),
        (r"\(?=", "(=", True),
        ("^.$", "\U0001f600", True),
        ("^.$", "\ud800", True),  # half a surrogate pair counts as U+FFFD
        ("^\ufffd$", "\ud800", True),
        ("", "", True),
        ("x*", "", True),
        ("a{3}", "aaa", True),
        ("a{", "a{", True),
    ],
)
def test_what_is_found(pattern: str, text: str, found: bool) -> None:
    assert regular.compile_pattern(pattern).search(text) is found


def test_a_text_beyond_the_steps_is_null() -> None:
    one = regular.compile_pattern("a[ab]{500}c")
    assert one.positions > 500
    longest = "a" * one.longest
    assert one.search(longest) is False
    assert one.search(longest + "a") is None
    assert one.search("é" * (one.longest // 2 + 1)) is None  # bytes count
    filter_ = parse("(s RLIKE 'a[ab]{500}c') IS NULL")
    assert filter_.matches({"s": longest + "a"})
    assert filter_.form.holds({"s": longest + "a"})
    assert not filter_.form.holds({"s": longest})


@pytest.mark.timeout(120)
def test_the_worst_pattern_takes_the_steps_that_it_has() -> None:
    rng = random.Random(5)
    one = regular.compile_pattern("a[ab]{900}c")
    text = "".join(rng.choices("ab", k=one.longest))
    began = time.process_time()
    assert one.search(text) is False
    assert time.process_time() - began < HANGING  # 0.1 seconds where nothing else runs


def test_a_class_of_unicode_is_one_position() -> None:
    assert regular.compile_pattern(r"\pL{3}\pN").positions < 50
    assert regular.compile_pattern(r"[\x{4e00}-\x{9fff}]+").positions < 20


def test_like_with_a_run_that_is_too_large_is_refused() -> None:
    with pytest.raises(LimitError, match="a _ between two %"):
        parse(f"s LIKE '%{'a_' * 800}%'")
    with pytest.raises(LimitError, match="a _ between two %"):
        parse(f"s LIKE '%{'a_' * 800}%'", "cesql")
    assert parse(f"s LIKE '{'a_' * 800}%'").matches({"s": "ab" * 801})
    assert like.compile_pattern(f"%{'a_' * 800}%") is None


@pytest.mark.parametrize("code", ["41", "1F600", "10400", "10FFFF"])
def test_the_braces_of_a_code_are_no_count(code: str) -> None:
    for pattern in (rf"\x{{{code}}}", rf"[\x{{{code}}}]", rf"(?:\x{{{code}}}){{2}}"):
        one = regular.compile_pattern(pattern)
        assert one.search(chr(int(code, 16)) * 2)
        assert not one.search("-")
        assert one.positions < 10


def test_after_an_escaped_backslash_there_is_no_code() -> None:
    assert regular.compile_pattern(r"\\x{500}").positions > 500
    assert regular.compile_pattern(r"\\x{500}").search("\\" + "x" * 500)
    assert regular.compile_pattern(r"\Q\x{500}\E").positions > len(r"\x{500}")
    assert regular.compile_pattern(r"\Q\x{500}\E").search(r"\x{500}")
    with pytest.raises(regular.RegularError, match="positions"):
        regular.compile_pattern(r"\\x{1000}\\x{1000}")
