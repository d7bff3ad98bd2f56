"""Match event patterns against nested values: arrays, arrays of objects, arrays of arrays.

A leaf is a value that is neither an array nor an object; null is a leaf. A field matches if a leaf
at its path matches one of its alternatives, or if there is no leaf and the field may be absent.
Fields whose paths lead through the same array must match in the same element of that array.

As in event-ruler, fields are checked in the order of their names. If a field must be absent, it
must be absent from all elements of an array, or, once an earlier field has selected an element,
only from the selected one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidings.filters.dialects.eventbridge.conditions import condition
from tidings.filters.dialects.eventbridge.pattern import ABSENT, Path, PatternField
from tidings.filters.language.evaluation import truth
from tidings.filters.language.expression import Attribute, Expression
from tidings.filters.language.functions import flatten
from tidings.filters.values.work_limit import look
from tidings.model import ABSENT as MISSING, normalise

_LEAF = Attribute(("leaf",))


class Need(msgspec.Struct, frozen=True):
    """A requirement on the leaves at a path; if it has no condition, there must be no leaf."""

    path: Path
    condition: Expression | None
    may_be_absent: bool


def needs_by_root(fields: list[PatternField]) -> dict[str, tuple[Need, ...]]:
    """The requirements of the fields, grouped by the first name of their paths."""
    out: dict[str, list[Need]] = {}
    for field in sorted(fields, key=lambda one: ".".join(one.path)):
        present = tuple(one for one in field.alternatives if one.kind != ABSENT)
        test = condition(present, _LEAF, single=True) if present else None
        out.setdefault(field.path[0], []).append(Need(field.path[1:], test, field.may_be_absent))
    return {root: tuple(needs) for root, needs in out.items()}


def fits(value: Any, needs: Sequence[Need]) -> bool:
    """Whether a value meets all requirements; the paths of the requirements start at this value."""
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
        return all(fits(value.get(name, MISSING), some) for name, some in below.items())
    return all(_fits_leaf(value, need) for need in needs)


def _fits_leaf(value: Any, need: Need) -> bool:
    if value is MISSING or need.path:
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
        # this requirement and all following ones must be met by the same element
        rest = (Need(need.path, need.condition, False), *needs[at + 1 :])
        return any(fits(one, rest) for one in elements)
    return True


def _lacks(value: Any, path: Path) -> bool:
    return fits(value, (Need(path, None, True),))
