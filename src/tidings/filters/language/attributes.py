"""The attributes that a channel declares: names, types, ontologies.

The parser checks filters against the declared attributes. The parser refuses a name that is not
declared, and suggests similar names. The parser refuses a comparison of types that can't be
compared. A string that is compared with a date or a number is parsed as a date or a number. The
condition `x > 10` is treated as `x >= 11` if x is an integer.

`Attributes.type` gives the name of a type (`list`), and `Attributes.data_type` gives the full type
(`list<struct<sku: string>>`); both take a path as in a filter: ("user", "city"). For a path through
a list, the type is a list of the field's type; for a path into a map, it is the type of the map's
values.
"""

from __future__ import annotations

import datetime as dt
import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from tidings.filters.language.sql_writer import name_text
from tidings.filters.values.topics import Ontology
from tidings.model import (
    AttributesError,
    DataType,
    Event,
    Extra,
    Field,
    NotificationError,
    Path,
    Type,
    article,
    fits_decimal,
    from_micros,
    look_at_rows,
    micros,
    need_extra,
    normalise,
    parse_name,
    read_declaration,
    read_value,
    type_of,
    type_of_arrow,
    type_of_spark,
    write_path,
)

Declared = str | DataType | Ontology | Mapping[str, Any]
Place = tuple[str | int, ...]
"""The path of a value: names of attributes, and numbers of list elements."""

_FAMILY: dict[str, str] = {"integer": "number", "double": "number", "decimal": "number",
                           "date": "time", "timestamp": "time"}  # fmt: skip


_PARTS = ("list", "struct", "map")
# A number may need more digits than a double has if it is this long. 16 digits without an exponent
# are an integer, which is decoded exactly.
_LONG = r"[0-9.]{17}|[0-9.]{16}[eE]"
_LONG_TEXT, _LONG_BYTES = re.compile(_LONG), re.compile(_LONG.encode())


def family(kind: str | None) -> str | None:
    """The family of a type; only values of the same family can be compared. Integers, doubles and
    decimals are numbers; dates and timestamps are times."""
    return None if kind is None else _FAMILY.get(kind, kind)


