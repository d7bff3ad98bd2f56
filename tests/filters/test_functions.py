"""Every function of the language: arguments and result, null, wrong types and overflow among them.

Arguments are values, not texts, so that nothing is refused or computed before.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pytest

from tidings.filters.dialects.cesql import parser, program
from tidings.filters.dialects.eventbridge.bound_pattern import BoundPattern
from tidings.filters.dialects.eventbridge.pattern_reader import read_pattern
from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.expression import Attribute, Call
from tidings.filters.language.functions import ALIASES, BOUND, FUNCTIONS, OPERATORS
from tidings.filters.values import regular
from tidings.filters.values.topics import Ontology
from tidings.model import ABSENT, TYPES, type_of

NAN, INF = math.nan, math.inf
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
DAY = dt.date(2024, 2, 29)
AT = dt.datetime(2024, 2, 29, 23, 45, 6, 789, tzinfo=dt.UTC)
WEST = dt.datetime(2024, 2, 29, 23, 45, 6, tzinfo=dt.timezone(dt.timedelta(hours=-2)))  # in March
TOPICS = Ontology({"b": "a", "c": "b", "d": "a"})


def shout(text: str) -> Any:
    return (text.upper(), 2**70)


# (function, arguments, result)
CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("+", (1, 2), 3),
    ("+", (1, 0.5), 1.5),
    ("+", (INT_MAX, 1), None),
    ("+", (INT_MAX, 1.0), 2.0**63),
    ("+", (1e308, 1e308), INF),
    ("+", (INF, -INF), NAN),
    ("+", (1, None), None),
    ("+", (1, "1"), None),
    ("+", (1, True), None),
    ("-", (1, 2), -1),
    ("-", (INT_MIN, 1), None),
    ("-", (0.5, 1), -0.5),
    ("-", (None, 1), None),
    ("-", (DAY, 1), None),
    ("*", (3, -4), -12),
    ("*", (2**32, 2**31), None),
    ("*", (-(2**32), 2**31), INT_MIN),
    ("*", (0, INF), NAN),
    ("*", (1e200, -1e200), -INF),
    ("*", ([1], 2), None),
    ("/", (1, 2), 0.5),
    ("/", (4, 2), 2.0),
    ("/", (1, 0), None),
    ("/", (1.0, -0.0), None),
    ("/", (NAN, 0), None),
    ("/", (1e308, 1e-308), INF),
    ("/", (INF, INF), NAN),
    ("/", ("a", 2), None),
    ("/", (1, None), None),
    ("%", (7, 3), 1),
    ("%", (-7, 3), -1),
    ("%", (7, -3), 1),
    ("%", (INT_MIN, -1), 0),
    ("%", (INT_MIN, INT_MAX), -1),
    ("%", (7, 0), None),
    ("%", (-7.5, 2), -1.5),
    ("%", (7.5, 0.0), None),
    ("%", (INF, 2), NAN),
    ("%", (NAN, 2), NAN),
    ("%", (7.5, INF), 7.5),
    ("%", (True, 2), None),
    ("div", (7, 2), 3),
    ("div", (-7, 2), -3),
    ("div", (7, -2), -3),
    ("div", (-7, -2), 3),
    ("div", (7, 0), None),
    ("div", (INT_MIN, -1), None),
    ("div", (INT_MIN, 1), INT_MIN),
    ("div", (7.0, 2), None),
    ("div", (True, 2), None),
    ("div", (None, 2), None),
    ("negative", (5,), -5),
    ("negative", (INT_MIN,), None),
    ("negative", (0.0,), -0.0),
    ("negative", (INF,), -INF),
    ("negative", ("5",), None),
    ("abs", (-5,), 5),
    ("abs", (INT_MIN,), None),
    ("abs", (-0.0,), 0.0),
    ("abs", (-INF,), INF),
    ("abs", (True,), None),
    ("abs", (None,), None),
    ("floor", (1.5,), 1),
    ("floor", (-1.5,), -2),
    ("floor", (INT_MAX,), INT_MAX),
    ("floor", (-(2.0**63),), INT_MIN),
    ("floor", (2.0**63,), None),
    ("floor", (INF,), None),
    ("floor", (NAN,), None),
    ("floor", ("1",), None),
    ("ceil", (1.5,), 2),
    ("ceil", (-1.5,), -1),
    ("ceil", (-0.5,), 0),
    ("ceil", (1e30,), None),
    ("ceil", (NAN,), None),
    ("ceil", (7,), 7),
    ("isnan", (NAN,), True),
    ("isnan", (INF,), False),
    ("isnan", (1,), False),
    ("isnan", (None,), False),
    ("isnan", ("NaN",), False),
    ("lower", ("AbÉ",), "abé"),
    ("lower", (5,), None),
    ("lower", (None,), None),
    ("upper", ("aß",), "ASS"),
    ("upper", ([],), None),
    ("trim", ("  a b ",), "a b"),
    ("trim", ("\t a\u00a0",), "\t a\u00a0"),  # only spaces
    ("trim", (5,), None),
    ("concat", ("a",), "a"),
    ("concat", ("a", "", "b"), "ab"),
    ("concat", ("a", None), None),
    ("concat", ("a", 1), None),
    ("length", ("",), 0),
    ("length", ("a😀",), 2),
    ("length", ([1],), None),
    ("substring", ("abcd", 2), "bcd"),
    ("substring", ("abcd", 2, 2), "bc"),
    ("substring", ("abcd", 0, 2), "ab"),
    ("substring", ("abcd", -2), "cd"),
    ("substring", ("abcd", -3, 2), "bc"),
    ("substring", ("abcd", -6, 3), "a"),  # it starts before the string
    ("substring", ("abcd", -9, 3), ""),
    ("substring", ("abcd", 9), ""),
    ("substring", ("abcd", 2, 0), ""),
    ("substring", ("abcd", 3, -1), ""),
    ("substring", ("abcd", INT_MAX, INT_MAX), ""),
    ("substring", ("abcd", INT_MIN, 5), ""),
    ("substring", ("abcd", 1.0), None),
    ("substring", (5, 1), None),
    ("substring", ("abcd", None), None),
    ("reverse", ("abc",), "cba"),
    ("reverse", ([1, None, "a"],), ["a", None, 1]),
    ("reverse", (12,), None),
    ("startswith", ("abc", "ab"), True),
    ("startswith", ("abc", ""), True),
    ("startswith", ("abc", "bc"), False),
    ("startswith", ("abc", None), None),
    ("startswith", (["ab"], "ab"), None),
    ("endswith", ("abc", "bc"), True),
    ("endswith", ("abc", "ab"), False),
    ("endswith", ("abc", 5), None),
    ("contains", ("abc", "b"), True),
    ("contains", ("abc", ""), True),
    ("contains", ("abc", "ac"), False),
    ("contains", (["b"], "b"), None),
    ("like", ("abc", "a%"), True),
    ("like", ("a\nc", "a_c"), True),
    ("like", ("abc", "ab"), False),
    ("like", ("a%c", r"a\%c"), True),
    ("like", ("abc", "a\\"), None),  # a broken pattern, from an attribute
    ("like", (5, "%"), None),
    ("ilike", ("ABC", "a%C"), True),
    ("ilike", ("abc", "A\\"), None),
    ("ilike", ("abc", None), None),
    ("rlike", ("abc", "b"), True),
    ("rlike", ("abc", "^b"), False),
    ("rlike", ("٣", r"\d"), False),
    ("rlike", ("abc", "("), None),
    ("rlike", ("abc", "[[a]"), None),  # a class in a class
    ("rlike", ("abc", "a{99999999999}"), None),
    ("rlike", (5, "5"), None),
    ("size", ([],), 0),
    ("size", ([None, 1],), 2),
    ("size", ("ab",), None),
    ("size", ({"a": 1},), None),
    ("get", ([1, 2], 1), 2),
    ("get", ([1, 2], 2), None),
    ("get", ([1, 2], -1), None),
    ("get", ([1, None], 1), None),
    ("get", ([(1,)], 0), [1]),
    ("get", ([1, 2], True), None),
    ("get", ([1, 2], 1.0), None),
    ("get", ("ab", 0), None),
    ("array_contains", ([1, 2], 2), True),
    ("array_contains", ([1, 2], 2.0), True),
    ("array_contains", ([NAN], NAN), True),
    ("array_contains", ([1, 2], 3), False),
    ("array_contains", ([], 3), False),
    ("array_contains", ([1, None], 1), True),
    ("array_contains", ([1, None], 3), None),
    ("array_contains", ([1, "a"], 3), None),
    ("array_contains", ([1], None), None),
    ("array_contains", ("a", "a"), None),
    ("arrays_overlap", ([1, 2], [2, 3]), True),
    ("arrays_overlap", ([1], [2]), False),
    ("arrays_overlap", ([], [None]), False),
    ("arrays_overlap", ([1, None], [2]), None),
    ("arrays_overlap", ([1, None], [None, 1.0]), True),
    ("arrays_overlap", ([1], ["a"]), None),
    ("arrays_overlap", ([1], 1), None),
    ("isabsent", (ABSENT,), True),
    ("isabsent", (None,), False),
    ("isabsent", ("",), False),
    ("isnested", ([],), True),
    ("isnested", ({"a": 1},), True),
    ("isnested", (b"a",), True),
    ("isnested", ("a",), False),
    ("isnested", (None,), False),
    ("leaves", ([1, [None, ["a"]], {"b": 2}],), [1, "a"]),
    ("leaves", ([],), []),
    ("leaves", ("a",), None),
    ("leaves", (None,), None),
    ("cast", (" 7 ", "int"), 7),
    ("cast", ("7.5", "int"), None),
    ("cast", (300, "tinyint"), None),
    ("cast", (-7.9, "bigint"), -7),
    ("cast", (float("nan"), "int"), None),
    ("cast", (2.5, "string"), None),
    ("cast", (True, "string"), "true"),
    ("cast", (dt.date(2024, 1, 2), "string"), "2024-01-02"),
    ("cast", ("2024-01-02 10:00", "date"), dt.date(2024, 1, 2)),
    ("cast", (7, "date"), None),
    ("cast", ([1], "string"), None),
    ("cast", (None, "int"), None),
    ("coalesce", (None, 2, 3), 2),
    ("coalesce", (None, None), None),
    ("coalesce", (False, True), False),
    ("coalesce", ("", "a"), ""),
    ("year", (DAY,), 2024),
    ("year", (WEST,), 2024),
    ("year", ("2024",), None),
    ("year", (None,), None),
    ("month", (DAY,), 2),
    ("month", (WEST,), 3),
    ("month", (5,), None),
    ("day", (AT,), 29),
    ("day", (WEST,), 1),
    ("day", ([],), None),
    ("hour", (AT,), 23),
    ("hour", (WEST,), 1),
    ("hour", (AT.replace(tzinfo=None),), 23),
    ("hour", (DAY,), 0),
    ("hour", (23,), None),
    ("minute", (AT,), 45),
    ("minute", (DAY,), 0),
    ("minute", ("23:45",), None),
    ("second", (AT,), 6),
    ("second", (DAY,), 0),
    ("second", (True,), None),
    ("dayofweek", (DAY,), 5),  # a Thursday
    ("dayofweek", (dt.date(2024, 3, 2),), 7),
    ("dayofweek", (dt.date(2024, 3, 3),), 1),
    ("dayofweek", (5,), None),
    ("cidr", ("10.1.2.3", "10.0.0.0/8"), True),
    ("cidr", ("11.1.2.3", "10.0.0.0/8"), False),
    ("cidr", ("::1", "10.0.0.0/8"), False),
    ("cidr", ("somewhere", "10.0.0.0/8"), None),
    ("cidr", (5, "10.0.0.0/8"), None),
    ("cidr", (None, "10.0.0.0/8"), None),
    ("inet", ("10.0.0.1",), "40a000001"),
    ("inet", ("::1",), "6" + "0" * 31 + "1"),
    ("inet", ("10.0.0",), None),
    ("inet", (167772161,), None),
    ("within_box", (1, 2, 0, 0, 3, 3), True),
    ("within_box", (1, 4, 0, 0, 3, 3), False),
    ("within_box", (None, 4, 0, 0, 3, 3), False),  # outside, wherever it is
    ("within_box", (None, 2, 0, 0, 3, 3), None),
    ("within_box", (1, 2, 0, 0, 3, None), None),
    ("within_box", ("1", 2, 0, 0, 3, 3), None),
    ("within_km", (0, 0, 0, 1, 112), True),
    ("within_km", (0, 0, 0, 1, 111), False),
    ("within_km", (NAN, 0, 0, 1, 111), False),
    ("within_km", (91, 0, 90, 0, 5000), False),
    ("within_km", (0, "0", 0, 1, 111), None),
    ("within_km", (0, None, 0, 1, 111), None),
    ("subject_field", ("a.b", 1), "b"),
    ("subject_field", ("a.b", 2), None),
    ("subject_field", ("a.b", -1), None),
    ("subject_field", ("a.b", 1.0), None),
    ("subject_field", (5, 0), None),
    ("subject_length", ("a.b.c",), 3),
    ("subject_length", ("",), 1),
    ("subject_length", (["a"],), None),
    ("subject_matches", ("a.b", "a.*"), True),
    ("subject_matches", ("a.b", "a"), False),
    ("subject_matches", (5, ">"), None),
    ("subject_matches", (None, ">"), None),
    ("isa", ("c", "a"), True),
    ("isa", ("a", "c"), False),
    ("isa", ("x", "a"), None),
    ("isa", (5, "a"), None),
    ("isa", (None, "a"), None),
    ("preorder", ("a",), 0),
    ("preorder", ("d",), 3),
    ("preorder", ("x",), None),
    ("preorder", (5,), None),
    ("preorder", (None,), None),
    ("preorder", ("a", "mark"), 0),
    ("named", ("late", True), True),
    ("named", ("late", False), False),
    ("named", ("late", None), None),
    ("named", ("late", 5), None),
    ("foreign", ("n + 1", 1), 2),
    ("foreign", ("n + 1", "x"), None),
    ("foreign", ("n + 1", None), None),
    ("apply", ("shout", "a"), ["A", 2**70]),
    ("apply", ("shout", None), None),
]  # fmt: skip
PROGRAM = program.Program(parser.read("n + 1"), ("n",), "integer")
BINDINGS = {"isa": TOPICS, "preorder": TOPICS, "foreign": PROGRAM, "apply": shout}
NEVER_NULL = {"isnan", "isabsent", "isnested"}


def called(name: str, args: tuple[Any, ...]) -> Any:
    names = [f"a{number}" for number in range(len(args))]
    call = Call(name, tuple(Attribute((n,)) for n in names), BINDINGS.get(name))
    return evaluate(call, dict(zip(names, args, strict=True)))


@pytest.mark.parametrize(("name", "args", "expected"), CASES)
def test_calls(name: str, args: tuple[Any, ...], expected: Any) -> None:
    found = called(name, args)
    assert repr(found) == repr(expected)  # tells 1 from 1.0 and 0.0 from -0.0


def test_every_function_has_a_case_and_a_null() -> None:
    assert {name for name, *_ in CASES} == set(FUNCTIONS)
    assert {name for name, _, found in CASES if found is None} == set(FUNCTIONS) - NEVER_NULL


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_table_is_true_of_the_cases(name: str) -> None:
    """The name, the number of arguments, strictness, the type of the result."""
    function = FUNCTIONS[name]
    assert function.name == name
    assert function.returns in (None, *TYPES)
    cases = [case for case in CASES if case[0] == name]
    counts = {len(args) for _, args, _ in cases}
    if function.most < 64:
        assert (function.least, function.most) == (min(counts), max(counts))
        assert len(function.takes) <= function.most
    for _, args, found in cases:
        assert function.least <= len(args) <= function.most
        if function.strict and None in args:
            assert found is None
        if function.returns and found is not None:
            assert type_of(found) == function.returns


# Five take any value, and the numbers of a box are constants.
@pytest.mark.parametrize(
    "name", sorted(set(FUNCTIONS) - {"coalesce", "apply", "foreign", "within_box"} - NEVER_NULL)
)
def test_values_of_no_meaning_give_null(name: str) -> None:
    least = FUNCTIONS[name].least
    for strange in (object(), {"a": 1}, b"a", 1j):
        assert called(name, (strange,) * least) is None


OWN = {"cidr", "inet", "within_box", "within_km", "subject_field", "subject_length",
       "subject_matches", "isa", "preorder", "foreign", "apply", "isabsent", "isnested",
       "leaves", "named"}  # fmt: skip


def test_names() -> None:
    assert {name for name, function in FUNCTIONS.items() if not function.spark} == OWN
    assert set(ALIASES.values()) <= set(FUNCTIONS)
    assert not set(ALIASES) & set(FUNCTIONS)
    assert set(BINDINGS) == BOUND
    assert set(FUNCTIONS) >= OPERATORS


def test_a_program_is_asked_about_every_value() -> None:
    pattern = BoundPattern(read_pattern('{"a":["x"]}'))
    assert evaluate(pattern.call(), {"a": ["y", "x"]}) is True
    assert evaluate(pattern.call(), {}) is False


def test_a_function_of_the_application_is_not_asked_about_null() -> None:
    asked: list[Any] = []
    call = Call("apply", (Attribute(("n",)), Attribute(("a",))), asked.append)
    assert evaluate(call, {"n": "f", "a": None}) is None
    assert asked == []
    assert evaluate(call, {"n": "f", "a": 1}) is None
    assert asked == [1]


def test_regular_expressions_have_ascii_classes() -> None:
    assert regular.compile_pattern(r"\w").search("é") is False
    assert regular.compile_pattern("É").search("É")
