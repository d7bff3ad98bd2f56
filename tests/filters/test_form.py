"""The canonical form: filters with the same meaning have the same form, and its encoding never
changes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.filters import strategies
from tests.repeats import draws, rounds, runs

from tidings import Attributes, Filter, FilterError, Ontology, parse
from tidings.filters.canonical import rules, set_tree
from tidings.filters.canonical.form import ENCODING, Form
from tidings.filters.canonical.rules import MOST_OF_TESTS
from tidings.filters.language.evaluation import truth
from tidings.filters.language.expression import And, Expression, IsTruth, Literal, Not, Or
from tidings.filters.values import sets
from tidings.filters.values.sets import ValueSet

CASES = Path(__file__).parent / "cases"
CANONICAL = json.loads((CASES / "canonical.json").read_text())
KEYS = json.loads((CASES / "keys.json").read_text())


def declared(types: dict[str, Any]) -> Attributes:
    """Attributes from JSON, where a mapping of child to parent is an ontology."""
    return Attributes(
        {name: Ontology(kind) if isinstance(kind, dict) else kind for name, kind in types.items()}
    )


def count(form: Form) -> int | None:
    return None if form.boxes is None else len(form.boxes)


# -- cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CANONICAL["cases"], ids=lambda case: case["text"][:60])
def test_canonical_text(case: dict[str, Any]) -> None:
    attributes = declared(CANONICAL["declared"]) if case.get("declared") else None
    one = parse(case["text"], attributes=attributes)
    canonical = one.canonical()
    assert canonical.sql() == case["canonical"]
    assert count(one.form) == case["boxes"]
    again = parse(case["canonical"], attributes=attributes)
    assert again == one == canonical
    assert again.canonical().sql() == case["canonical"]


@pytest.mark.parametrize("case", KEYS["cases"], ids=lambda case: case["text"][:60])
def test_key_is_what_it_was_in_every_release(case: dict[str, Any]) -> None:
    """Stored keys must stay good: a change here is a new ENCODING, and new cases beside the old."""
    assert KEYS["encoding"] == ENCODING
    attributes = declared(case["declared"]) if "declared" in case else None
    one = parse(case["text"], attributes=attributes)
    assert one.encoded.hex() == case["encoded"]
    assert one.key.hex() == case["key"]


def test_ontology_is_part_of_the_identity() -> None:
    small = Attributes({"topic": Ontology({"a": None, "b": "a"})})
    large = Attributes({"topic": Ontology({"a": None, "b": "a", "c": "a"})})
    again = Attributes({"topic": Ontology({"b": ["a"]})})
    one = parse("isa(topic, 'b')", attributes=small)
    assert one == parse("isa(topic, 'b')", attributes=again)
    assert one != parse("isa(topic, 'b')", attributes=large)
    assert one != parse("isa(topic, 'b')")


PAIRS = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(8))  # as boxes too many


@pytest.mark.parametrize(
    ("text", "never", "always"),
    [
        ("x > 5 AND x < 3", True, False),
        ("x = NULL", True, False),
        ("false", True, False),
        ("true", False, True),
        ("x IS NULL OR x IS NOT NULL", False, True),
        ("x > 5 OR x <= 5 OR (x > 5) IS NULL", False, True),
        ("x = 5", False, False),
        (f"n = 'Al' AND lower(n) = 'bo' AND {PAIRS}", True, False),
        (f"n = 'Bo' AND lower(n) = 'bo' AND {PAIRS}", False, False),
    ],
)
def test_never_and_always(text: str, never: bool, always: bool) -> None:
    one = parse(text)
    assert (one.never, one.always) == (never, always)


def test_residuals_are_what_no_index_can_decide() -> None:
    one = parse("x = 1 AND y RLIKE 'a' AND a < b AND array_contains(tags, 'x') AND lower(s) = 'y'")
    assert one.residuals == ["a < b", "y RLIKE 'a'"]


def test_filters_are_equal_by_meaning() -> None:
    one, other = parse("x > 5 AND y = 1"), parse("y = 1 AND NOT x <= 5")
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert one != parse("x > 5")
    assert one != "x > 5 AND y = 1"


# -- laws on random filters --------------------------------------------------------------------


def rewritten(rng: random.Random, node: Expression) -> Expression:
    """The same condition, said differently: operands in another order, twice, doubly negated."""
    match node:
        case And(items) | Or(items):
            parts = [rewritten(rng, item) for item in items]
            if rng.random() < 0.3:
                parts.append(rewritten(rng, rng.choice(items)))
            rng.shuffle(parts)
            if len(parts) > 2 and rng.random() < 0.3:  # a AND (b AND c)
                parts = [parts[0], type(node)(tuple(parts[1:]))]
            node = type(node)(tuple(parts))
        case Not(item):
            node = Not(rewritten(rng, item))
        case IsTruth(item, wanted):
            node = IsTruth(rewritten(rng, item), wanted)
        case _:
            pass
    roll = rng.random()
    if roll < 0.1:
        return Not(Not(node))
    if roll < 0.15:
        return And((node, Literal(True)))
    if roll < 0.2:
        return Or((Literal(False), node))
    if roll < 0.25 and isinstance(node, (And, Or)):  # de Morgan
        return Not((Or if isinstance(node, And) else And)(tuple(Not(i) for i in node.items)))
    return node


def check_forms(rng: random.Random, with_types: bool, schemas: int) -> None:
    """Forms of filters of so many schemas, however they are said."""
    wide = 0
    for _ in draws(schemas, lambda: wide > 0):
        schema = strategies.schema(rng, dotted=not with_types)
        attributes = schema.attributes() if with_types else None
        writer = strategies.Writer(rng, schema, spark=with_types, declared=with_types)
        for _ in range(40):
            text = writer.filter(depth=5)
            one = parse(text, attributes=attributes)
            other = Filter(rewritten(rng, one.expression), attributes)
            assert one == other, (text, other.sql())
            assert parse(one.sql(), attributes=attributes) == one, text
            canonical = one.canonical()
            assert parse(canonical.sql(), attributes=attributes) == one, text
            assert Filter(canonical.expression, attributes) == one, text
            wide += one.form.tree is not None
    assert wide > 0


@pytest.mark.parametrize("with_types", [False, True], ids=["undeclared", "declared"])
def test_random_filters_have_one_form_however_they_are_said(seed: int, with_types: bool) -> None:
    check_forms(random.Random(f"{seed} {with_types}"), with_types, 3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("with_types", [False, True], ids=["undeclared", "declared"])
def test_many_filters_have_one_form_however_they_are_said(seed: int, with_types: bool) -> None:
    check_forms(random.Random(f"{seed} {with_types} soak"), with_types, 600)


def wild_event(rng: random.Random, schema: strategies.Schema) -> dict[str, Any]:
    """A notification whose values have any type whatever."""
    out = strategies.event(rng, schema)
    for name in out:
        if rng.random() < 0.3:
            out[name] = strategies.value(rng, rng.choice(tuple(strategies.TYPES)))
    out["subject"] = ".".join(rng.choices(("a", "b", "ab"), k=rng.randint(1, 4)))
    for column in schema.of(["string"]):
        if column.path[0] in out and len(column.path) == 1 and rng.random() < 0.3:
            out[column.path[0]] = rng.choice(("10.1.2.3", "11.0.0.1", "2001:db8::1", "a.b", "ab.c"))
    return out


@pytest.mark.parametrize("run", runs(1, 4))
def test_random_forms_hold_what_the_reference_says(seed: int, run: int) -> None:
    rng = random.Random(f"{seed} {run}")
    matched = checked = 0
    for _ in rounds(5, 12):
        schema = strategies.schema(rng)
        writer = strategies.Writer(rng, schema, spark=False)
        events = [wild_event(rng, schema) for _ in range(40)]
        for _ in range(40):
            one = parse(writer.filter())
            negated = Filter(Not(one.expression))
            again = parse(one.canonical().sql())
            for event in events:
                value = truth(one.expression, event)
                assert one.form.holds(event) == (value is True), (one, event)
                assert negated.form.holds(event) == (value is False), (one, event)
                assert again.matches(event) == (value is True), (one, event)
                assert in_hull(one.form, event) or value is not True, (one, event)
                matched += value is True
                checked += 1
    assert matched > checked // 10


def in_hull(form: Form, event: dict[str, Any]) -> bool:
    return Form((form.hull,), None, form.hull, form.terms).holds(event)


def test_short_way_is_the_long_way(seed: int) -> None:
    """A conjunction of plain tests has a way of its own, for speed; `OR false` goes the other."""
    rng = random.Random(seed)
    attributes = Attributes({"x": "double", "y": "string", "n": "integer"}, closed=False)
    numbers = ("1", "2", "2.5", "-1e300", "double('NaN')", "double('Infinity')", "NULL")
    strings = ("'a'", "'b'", "''", "NULL")

    def plain(mixed: bool) -> str:
        name = rng.choice("xyn")
        constants = numbers + strings if mixed else strings if name == "y" else numbers
        one, other, third = rng.choices(constants, k=3)
        roll = rng.random()
        if roll < 0.6:
            op = rng.choice(("=", "!=", "<", "<=", ">", ">=", "<=>"))
            return rng.choice((f"{name} {op} {one}", f"{one} {op} {name}"))
        if roll < 0.8:
            return f"{name} IN ({one}, {other}, {third})"
        return f"{name} BETWEEN {one} AND {other}"

    for types in (None, attributes):
        for _ in range(1_500):
            text = " AND ".join(plain(types is None) for _ in range(rng.randint(1, 4)))
            long_way = parse(f"({text}) OR false", attributes=types)
            assert parse(text, attributes=types) == long_way, text


# -- narrow and wide ---------------------------------------------------------------------------


def pairs(number: int) -> list[str]:
    return [f"(a{n} = 1 OR b{n} = 1)" for n in range(number)]


def test_many_pairs_stay_a_tree_with_a_hull() -> None:
    one = parse(" AND ".join([*pairs(30), "c > 5"]))
    assert one.form.boxes is None
    assert list(one.form.hull) == ["c"]
    assert one.matches({"c": 6, **{f"a{n}": 1 for n in range(30)}})
    assert one.form.holds({"c": 6, **{f"b{n}": 1 for n in range(30)}})
    assert not one.form.holds({"c": 6, **{f"b{n}": 1 for n in range(29)}})


def test_few_pairs_are_boxes() -> None:
    assert count(parse(" AND ".join(pairs(6))).form) == 64
    assert count(parse(" AND ".join(pairs(7))).form) is None


def test_wide_forms_do_not_depend_on_the_order_or_on_repeats(seed: int) -> None:
    rng = random.Random(seed)
    some = pairs(12)
    one = parse(" AND ".join(some))
    for _ in range(20):
        again = rng.sample(some, len(some)) + rng.choices(some, k=2)
        assert parse(" AND ".join(again)) == one


@pytest.mark.parametrize(
    ("boxes", "form"), [(200, 200), (MOST_OF_TESTS, MOST_OF_TESTS), (MOST_OF_TESTS + 1, None)]
)
def test_a_union_of_boxes_is_narrow_up_to_a_bound(boxes: int, form: int | None) -> None:
    text = " OR ".join(f"a{n} = 1 AND b{n} = 1" for n in range(boxes))
    one = parse(text)
    assert count(one.form) == form
    assert one.matches({"a7": 1, "b7": 1})
    assert one.form.holds({"a7": 1, "b7": 1})
    assert not one.form.holds({"a7": 1, "b8": 1})
    assert parse(one.canonical().sql()) == one


@pytest.mark.parametrize("condition", ["NOT (x IN ('a', 'b') OR x LIKE 'A%')", "x > 5", "x = 'a'"])
def test_null_tests_of_elements_have_one_form(condition: str) -> None:
    """What is true or false is not null: the canonical text says so, and was another filter."""
    one = f"exists(tags, x -> {condition})"
    either = parse(f"{one} OR NOT {one}")
    assert parse(either.canonical().sql()) == either == parse(f"{one} IS NOT NULL")
    neither = parse(f"{one} IS NULL")
    assert parse(neither.canonical().sql()) == neither == parse(f"(NOT {one}) IS NULL")
    events: list[dict[str, Any]] = [
        {},
        *({"tags": tags} for tags in (None, [], ["a"], ["z", None])),
    ]
    for event in events:
        assert either.matches(event) is either.form.holds(event) is not neither.matches(event)


# -- short ways --------------------------------------------------------------------------------


def test_short_ways_give_what_the_long_way_gives(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    texts: list[tuple[str, Attributes | None]] = []
    for _ in rounds(20, 60):
        schema = strategies.schema(rng, dotted=False)
        declared = schema.attributes()
        writer = strategies.Writer(rng, schema, spark=False, declared=True)
        for _ in range(30):
            tests = [
                writer.filter(depth=rng.choice((0, 0, 0, 1))) for _ in range(rng.randint(1, 4))
            ]
            texts.append((" AND ".join(f"({test})" for test in tests), declared))
            texts.append((tests[0], rng.choice((declared, None))))
    filters = []
    for text, attributes in texts:
        try:
            filters.append(parse(text, attributes=attributes))
        except FilterError:
            continue
    assert len(filters) > 1_000
    short = [one.form for one in filters]

    monkeypatch.setattr(set_tree, "simple_test", lambda _: None)
    monkeypatch.setattr(set_tree, "_lies_inside", lambda *_: False)
    monkeypatch.setattr(rules, "simple_test", lambda _: None)
    monkeypatch.setattr(rules, "_single_form", lambda *_: None)
    for one, form in zip(filters, short, strict=True):
        long = rules.form_of(one.expression, one._attributes)
        # how heavy they are is measured where it may matter, not on the short ways
        form, long = (msgspec.structs.replace(both, weight=0) for both in (form, long))
        assert repr(form) == repr(long), one.sql()
        assert form == long


@pytest.mark.parametrize("kind", sorted(set_tree._DOMAINS))
def test_sets_within_a_type_are_settled_already(
    kind: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(f"{seed} {kind}")
    values: list[Any] = [value for pool in strategies.VALUES.values() for value in pool]
    places = sorted({sets.key(value) for value in values})
    cuts = sorted({cut for place in places for cut in sets.points([place]).cuts})
    pairs = [tuple(sorted(rng.sample(cuts, 2))) for _ in range(3000)]
    quickly = [set_tree.narrow_to_type(ValueSet(pair), kind) for pair in pairs]
    monkeypatch.setattr(set_tree, "_lies_inside", lambda *_: False)
    assert quickly == [set_tree.narrow_to_type(ValueSet(pair), kind) for pair in pairs]