class Attributes:
    """Declared attributes: `{"price": "double", "tags": "list<string>", "user.city": "string"}`.

    A type is a string (see model/type_text.py), an `Ontology`, or a mapping of fields. `subject` is
    always declared. `extra` says what happens to undeclared fields: "open" (filters may use them,
    whatever their types), "keep" (they stay in the notification, but filters can't use them),
    "drop" (`read` removes them) or "refuse" (`read` raises). `closed=False` means `extra="open"`;
    the default of `extra` is "keep".
    """

    def __init__(
        self,
        types: Mapping[str, Declared] | str,
        *,
        closed: bool = True,
        extra: Extra | None = None,
    ) -> None:
        self.extra: Extra = ("keep" if closed else "open") if extra is None else need_extra(extra)
        self.known: dict[str, Any] = {}  # a cache for the fast SQL parser: attributes by name
        self._ontologies: dict[Path, Ontology] = {}
        found = read_declaration(_without_ontologies(types, (), self._ontologies))
        self.lists_subject = "subject" in found
        """Whether the declaration itself lists `subject`, which counts as declared in any case."""
        self._tree = {"subject": DataType("string"), **found}
        subject = self._tree["subject"]
        if subject.kind != "string":
            raise AttributesError(f"'subject' has the type '{subject}', expected string")
        self._types: dict[Path, DataType] = {}
        for name, kind in self._tree.items():
            self._types[(name,)] = kind
            for path, inner in kind.paths():
                self._types[(name, *path)] = inner
        self._root = DataType("struct", fields=tuple(Field(*one) for one in self._tree.items()))
        self._has_decimals = _mentions_decimals(self._root)
        self._with_fields = [one for one in self._tree.items() if one[1].kind in _PARTS]

    @property
    def closed(self) -> bool:
        """Whether filters may use only declared attributes."""
        return self.extra != "open"

    @property
    def tree(self) -> Mapping[str, DataType]:
        """The type of each top-level attribute, in the order of the declaration."""
        return self._tree

    def __repr__(self) -> str:
        types = {write_path((name,)): str(kind) for name, kind in self._tree.items()}
        return f"Attributes({types!r}, extra={self.extra!r})"

    def to_declared(self) -> dict[str, Any]:
        """The whole declaration in a form that JSON can represent; `from_declared` reads it."""
        types: dict[str, Any] = {}
        opened: list[str] = []
        for name, kind in self._tree.items():
            self._declare((name,), kind, types, opened)
        found: dict[str, Any] = {"types": types, "open": sorted(opened), "closed": self.closed}
        if self.extra not in ("keep", "open"):
            found["extra"] = self.extra
        return found

    def _declare(
        self, path: Path, kind: DataType, types: dict[str, Any], opened: list[str]
    ) -> None:
        text = write_path(path)
        ontology = self._ontologies.get(path)
        types[text] = str(kind) if ontology is None else declare_ontology(ontology)
        if kind.kind == "struct":
            types[text] = "struct"
            if kind.is_open:
                opened.append(text)
            for name, inner in kind.fields:
                self._declare((*path, name), inner, types, opened)

    @classmethod
    def from_declared(cls, found: Mapping[str, Any]) -> Attributes:
        """Rebuild attributes from the result of `to_declared`."""
        types = {
            name: rebuild_ontology(kind) if isinstance(kind, Mapping) else kind
            for name, kind in found["types"].items()
            if kind != "struct" or name in found["open"]
        }
        return cls(types, closed=found["closed"], extra=found.get("extra"))

    @classmethod
    def from_arrow(cls, schema: Any, *, extra: Extra | None = None) -> Attributes:
        """The attributes that the columns of an Arrow schema declare; also accepts an object with a
        schema (a Table, a RecordBatch)."""
        fields = getattr(schema, "schema", schema)
        return cls(
            {write_path((one.name,)): type_of_arrow(one.type) for one in fields}, extra=extra
        )

    @classmethod
    def from_spark(cls, schema: Any, *, extra: Extra | None = None) -> Attributes:
        """The attributes given by the columns of a Spark schema or a DataFrame."""
        fields = getattr(schema, "schema", schema)
        types = {write_path((one.name,)): type_of_spark(one.dataType) for one in fields}
        return cls(types, extra=extra)

    @classmethod
    def from_json_sample(
        cls, rows: Iterable[Mapping[str, Any] | str | bytes], *, extra: Extra | None = None
    ) -> Attributes:
        """Infer the attributes from a sample of objects, or of their JSON texts. A field whose
        values have no common type is not declared."""
        read = (one if isinstance(one, Mapping) else msgspec.json.decode(one) for one in rows)
        fields = look_at_rows(read).fields.items()
        types = {write_path((name,)): one.type for name, one in fields if one.type is not None}
        return cls(types, extra=extra)

    def __contains__(self, path: object) -> bool:
        return path in self._types

    def __iter__(self) -> Iterator[Path]:
        return iter(self._types)

    def type(self, path: Path) -> Type | None:
        """The name of the type at a path, such as `list`; None if it is not declared."""
        found = self.data_type(path)
        return None if found is None else found.kind

    def data_type(self, path: Path) -> DataType | None:
        """The full type at a path, such as `list<string>`; None if it is not declared."""
        found = self._types.get(path)
        if found is not None or len(path) == 1:
            return found
        above = self.data_type(path[:-1])  # a map declares no fields of its own
        return None if above is None else above.step(path[-1])

    def ontology(self, path: Path) -> Ontology | None:
        return self._ontologies.get(path)

    @property
    def ontologies(self) -> Mapping[Path, Ontology]:
        """The attributes that have an ontology."""
        return self._ontologies

    def near(self, path: Path) -> list[str]:
        """Declared names whose spelling is similar."""
        names = {name_text(p).lower(): name_text(p) for p in self._types}
        close = difflib.get_close_matches(name_text(path).lower(), names, n=3)
        return [names[name] for name in close]

    def problem(self, path: Path) -> str | None:
        """One sentence that says why a filter may not use this name; None if it may."""
        if not self.closed or path in self._types or self.data_type(path) is not None:
            return None
        if any(self._is_open(path[:size]) for size in range(1, len(path))):
            return None
        near = self.near(path)
        hint = f"did you mean {' or '.join(near)}?" if near else f"expected {self._list_names()}"
        return f"there is no attribute '{name_text(path)}'; {hint}"

    def _is_open(self, path: Path) -> bool:
        found = self.data_type(path)
        while found is not None and found.kind == "list" and found.element is not None:
            found = found.element
        return found is not None and found.is_open

    def _list_names(self) -> str:
        names = sorted(name_text(p) for p, kind in self._types.items() if kind.kind != "struct")
        rest = len(names) - 8
        return "one of " + ", ".join(names[:8]) + (f" and {rest} more" if rest > 0 else "")

    def read(self, event: Event) -> dict[str, Any]:
        """Convert each declared attribute of a notification to its type; raise NotificationError if
        that is impossible.

        A string is parsed as the declared type (JSON has dates only as strings). A whole double
        becomes an integer, and an integer becomes a double. Any other value must have the declared
        type or be null.
        """
        out = dict(event)
        for name, kind in self._tree.items():
            value = out.get(name)
            if value is not None:
                out[name] = conform(_usual(value, kind), kind, (name,))
        if self.extra in ("drop", "refuse"):
            return self._without_extra(out)
        return out

    def decode(self, text: str | bytes) -> Any:
        """Decode JSON for `read`; a declared decimal is not rounded to a double. If the text is not
        JSON, msgspec's error is raised."""
        if not self._has_decimals or not _has_long_number(text):
            return _decode(text)
        return _round_others(_decode_exactly(text), self._root)

    def _without_extra(self, event: dict[str, Any]) -> dict[str, Any]:
        found: list[Path] = []
        kept: dict[str, Any] = split_extra(event, self._root, (), found)
        if found and self.extra == "refuse":
            raise NotificationError(self.problem(found[0]) or "")
        return kept

    def extra_fields(self, event: Event) -> list[Path]:
        """The paths of the fields of a notification that are not declared."""
        found: list[Path] = [(name,) for name in event if name not in self._tree]
        for name, kind in self._with_fields:
            if event.get(name) is not None:
                split_extra(event[name], kind, (name,), found)
        return found


