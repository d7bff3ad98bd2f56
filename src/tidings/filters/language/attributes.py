"""The attributes that a channel declares: names, types, ontologies.

The parser checks filters against them. It refuses a name that is not declared and suggests similar
names. It refuses a comparison of types that do not compare. It reads a string as a date or number
if it is compared with one, and on an integer it treats `x > 10` as `x >= 11`.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from tidings.filters.language.sql_writer import name_text
from tidings.filters.values.ontology import Ontology
from tidings.model import (
    TYPES,
    AttributesError,
    Event,
    NotificationError,
    Type,
    from_micros,
    micros,
    normalise,
    read_value,
    type_of,
)

Path = tuple[str, ...]

_FAMILY: dict[str, str] = {"integer": "number", "double": "number", "date": "time",
                           "timestamp": "time"}  # fmt: skip
_A = {"integer": "an integer"}


def family(kind: str | None) -> str | None:
    """The family of a type; types compare within a family. Integers and doubles are numbers, dates
    and timestamps are times."""
    return None if kind is None else _FAMILY.get(kind, kind)


def article(kind: str) -> str:
    return _A.get(kind, f"a {kind}")


class Attributes:
    """Declared attributes. `{"price": "double", "user.city": "string", "topic": Ontology(...)}`.

    If `closed` (the default), a filter may use only these. Otherwise it may use undeclared
    attributes, which can have any type. `subject` is always declared.
    """

    def __init__(self, types: Mapping[str, Type | Ontology], *, closed: bool = True) -> None:
        self.closed = closed
        self.known: dict[str, Any] = {}  # a cache for the fast SQL parser: attributes by name
        self._types: dict[Path, Type] = {("subject",): "string"}
        self._ontologies: dict[Path, Ontology] = {}
        self._open: set[Path] = set()  # structs whose fields are not declared one by one
        for name, kind in types.items():
            path = tuple(name.split("."))
            if not all(path):
                raise AttributesError(f"'{name}' is not a valid name: a field in it is empty")
            if isinstance(kind, Ontology):
                self._ontologies[path] = kind
                kind = "string"
            if kind not in TYPES:
                expected = ", ".join(TYPES)
                raise AttributesError(f"'{name}' has the type '{kind}', expected one of {expected}")
            if path == ("subject",) and kind != "string":
                raise AttributesError(f"'subject' has the type '{kind}', expected string")
            self._types[path] = kind
            if kind == "struct":
                self._open.add(path)
            for cut in range(1, len(path)):
                self._types.setdefault(path[:cut], "struct")
        self._check_structs()

    def declared(self) -> dict[str, Any]:
        """The whole declaration in a form that JSON can store; `from_declared` reads it."""
        types: dict[str, Any] = {".".join(path): kind for path, kind in self._types.items()}
        for path, ontology in self._ontologies.items():
            types[".".join(path)] = {"ontology": ontology.declared()}
        opened = sorted(".".join(path) for path in self._open)
        return {"types": types, "open": opened, "closed": self.closed}

    @classmethod
    def from_declared(cls, found: Mapping[str, Any]) -> Attributes:
        """Rebuild attributes from the result of `declared`."""
        types = {
            name: Ontology(kind["ontology"]) if isinstance(kind, Mapping) else kind
            for name, kind in found["types"].items()
            if kind != "struct" or name in found["open"]
        }
        return cls(types, closed=found["closed"])

    def _check_structs(self) -> None:
        for path in self._types:
            above = self._types.get(path[:-1], "struct")
            if above not in ("struct", "list"):
                raise AttributesError(
                    f"'{name_text(path)}' is a field of '{name_text(path[:-1])}', which is "
                    f"{article(above)}, expected a struct"
                )

    def __contains__(self, path: object) -> bool:
        return path in self._types

    def __iter__(self) -> Iterator[Path]:
        return iter(self._types)

    def type(self, path: Path) -> Type | None:
        return self._types.get(path)

    def ontology(self, path: Path) -> Ontology | None:
        return self._ontologies.get(path)

    def near(self, path: Path) -> list[str]:
        """Declared names with a similar spelling."""
        names = {name_text(p).lower(): name_text(p) for p in self._types}
        close = difflib.get_close_matches(name_text(path).lower(), names, n=3)
        return [names[name] for name in close]

    def problem(self, path: Path) -> str | None:
        """One sentence that says why a filter may not use this name; None if it may."""
        if not self.closed or path in self._types:
            return None
        if any(path[:size] in self._open for size in range(1, len(path))):
            return None
        near = self.near(path)
        hint = f"did you mean {' or '.join(near)}?" if near else f"expected {self._list_names()}"
        return f"there is no attribute '{name_text(path)}'; {hint}"

    def _list_names(self) -> str:
        names = sorted(name_text(p) for p, kind in self._types.items() if kind != "struct")
        rest = len(names) - 8
        return "one of " + ", ".join(names[:8]) + (f" and {rest} more" if rest > 0 else "")

    def read(self, event: Event) -> dict[str, Any]:
        """Convert each declared attribute of a notification to its type, or NotificationError.

        A string is parsed as the type (JSON has dates only as strings). A whole double becomes an
        integer, and an integer becomes a double. Any other value must have the type or be null.
        """
        out = dict(event)
        for path, kind in self._types.items():
            if len(path) == 1 and out.get(path[0]) is not None:
                out[path[0]] = conform(normalise(out[path[0]]), kind, path)
            elif len(path) > 1 and kind != "struct" and path[0] in out:
                out[path[0]] = _conform_below(out[path[0]], path, kind, 1)
        return out


def _conform_below(value: Any, path: Path, kind: Type, depth: int) -> Any:
    """Convert the value at the rest of the path in a struct, or in each struct of a list."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_conform_below(one, path, kind, depth) for one in value]
    if not isinstance(value, Mapping):
        return conform(normalise(value), "struct", path[:depth])
    out, name = dict(value), path[depth]
    if out.get(name) is not None:
        if depth == len(path) - 1:
            out[name] = conform(normalise(out[name]), kind, path)
        else:
            out[name] = _conform_below(out[name], path, kind, depth + 1)
    return out


def _fits(value: float) -> bool:
    return value.is_integer() and -(2.0**63) <= value < 2.0**63


def conform(value: Any, kind: Type, path: Path) -> Any:
    """Convert a plain value to the type that is declared for the path, or NotificationError."""
    have = type_of(value)
    if have == kind or value is None:
        return value
    if have == "string" and kind not in ("list", "struct"):
        try:
            return read_value(value, kind)
        except ValueError as problem:
            raise NotificationError(
                f"attribute '{name_text(path)}': {problem}, expected {article(kind)}"
            ) from None
    if kind == "double" and have == "integer":
        return float(value)
    if kind == "integer" and have == "double" and _fits(value):
        return int(value)
    if kind == "timestamp" and have == "date":
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if kind == "date" and have == "timestamp" and type_of(from_micros(micros(value))) == "date":
        return from_micros(micros(value))  # a midnight
    text = str(value) if isinstance(value, dt.date) else repr(value)
    found = f"{text[:60]}, {article(have)}" if have else text[:60]
    raise NotificationError(
        f"attribute '{name_text(path)}': found {found}, expected {article(kind)}"
    )
