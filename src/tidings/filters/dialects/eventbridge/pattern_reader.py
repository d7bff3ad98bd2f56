"""Parse the JSON of an event pattern. A FilterError says where the problem is, what was found and
what was expected.

A FilterError names a place in the form `$.detail.state[0]` and also gives its position in the text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NoReturn

from tidings.filters.dialects.eventbridge import complexity
from tidings.filters.dialects.eventbridge.pattern import (
    ABSENT,
    CIDR,
    EXACT,
    EXISTS,
    NULL,
    NUMERIC,
    OR,
    PREFIX,
    PREFIX_LETTERS,
    SAME_LETTERS,
    SUFFIX,
    SUFFIX_LETTERS,
    WILDCARD,
    Alternative,
    Choice,
    Path,
    Pattern,
    PatternField,
    count_combinations,
)
from tidings.filters.language.expression import MAX_DEPTH
from tidings.filters.language.tokens import MAX_FOREIGN
from tidings.filters.values import inet
from tidings.model import FilterError, is_number, normalise

MOST_COMBINATIONS = 1000
MOST_CHOICES = 20  # how many levels deep a $or may lie inside other $or
MOST_FIELDS = 100  # each field that may be a list adds an alternative to the expression
BUT = "anything-but"
TYPES = (PREFIX, SUFFIX, WILDCARD, SAME_LETTERS, NUMERIC, EXISTS, CIDR, BUT)
_RESERVED = frozenset({*TYPES, "exactly"})
_BUT_TYPES = (PREFIX, SUFFIX, WILDCARD, SAME_LETTERS)
_NAME = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
_SPACE = re.compile(r"[ \t\n\r]*")
_ESCAPE_OR_STARS = re.compile(r"\\[\\*]|(\\)|(\*\*)")
Place = tuple[str | int, ...]


def read_pattern(text: str) -> Pattern:
    """Parse a pattern from JSON."""
    if len(text) > MAX_FOREIGN:
        raise FilterError(
            f"found {len(text):,} characters, expected at most {MAX_FOREIGN:,}", text, MAX_FOREIGN
        )
    try:
        value = json.loads(text, object_pairs_hook=_read_object, parse_constant=_refuse_constant)
    except _Twice as twice:
        at = _find_second(text, twice.name)
        reason = f"found the field {twice.name!r} twice in one object, expected once"
        raise FilterError(reason, text, at) from None
    except json.JSONDecodeError as bad:
        raise FilterError(f"this is not JSON: {_lower(bad.msg)}", text, bad.pos) from None
    except RecursionError:
        raise FilterError("this JSON is nested too deeply for a pattern", text) from None
    except ValueError as bad:
        raise FilterError(f"this is not JSON: {bad}", text) from None
    return _Reader(text).read(value)


class _Twice(Exception):
    def __init__(self, name: str) -> None:
        self.name = name


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Twice(name)
            seen.add(name)
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"found {word}, which JSON does not allow")


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.count = 0  # the number of fields with values

    def read(self, value: Any) -> Pattern:
        if not isinstance(value, dict):
            self.fail((), value, 'an object such as {"source": ["aws.ec2"]}')
        pattern = self.object(value, (), ())
        count = count_combinations(pattern)
        if count > MOST_COMBINATIONS:
            self.refuse(
                (),
                f"found {count:,} combinations of $or, expected at most {MOST_COMBINATIONS:,}",
            )
        return pattern

    def refuse(self, place: Place, reason: str) -> NoReturn:
        raise FilterError(f"{path_text(place)}: {reason}", self.text, position(self.text, place))

    def fail(self, place: Place, found: Any, expected: str) -> NoReturn:
        self.refuse(place, f"found {show_json(found)}, expected {expected}")

    # -- objects and fields --------------------------------------------------------------------

    def object(self, value: dict[str, Any], path: Path, place: Place) -> Pattern:
        if not value:
            self.fail(place, value, "at least one field")
        fields: list[PatternField] = []
        choices: list[Choice] = []
        for name, inner in value.items():
            at = (*place, name)
            if not name:
                self.refuse(at, "found a field without a name, expected at least one character")
            self.need_unicode(name, at)
            if name == OR and _is_choice(inner):
                if place.count(OR) >= MOST_CHOICES:
                    self.refuse((), f"found $or nested more than {MOST_CHOICES} deep")
                options = [self.object(one, path, (*at, n)) for n, one in enumerate(inner)]
                choices.append(Choice(path, tuple(options)))
            elif isinstance(inner, dict):
                if len(path) == MAX_DEPTH - 1:
                    self.refuse(at, f"found more than {MAX_DEPTH} levels of fields")
                below = self.object(inner, (*path, name), at)
                fields += below.fields
                choices += below.choices
            elif isinstance(inner, list):
                self.count += 1
                if self.count > MOST_FIELDS:
                    self.refuse((), f"found more than {MOST_FIELDS} fields with values")
                fields.append(PatternField((*path, name), self.alternatives(inner, at)))
            else:
                self.fail(at, inner, "an array of values, or an object of fields")
        return Pattern(tuple(fields), tuple(choices))

    def alternatives(self, values: list[Any], place: Place) -> tuple[Alternative, ...]:
        if not values:
            self.fail(place, values, "at least one value in the array")
        if place[-1] == OR and any(
            isinstance(v, dict) and not _RESERVED & v.keys() for v in values
        ):
            self.refuse(place, f"found {_short_or(values)}, expected two or more objects of fields")
        exact: list[Any] = []
        out: list[Alternative] = []
        for number, value in enumerate(values):
            at = (*place, number)
            if isinstance(value, dict):
                out.append(self.match(value, at))
            elif isinstance(value, list):
                self.fail(at, value, "a string, a number, true, false, null or a match object")
            elif value is None:
                out.append(Alternative(NULL))
            else:
                exact.append(self.scalar(value, at))
        first = [Alternative(EXACT, tuple(exact))] if exact else []
        if complexity.measure(one.values for one in out if one.kind == WILDCARD) > complexity.MOST:
            self.refuse(
                place,
                "found wildcards that are too complex, expected fewer of them, fewer * in them, or "
                "fewer repeated characters after a *",
            )
        return (*first, *out)

    def scalar(self, value: Any, place: Place) -> Any:
        if is_number(value):
            return self.number(value, place)
        if isinstance(value, str):
            self.need_unicode(value, place)
        return value

    def number(self, value: Any, place: Place) -> int | float:
        number = normalise(value)
        if not math.isfinite(number):
            self.refuse(place, "found a number that exceeds the largest double")
        found: int | float = number
        if isinstance(found, float) and found.is_integer() and abs(found) < 2**63:
            return int(found)  # 300.0 and 3e2 are read as 300
        return found

    def need_unicode(self, value: str, place: Place) -> None:
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            self.refuse(place, "found an unpaired surrogate, expected valid Unicode")

    # -- matches -------------------------------------------------------------------------------

    def match(self, value: dict[str, Any], place: Place) -> Alternative:
        name, inner = self.only(value, place, TYPES)
        at = (*place, name)
        if name == "exactly":
            return Alternative(EXACT, (self.string(inner, at),))
        read = _MATCHES.get(name)
        if read is None:
            self.refuse(
                place, f"found the match type '{name[:40]}', expected one of {_list_kinds(TYPES)}"
            )
        return read(self, inner, at)

    def only(self, value: dict[str, Any], place: Place, kinds: tuple[str, ...]) -> tuple[str, Any]:
        """The name and the value in an object that has only one name."""
        if len(value) != 1:
            found = ", ".join(value) if value else "an empty object"
            one = "one of " if len(kinds) > 1 else ""
            self.refuse(place, f"found {found[:80]}, expected exactly {one}{_list_kinds(kinds)}")
        return next(iter(value.items()))

    def string(self, value: Any, place: Place) -> str:
        if not isinstance(value, str):
            self.fail(place, value, "a string")
        self.need_unicode(value, place)
        return value

    def affix(self, kind: str, letters: str, value: Any, place: Place) -> Alternative:
        if not isinstance(value, dict):
            if not isinstance(value, str):
                self.fail(place, value, f"a string, or an object with {SAME_LETTERS}")
            return Alternative(kind, (self.string(value, place),))
        name, inner = self.only(value, place, (SAME_LETTERS,))
        if name != SAME_LETTERS:
            self.refuse(place, f"found '{name[:40]}' within {kind}, expected {SAME_LETTERS}")
        return Alternative(letters, (self.string(inner, (*place, name)),))

    def prefix(self, value: Any, place: Place) -> Alternative:
        return self.affix(PREFIX, PREFIX_LETTERS, value, place)

    def suffix(self, value: Any, place: Place) -> Alternative:
        return self.affix(SUFFIX, SUFFIX_LETTERS, value, place)

    def same_letters(self, value: Any, place: Place) -> Alternative:
        return Alternative(SAME_LETTERS, (self.string(value, place),))

    def wildcard(self, value: Any, place: Place) -> Alternative:
        return Alternative(WILDCARD, (self.wild(value, place),))

    def wild(self, value: Any, place: Place) -> str:
        pattern = self.string(value, place)
        for found in _ESCAPE_OR_STARS.finditer(pattern):
            if found[1]:
                self.refuse(
                    place,
                    f"found a backslash at character {found.start() + 1} of the wildcard, "
                    "expected it only before * or another backslash",
                )
            if found[2]:
                self.refuse(
                    place,
                    f"found ** at character {found.start() + 1} of the wildcard, "
                    "expected one * between other characters",
                )
        return pattern

    def exists(self, value: Any, place: Place) -> Alternative:
        if not isinstance(value, bool):
            self.fail(place, value, "true or false")
        return Alternative(EXISTS if value else ABSENT)

    def cidr(self, value: Any, place: Place) -> Alternative:
        text = self.string(value, place)
        try:
            network = inet.network(text)
        except ValueError:
            network = None
        if network is None or "/" not in text or not text.rpartition("/")[2].isdigit():
            self.fail(place, value, "a network such as 10.0.0.0/8 or 2001:db8::/32")
        if network.prefixlen == network.max_prefixlen:
            most = network.max_prefixlen - 1
            hint = "write a single address as a plain string"
            self.fail(place, value, f"a mask of at most {most} bits; {hint}")
        return Alternative(CIDR, (str(network),))

    def numeric(self, value: Any, place: Place) -> Alternative:
        if not isinstance(value, list) or not value:
            self.fail(place, value, 'an array such as [">", 0, "<=", 5]')
        if len(value) not in (2, 4):
            self.refuse(
                place,
                f"found an array of length {len(value)}, expected one or two pairs of a comparison "
                "and a number",
            )
        pairs = []
        for at in range(0, len(value), 2):
            op, number = value[at], value[at + 1]
            expected = _COMPARISONS if at == 0 else ("<", "<=")
            if op not in expected:
                self.fail((*place, at), op, f"one of {' '.join(expected)}")
            if not is_number(number):
                self.fail((*place, at + 1), number, "a number")
            pairs.append((op, self.number(number, (*place, at + 1))))
        if len(pairs) == 2:
            (first, low), (_, high) = pairs
            if first not in (">", ">="):
                self.refuse(place, f"found a range that begins with {first}, expected > or >=")
            if not low < high:
                self.refuse(place, f"found a range from {low} to {high}, expected it to increase")
        return Alternative(NUMERIC, tuple(pairs))

    def but(self, value: Any, place: Place) -> Alternative:
        if isinstance(value, dict):
            name, inner = self.only(value, place, _BUT_TYPES)
            if name not in _BUT_TYPES:
                self.refuse(
                    place,
                    f"found '{name[:40]}' within {BUT}, expected one of {_list_kinds(_BUT_TYPES)}",
                )
            return self.but_match(name, inner, (*place, name))
        values = value if isinstance(value, list) else [value]
        if not values:
            self.fail(place, value, "at least one string or number")
        for number, one in enumerate(values):
            if not isinstance(one, str) and not is_number(one):
                at = (*place, number) if isinstance(value, list) else place
                self.fail(at, one, "a string or a number")
        if len({isinstance(one, str) for one in values}) > 1:
            self.refuse(place, "found strings and numbers, expected all strings or all numbers")
        return Alternative(EXACT, _sort_values([self.scalar(one, place) for one in values]), True)

    def but_match(self, name: str, value: Any, place: Place) -> Alternative:
        values = value if isinstance(value, list) else [value]
        if not values:
            self.fail(place, value, "at least one string")
        out = []
        for number, one in enumerate(values):
            at = (*place, number) if isinstance(value, list) else place
            text = self.wild(one, at) if name == WILDCARD else self.string(one, at)
            if not text and name in (PREFIX, SUFFIX):
                self.fail(at, text, f"a {name} of at least one character")
            out.append(text)
        return Alternative(name, _sort_values(out), True)


def _sort_values(values: list[Any]) -> tuple[Any, ...]:
    return tuple(sorted(set(values)))


_COMPARISONS = ("=", "<", "<=", ">", ">=")
_MATCHES: dict[str, Callable[[_Reader, Any, Place], Alternative]] = {
    PREFIX: _Reader.prefix,
    SUFFIX: _Reader.suffix,
    SAME_LETTERS: _Reader.same_letters,
    WILDCARD: _Reader.wildcard,
    EXISTS: _Reader.exists,
    CIDR: _Reader.cidr,
    NUMERIC: _Reader.numeric,
    BUT: _Reader.but,
}


def _is_choice(value: Any) -> bool:
    """Whether `$or` is a choice, that is, whether its value is a list of two or more objects with
    fields. If `$or` is not a choice, it is a field of that name; before the operator existed,
    patterns could have such fields."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(one, dict) and one and not _RESERVED & one.keys() for one in value)
    )