def declare_ontology(ontology: Ontology) -> dict[str, Any]:
    """An ontology in a form that JSON can represent; `rebuild_ontology` reads it."""
    others = {"synonyms": ontology.synonyms, "retired": ontology.retired}
    return {"ontology": ontology.list_parents()} | {key: one for key, one in others.items() if one}


def rebuild_ontology(found: Mapping[str, Any]) -> Ontology:
    return Ontology(found["ontology"], found.get("synonyms"), found.get("retired"))


def _without_ontologies(types: Any, above: Path, found: dict[Path, Ontology]) -> Any:
    """The declaration, with `string` in place of each ontology; the ontologies are added to
    `found`."""
    if not isinstance(types, Mapping):
        return types
    out: dict[Any, Any] = {}
    for name, kind in types.items():
        if isinstance(kind, Ontology):
            found[(*above, *parse_name(name))] = kind
            out[name] = "string"
        elif isinstance(kind, Mapping):
            out[name] = _without_ontologies(kind, (*above, *parse_name(name)), found)
        else:
            out[name] = kind
    return out


def split_extra(value: Any, kind: DataType | None, path: Path, found: list[Path]) -> Any:
    """The value without its undeclared fields; the paths of these fields are added to `found`."""
    if kind is None or kind.kind not in ("struct", "list", "map"):
        return value
    if kind.kind == "list":
        if not isinstance(value, list) or kind.element is None:
            return value
        return [split_extra(one, kind.element, path, found) for one in value]
    if not isinstance(value, Mapping):
        return value
    if kind.kind == "map":
        return {
            name: split_extra(one, kind.element, (*path, name), found)
            for name, one in value.items()
        }
    out = {}
    for name, one in value.items():
        inner = kind.field(name)
        if inner is None and not kind.is_open:
            found.append((*path, name))
        else:
            out[name] = split_extra(one, inner, (*path, name), found)
    return out


def _has_long_number(text: str | bytes) -> bool:
    """Whether a text may contain a number with more digits than a double has. Looking for long
    numbers is far cheaper than decoding all numbers as decimals."""
    found = _LONG_TEXT.search(text) if isinstance(text, str) else _LONG_BYTES.search(text)
    return found is not None


def _read_number(text: str) -> Decimal:
    found = Decimal(text)
    if math.isinf(float(found)):
        raise ValueError("Number out of range")  # the same error that msgspec raises
    return found


_decode = msgspec.json.Decoder().decode
_decode_exactly = msgspec.json.Decoder(float_hook=_read_number).decode


