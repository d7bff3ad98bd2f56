"""sqlglot, an independent parser of Spark's dialect, parses every text in the same way.

A random tree is written with as few brackets as Spark's grammar needs; our parser and sqlglot's
must both find the tree again. In two places sqlglot does not follow Spark, which then is the judge
(test_spark_agreement.py has such texts), and the tree gets brackets here: a comparison of a
comparison, and a predicate on a comparison (`a = b IS NULL`).
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import sqlglot
from sqlglot import expressions as glot
from tests.repeats import rounds

from tidings import parse
from tidings.filters.language import expression as ours
from tidings.filters.language.expression import Expression

# (what, ...): ("name", n), ("number", n), ("string", s), (operator, part, ...)
Tree = tuple[Any, ...]

OR, AND, NOT, PREDICATE, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(1, 10)
_STRENGTH = {
    "or": OR, "and": AND, "not": NOT, "in": PREDICATE, "between": PREDICATE, "null": PREDICATE,
    "true": PREDICATE, "false": PREDICATE, "like": PREDICATE, "ilike": PREDICATE,
    "rlike": PREDICATE, "=": COMPARISON, "!=": COMPARISON, "<": COMPARISON, "<=": COMPARISON,
    ">": COMPARISON, ">=": COMPARISON, "<=>": COMPARISON, "+": SUM, "-": SUM, "||": SUM,
    "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "div": PRODUCT, "negative": UNARY,
}  # fmt: skip
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "<=>")
_FUNCTIONS = ("lower", "upper", "length", "coalesce", "concat", "abs")


# -- random trees ------------------------------------------------------------------------------


def condition(rng: random.Random, depth: int) -> Tree:
    if depth <= 0 or rng.random() < 0.15:
        return leaf(rng)
    roll = rng.random()
    if roll < 0.35:
        return ("and", *(condition(rng, depth - 1) for _ in range(rng.choice((2, 2, 3)))))
    if roll < 0.65:
        return ("or", *(condition(rng, depth - 1) for _ in range(rng.choice((2, 2, 3)))))
    if roll < 0.8:
        return ("not", condition(rng, depth - 1))
    if roll < 0.9:
        what = rng.choice(("null", "true", "false"))
        return (what, condition(rng, depth - 1))
    return (rng.choice(_COMPARISONS), condition(rng, depth - 1), condition(rng, depth - 1))


def leaf(rng: random.Random) -> Tree:
    kind = rng.choice((number, string))
    roll = rng.random()
    if roll < 0.5:
        return (rng.choice(_COMPARISONS), kind(rng, 2), kind(rng, 2))
    if roll < 0.6:
        return ("in", *(kind(rng, 1) for _ in range(rng.choice((2, 3, 4)))))
    if roll < 0.7:
        return ("between", kind(rng, 1), kind(rng, 1), kind(rng, 1))
    if roll < 0.8:
        return ("null", kind(rng, 1))
    if roll < 0.92:
        return (rng.choice(("like", "ilike")), string(rng, 1), string(rng, 1))
    return name(rng)


def name(rng: random.Random) -> Tree:
    return ("name", rng.choice(("a", "b", "c", "x.y", "u.v.w")))


def number(rng: random.Random, depth: int) -> Tree:
    roll = rng.random()
    if depth <= 0 or roll < 0.3:
        return ("number", rng.randint(0, 9)) if roll < 0.15 else name(rng)
    if roll < 0.8:  # with a name in it: numbers alone are computed when they are read
        op = rng.choice(("+", "-", "*", "/", "%", "div"))
        return (op, name(rng), number(rng, depth - 1))
    if roll < 0.9:
        return ("negative", name(rng))
    return (rng.choice(("abs", "length")), name(rng))


def string(rng: random.Random, depth: int) -> Tree:
    roll = rng.random()
    if depth <= 0 or roll < 0.4:
        return name(rng)
    if roll < 0.7:
        return ("||", name(rng), string(rng, depth - 1))
    function, count = rng.choice((("lower", 1), ("upper", 1), ("coalesce", 2), ("concat", 3)))
    return (function, *(name(rng) for _ in range(count)))


def leaning(rng: random.Random, tree: Tree) -> Tree:
    """The tree with the two sides of its arithmetic swapped here and there: it leans both ways."""
    if tree[0] in ("name", "number", "string"):
        return tree
    parts = tuple(leaning(rng, part) for part in tree[1:])
    if tree[0] in ("+", "-", "*", "/", "%", "div", "||") and rng.random() < 0.5:
        parts = parts[::-1]
    return (tree[0], *parts)


# -- trees to text -----------------------------------------------------------------------------


def text_of(tree: Tree, least: int = 0) -> str:
    what, parts = tree[0], tree[1:]
    if what in ("name", "number"):
        return str(parts[0])
    strength = _STRENGTH.get(what, ATOM)
    text = _written(what, parts, strength)
    return text if strength >= least else f"({text})"


def _written(what: str, parts: tuple[Any, ...], strength: int) -> str:
    if what in ("and", "or"):
        return f" {what.upper()} ".join(text_of(part, strength + 1) for part in parts)
    if what == "not":
        return "NOT " + text_of(parts[0], NOT)
    if what == "negative":
        return "-" + text_of(parts[0], ATOM)
    if what in ("null", "true", "false"):
        return f"{text_of(parts[0], SUM)} IS {what.upper()}"
    if what == "in":
        return f"{text_of(parts[0], SUM)} IN ({', '.join(text_of(part) for part in parts[1:])})"
    if what == "between":
        item, low, high = (text_of(part, SUM) for part in parts)
        return f"{item} BETWEEN {low} AND {high}"
    if what in _FUNCTIONS:
        return f"{what}({', '.join(text_of(part) for part in parts)})"
    if strength in (PREDICATE, COMPARISON):
        return f"{text_of(parts[0], SUM)} {what.upper()} {text_of(parts[1], SUM)}"
    return f"{text_of(parts[0], strength)} {what} {text_of(parts[1], strength + 1)}"


# -- both readings as trees --------------------------------------------------------------------


def ours_as_tree(node: Expression) -> Tree:
    match node:
        case ours.Attribute(path):
            return ("name", ".".join(path))
        case ours.Literal(value):
            return ("number", value)
        case ours.And(items):
            return ("and", *map(ours_as_tree, items))
        case ours.Or(items):
            return ("or", *map(ours_as_tree, items))
        case ours.Not(item):
            return ("not", ours_as_tree(item))
        case ours.Compare(op, left, right):
            return (op, ours_as_tree(left), ours_as_tree(right))
        case ours.In(item, options):
            return ("in", ours_as_tree(item), *map(ours_as_tree, options))
        case ours.Between(item, low, high):
            return ("between", *map(ours_as_tree, (item, low, high)))
        case ours.IsNull(item):
            return ("null", ours_as_tree(item))
        case ours.IsTruth(item, truth):
            return ("true" if truth else "false", ours_as_tree(item))
        case ours.Call(name, args):
            return (name, *map(ours_as_tree, args))
        case _:
            raise AssertionError(f"found {node}, which this test does not write")


_GLOT: dict[type[glot.Expression], str] = {
    glot.EQ: "=", glot.NEQ: "!=", glot.LT: "<", glot.LTE: "<=", glot.GT: ">", glot.GTE: ">=",
    glot.NullSafeEQ: "<=>", glot.Add: "+", glot.Sub: "-", glot.DPipe: "concat", glot.Mul: "*",
    glot.Div: "/", glot.Mod: "%", glot.IntDiv: "div", glot.Like: "like", glot.ILike: "ilike",
    glot.RegexpLike: "rlike",
}  # fmt: skip


def glot_as_tree(node: Any) -> Tree:
    if isinstance(node, glot.Paren):
        return glot_as_tree(node.this)
    if isinstance(node, (glot.Column, glot.Dot)):
        return ("name", node.sql(dialect="spark"))
    if isinstance(node, glot.Literal):
        return ("number", int(node.this))
    if isinstance(node, (glot.And, glot.Or)):
        word = "and" if isinstance(node, glot.And) else "or"
        return (word, glot_as_tree(node.left), glot_as_tree(node.right))
    if isinstance(node, glot.Not):
        return ("not", glot_as_tree(node.this))
    if isinstance(node, glot.Neg):
        return ("negative", glot_as_tree(node.this))
    if isinstance(node, glot.Is):
        asked = node.expression
        if isinstance(asked, glot.Null):
            return ("null", glot_as_tree(node.this))
        return ("true" if asked.this else "false", glot_as_tree(node.this))
    if isinstance(node, glot.In):
        return ("in", glot_as_tree(node.this), *map(glot_as_tree, node.expressions))
    if isinstance(node, glot.Between):
        parts = (node.this, node.args["low"], node.args["high"])
        return ("between", *map(glot_as_tree, parts))
    if type(node) in _GLOT:
        found = (_GLOT[type(node)], glot_as_tree(node.this), glot_as_tree(node.expression))
        return ("not", found) if node.args.get("negate") else found
    if isinstance(node, glot.Func):
        args = ([node.this] if node.this is not None else []) + list(node.expressions)
        return (node.sql_name().lower(), *map(glot_as_tree, args))
    raise AssertionError(f"no name for {type(node)} in {node.sql()}")


def flat(tree: Tree) -> Tree:
    """AND of AND and OR of OR in one; || by the name of its function."""
    if tree[0] in ("name", "number"):
        return tree
    what = "concat" if tree[0] == "||" else tree[0]
    parts: list[Tree] = []
    for part in map(flat, tree[1:]):
        parts.extend(part[1:] if what in ("and", "or") and part[0] == what else [part])
    return (what, *parts)


def agree(text: str) -> Tree:
    """The one tree that both find in a text."""
    mine = flat(ours_as_tree(parse(text).expression))
    theirs = flat(glot_as_tree(sqlglot.parse_one(text, dialect="spark")))
    assert mine == theirs, text
    return mine


def test_random_trees_are_found_again_by_both(seed: int) -> None:
    rng = random.Random(seed)
    for _ in rounds(500, 1_500):
        tree = leaning(rng, condition(rng, rng.randint(0, 4)))
        text = text_of(tree)
        assert agree(text) == flat(tree), text


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a - b - c = 1", ("=", ("-", ("-", "a", "b"), "c"), 1)),
        ("a - b * c = 1", ("=", ("-", "a", ("*", "b", "c")), 1)),
        ("a / b % c * b = 1", ("=", ("*", ("%", ("/", "a", "b"), "c"), "b"), 1)),
        ("NOT a AND b", ("and", ("not", "a"), "b")),
        ("NOT a = b", ("not", ("=", "a", "b"))),
        ("a OR b AND c", ("or", "a", ("and", "b", "c"))),
        ("a BETWEEN 1 AND 2 AND b", ("and", ("between", "a", 1, 2), "b")),
        ("NOT a IN (1, 2) OR b", ("or", ("not", ("in", "a", 1, 2)), "b")),
        ("-a + b = 1", ("=", ("+", ("negative", "a"), "b"), 1)),
        ("a + b IS NULL", ("null", ("+", "a", "b"))),
        ("a NOT LIKE b || c", ("not", ("like", "a", ("concat", "b", "c")))),
    ],
)
def test_plain_texts_are_read_alike(text: str, tree: Any) -> None:
    def full(part: Any) -> Tree:
        if isinstance(part, str):
            return ("name", part)
        if isinstance(part, int):
            return ("number", part)
        return (part[0], *map(full, part[1:]))

    assert agree(text) == full(tree)


STRINGS = ["''", "'a'", '"a"', r"'it\'s'", r"'a\\b'", r"'a\nb'", "'a%_b'", '"a\'b"', "'é'"]


@pytest.mark.parametrize("literal", STRINGS)
def test_strings_are_read_alike(literal: str) -> None:
    mine = parse(f"a = {literal}").expression
    theirs = sqlglot.parse_one(f"a = {literal}", dialect="spark")
    assert isinstance(mine, ours.Compare)
    assert isinstance(mine.right, ours.Literal)
    assert isinstance(theirs, glot.EQ)
    assert mine.right.value == theirs.expression.this
