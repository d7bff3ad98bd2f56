"""CloudEvents SQL against a judge of its own, through the index, the graph and the matcher."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.filters import cesql_judge as judge
from tests.repeats import rounds

from tidings import Attributes, ContentGraph, Filter, FilterError, Matcher, parse
from tidings.filters.dialects.cesql import syntax
from tidings.filters.dialects.cesql.machine import run
from tidings.filters.dialects.cesql.parser import read

CASES = json.loads((Path(__file__).parent / "cases" / "cesql.json").read_text(encoding="utf-8"))
KINDS: list[dict[str, Any] | None] = [None, {"a": "string", "b": "integer", "c": "boolean"}]


def named(case: dict[str, Any]) -> str:
    return case["text"][:60] or "nothing"


# -- cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES["worth"], ids=named)
def test_value_and_error(case: dict[str, Any]) -> None:
    value, error = run(read(case["text"], lenient=True), case.get("event", {}))
    assert value == case["value"]
    assert type(value) is type(case["value"])
    assert error == case.get("error")


@pytest.mark.parametrize("case", CASES["refused"], ids=named)
def test_refused(case: dict[str, Any]) -> None:
    declared = Attributes({"price": "integer", "name": "string"}) if case.get("declared") else None
    with pytest.raises(FilterError) as refused:
        parse(case["text"], "cesql", attributes=declared)
    assert refused.value.reason == case["reason"]
    assert refused.value.position == case["position"]
    assert refused.value.text == case["text"]


@pytest.mark.parametrize("case", CASES["sql"], ids=named)
def test_as_sql(case: dict[str, Any]) -> None:
    """The same filter in the default dialect."""
    declared = Attributes(case["declared"], closed=False) if "declared" in case else None
    one = parse(case["text"], "cesql", attributes=declared)
    assert one == parse(case["sql"], attributes=declared)
    assert one.sql() == case["sql"]
    assert one.residuals == case.get("residuals", [])


# -- random expressions ------------------------------------------------------------------------


def passes(tree: judge.Tree, event: dict[str, Any]) -> bool:
    try:
        return judge.worth(tree, event) is True
    except judge.Error:
        return False


@pytest.mark.parametrize("kinds", KINDS, ids=["open", "declared"])
def test_everyone_agrees_with_the_judge(seed: int, kinds: dict[str, Any] | None) -> None:
    rng = random.Random(seed)
    declared = Attributes(kinds, closed=False) if kinds else None
    events = [judge.event(rng, kinds) for _ in range(60)]
    trees = [judge.condition(rng, depth=rng.choice((0, 1, 1, 2, 2, 3))) for _ in rounds(120, 300)]
    texts = [judge.text(tree, rng) for tree in trees]
    filters = [parse(text, "cesql", attributes=declared) for text in texts]
    graph, matcher = ContentGraph(), Matcher(declared)
    for one in filters:
        graph.insert(one)
    matcher.add_many(list(enumerate(filters)))
    some = 0
    for event in events:
        expected = {n for n, tree in enumerate(trees) if passes(tree, event)}
        for number, one in enumerate(filters):
            wanted = number in expected
            assert one.matches(event) is wanted, (texts[number], one.sql(), event)
            assert one.form.holds(event) is wanted, (texts[number], one.canonical().sql(), event)
        found = set(graph.matching(event))
        assert {n for n, one in enumerate(filters) if graph.node(one) in found} == expected
        assert set(matcher.match(event)) == expected
        some += len(expected)
    assert some > len(events) * len(trees) // 20  # the random tests say something


@pytest.mark.parametrize("kinds", KINDS, ids=["open", "declared"])
def test_texts_read_as_themselves(seed: int, kinds: dict[str, Any] | None) -> None:
    """The text of a node gives the node, that of a filter in the default dialect the filter."""
    rng = random.Random(seed)
    declared = Attributes(kinds, closed=False) if kinds else None
    for _ in range(400):
        text = judge.text(judge.condition(rng, depth=rng.randint(0, 3)), rng)
        node = read(text)
        assert read(syntax.text_of(node)) == node, text
        one = parse(text, "cesql", attributes=declared)
        assert parse(one.sql(), attributes=declared) == one, text
        assert parse(one.canonical().sql(), attributes=declared) == one, text


def test_covering_is_never_wrong(seed: int) -> None:
    rng = random.Random(seed)
    trees = [judge.condition(rng, depth=rng.choice((0, 0, 1))) for _ in range(150)]
    filters = [parse(judge.text(tree, rng), "cesql") for tree in trees]
    events = [judge.event(rng) for _ in range(150)]
    matched = [{n for n, one in enumerate(events) if passes(tree, one)} for tree in trees]
    found = 0
    for above, one in enumerate(filters):
        for below, other in enumerate(filters):
            if above != below and not other.never and one.covers(other):
                assert matched[above] >= matched[below], (one.sql(), other.sql())
                found += 1
    assert found > 10


def test_batches_and_snapshots_agree_with_the_judge(seed: int, tmp_path: Path) -> None:
    """Tables are matched in columns and residuals are computed on distinct values; a snapshot
    reads terms from their texts again."""
    pa = pytest.importorskip("pyarrow")
    rng = random.Random(seed)
    kinds = {"a": "string", "b": "integer", "c": "boolean", "type": "string", "1st": "integer"}
    drawn = [judge.event(rng, kinds) for _ in range(200)]
    # a null in a table counts as absent
    events = [{name: one for name, one in event.items() if one is not None} for event in drawn]
    trees = [judge.condition(rng, depth=rng.randint(0, 2)) for _ in range(100)]
    types = {"string": pa.string(), "integer": pa.int64(), "boolean": pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()])
    batch = pa.RecordBatch.from_pylist(events, schema=schema)
    expected = {(r, n) for r, e in enumerate(events) for n, t in enumerate(trees) if passes(t, e)}
    texts = [judge.text(tree, rng) for tree in trees]
    for declared in (None, Attributes(kinds)):
        matcher = Matcher(declared)
        matcher.add_many([(n, parse(t, "cesql", attributes=declared)) for n, t in enumerate(texts)])
        matcher.save(tmp_path / f"snapshot {declared is None}")
        for one in (matcher, Matcher.open(tmp_path / f"snapshot {declared is None}")):
            rows, ids = one.match_pairs(batch)
            assert set(zip(rows.tolist(), ids.tolist(), strict=True)) == expected


# -- two dialects ------------------------------------------------------------------------------

DECLARED = Attributes({"type": "string", "source": "string", "n": "integer", "flag": "boolean"})
FITS = "n BETWEEN -2147483648 AND 2147483647"


def one_test(rng: random.Random) -> tuple[str, str, str]:
    """(attribute, in CloudEvents SQL, the same in the default dialect)."""
    name = rng.choice(("type", "source", "n", "flag"))
    if name == "flag":
        value = rng.choice(("TRUE", "FALSE"))
        test = f"flag {rng.choice(('=', '!='))} {value}"
        return name, test, test
    if name == "n":
        op, number = rng.choice(("=", "!=", "<", "<=", ">", ">=")), rng.choice((0, 5, -3, 100))
        return name, f"n {op} {number}", f"n {op} {number}{'' if op == '=' else f' AND {FITS}'}"
    words = [f"'{rng.choice(('a', 'b', 'com.x', '5', 'true'))}'" for _ in range(3)]
    test = rng.choice((f"= {words[0]}", f"!= {words[0]}", f"IN ({', '.join(words)})",
                       f"NOT IN ({', '.join(words)})", "LIKE 'com.%'", "NOT LIKE 'com.%'",
                       "LIKE '%x'", "LIKE 'a_%b'"))  # fmt: skip
    return name, f"{name} {test}", f"{name} {test}"


def in_two_dialects(rng: random.Random, depth: int) -> tuple[str, str]:
    roll = rng.random()
    if depth and roll < 0.35:
        pairs = [in_two_dialects(rng, depth - 1) for _ in range(rng.randint(2, 3))]
        return tuple(" AND ".join(f"({one})" for one in side) for side in zip(*pairs, strict=True))  # type: ignore[return-value]
    name, ours, theirs = one_test(rng)
    there = FITS if name == "n" else f"{name} IS NOT NULL"
    if roll < 0.45:
        return f"EXISTS {name}", f"NOT isabsent({name})"
    if roll < 0.55:
        return f"NOT EXISTS {name}", f"isabsent({name})"
    if roll < 0.65:
        return f"NOT ({ours})", f"NOT ({theirs}){f' AND {FITS}' if name == 'n' else ''}"
    if roll < 0.8:
        other, first, second = one_test(rng)  # of another attribute it counts if this one is there
        guard = "" if other == name else f"({there}) AND "
        return f"({ours}) OR ({first})", f"({theirs}) OR {guard}({second})"
    return ours, theirs


def test_one_filter_in_two_dialects_is_one_node(seed: int) -> None:
    rng = random.Random(seed)
    graph = ContentGraph()
    for _ in range(500):
        ours, theirs = in_two_dialects(rng, 2)
        one: Filter = parse(ours, "cesql", attributes=DECLARED)
        other = parse(theirs, attributes=DECLARED)
        assert one.key == other.key, (ours, theirs)
        assert graph.insert(one) is graph.insert(other)


# -- bounds ------------------------------------------------------------------------------------


def test_an_answer_that_would_explode_is_a_program() -> None:
    """Chains that change between AND and OR would double with every change."""
    text = " ".join(f"x{n} = 'v' {('AND', 'OR')[n % 2]}" for n in range(60)) + " y = 'v'"
    one = parse(text, "cesql")
    assert len(one.sql()) < 20 * len(text)
    assert one.residuals
    event = {f"x{n}": "v" for n in range(60)} | {"y": "v"}
    assert one.matches(event)
    assert one.form.holds(event)
    del event["x0"]
    assert not one.matches(event)


def test_a_long_chain_on_one_attribute_is_one_set() -> None:
    text = " OR ".join(f"type = 'com.{n}'" for n in range(2_000))
    one = parse(text, "cesql")
    assert one == parse(f"type IN ({', '.join(repr(f'com.{n}') for n in range(2_000))})")
    assert one.residuals == []


def test_a_conjunction_of_many_attributes_is_one_box() -> None:
    tests = [f"x{n} = 'v'" for n in range(200)]
    one = parse(" AND ".join(tests), "cesql")
    assert one == parse(" AND ".join(tests))
    other = parse(f"NOT ({' AND '.join(tests)})", "cesql")
    assert other.residuals
    event = {f"x{n}": "v" for n in range(200)}
    assert not other.matches(event)
    assert other.matches(event | {"x7": "w"})
    assert not other.matches({**event, "x7": "w", "x6": None})
    assert other.matches({**event, "x7": "w", "x8": None})


# -- in the default dialect --------------------------------------------------------------------


def test_cesql_is_a_function_of_the_default_dialect() -> None:
    one = parse("cesql('INT(n) + 1') BETWEEN 3 AND 5 AND type = 'a'")
    assert one.matches({"n": "2", "type": "a"})
    assert not one.matches({"n": "2147483647", "type": "a"})
    assert parse("cesql('n > 5') IS NULL").matches({"n": "many"})
    assert parse("cesql('1 + 1') = 2").always
    assert parse(one.sql()) == one


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("cesql()", 0, "cesql takes one expression, such as 'INT(n) + 1', not 0 arguments"),
        ("cesql('a', 'b')", 0, "cesql takes one expression, such as 'INT(n) + 1', not 2 "
         "arguments"),
        ("cesql(a)", 6, "cesql takes a constant here, found a"),
        ("cesql('a =') = 1", 6, "in the expression inside cesql(): found the end of the filter, "
         "expected an attribute, a value or a bracket (at character 4)"),
        ("cesql('LENGTH(a)')", 0, "found cesql('LENGTH(a)'), an integer, expected a condition such "
         "as x > 5"),
    ],
)  # fmt: skip
def test_cesql_in_the_default_dialect_is_checked(text: str, position: int, reason: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse(text)
    assert (refused.value.reason, refused.value.position) == (reason, position)
