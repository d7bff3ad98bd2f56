"""Event patterns on nested values: arrays, arrays of objects, leaves in arrays of arrays.

A leaf is a value that is neither array nor object; a null is no leaf. A field holds when one of the
leaves at its path is one of its alternatives, or when there is no leaf and it may be absent. Where
paths lead through one array, fields hold in one and the same element of it.

As in event-ruler, fields are taken in the order of their names. A field that must be absent before
any other has settled on an element must be absent from all of them; after that, from that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidings.filters.dialects.eventbridge.conditions import condition
from tidings.filters.dialects.eventbridge.pattern import ABSENT, Field, Path
from tidings.filters.language.evaluation import truth
from tidings.filters.language.expression import Attribute, Expression
from tidings.filters.language.functions import flatten
from tidings.filters.values.work import look
from tidings.model import normalise

_LEAF = Attribute(("leaf",))


class Need(msgspec.Struct, frozen=True):
    """What is asked of the leaves at a path; without a condition, that there is none."""

    path: Path
    condition: Expression | None
    may_be_absent: bool


def needs_by_root(fields: list[Field]) -> dict[str, tuple[Need, ...]]:
    """What fields ask for, by the attribute that their paths begin with."""
    out: dict[str, list[Need]] = {}
    for field in sorted(fields, key=lambda one: ".".join(one.path)):
        present = tuple(one for one in field.alternatives if one.kind != ABSENT)
        test = condition(present, _LEAF, single=True) if present else None
        out.setdefault(field.path[0], []).append(Need(field.path[1:], test, field.may_be_absent))
    return {root: tuple(needs) for root, needs in out.items()}


def fits(value: Any, needs: Sequence[Need]) -> bool:
    """Whether the value of an attribute meets all needs below it."""
    value = normalise(value)
    if isinstance(value, list):
        return _fits_array(flatten(value), needs)
    if isinstance(value, Mapping):
        below: dict[str, list[Need]] = {}
        for need in needs:
            if need.path:
                deeper = Need(need.path[1:], need.condition, need.may_be_absent)
                below.setdefault(need.path[0], []).append(deeper)
            elif not need.may_be_absent:
                return False
        return all(fits(value.get(name), some) for name, some in below.items())
    return all(_fits_leaf(value, need) for need in needs)


def _fits_leaf(value: Any, need: Need) -> bool:
    if value is None or need.path:
        return need.may_be_absent
    if need.condition is None:
        return False
    look()
    return truth(need.condition, {"leaf": value}) is True


def _fits_array(elements: list[Any], needs: Sequence[Need]) -> bool:
    for at, need in enumerate(needs):
        if need.may_be_absent and all(_lacks(one, need.path) for one in elements):
            continue
        if need.condition is None:
            return False
        # from here on in one element, and this one is in it
        rest = (Need(need.path, need.condition, False), *needs[at + 1 :])
        return any(fits(one, rest) for one in elements)
    return True


def _lacks(value: Any, path: Path) -> bool:
    return fits(value, (Need(path, None, True),))
