"""Explains an event pattern field by field: one test for each field, with its path, what the
pattern expects there, and the values of the event, all as JSON.

    {"detail": {"n": [{"numeric": [">", 5]}]}}     detail.n   [{"numeric":[">",5]}]   7   pass

Each field is tested on its own, with a pattern that has only this field. But the fields of a
pattern must match in the same element of an array. If each field matches and the pattern does not,
a last test says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tidings import BoxReport, Explanation, TestReport, parse
from tidings.filters.dialects import PATTERNS

ABSENT = "absent"
EITHER = "$or"
Wanted = dict[tuple[str, ...], set[str]]
APART = TestReport(
    "the match", "all fields below an array in one element of it", "spread over several", False
)


def explain_pattern(text: str, event: dict[str, Any], matched: bool) -> Explanation:
    """Explain why a valid pattern matches an event or does not, as `matched` says."""
    tests = list(_tests(msgspec.json.decode(text), (), "", event))
    if not matched and all(one.passed for one in tests):
        tests.append(APART)
    return Explanation(matched, [BoxReport(tests)])


def _tests(
    pattern: dict[str, Any], path: tuple[str, ...], before: str, event: dict[str, Any]
) -> Iterator[TestReport]:
    """One test for each field below a path; `before` is the place in an `$or`."""
    for name, below in pattern.items():
        here = (*path, name)
        if name == EITHER and isinstance(below, list) and all(isinstance(b, dict) for b in below):
            yield from _alternatives(below, path, before, event)
        elif isinstance(below, dict):
            yield from _tests(below, here, before, event)
        else:
            found = values_at(event, here)
            actual = ", ".join(map(_json, found)) if found else ABSENT
            passed = _matches(_nested(here, below), event)
            yield TestReport(before + ".".join(here), _json(below), actual, passed)


def _alternatives(
    options: list[dict[str, Any]], path: tuple[str, ...], before: str, event: dict[str, Any]
) -> Iterator[TestReport]:
    """One test for the whole `$or`; if it fails, the tests of each alternative too."""
    passed = [_matches(_nested(path, option), event) for option in options]
    place = before + ".".join((*path, EITHER))
    said = f"alternative {passed.index(True) + 1} matches" if any(passed) else "none of them"
    yield TestReport(place, f"one of {len(options)} alternatives", said, any(passed))
    if not any(passed):
        for number, option in enumerate(options, 1):
            yield from _tests(option, path, f"{before}{EITHER} {number}: ", event)


class Field(msgspec.Struct, frozen=True):
    """A field of a pattern: its path, and what the pattern expects there."""

    path: tuple[str, ...]
    wanted: Any

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {_json(self.wanted)}"

    @property
    def pattern(self) -> str:
        """A pattern with only this field."""
        return _json(_nested(self.path, self.wanted))


def list_fields(text: str) -> list[Field]:
    """The fields of a valid pattern; a `$or` counts as one."""
    found: list[Field] = []
    left: list[tuple[tuple[str, ...], Any]] = [((), msgspec.json.decode(text))]
    while left:
        path, here = left.pop()
        if isinstance(here, dict) and path[-1:] != (EITHER,):
            left += [((*path, name), below) for name, below in reversed(here.items())]
        else:
            found.append(Field(path, here))
    return found


def covers(wanted: Wanted, other: Wanted) -> bool:
    """Whether a pattern covers another, judged field by field: the other has all fields of this
    one, and accepts no value there that this one does not."""
    return all(path in other and other[path] <= values for path, values in wanted.items())


def values_wanted(text: str) -> Wanted:
    """The values that a pattern accepts, by field."""
    return {
        field.path: {_json(field.wanted)}
        if field.path[-1] == EITHER
        else {_json(value) for value in field.wanted}
        for field in list_fields(text)
    }


def _matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    return parse(_json(pattern), PATTERNS).matches(event)


def _nested(path: tuple[str, ...], leaf: Any) -> dict[str, Any]:
    for name in reversed(path):
        leaf = {name: leaf}
    return leaf  # type: ignore[no-any-return]


def values_at(event: Any, path: tuple[str, ...]) -> list[Any]:
    """The values at a path; a path leads into each element of an array."""
    if not path:
        return [event]
    if isinstance(event, list):
        return [value for one in event for value in values_at(one, path)]
    if isinstance(event, dict) and path[0] in event:
        return values_at(event[path[0]], path[1:])
    return []


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