def _round_others(value: Any, kind: DataType | None) -> Any:
    """The value, with decimals only where they are declared; elsewhere, decimals become doubles."""
    if isinstance(value, Decimal):
        return value if kind is not None and kind.kind == "decimal" else float(value)
    if isinstance(value, list):
        element = None if kind is None or kind.kind != "list" else kind.element
        return [_round_others(one, element) for one in value]
    if isinstance(value, dict):
        return {
            name: _round_others(one, None if kind is None else kind.field(name))
            for name, one in value.items()
        }
    return value


def _mentions_decimals(kind: DataType | None) -> bool:
    if kind is None:
        return False
    inner = (kind.element, *(field.type for field in kind.fields))
    return kind.kind == "decimal" or any(map(_mentions_decimals, inner))


def _fits(value: float) -> bool:
    return value.is_integer() and -(2.0**63) <= value < 2.0**63


def _usual(value: Any, kind: DataType) -> Any:
    """The value as `normalise` returns it, except that an integer of more than 64 bits stays exact
    if a decimal is declared."""
    if kind.kind == "decimal" and type(value) is int:
        return normalise(Decimal(value))
    return normalise(value)


def conform(value: Any, kind: DataType | Type, path: Place) -> Any:
    """Convert a normalised value to the type that is declared for the path; raise NotificationError
    if that is impossible."""
    whole = kind if isinstance(kind, DataType) else None
    name: str = kind.kind if isinstance(kind, DataType) else kind
    have = type_of(value)
    if value is None:
        return None
    if name in ("list", "struct", "map"):
        return _conform_parts(value, have, whole or DataType(name), path)  # type: ignore[arg-type]
    if name == "decimal":
        return _conform_decimal(value, have, whole, path)
    if have == name:
        return value
    if have == "string":
        try:
            return read_value(value, name)  # type: ignore[arg-type]
        except ValueError as problem:
            raise NotificationError(
                f"attribute '{_place_text(path)}': {problem}, expected {article(name)}"
            ) from None
    if name == "double" and have in ("integer", "decimal"):
        return float(value)
    if name == "integer" and have == "double" and _fits(value):
        return int(value)
    if name == "timestamp" and have == "date":
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if name == "date" and have == "timestamp" and type_of(from_micros(micros(value))) == "date":
        return from_micros(micros(value))  # a midnight
    raise _misfit(value, have, name, path)


def _place_text(path: Place) -> str:
    """The place of a value in a notification, such as `tags[1]`."""
    parts = (f"[{one}]" if isinstance(one, int) else f".{name_text((one,))}" for one in path)
    return "".join(parts).removeprefix(".")


def _misfit(value: Any, have: str | None, expected: str, path: Place) -> NotificationError:
    text = str(value) if isinstance(value, dt.date) else repr(value)
    found = f"{text[:60]}, {article(have)}" if have else text[:60]
    return NotificationError(
        f"attribute '{_place_text(path)}': found {found}, expected {article(expected)}"
    )


def _conform_parts(value: Any, have: str | None, kind: DataType, path: Place) -> Any:
    """Convert the elements of a list, the fields of a struct, or the values of a map."""
    if kind.kind == "list":
        if have != "list":
            raise _misfit(value, have, "list", path)
        element = kind.element
        if element is None:
            return value
        return [
            conform(_usual(one, element), element, (*path, number))
            for number, one in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        raise _misfit(value, have, kind.kind, path)
    out = dict(value)
    for name, one in value.items():
        inner = kind.field(name)
        if inner is not None and one is not None:
            out[name] = conform(_usual(one, inner), inner, (*path, str(name)))
    return out


def _conform_decimal(value: Any, have: str | None, kind: DataType | None, path: Place) -> Any:
    """Convert a number or a string to a decimal; a number with more digits than declared is
    refused."""
    what = "decimal" if kind is None else str(kind)
    if have == "string":
        try:
            value = read_value(value, "decimal")
        except ValueError as problem:
            raise NotificationError(
                f"attribute '{_place_text(path)}': {problem}, expected a {what}"
            ) from None
    elif have not in ("integer", "double", "decimal"):
        raise _misfit(value, have, what, path)
    if kind is not None and not fits_decimal(value, kind.precision, kind.scale):
        raise _misfit(value, None, what, path)
    return value
