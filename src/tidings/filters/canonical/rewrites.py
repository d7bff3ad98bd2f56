"""Rewrite conditions into simpler, equivalent conditions. A rewrite is equivalent in three-valued
logic, so it is also valid under NOT. A condition that can't be simplified is returned as the same
object.

    x LIKE 'abc%'        expand_short_forms    startswith(x, 'abc')
    (x > 5) = false      shape_conditions      NOT (x > 5)

An opaque condition must be returned unchanged, and so must `condition IS NULL` if the condition is
opaque. Otherwise, parsing the text of a canonical form would not give the same form.
"""

from __future__ import annotations

from collections.abc import Callable

from tidings.filters.language.expression import (
    FLIPPED,
    And,
    Attribute,
    Between,
    Call,
    Case,
    Compare,
    Comparison,
    Exists,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
    Variable,
    children,
    make_exists,
    rebuild,
)
from tidings.filters.language.sql_writer import text_of
from tidings.filters.language.static_types import is_condition
from tidings.filters.values import inet, like

MOST_ELEMENTS = 512  # the most elements of a list that is expanded into tests
MOST_WRITTEN = 1_000_000  # the most characters that all repetitions of a value may have together
LISTS = (tuple, list)


def is_affordable(item: Expression, times: int) -> bool:
    """Whether a value may be repeated this many times without making the text too large."""
    return times * len(text_of(item)) <= MOST_WRITTEN


def _constant_text(node: Expression) -> str | None:
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None


def _like(node: Call) -> Expression:
    item, pattern = node.args[0], _constant_text(node.args[1])
    return node if pattern is None else _pattern(node, item, like.split(pattern))


def _ilike(node: Call) -> Expression:
    """ILIKE as Spark defines it: LIKE with both sides in lower case."""
    item, pattern = _lower(node.args[0]), _constant_text(node.args[1])
    if pattern is None:
        return Call("like", (item, _lower(node.args[1])))
    lowered = Call("like", (item, Literal(pattern.lower())))
    return _pattern(lowered, item, like.split(pattern.lower()))


def _lower(node: Expression) -> Expression:
    text = _constant_text(node)
    return Call("lower", (node,)) if text is None else Literal(text.lower())


def _pattern(node: Call, item: Expression, parts: tuple[like.Part, ...]) -> Expression:
    """`abc` tests a point, `abc%` a prefix, `%abc` a suffix, `a%c` a prefix and a suffix, `___` a
    length."""
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
    if len(tests) == 2:  # prefix and suffix must not overlap
        shortest = sum(map(len, texts))
        tests.append(Compare(">=", Call("length", (item,)), Literal(shortest)))
    if not tests:  # a lone %
        return Call("startswith", (item, Literal("")))
    return tests[0] if len(tests) == 1 else And(tuple(tests))


def _subject(node: Call) -> Expression:
    """Turn a subject pattern into tests on the fields and the length of the subject; a pattern
    without wildcards becomes one test for equality."""
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
    """Turn `isa` into a test for intervals of preorder numbers or, without an ontology, into a test
    for the topic and all names below it."""
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
    # an address of the other IP version lies outside the interval, just as it lies outside the
    # network
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
    """One test for each element, if all elements are constants and none of them is null."""
    left, right = node.args
    if isinstance(left, Literal):
        left, right = right, left
    if not isinstance(right, Literal) or not right.value or None in right.value:
        return node
    if len(right.value) > MOST_ELEMENTS or not is_affordable(left, len(right.value)):
        return node
    tests = tuple(Call("array_contains", (left, Literal(value))) for value in right.value)
    return tests[0] if len(tests) == 1 else Or(tests)


# -- CASE --------------------------------------------------------------------------------------

MOST_SPLITS = 128  # the most tests that a CASE is split into


def split_case(node: Expression) -> Expression:
    """Split a condition into one part for each branch of the first CASE in it. Exactly one branch
    applies, so the result stays the same, be it true, false or unknown. A condition with too many
    branches is not split.

    CASE WHEN a > 1 THEN b ELSE c END = 5   ->   a > 1 IS TRUE AND b = 5
                                                 OR a > 1 IS NOT TRUE AND c = 5
    """
    found = None if isinstance(node, (And, Or, Not, IsTruth)) else _find_case(node)
    if found is None or _count_splits(node) > MOST_SPLITS:
        return node
    earlier: list[Expression] = []
    parts: list[Expression] = []
    for condition, value in (*found.branches, (None, found.default)):
        chosen = _put(node, found, value)
        if condition is None:
            parts.append(And((*earlier, chosen)))
        else:
            parts.append(And((*earlier, IsTruth(condition, True), chosen)))
            earlier.append(Not(IsTruth(condition, True)))
    return Or(tuple(parts))


def _put(node: Expression, case: Case, value: Expression) -> Expression:
    """Replace a CASE with a value."""
    return value if node is case else rebuild(node, lambda one: value if one is case else None)


def _find_case(node: Expression) -> Case | None:
    """The first CASE in a condition. A CASE inside an `exists` is not split, because it may depend
    on the element."""
    if isinstance(node, Case):
        return node
    if isinstance(node, Exists):
        return _find_case(node.items)
    for child in children(node):
        if type(child) is not Literal and type(child) is not Attribute:
            found = _find_case(child)
            if found is not None:
                return found
    return None


