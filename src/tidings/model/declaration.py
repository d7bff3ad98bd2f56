"""A declaration of attributes, read into one tree of types.

    {"price": "double", "user.city": "string", "user": {"age": "integer"}, "`geo.zone`": "string"}

       price: double     user: struct<city: string, age: integer>     `geo.zone`: string

There are three ways to write a field below another: a dotted name, a nested table as in TOML, and a
struct in the type. They mean the same, and may be mixed. All problems are reported, not only the
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from tidings.model.data_types import DataType, Field, Path, write_path
from tidings.model.errors import AttributesError, Problem
from tidings.model.type_text import parse_inline, parse_name, parse_type

Extra = Literal["open", "keep", "drop", "refuse"]
"""These words say what happens to fields that are not declared. In order: filters may use them;
they stay in the notification, but filters can't use them; they are removed; the notification is
refused."""
EXTRAS: tuple[Extra, ...] = get_args(Extra)

_A = {"integer": "an integer"}


def article(kind: str) -> str:
    """A type as words for a message: `an integer`, `a list`."""
    return _A.get(kind, f"a {kind}")


class _Entry(NamedTuple):
    path: Path
    type: DataType
    place: tuple[str, ...]  # the keys that lead to this entry in the file


def read_declaration(given: Mapping[str, Any] | str) -> dict[str, DataType]:
    """The type of each top-level attribute; raises AttributesError with all problems if there are
    any."""
    problems: list[Problem] = []
    entries: list[_Entry] = []
    if isinstance(given, str):
        pairs: list[tuple[str, Any]] = list(parse_inline(given))
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        raise AttributesError(
            f"found {type(given).__name__}, expected a mapping of names to types, "
            'such as {"price": "double"}'
        )
    _read_table(pairs, (), (), entries, problems)
    tree = _build(entries, (), problems)
    if problems:
        raise AttributesError(problems=problems)
    return tree


def _read_table(
    pairs: Iterable[tuple[Any, Any]],
    above: Path,
    place: tuple[str, ...],
    entries: list[_Entry],
    problems: list[Problem],
) -> None:
    for key, kind in pairs:
        here = (*place, str(key))
        try:
            path = (*above, *parse_name(str(key)))
            if isinstance(kind, Mapping):
                if not kind:
                    raise AttributesError(
                        f"'{write_path(path)}' has no fields, expected names with types; write "
                        "struct for fields of any type"
                    )
                _read_table(kind.items(), path, here, entries, problems)
            else:
                entries.append(_Entry(path, _read_type(path, kind), here))
        except AttributesError as problem:
            problems.append(Problem(here, str(problem)))


def _read_type(path: Path, kind: Any) -> DataType:
    if isinstance(kind, DataType):
        return kind
    try:
        return parse_type(kind)
    except AttributesError as problem:
        raise AttributesError(
            f"'{write_path(path)}' has the type '{kind!s:.80}': {problem}"
        ) from None


def _build(entries: list[_Entry], above: Path, problems: list[Problem]) -> dict[str, DataType]:
    """The types of everything that is declared directly below `above`."""
    groups: dict[str, list[_Entry]] = {}
    for one in entries:
        groups.setdefault(one.path[len(above)], []).append(one)
    found: dict[str, DataType] = {}
    for name, group in groups.items():
        path = (*above, name)
        own = [one for one in group if len(one.path) == len(path)]
        below = [one for one in group if len(one.path) > len(path)]
        twice = f"'{write_path(path)}' is declared twice"
        problems += [Problem(again.place, twice) for again in own[1:]]
        kind = own[0].type if own else DataType("struct")
        found[name] = _merge(kind, below, path, problems) if below else kind
    return found


def _merge(kind: DataType, below: list[_Entry], path: Path, problems: list[Problem]) -> DataType:
    """The same type, plus the fields that are declared below it."""
    if kind.kind == "list":
        element = DataType("struct") if kind.element is None else kind.element
        return DataType("list", _merge(element, below, path, problems))
    if kind.kind != "struct":
        for one in below:
            shown = write_path(one.path[: len(path) + 1])
            problems.append(
                Problem(
                    one.place,
                    f"'{shown}' is a field of '{write_path(path)}', which is "
                    f"{article(kind.kind)}, expected a struct",
                )
            )
        return kind
    place = below[0].place
    inside = [_Entry((*path, name), inner, place) for name, inner in kind.fields]
    fields = _build([*inside, *below], path, problems)
    return DataType(
        "struct",
        fields=tuple(Field(name, one) for name, one in fields.items()),
        is_open=kind.is_open,
    )


def need_extra(extra: str) -> Extra:
    """Return `extra` if it is one of the four valid words; otherwise raise AttributesError."""
    for one in EXTRAS:
        if extra == one:
            return one
    expected = ", ".join(f'"{one}"' for one in EXTRAS[:-1])
    raise AttributesError(f'extra is {extra!r:.40}, expected {expected} or "{EXTRAS[-1]}"')
