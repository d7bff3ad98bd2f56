"""Event patterns of AWS EventBridge: cases, refusals, and agreement with the definition."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.filters import eventbridge_oracle
from tests.filters.eventbridge_draws import draw_event, draw_pattern
from tests.repeats import amount, draws, rounds

from tidings import Attributes, ContentGraph, Filter, FilterError, NotificationError, parse
from tidings.filters.canonical import form, rules
from tidings.filters.canonical.set_tree import SetTreeBuilder
from tidings.filters.dialects import Context
from tidings.filters.dialects.eventbridge import complexity
from tidings.filters.dialects.eventbridge.pattern import text_of_pattern
from tidings.filters.dialects.eventbridge.pattern_reader import read_pattern
from tidings.matching import Matcher

CASES = json.loads((Path(__file__).parent / "cases" / "eventbridge.json").read_text())
REFUSED = json.loads((Path(__file__).parent / "cases" / "eventbridge_refused.json").read_text())

DECLARED = [
    Attributes({"a": "string", "b": "integer", "c": "list"}, closed=False),
    Attributes({"a": "list", "a.a": "string", "a.b": "double", "b": "struct"}, closed=False),
    Attributes({"a.a": "string", "a.b": "boolean", "b": "date", "c": "double"}, closed=False),
]


def bridge(pattern: Any, attributes: Attributes | None = None) -> Filter:
    text = pattern if isinstance(pattern, str) else json.dumps(pattern)
    return parse(text, "eventbridge", attributes=attributes)


# -- cases ---------------------------------------------------------------------------------------


def test_there_are_cases_enough() -> None:
    events = sum(len(case["matches"]) + len(case["others"]) for case in CASES)
    assert len(CASES) + len(REFUSED) >= 150
    assert events >= 300
    assert all(case["matches"] and case["others"] for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case["pattern"])[:70])
def test_cases(case: dict[str, Any]) -> None:
    pattern, one = case["pattern"], bridge(case["pattern"])
    for wanted, events in ((True, case["matches"]), (False, case["others"])):
        for event in events:
            assert one.matches(event) is wanted, event
            assert one.form.holds(event) is wanted, event
            assert eventbridge_oracle.matches(pattern, event) is wanted, event


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["text"][:70])
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(FilterError) as caught:
        bridge(case["text"])
    assert caught.value.reason == case["reason"]
    assert case["text"][caught.value.position :].startswith(case["at"])


def test_what_is_too_much_is_refused() -> None:
    many = {f"f{n}": {"$or": [{"x": [1]}, {"y": [1]}]} for n in range(10)}
    with pytest.raises(
        FilterError, match=r"found 1,024 combinations of \$or, expected at most 1,0"
    ):
        bridge(many)
    with pytest.raises(FilterError, match="found 250,008 characters, expected at most 100,000"):
        bridge('{"a":["' + "x" * 249_998 + '"]}')
    deep: Any = ["x"]
    for _ in range(101):
        deep = {"a": deep}
    with pytest.raises(FilterError, match="found more than 100 levels of fields"):
        bridge(deep)
    with pytest.raises(FilterError, match="nested too deep"):
        bridge('{"a":' * 15_000)
    with pytest.raises(FilterError, match="this is not JSON"):
        bridge('{"a":[' + "9" * 5000 + "]}")


def test_wildcards_that_are_too_complex_are_refused() -> None:
    """By event-ruler's measure; rules of four such paths are known to be refused by AWS, while two
    are accepted."""
    paths = [{"wildcard": f"*/datasync/*.{one}"} for one in ("bif", "tif", "tiff", "svs")]
    bridge({"detail": {"object": {"key": paths[:2]}}})
    bridge({"a": paths[:2], "b": paths[2:]})  # each field by itself
    bridge({"a": [{"suffix": f".{n}"} for n in range(50)]})  # no wildcards
    with pytest.raises(
        FilterError, match=r"^\$.detail.object.key: found wildcards that are too com"
    ):
        bridge({"detail": {"object": {"key": paths}}})
    with pytest.raises(FilterError, match="too complex"):
        bridge({"a": [{"wildcard": f"*{n}"} for n in range(11)]})
    with pytest.raises(FilterError, match="too complex"):
        bridge({"a": [{"anything-but": {"wildcard": "*" + "a" * 11}}]})


@pytest.mark.parametrize(
    ("wildcards", "expected"),
    [("*", 2), ("x", 1), ("*ab", 2), ("*aa", 3), ("a*b*bb", 5), (r"\*\*", 1), ("é*é", 2),
     ("*a|*b", 4), ("*abc|*abcde", 4)],
)  # fmt: skip
def test_the_complexity_of_wildcards(wildcards: str, expected: int) -> None:
    assert complexity.measure([one] for one in wildcards.split("|")) == expected


def test_the_place_of_a_refusal_is_that_of_the_text() -> None:
    with pytest.raises(FilterError) as caught:
        bridge('{"x": ["é\\n", 1], "detail": {"a\\u0062": [1, {"prefix": [ ]}]}}')
    assert str(caught.value) == (
        "$.detail.ab[1].prefix: found an empty array, expected a string, or an object with "
        "equals-ignore-case (at character 56)"
    )


# -- declared attributes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "sql"),
    [
        ({"a": ["x"]}, "a = 'x'"),
        ({"a": ["x", "y"]}, "a IN ('x', 'y')"),
        ({"a": [{"anything-but": ["x", "y"]}]},
         "NOT isabsent(a) AND (a IN ('x', 'y')) IS NOT TRUE"),
        ({"a": [{"anything-but": {"prefix": "x"}}]},
         "NOT isabsent(a) AND startswith(a, 'x') IS NOT TRUE"),
        ({"a": [{"prefix": "x"}, {"suffix": "y"}]}, "startswith(a, 'x') OR endswith(a, 'y')"),
        ({"a": [{"wildcard": "x*50%*z"}]}, r"a LIKE 'x%50\\%%z'"),
        ({"a": [{"equals-ignore-case": "Xy"}]}, "lower(a) = 'xy'"),
        ({"a": [{"prefix": {"equals-ignore-case": "Xy"}}]}, "startswith(lower(a), 'xy')"),
        ({"a": [{"cidr": "10.1.2.3/8"}]}, "cidr(a, '10.0.0.0/8')"),
        ({"n": [{"numeric": [">", 1, "<=", 5]}]}, "n > 1 AND n <= 5"),
        ({"n": [{"numeric": [">=", 1, "<=", 5]}]}, "n BETWEEN 1 AND 5"),
        ({"n": [300.0]}, "n = 300"),
        ({"a": [None]}, "a IS NULL AND NOT isabsent(a)"),
        ({"a": [{"exists": True}], "n": [{"exists": False}]}, "NOT isabsent(a) AND isabsent(n)"),
        ({"$or": [{"a": ["x"]}, {"n": [1]}], "d": {"s": ["y"]}},
         "d.s = 'y' AND (a = 'x' OR n = 1)"),
    ],
)  # fmt: skip
def test_on_single_values_a_pattern_is_plain_sql(pattern: dict[str, Any], sql: str) -> None:
    attributes = Attributes({"a": "string", "n": "double", "d.s": "string"})
    one = bridge(pattern, attributes)
    assert one.sql() == sql
    assert one == parse(sql, attributes=attributes)
    assert ContentGraph().insert(one).filter == one


def test_a_filter_in_sql_and_as_a_pattern_is_one_node(seed: int) -> None:
    dice = random.Random(seed)
    attributes = Attributes({"s": "string", "n": "integer", "b": "boolean", "d.t": "string"})
    graph = ContentGraph()
    for _ in range(300):
        pattern, sql = draw_both(dice)
        assert graph.insert(bridge(pattern, attributes)) is graph.insert(
            parse(sql, attributes=attributes)
        ), (pattern, sql)


def draw_both(dice: random.Random) -> tuple[dict[str, Any], str]:
    """A conjunction at random, in both languages."""
    word, low = dice.choice(["x", "yy", "z'", "50%_"]), dice.randrange(-5, 5)
    quoted = "'" + word.replace("'", "''") + "'"
    but = "NOT isabsent({{0}}) AND ({}) IS NOT TRUE"
    null = "{0} IS NULL AND NOT isabsent({0})"
    texts = [
        ([word], "{} = " + quoted),
        ([word, "k"], "{} IN ('k', " + quoted + ")"),
        ([{"prefix": word}], "startswith({}, " + quoted + ")"),
        ([{"suffix": word}], "endswith({}, " + quoted + ")"),
        ([{"anything-but": [word, "k"]}], but.format("{0} IN ('k', " + quoted + ")")),
        ([{"anything-but": {"suffix": word}}], but.format("endswith({0}, " + quoted + ")")),
        ([{"wildcard": "a*c"}], "{} LIKE 'a%c'"),
        ([{"wildcard": "*b*"}], "contains({}, 'b')"),
        ([{"equals-ignore-case": word}, None], "lower({0}) = " + quoted + f" OR {null}"),
        ([{"cidr": "10.0.0.0/8"}], "cidr({}, '10.0.0.0/8')"),
        ([{"exists": True}], "NOT isabsent({})"),
    ]
    numbers = [
        ([low, low + 1.0], f"{{0}} = {low} OR {{0}} = {low + 1}"),
        ([{"numeric": [">", low, "<", low + 9]}], f"{{0}} > {low} AND {{0}} < {low + 9}"),
        ([{"anything-but": low}], but.format(f"{{0}} = {low}")),
        ([{"numeric": ["<=", low]}, {"exists": False}], f"{{0}} <= {low} OR isabsent({{0}})"),
    ]
    s, t, n = dice.choice(texts), dice.choice(texts), dice.choice(numbers)
    pattern = {"d": {"t": t[0]}, "n": n[0], "s": s[0], "b": [True]}
    sql = [s[1].format("s"), t[1].format("d.t"), n[1].format("n"), "b"]
    dice.shuffle(sql)
    return pattern, " AND ".join(f"({part})" for part in sql)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ({"stat": ["x"]}, "$.stat: there is no attribute 'stat'; did you mean state?"),
        ({"state": [1]}, "$.state: state is a string and can't be compared with 1"),
        ({"n": [{"prefix": "x"}]}, "$.n: n is an integer and can't be tested with prefix"),
        ({"n": [{"anything-but": ["x"]}]}, '$.n: n is an integer and can\'t be compared with "x"'),
        ({"state": [{"numeric": [">", 1]}]},
         "$.state: state is a string and can't be tested with numeric"),
        ({"$or": [{"state": ["x"]}, {"day": ["2024-01-01"]}]},
         '$.day: day is a date and can\'t be compared with "2024-01-01"'),
    ],
)  # fmt: skip
def test_what_is_declared_is_checked(pattern: dict[str, Any], problem: str) -> None:
    attributes = Attributes({"state": "string", "n": "integer", "day": "date"})
    with pytest.raises(FilterError) as caught:
        bridge(pattern, attributes)
    assert caught.value.reason == problem


def test_a_declared_list_is_found_by_its_elements() -> None:
    attributes = Attributes({"tags": "list", "n": "integer"})
    one = bridge({"tags": ["a", "b"], "n": [1]}, attributes)
    assert "array_contains(leaves(tags), 'a')" in one.form.terms
    assert one.matches({"tags": ["z", "b"], "n": 1})
    assert not one.matches({"tags": ["z"], "n": 1})


# -- agreement -----------------------------------------------------------------------------------


def test_patterns_agree_with_the_definition(seed: int) -> None:
    dice = random.Random(seed)
    matched = 0
    for _ in draws(300, lambda: matched > 100):
        pattern = draw_pattern(dice)
        one = bridge(pattern)
        for _ in range(8):
            event = draw_event(dice)
            wanted = eventbridge_oracle.matches(pattern, event)
            matched += wanted
            assert one.matches(event) is wanted, (pattern, event)
            assert one.form.holds(event) is wanted, (pattern, event)
    assert matched > 100


@pytest.mark.parametrize("attributes", DECLARED, ids=["values", "below a list", "below a struct"])
def test_declared_attributes_change_nothing(attributes: Attributes, seed: int) -> None:
    """On events that fit, a pattern on declared attributes means the same."""
    dice = random.Random(seed)
    checked = 0
    while checked < amount(100, 1000):
        pattern, event = draw_pattern(dice, depth=1), draw_event(dice, depth=2)
        try:
            one, event = bridge(pattern, attributes), attributes.read(event)
        except (FilterError, NotificationError):
            continue
        checked += 1
        wanted = eventbridge_oracle.matches(pattern, event)
        assert one.matches(event) is wanted, (pattern, event)
        assert one.form.holds(event) is wanted, (pattern, event)


def test_the_index_agrees_with_the_definition(seed: int) -> None:
    dice = random.Random(seed)
    patterns = [draw_pattern(dice) for _ in range(150)]
    filters = [bridge(pattern) for pattern in patterns]
    graph, matcher = ContentGraph(), Matcher(background=False)
    for one in filters:
        graph.insert(one)
    matcher.add_many(enumerate(filters))
    for _ in range(40):
        event = draw_event(dice)
        wanted = [n for n, p in enumerate(patterns) if eventbridge_oracle.matches(p, event)]
        found = set(graph.matching(event))
        assert [n for n, one in enumerate(filters) if graph.node(one) in found] == wanted, event
        assert set(matcher.match(event)) == set(wanted), event
        assert set(matcher.match(json.dumps(event))) == set(wanted), event


def test_batches_agree_with_the_definition(seed: int) -> None:
    """Columns of strings, of numbers, of lists and of lists of structs."""
    import pyarrow as pa

    dice = random.Random(seed)
    matcher = Matcher(background=False)
    patterns = [draw_pattern(dice, depth=1) for _ in range(300)]
    matcher.add_many((number, bridge(pattern)) for number, pattern in enumerate(patterns))
    texts = ["x", "y", "xy", None]
    rows: list[dict[str, Any]] = [
        {"a": dice.choice(texts),
         "b": dice.choice([None, [], [dice.choice(texts) for _ in range(3)]]),
         "c": [{"a": dice.choice([1, 2, None]), "b": dice.choice(texts)} for _ in range(2)]}
        for _ in range(60)
    ]  # fmt: skip
    found = matcher.match_batch(pa.RecordBatch.from_pylist(rows)).to_pylist()
    for row, ids in zip(rows, found, strict=True):
        event = _without_cells(row)
        wanted = [n for n, p in enumerate(patterns) if eventbridge_oracle.matches(p, event)]
        assert sorted(ids) == wanted, row


def _without_cells(value: Any) -> Any:
    """A null cell of a table, or of a struct in it, counts as absent; one in a list is a null."""
    if isinstance(value, dict):
        return {name: _without_cells(one) for name, one in value.items() if one is not None}
    return [_without_cells(one) for one in value] if isinstance(value, list) else value


# -- text and form -------------------------------------------------------------------------------


@pytest.mark.parametrize("attributes", [None, *DECLARED])
def test_the_short_way_to_a_form_gives_the_form(attributes: Attributes | None, seed: int) -> None:
    dice = random.Random(seed)
    short = draws = 0
    while draws < 400 or (short <= 20 and draws < 4000):  # few are that simple
        draws += 1
        try:
            one = bridge(draw_pattern(dice, choices=False), attributes)
        except FilterError:
            continue
        quick = rules._nested_form(one.expression, attributes)
        if quick is not None:
            short += 1
            full = rules._full_form(one.expression, SetTreeBuilder(attributes))
            assert form.encode(quick) == form.encode(full), one
            assert quick.hull == full.hull
            assert dict(quick.terms) == dict(full.terms)
    assert short > 20


@pytest.mark.parametrize("attributes", [None, *DECLARED])
def test_a_pattern_can_be_written_in_sql(attributes: Attributes | None, seed: int) -> None:
    dice = random.Random(seed)
    for _ in rounds(70, 200):
        try:
            one = bridge(draw_pattern(dice), attributes)
        except FilterError:
            continue
        assert parse(one.sql(), attributes=attributes) == one
        assert parse(one.canonical().sql(), attributes=attributes) == one


def test_a_pattern_has_one_text(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(300):
        pattern = draw_pattern(dice)
        text = text_of_pattern(read_pattern(json.dumps(pattern)))
        assert text_of_pattern(read_pattern(text)) == text
        assert bridge(text) == bridge(_shuffled(pattern, dice))


def _shuffled(value: Any, dice: random.Random) -> Any:
    if not isinstance(value, dict):
        return value
    names = dice.sample(list(value), len(value))
    return {name: _shuffled(value[name], dice) for name in names}


def test_sql_takes_a_pattern_too() -> None:
    one = parse("""event_pattern('{"a": ["x"], "b": {"c": [{"prefix": "y"}]}}') AND n > 1""")
    assert one.matches({"a": ["x"], "b": [{"c": "yy"}], "n": 2})
    assert not one.matches({"a": ["x"], "b": [{"c": "yy"}], "n": 1})
    assert set(one.form.hull) >= {"a", "b.c", "n"}
    for text, problem in (
        ("event_pattern('{')", "this is not JSON"),
        ("event_pattern(a)", "event_pattern takes a constant here"),
        ("event_pattern()", "event_pattern takes one pattern as JSON, not 0 arguments"),
        ("""event_pattern('{"a": 1}')""", r"\$.a: found 1, expected an array of values"),
    ):
        with pytest.raises(FilterError, match=problem):
            parse(text)


def test_functions_of_nested_values() -> None:
    assert parse("isnested(x)").matches({"x": [1]})
    assert parse("isnested(x)").matches({"x": {"y": 1}})
    assert not parse("isnested(x)").matches({"x": 1})
    assert not parse("isnested(x)").matches({})
    assert parse("NOT isnested(x)").matches({})
    assert parse("isnested(x) OR x = 1").canonical().sql() == "x = 1 OR isnested(x)"
    contains = parse("array_contains(leaves(x), 2)")
    assert contains.matches({"x": [1, [None, [2]], {"y": 3}]})
    assert not contains.matches({"x": [1, {"y": 2}]})
    assert not contains.matches({"x": 2})


def test_deep_events_are_no_trouble() -> None:
    nested: Any = "x"
    for _ in range(5000):
        nested = [nested]
    one = bridge({"a": ["x"], "b": [{"exists": False}]})
    assert one.matches({"a": nested})
    assert bridge({"a": [{"exists": False}], "b": [1]}).matches({"b": [1, nested]})


def test_scalars_of_python_that_json_lacks() -> None:
    """Values of other types are there, and are nothing that a pattern can name."""
    assert bridge({"a": [{"exists": True}]}).matches({"a": b"x"})
    assert not bridge({"a": ["x"]}).matches({"a": b"x"})
    assert bridge({"a": [{"anything-but": "x"}]}).matches({"a": b"x"})


def test_context_is_that_of_any_dialect() -> None:
    from tidings.filters.dialects.registry import read

    assert read('{"a":["x"]}', "eventbridge", Context()) == bridge({"a": ["x"]}).expression