def _count_splits(node: Expression) -> int:
    """How many tests a condition becomes if every CASE in it is split; at most MOST_SPLITS + 1."""
    if isinstance(node, Case):
        count = earlier = 0
        for condition, value in node.branches:
            earlier += _count_splits(condition)
            count += earlier + _count_splits(value)
        count += earlier + _count_splits(node.default)
    else:
        count = 1
        for child in (node.items,) if isinstance(node, Exists) else children(node):
            count *= _count_splits(child)
            if count > MOST_SPLITS:
                break
    return min(count, MOST_SPLITS + 1)


# -- elements of lists -------------------------------------------------------------------------


def find_elements(node: Exists) -> Expression:
    """Replace an `exists` that looks for a constant with a test for this constant, which an index
    can use. If the condition is an OR, it is split into its parts, which does not change the
    result.

    exists(tags, x -> x = 'a' OR x = 'b')   ->   array_contains(tags, 'a')
                                                 OR array_contains(tags, 'b')
    """
    element = Variable(node.name)
    match node.condition:
        case Compare("=", item, Literal(value)) if item == element:
            if value is not None and not isinstance(value, LISTS):
                return Call("array_contains", (node.items, Literal(value)))
        case Compare("=", Literal() as value, item) if item == element:
            return find_elements(Exists(node.items, node.name, Compare("=", item, value)))
        case Or(items) if is_affordable(node.items, len(items)):
            return Or(tuple(make_exists(node.items, node.name, item) for item in items))
        case In(item, options) if item == element and are_constants(options):
            if is_affordable(node.items, len(options)) and len(options) <= MOST_ELEMENTS:
                tests = (Compare("=", item, option) for option in options)
                return Or(tuple(make_exists(node.items, node.name, test) for test in tests))
    return node


_EXPANSIONS: dict[str, Callable[[Call], Expression]] = {
    "like": _like,
    "ilike": _ilike,
    "subject_matches": _subject,
    "isa": _isa,
    "cidr": _cidr,
    "within_box": _within_box,
    "arrays_overlap": _arrays_overlap,
}


def expand_short_forms(node: Expression) -> Expression:
    """Replace a shorthand with the tests that it stands for.

    x BETWEEN 1 AND 5   ->   x >= 1 AND x <= 5
    x LIKE 'abc%'       ->   startswith(x, 'abc')
    x IN (y, 2)         ->   x = y OR x = 2
    """
    split = split_case(node)
    if split is not node:
        return split
    match node:
        case Exists():
            return find_elements(node)
        case Call(name):
            expand = _EXPANSIONS.get(name)
            return node if expand is None else expand(node)
        case Between(item, low, high) if not is_condition(item):
            return And((Compare(">=", item, low), Compare("<=", item, high)))
        case In(item, options) if not (are_constants(options) or is_condition(item)):
            if is_affordable(item, len(options)):
                return Or(tuple(Compare("=", item, option) for option in options))
    return node


def are_constants(options: tuple[Expression, ...]) -> bool:
    """Whether all options of an IN are constants, and none of them is a list."""
    return all(isinstance(o, Literal) and not isinstance(o.value, LISTS) for o in options)


def shape_conditions(node: Expression) -> Expression:
    """Bring a comparison, an IN over Booleans or an IS NULL into its canonical shape.

    5 < price                ->   price > 5
    (volume > 10) = false    ->   NOT (volume > 10)
    (NOT (a > 1)) IS NULL    ->   (a > 1) IS NULL
    """
    match node:
        case Compare():
            return _shape_comparison(node)
        case In(item) if is_condition(item):
            return _shape_truths(node)
        case IsNull(Not(item)) if is_condition(item):
            return IsNull(item)
        case IsNull(IsNull() | IsTruth()):
            return Literal(False)
        case IsNull(Compare() | In() | Between() | Call() | Exists() as item) if is_condition(item):
            plain = rewrite(item)
            return node if plain is item or isinstance(plain, (And, Or)) else IsNull(plain)
    return node


# the cases of `condition op constant` that equal the condition itself, or its negation
_KEEPS = {("=", True), (">=", True), ("!=", False), (">", False)}
_NEGATES = {("!=", True), ("<", True), ("=", False), ("<=", False)}


def _shape_comparison(node: Compare) -> Expression:
    """Put the constant on the right. A comparison of a condition with true or false becomes the
    condition or its negation."""
    op, left, right = node.op, node.left, node.right
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return Compare(FLIPPED[op], right, left)
    if not isinstance(right, Literal) or not is_condition(left):
        return node
    if right.value is None:
        return IsNull(left) if op == "<=>" else Literal(None)
    if op == "<=>":
        return IsTruth(left, right.value)
    if (op, right.value) in _KEEPS:
        return left
    return Not(left) if (op, right.value) in _NEGATES else node


def _shape_truths(node: In) -> Expression:
    """Simplify `condition IN (constants)`; it stays opaque if both true and false are among the
    constants."""
    truths = {option.value for option in node.options if isinstance(option, Literal)}
    if not all(isinstance(option, Literal) for option in node.options) or {True, False} <= truths:
        return node
    if truths == {None}:
        return Literal(None)
    plain = node.item if True in truths else Not(node.item)
    return Or((plain, Literal(None))) if None in truths else plain


REWRITES: tuple[Callable[[Expression], Expression], ...] = (expand_short_forms, shape_conditions)


def rewrite(node: Expression) -> Expression:
    """Apply the first rewrite that changes the condition; return it unchanged if none does."""
    for rule in REWRITES:
        plainer = rule(node)
        if plainer is not node:
            return plainer
    return node
