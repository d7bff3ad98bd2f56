"""Filters that are as hard to read, to canonicalise and to place as their length allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator


def filled(make: Callable[[int], str], joiner: str, size: int) -> str:
    """As many parts as fit."""
    parts: list[str] = []
    length = 0
    while True:
        part = make(len(parts))
        length += len(part) + len(joiner)
        if length > size and parts:
            return joiner.join(parts)
        parts.append(part)


OR: dict[str, Callable[[int], str]] = {
    "distinct": lambda i: f"a{i} > {i}",
    "points": lambda i: f"a = {i}",
    "pairs": lambda i: f"(a{i} = 1 AND b{i} = 2)",
    "pairs of one": lambda i: f"(a = {i} AND b = {i})",
    "staircase": lambda i: f"(a > {i} AND b < {i} AND c != {i})",
    "likes": lambda i: f"a LIKE '%{i}%x%'",
    "prefix and suffix": lambda i: f"a LIKE 'x{i}%y{i}'",
    "regular": lambda i: f"a RLIKE 'x{i}.*y'",
    "regular of Unicode": lambda i: f"a RLIKE r'x{i}\\pL\\pN'",
    "compared": lambda i: f"a{i} < b{i}",
    "coalesced": lambda i: f"coalesce(a{i}, b{i}) = {i}",
    "contained": lambda i: f"array_contains(t, '{i}')",
    "unknown": lambda i: f"(a{i} > {i} AND b > 1) IS NULL",
    "subjects": lambda i: f"subject('a.*.{i}.>')",
    "networks": lambda i: f"cidr(a, '10.{i % 250}.{i // 250 % 250}.0/24')",
    "circles": lambda i: f"within_km(a, b, {i % 90}, {i % 180}, {i % 300 + 1})",
    "parts of times": lambda i: f"year(d) = {i} AND month(d) = {i % 12}",
}
AND: dict[str, Callable[[int], str]] = {
    "distinct": lambda i: f"a{i} > {i}",
    "holes": lambda i: f"a != {i}",
    "either": lambda i: f"(a{i} = 1 OR b{i} = 2)",
    "either of one": lambda i: f"(a = {i} OR b = {i})",
    "ranges": lambda i: f"(a > {i} OR b < {i % 7})",
    "likes": lambda i: f"a{i} LIKE '%{i}%x%'",
    "true": lambda i: f"((a{i} > {i} OR b < 1) IS TRUE)",
    "outcomes": lambda i: f"(a{i} > 1) IN (true, b{i})",
    "equal": lambda i: f"(a{i} > 1) = (b{i} < 2)",
    "long names": lambda i: f"{'n' * 2000}{i} > 1",
}
CESQL: dict[str, Callable[[int], str]] = {
    "distinct": lambda i: f"a{i} = {i}",
    "strings": lambda i: f"a{i} = 'x{i}'",
    "pairs": lambda i: f"(a{i} = {i} AND b{i} LIKE 'x%')",
    "likes": lambda i: f"a{i} LIKE '%{i}_x%'",
    "lists": lambda i: f"a{i} IN (1, '2', b{i})",
    "sums": lambda i: f"INT(a) + {i} = INT(b)",
}


def nasty(size: int) -> Iterator[tuple[str, str]]:
    """(name, text) of filters of up to this size, in the default dialect."""
    size -= 100
    for name, make in OR.items():
        yield f"or {name}", filled(make, " OR ", size)
    for name, make in AND.items():
        yield f"and {name}", filled(make, " AND ", size)
    points = ", ".join(map(str, range(60)))
    for name, test in (("sums", "a + {0} > {0}"), ("texts", "contains(lower(a), '{0}')")):
        tests = filled(test.format, " AND ", size - 300)
        yield f"pinned {name}", f"a IN ({points}) AND {tests}"
    yield "list", f"a IN ({filled(str, ',', size)})"
    yield "not in list", f"NOT a IN ({filled(str, ',', size)})"
    yield "list of attributes", f"a IN ({filled('b{0}'.format, ',', size)})"
    yield "array", f"arrays_overlap(t, array({filled(str, ',', size)}))"
    yield "long like", f"a LIKE '{'%ab' * ((size - 20) // 3)}'"
    yield "long like of places", f"a LIKE '{'a_b' * ((size - 20) // 3)}%'"
    yield (
        "not not",
        f"{'NOT (' * 40}{filled('a{0} > 1 OR b{0} < 2'.format, ' AND ', size - 300)}{')' * 40}",
    )
    for name, make in CESQL.items():
        for word in ("OR", "AND", "XOR"):
            text = filled(make, f" {word} ", size - 2 * size // 10)
            yield f"cesql {word} {name}", "cesql('" + text.replace("'", "''") + "')"
    patterns: dict[str, Callable[[int], dict[str, object]]] = {
        "fields": lambda i: {f"a{i}": [{"prefix": f"x{i}"}, i, {"numeric": [">", i]}]},
        "wildcards": lambda i: {f"a{i}": [{"wildcard": f"*x{i}*y*"}]},
        "absent": lambda i: {f"a{i}": [{"exists": False}, f"x{i}"]},
    }
    for name, field in patterns.items():
        pattern: dict[str, object] = {}
        while len(json.dumps(pattern)) < size - 200 and len(pattern) < 1_500:
            for _ in range(10):
                pattern |= field(len(pattern))
        yield f"pattern of {name}", f"event_pattern('{json.dumps(pattern)}')"
