"""Conditions that are short for others, written out: one function per name.

Each rewrite keeps the value in all three of SQL's truths, so it may stand under NOT. What has no
rewrite stays as it is. `necessary` adds what must hold when an opaque condition is true, for the
index: the prefix of a pattern, the box around a circle.
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    Comparison,
    Expression,
    Literal,
    Or,
)
from tidings.filters.language.foreign import program_of
from tidings.filters.language.sql_writer import text_of
from tidings.filters.values import geography, inet, like

MOST_ELEMENTS = 512  # of a list that is written out element by element
MOST_WRITTEN = 1_000_000


def affordable(item: Expression, times: int) -> bool:
    """Whether a value may be written this many times: that is how text explodes."""
    return times * len(text_of(item)) <= MOST_WRITTEN


def _constant_text(node: Expression) -> str | None:
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None


def _like(node: Call) -> Expression:
    item, pattern = node.args[0], _constant_text(node.args[1])
    return node if pattern is None else _pattern(node, item, like.split(pattern))


def _ilike(node: Call) -> Expression:
    """As Spark defines it: LIKE between both in lower case."""
    item, pattern = _lowered(node.args[0]), _constant_text(node.args[1])
    if pattern is None:
        return Call("like", (item, _lowered(node.args[1])))
    lowered = Call("like", (item, Literal(pattern.lower())))
    return _pattern(lowered, item, like.split(pattern.lower()))


def _lowered(node: Expression) -> Expression:
    text = _constant_text(node)
    return Call("lower", (node,)) if text is None else Literal(text.lower())


def _pattern(node: Call, item: Expression, parts: tuple[like.Part, ...]) -> Expression:
    """`abc` is a point, `abc%` a prefix, `%abc` a suffix, `a%c` both, `___` a length."""
    kinds = [kind for kind, _ in parts]
    texts = [text for kind, text in parts if kind == "text"]
    if not parts:
        return Compare("=", item, Literal(""))
    if kinds == ["text"]:
        return Compare("=", item, Literal(texts[0]))
    if like.ONE in kinds and "text" not in kinds:
        op: Comparison = ">=" if like.ANY in kinds else "="
        return Compare(op, Call("length", (item,)), Literal(kinds.count(like.ONE)))
    if like.ONE in kinds or kinds.count(like.ANY) != 1:
        if kinds == [like.ANY, "text", like.ANY]:
            return Call("contains", (item, Literal(texts[0])))
        return node
    tests: list[Expression] = []
    if kinds[0] == "text":
        tests.append(Call("startswith", (item, Literal(texts[0]))))
    if kinds[-1] == "text":
        tests.append(Call("endswith", (item, Literal(texts[-1]))))
    if len(tests) == 2:  # the two must not share characters
        shortest = sum(map(len, texts))
        tests.append(Compare(">=", Call("length", (item,)), Literal(shortest)))
    if not tests:  # a lone %
        return Call("startswith", (item, Literal("")))
    return tests[0] if len(tests) == 1 else And(tuple(tests))


def _subject(node: Call) -> Expression:
    """Points of the fields and an interval of the length; without wildcards a point."""
    subject, pattern = node.args[0], _constant_text(node.args[1])
    assert pattern is not None
    fields = pattern.split(".")
    if "*" not in fields and fields[-1] != ">":
        return Compare("=", subject, Literal(pattern))
    length = Call("subject_length", (subject,))
    tests: list[Expression] = [
        Compare("=", Call("subject_field", (subject, Literal(index))), Literal(field))
        for index, field in enumerate(fields)
        if field not in ("*", ">")
    ]
    op: Comparison = ">=" if fields[-1] == ">" else "="
    return And((Compare(op, length, Literal(len(fields))), *tests))


def _isa(node: Call) -> Expression:
    """Intervals of preorder numbers; without an ontology the topic and the names below it."""
    item, topic = node.args[0], _constant_text(node.args[1])
    assert topic is not None
    if node.bound is None:
        below = Call("startswith", (item, Literal(topic + ".")))
        return Or((Compare("=", item, Literal(topic)), below))
    number = Call("preorder", (item, Literal(node.bound.fingerprint)), node.bound)
    spans = node.bound.spans(topic)
    return Or(tuple(Between(number, Literal(a), Literal(b)) for a, b in spans))


def _cidr(node: Call) -> Expression:
    network = _constant_text(node.args[1])
    assert network is not None
    first, last = inet.network_ends(network)
    # an address of the other version lies outside the interval, as it lies outside the network
    return Between(Call("inet", (node.args[0],)), Literal(first), Literal(last))


def _within_box(node: Call) -> Expression:
    lat, lon, south, west, north, east = node.args
    assert isinstance(west, Literal)
    assert isinstance(east, Literal)
    tall = Between(lat, south, north)
    if west.value <= east.value:
        return And((tall, Between(lon, west, east)))
    return And((tall, Or((Compare(">=", lon, west), Compare("<=", lon, east)))))


def _arrays_overlap(node: Call) -> Expression:
    """One test per element, when the elements are constants and none is null."""
    left, right = node.args
    if isinstance(left, Literal):
        left, right = right, left
    if not isinstance(right, Literal) or not right.value or None in right.value:
        return node
    if len(right.value) > MOST_ELEMENTS or not affordable(left, len(right.value)):
        return node
    tests = tuple(Call("array_contains", (left, Literal(value))) for value in right.value)
    return tests[0] if len(tests) == 1 else Or(tests)


_REWRITES: dict[str, Callable[[Call], Expression]] = {
    "like": _like,
    "ilike": _ilike,
    "subject_matches": _subject,
    "isa": _isa,
    "cidr": _cidr,
    "within_box": _within_box,
    "arrays_overlap": _arrays_overlap,
}


def written_out(node: Call) -> Expression:
    """The condition that a call is short for; the call itself when it is short for none."""
    rewrite = _REWRITES.get(node.name)
    return rewrite(node) if rewrite else node


def _leaf_of(values: Expression, attributes: Attributes | None) -> list[Expression]:
    """Where something is found among the leaves of a value, that is nested."""
    if not isinstance(values, Call) or values.name != "leaves":
        return []
    item = values.args[0]
    typed = isinstance(item, Attribute) and attributes is not None and attributes.type(item.path)
    return [] if typed else [Call("isnested", (item,))]


def necessary(node: Expression, attributes: Attributes | None = None) -> list[Expression]:
    """Indexable conditions that hold whenever this opaque one is true."""
    if not isinstance(node, Call):
        return []
    program = program_of(node)
    if program is not None:
        return program.necessary(attributes)
    if node.name == "array_contains":
        return _leaf_of(node.args[0], attributes)
    if node.name == "like" and isinstance(node.args[1], Literal):
        pattern = _constant_text(node.args[1])
        parts = like.split(pattern) if pattern is not None else ()
        ends: list[Expression] = []
        if parts and parts[0][0] == "text":
            ends.append(Call("startswith", (node.args[0], Literal(parts[0][1]))))
        if len(parts) > 1 and parts[-1][0] == "text":
            ends.append(Call("endswith", (node.args[0], Literal(parts[-1][1]))))
        return ends
    if node.name == "within_km":
        lat, lon, *centre = node.args
        lat0, lon0, km = (c.value for c in centre if isinstance(c, Literal))
        (south, north), wide = geography.circle_box(lat0, lon0, km)
        box: list[Expression] = [Between(lat, Literal(south), Literal(north))]
        box.extend(Between(lon, Literal(west), Literal(east)) for west, east in wide)
        return box
    return []