def _short_or(values: list[Any]) -> str:
    return "one object" if len(values) == 1 else "a value that is not an object of fields"


def _list_kinds(kinds: tuple[str, ...]) -> str:
    return ", ".join(kinds)


def show_json(value: Any) -> str:
    """A value as JSON, or just its kind if it is an object or array."""
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        return "an array" if value else "an empty array"
    text = _quote(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _quote(value: Any) -> str:
    """A value as printable JSON."""
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())


def path_text(place: Place) -> str:
    """Write a place as `$.detail.state[0]`; a name with special characters goes in brackets."""
    out = "$"
    for step in place:
        if isinstance(step, int):
            out += f"[{step}]"
        elif _NAME.fullmatch(step):
            out += f".{step}"
        else:
            out += f"[{_quote(step)}]"
    return out


def position(text: str, place: Place) -> int:
    """The offset of the value at a place, in valid JSON."""
    at = _skip_space(text, 0)
    skip = json.JSONDecoder().raw_decode
    for step in place:
        at = _skip_space(text, at + 1)
        count = 0
        while True:
            if isinstance(step, str):
                name, beyond = scanstring(text, at + 1)
                at = _skip_space(text, _skip_space(text, beyond) + 1)
                if name == step:
                    break
            elif count == step:
                break
            count += 1
            _, beyond = skip(text, at)
            at = _skip_space(text, _skip_space(text, beyond) + 1)
    return at


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _find_second(text: str, name: str) -> int:
    """The last occurrence of a name; this is an approximation, because json reports no position."""
    return max(text.rfind(json.dumps(name)), text.rfind(json.dumps(name, ensure_ascii=False)), 0)
