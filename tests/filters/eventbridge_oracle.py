"""What an event pattern means, straight from its definition and with no thought of speed.

It works as event-ruler is described to: the event is flattened into leaves, each with the elements
of arrays that it lies in; `$or` is multiplied out; fields are taken in the order of their names,
and leaves are picked for them that do not lie in different elements of one array. It shares nothing
with the code it judges. A dot in a name is no step, which is where tidings differs.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

Path = tuple[str, ...]
Leaf = tuple[Path, Any, dict[str, int]]  # where it is, its value, array -> element
Rule = list[tuple[Path, list[Any]]]

_WORDS = {"prefix", "suffix", "wildcard", "equals-ignore-case", "numeric", "exists", "cidr",
          "anything-but", "exactly"}  # fmt: skip


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    leaves = list(_leaves((), event, "", {}))
    rules = (sorted(rule, key=lambda field: ".".join(field[0])) for rule in _rules(pattern, ()))
    return any(_search(rule, leaves, {}) for rule in rules)


def _leaves(path: Path, value: Any, place: str, membership: dict[str, int]) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves((*path, key), inner, f"{place}/{key}", membership)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(path, inner, f"{place}/{at}", {**membership, place: at})
    else:
        yield path, value, membership


def _rules(pattern: dict[str, Any], path: Path) -> list[Rule]:
    parts: list[list[Rule]] = []
    for key, value in pattern.items():
        if key == "$or" and _is_or(value):
            parts.append([rule for one in value for rule in _rules(one, path)])
        elif isinstance(value, dict):
            parts.append(_rules(value, (*path, key)))
        else:
            parts.append([[((*path, key), value)]])
    return [[field for rule in picked for field in rule] for picked in product(*parts)]


def _is_or(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2:
        return False
    return all(isinstance(one, dict) and one and not _WORDS & set(one) for one in value)


def _search(fields: Rule, leaves: list[Leaf], membership: dict[str, int]) -> bool:
    if not fields:
        return True
    (path, alternatives), rest = fields[0], fields[1:]
    reachable = [
        (value, {**membership, **where})
        for leaf, value, where in leaves
        if leaf == path and all(membership.get(array, at) == at for array, at in where.items())
    ]
    if not reachable and any(one == {"exists": False} for one in alternatives):
        return _search(rest, leaves, membership)
    return any(
        any(_is(value, one) for one in alternatives) and _search(rest, leaves, joined)
        for value, joined in reachable
    )


def _is(value: Any, one: Any) -> bool:
    if not isinstance(one, dict):
        return _equal(value, one)
    ((word, wanted),) = one.items()
    if word == "exists":
        return bool(wanted)
    if word == "anything-but":
        if isinstance(wanted, dict):
            ((inner, options),) = wanted.items()
            several = options if isinstance(options, list) else [options]
            return not any(_is(value, {inner: option}) for option in several)
        several = wanted if isinstance(wanted, list) else [wanted]
        return not any(_equal(value, option) for option in several)
    if word == "numeric":
        return _number(value) and all(
            _compared(wanted[at], value, wanted[at + 1]) for at in range(0, len(wanted), 2)
        )
    if not isinstance(value, str):
        return False
    if isinstance(wanted, dict):
        (wanted,) = wanted.values()
        value, wanted = value.lower(), wanted.lower()
    match word:
        case "prefix":
            return bool(value.startswith(wanted))
        case "suffix":
            return bool(value.endswith(wanted))
        case "equals-ignore-case":
            return bool(value.lower() == wanted.lower())
        case "exactly":
            return bool(value == wanted)
        case "wildcard":
            return _wild(value, wanted)
        case _:
            return _in_network(value, wanted)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool) or value is None or wanted is None:
        return value is wanted
    return bool(value == wanted)


def _compared(op: str, value: float, bound: float) -> bool:
    return {"=": value == bound, "<": value < bound, "<=": value <= bound, ">": value > bound,
            ">=": value >= bound}[op]  # fmt: skip


def _wild(value: str, wanted: str) -> bool:
    # \\ and \* stand for themselves; what is left is for fnmatch, where ? and [ mean more
    pieces = re.findall(r"\\(.)|(\*)|(.)", wanted, re.DOTALL)
    glob = "".join("*" if star else f"[{escaped or other}]" if (escaped or other) in "*?[" else
                   (escaped or other) for escaped, star, other in pieces)  # fmt: skip
    return fnmatch.fnmatchcase(value, glob)


def _in_network(value: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
