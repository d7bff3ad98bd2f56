"""Names of parts of a filter: `named('late', delay > 60) OR dest = 'BOS'`.

    tree with names ──without_names──> the expression, as if it had been written without names
                    ──parts_in──────> the condition of each name

A name changes nothing: the form, the identity and the coverings of a filter come from the
expression without names. Parts with the same name count as one part, which is true if at least one
of them is true.
"""

from __future__ import annotations

from tidings.filters.language.expression import (
    And,
    Call,
    Expression,
    Literal,
    Or,
    children,
    with_children,
)

NAMED = "named"
LONGEST_NAME = 100


def make_named(name: str, condition: Expression) -> Call:
    """The condition as a part with a name."""
    return Call(NAMED, (Literal(name), condition))


def problem_of_name(name: object) -> str:
    """Why a value can't be the name of a part; empty if it can."""
    if not isinstance(name, str):
        return f"found {type(name).__name__}, expected the name of a part as a string"
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        shown = repr(name if len(name) <= 40 else name[:37] + "...")
        return f"found the name {shown}, expected 1 to {LONGEST_NAME} printable characters"
    return ""


def may_have_names(text: str) -> bool:
    """Whether a text may contain named parts: a quick test, so that most expressions need not be
    searched."""
    # in JSON, any letter of the key may be written as an escape
    return NAMED in text or "\\u" in text or NAMED in text.lower()


def without_names(node: Expression) -> Expression:
    """The expression as if written without names; the same object if it contains no names."""
    if isinstance(node, Call) and node.name == NAMED:
        return without_names(node.args[1])
    before = children(node)
    after = [without_names(child) for child in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return node
    if isinstance(node, And | Or):  # an AND inside an AND, or an OR inside an OR, is joined
        kind = type(node)
        after = [part for one in after for part in (one.items if isinstance(one, kind) else (one,))]
    return with_children(node, after)


def parts_in(node: Expression) -> dict[str, Expression]:
    """The conditions of the named parts, without names inside, in the order of the text."""
    found: dict[str, list[Expression]] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Call) and one.name == NAMED:
            name = one.args[0]
            assert isinstance(name, Literal)
            part = without_names(one.args[1])
            same = found.setdefault(name.value, [])
            same.extend(part.items if isinstance(part, Or) else (part,))
        stack.extend(reversed(children(one)))
    return {name: same[0] if len(same) == 1 else Or(tuple(same)) for name, same in found.items()}
