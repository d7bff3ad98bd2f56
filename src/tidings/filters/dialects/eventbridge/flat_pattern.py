"""Translate an event pattern to a plain condition, for attributes whose values are not nested."""

from __future__ import annotations

from tidings.filters.dialects.eventbridge.conditions import condition
from tidings.filters.dialects.eventbridge.pattern import (
    ABSENT,
    EXISTS,
    NULL,
    Alternative,
    Path,
    Pattern,
    PatternField,
)
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import And, Attribute, Expression, Literal, Or

NEVER = Literal(False)
_NESTED = ("list", "struct", "map")


def plain_condition(pattern: Pattern, attributes: Attributes | None) -> Expression:
    """A condition that is true for exactly those events without nested values that match the
    pattern; NEVER if no such event can match."""
    return _join(_tests(pattern, attributes))


def _tests(pattern: Pattern, attributes: Attributes | None) -> list[Expression]:
    tests: list[Expression] = []
    for field in pattern.fields:
        item = Attribute(field.path)
        if _is_nested(field.path, attributes):
            tests.append(_where_not_nested(field, attributes))
            continue
        single = is_single(field.path, attributes)
        test = condition(field.alternatives, item, single=single)
        tests += test.items if isinstance(test, And) else (test,)
    for choice in pattern.choices:
        options = [plain_condition(one, attributes) for one in choice.options]
        some = tuple(option for option in options if option is not NEVER)
        tests.append(Or(some) if len(some) > 1 else some[0] if some else NEVER)
    return tests


def _where_not_nested(field: PatternField, attributes: Attributes | None) -> Expression:
    """A condition for events in which a field that is declared as nested is absent or null.

    For such events, a field inside the elements of a list is absent, never null, because the list
    itself is absent or null.
    """
    alternatives = [Alternative(ABSENT)] * field.may_be_absent
    if list_above(field.path, attributes) is None and any(
        one.but or one.kind in (EXISTS, NULL) for one in field.alternatives
    ):
        alternatives.append(Alternative(NULL))
    if not alternatives:
        return NEVER
    return condition(alternatives, Attribute(field.path), single=True)


def _join(tests: list[Expression]) -> Expression:
    if any(test is NEVER for test in tests):
        return NEVER
    return tests[0] if len(tests) == 1 else And(tuple(tests))


def is_single(path: Path, attributes: Attributes | None) -> bool:
    """Whether a path is declared to lead to a single value."""
    if attributes is None or attributes.type(path) in (None, *_NESTED):
        return False
    return list_above(path, attributes) is None


def _is_nested(path: Path, attributes: Attributes | None) -> bool:
    """Whether a path is declared to lead to nested values only."""
    if attributes is None:
        return False
    return attributes.type(path) in _NESTED or list_above(path, attributes) is not None


def list_above(path: Path, attributes: Attributes | None) -> Path | None:
    """The declared list through which a path leads, if any; all values in a list are nested."""
    if attributes is not None:
        for size in range(1, len(path)):
            if attributes.type(path[:size]) == "list":
                return path[:size]
    return None
