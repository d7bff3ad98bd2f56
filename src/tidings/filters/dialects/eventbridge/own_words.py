"""Explains an event pattern field by field: one test for each field, with its path, what the
pattern expects there, and the values of the event, all as JSON.

    {"detail": {"n": [{"numeric": [">", 5]}]}}     detail.n   [{"numeric":[">",5]}]   7   pass

Each field is tested on its own, with a pattern that has only this field. But if paths lead through
the same array, the fields must match in the same element. If each field by itself matches but the
whole pattern does not, an additional last test says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tidings.filters.dialects.eventbridge.bound_pattern import BoundPattern
from tidings.filters.dialects.eventbridge.pattern import OR
from tidings.filters.dialects.eventbridge.pattern_reader import read_pattern
from tidings.filters.language.dialect import FilterField, TestReport
from tidings.filters.language.evaluation import truth
from tidings.model import Event

ABSENT = "absent"
APART = TestReport(
    "the match", "all fields below an array in one element of it", "spread over several", False
)


def explain(text: str, event: Event, matched: bool) -> list[TestReport]:
    """The tests of a valid pattern on an event; `matched` says whether the pattern matches the
    event."""
    tests = list(_tests(msgspec.json.decode(text), (), "", event))
    if not matched and all(one.passed for one in tests):
        tests.append(APART)
    return tests


def _tests(
    pattern: dict[str, Any], path: tuple[str, ...], before: str, event: Event
) -> Iterator[TestReport]:
    """One test for each field below a path; `before` is the prefix of the paths inside an `$or`."""
    for name, below in pattern.items():
        here = (*path, name)
        if name == OR and isinstance(below, list) and all(isinstance(b, dict) for b in below):
            yield from _alternatives(below, path, before, event)
        elif isinstance(below, dict):
            yield from _tests(below, here, before, event)
        else:
            found = values_at(event, here)
            actual = ", ".join(map(_json, found)) if found else ABSENT
            passed = _matches(_nest(here, below), event)
            yield TestReport(before + ".".join(here), _json(below), actual, passed)


def _alternatives(
    options: list[dict[str, Any]], path: tuple[str, ...], before: str, event: Event
) -> Iterator[TestReport]:
    """One test for the whole `$or`; if that test fails, also the tests of each alternative."""
    passed = [_matches(_nest(path, option), event) for option in options]
    place = before + ".".join((*path, OR))
    said = f"alternative {passed.index(True) + 1} matches" if any(passed) else "none of them"
    yield TestReport(place, f"one of {len(options)} alternatives", said, any(passed))
    if not any(passed):
        for number, option in enumerate(options, 1):
            yield from _tests(option, path, f"{before}{OR} {number}: ", event)


def list_fields(text: str) -> list[FilterField]:
    """The fields of a valid pattern; a `$or` counts as one field."""
    found: list[FilterField] = []
    left: list[tuple[tuple[str, ...], Any]] = [((), msgspec.json.decode(text))]
    while left:
        path, here = left.pop()
        if isinstance(here, dict) and path[-1:] != (OR,):
            left += [((*path, name), below) for name, below in reversed(here.items())]
            continue
        wanted = [here] if path[-1] == OR else here
        label = f"{'.'.join(path)}: {_json(here)}"
        found.append(
            FilterField(path, frozenset(map(_json, wanted)), label, _json(_nest(path, here)))
        )
    return found


def _matches(pattern: dict[str, Any], event: Event) -> bool:
    return truth(BoundPattern(read_pattern(_json(pattern))).call(), event) is True


def _nest(path: tuple[str, ...], leaf: Any) -> dict[str, Any]:
    for name in reversed(path):
        leaf = {name: leaf}
    return leaf  # type: ignore[no-any-return]


def values_at(event: Any, path: tuple[str, ...]) -> list[Any]:
    """The values at a path; at an array, the path continues into every element."""
    if not path:
        return [event]
    if isinstance(event, list):
        return [value for one in event for value in values_at(one, path)]
    if isinstance(event, Mapping) and path[0] in event:
        return values_at(event[path[0]], path[1:])
    return []


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
