"""Event patterns of AWS EventBridge as data, and their canonical JSON.

    {"source": ["aws.ec2"], "detail": {"state": ["running", {"prefix": "st"}]}}

A pattern has fields, which must all match, and choices; in each choice, one option must match. A
field is the path of a leaf and the alternatives for its value. The text of a pattern is its
identity, so it is canonical: names and alternatives are sorted, without duplicates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec

Path = tuple[str, ...]
OR = "$or"
EXISTS, ABSENT, EXACT, NULL = "exists", "absent", "exact", "null"
NUMERIC, CIDR = "numeric", "cidr"
PREFIX, SUFFIX, WILDCARD, SAME_LETTERS = "prefix", "suffix", "wildcard", "equals-ignore-case"
PREFIX_LETTERS, SUFFIX_LETTERS = "prefix/equals-ignore-case", "suffix/equals-ignore-case"


class Alternative(msgspec.Struct, frozen=True):
    """One alternative for a leaf: the leaf must match one of the values, and `kind` says how.

    The values of `numeric` are pairs of a comparison and a number; all of these comparisons must be
    true. `but` stands for `anything-but`: there must be a leaf that matches none of the values.
    """

    kind: str
    values: tuple[Any, ...] = ()
    but: bool = False


class PatternField(msgspec.Struct, frozen=True):
    path: Path
    alternatives: tuple[Alternative, ...]

    @property
    def may_be_absent(self) -> bool:
        return any(one.kind == ABSENT for one in self.alternatives)

    @property
    def tells_null(self) -> bool:
        """Whether the field distinguishes null from absent."""
        return any(one.but or one.kind in (ABSENT, EXISTS, NULL) for one in self.alternatives)

    @property
    def values(self) -> tuple[Any, ...] | None:
        """The values that match the field, if it tests only for equality; otherwise None."""
        if any(one.kind != EXACT or one.but for one in self.alternatives):
            return None
        return tuple(value for one in self.alternatives for value in one.values)


class Choice(msgspec.Struct, frozen=True):
    """A `$or`, at the path of the object that contains it. Paths in its options start at the
    root."""

    path: Path
    options: tuple[Pattern, ...]


class Pattern(msgspec.Struct, frozen=True):
    fields: tuple[PatternField, ...]
    choices: tuple[Choice, ...] = ()

    def all_fields(self) -> Iterator[PatternField]:
        yield from self.fields
        for choice in self.choices:
            for option in choice.options:
                yield from option.all_fields()

    def roots(self) -> list[str]:
        """The first names of all paths, sorted."""
        return sorted({field.path[0] for field in self.all_fields()})


def count_combinations(pattern: Pattern) -> int:
    """The number of patterns without `$or` that the pattern expands to."""
    count = 1
    for choice in pattern.choices:
        count *= sum(map(count_combinations, choice.options))
    return count


def combinations(pattern: Pattern) -> Iterator[list[PatternField]]:
    """The fields of each pattern without `$or` that the pattern expands to."""
    several = [[c for option in choice.options for c in combinations(option)]
               for choice in pattern.choices]  # fmt: skip
    for picked in product(*several):
        yield [*pattern.fields, *(field for fields in picked for field in fields)]


def text_of_pattern(pattern: Pattern) -> str:
    """The canonical JSON of a pattern."""
    return _dump(_write(pattern, 0))


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _write(pattern: Pattern, depth: int) -> dict[str, Any]:
    """The pattern as an object; the first `depth` steps of each path are left out."""
    out: dict[str, Any] = {}
    for field in pattern.fields:
        above = _object_at(out, field.path[depth:-1])
        written = {
            _dump(one): one for part in field.alternatives for one in _write_alternative(part)
        }
        above[field.path[-1]] = [written[text] for text in sorted(written)]
    for choice in pattern.choices:
        options = {_dump(one): one
                   for one in (_write(option, len(choice.path)) for option in choice.options)
                   }  # fmt: skip
        texts = sorted(options)
        # a $or with only one option would not be parsed as a choice, so the option is written twice
        texts = texts * 2 if len(texts) == 1 else texts
        _object_at(out, choice.path[depth:])[OR] = [options[text] for text in texts]
    return out


def _object_at(out: dict[str, Any], path: Path) -> dict[str, Any]:
    for step in path:
        out = out.setdefault(step, {})
    return out


def _write_alternative(one: Alternative) -> list[Any]:
    kind, values = one.kind, one.values
    if one.but:
        inner: Any = sorted(values) if len(values) > 1 else values[0]
        return [{"anything-but": inner if kind == EXACT else {kind: inner}}]
    if kind == ABSENT:
        return [{EXISTS: False}]
    if kind == EXISTS:
        return [{EXISTS: True}]
    if kind == NULL:
        return [None]
    if kind == EXACT:
        return list(values)
    if kind == NUMERIC:
        return [{kind: [part for pair in values for part in pair]}]
    outer, _, within = kind.partition("/")
    return [{outer: {within: value} if within else value} for value in values]
