"""Conditions that follow from an opaque condition, for use by an index; for example, the prefix of
a LIKE pattern, or the box around a circle."""

from __future__ import annotations

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    Exists,
    Expression,
    Literal,
    Variable,
)
from tidings.filters.language.foreign import program_of
from tidings.filters.values import geography, like


def add_implied(node: Expression, attributes: Attributes | None = None) -> list[Expression]:
    """Conditions on simpler terms that hold whenever this opaque condition is true.

    name LIKE 'A_c%e'   ->   startswith(name, 'A'), endswith(name, 'e')
    """
    if isinstance(node, Exists):
        return _elements_of(node)
    if not isinstance(node, Call):
        return []
    program = program_of(node)
    if program is not None:
        return program.necessary(attributes)
    if node.name == "array_contains":
        return _nested_around(node.args[0], attributes)
    if node.name == "like" and isinstance(node.args[1], Literal):
        pattern = node.args[1].value
        parts = like.split(pattern) if isinstance(pattern, str) else ()
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


def _elements_of(node: Exists) -> list[Expression]:
    """If a field of the element must equal a constant, the list of that field's values contains the
    constant.

    exists(lines, x -> x.sku = 'a' AND x.n > 5)   ->   array_contains(lines.sku, 'a')
    """
    if not isinstance(node.items, Attribute):
        return []
    found: list[Expression] = []
    tests = node.condition.items if isinstance(node.condition, And) else (node.condition,)
    for test in tests:
        match test:
            case Compare("=", Variable(name, path), Literal(value)) if (
                name == node.name and value is not None and not isinstance(value, (tuple, list))
            ):
                items = Attribute((*node.items.path, *path))
                found.append(Call("array_contains", (items, Literal(value))))
    return found


def _nested_around(values: Expression, attributes: Attributes | None) -> list[Expression]:
    """For a call to `leaves`: the condition that its argument is nested, since only nested values
    have leaves. The condition is useful only if no type is declared for the argument."""
    if not isinstance(values, Call) or values.name != "leaves":
        return []
    item = values.args[0]
    typed = isinstance(item, Attribute) and attributes is not None and attributes.type(item.path)
    return [] if typed else [Call("isnested", (item,))]
