"""The table `preprocessor` of a rendezvous point's file: the channel's kind of interest.

[preprocessor]                   filters, as without the table
kind = "content"

[preprocessor]                   topics of an ontology
kind = "topics"
ontology = "topics.yaml"         relative to the file
attribute = "topic"              the attribute of notifications that has the topic
synonyms = {soccer = "football"}

[preprocessor]                   types with inheritance and attributes
kind = "types"
attribute = "type"
nodes_for_types = 1000           the most nodes that exist only because of notifications
[preprocessor.types.quote]
extends = ["event"]
columns = {price = "double"}

[preprocessor]                   a class that is installed as an entry point
kind = "application"
class = "portfolios"
settings = {currency = "EUR"}

[preprocessor]                   any kind: predicates that filters may call
predicates = ["urgent"]          the names of entry points
predicate_millis = 500           the most milliseconds that one call may take
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tidings.filters import Ontology
from tidings.model import Problem, TidingsError, read_declaration, write_path
from tidings.preprocessing import (
    PREDICATE_MILLIS,
    KindDefinition,
    KindName,
    need_predicates,
    version_of,
)

# the settings of each kind besides `kind`
_SETTINGS: Mapping[KindName, tuple[str, ...]] = {
    "content": (),
    "topics": ("ontology", "attribute", "synonyms"),
    "types": ("types", "attribute", "synonyms", "nodes_for_types"),
    "application": ("class", "settings"),
}
_NEEDED: Mapping[KindName, str] = {
    "topics": "ontology", "types": "types", "application": "class",
}  # fmt: skip
_OF_ALL = ("kind", "predicates", "predicate_millis")  # settings that every kind has
_PLACE = ("preprocessor",)
MOST_NODES_FOR_TYPES = 100_000


class TypeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A type: the types that it inherits from, and its own attributes."""

    extends: str | tuple[str, ...] = ()
    columns: dict[str, Any] = {}


class PreprocessorTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table as the file has it."""

    kind: KindName = "content"
    ontology: str | None = None
    attribute: str | None = None
    synonyms: dict[str, str] | None = None
    types: dict[str, TypeTable] | None = None
    nodes_for_types: Annotated[int, msgspec.Meta(ge=0, le=MOST_NODES_FOR_TYPES)] | None = None
    entry_point: str | None = msgspec.field(name="class", default=None)
    settings: dict[str, Any] | None = None
    predicates: tuple[str, ...] | None = None
    predicate_millis: Annotated[int, msgspec.Meta(ge=1, le=60_000)] | None = None

    def list_given(self) -> dict[str, Any]:
        """The settings that the file has, by their names in the file."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {name: one for name, one in found.items() if one is not None}


def find_preprocessor_problems(table: PreprocessorTable) -> Iterator[Problem]:
    """The problems that a check of types can't find."""
    kind, given = table.kind, table.list_given().keys() - {*_OF_ALL}
    for name in sorted(given - {*_SETTINGS[kind]}):
        kinds = " or ".join(repr(one) for one, names in _SETTINGS.items() if name in names)
        yield Problem(
            (*_PLACE, name),
            f"preprocessor: found {name} with the kind '{kind}', expected it only with {kinds}",
        )
    needed = _NEEDED.get(kind)
    if needed is not None and not table.list_given().get(needed):
        yield Problem(_PLACE, f"preprocessor: found no {needed}, which the kind '{kind}' needs")
    if table.predicate_millis is not None and not table.predicates:
        yield Problem(
            (*_PLACE, "predicate_millis"),
            "preprocessor: found predicate_millis without predicates, expected both",
        )
    if table.attribute == "":
        yield Problem((*_PLACE, "attribute"), "preprocessor: attribute: found an empty name")


def read_preprocessor(table: PreprocessorTable, folder: Path) -> KindDefinition:
    """The definition that a table gives, with its ontology; raises TidingsError if its files, its
    class or its predicates can't be used."""
    found = _read_kind(table, folder)
    if not table.predicates:
        return found
    return msgspec.structs.replace(
        found,
        predicates=need_predicates(sorted(set(table.predicates))),
        predicate_millis=table.predicate_millis or PREDICATE_MILLIS,
    )


def _read_kind(table: PreprocessorTable, folder: Path) -> KindDefinition:
    if table.kind == "application":
        name = table.entry_point or ""
        return KindDefinition(
            table.kind, entry_point=name, version=version_of(name), settings=table.settings or {}
        )
    if table.kind == "content":
        return KindDefinition()
    parents: dict[str, tuple[str, ...]] = {}
    columns: dict[str, dict[str, str]] = {}
    if table.kind == "topics":
        from tidings.store import load_ontology  # loads the kernels, which routers don't need

        found = load_ontology(folder / (table.ontology or "")).list_parents()
    else:
        for name, one in (table.types or {}).items():
            parents[name] = (one.extends,) if isinstance(one.extends, str) else one.extends
            columns[name] = flatten_columns(one.columns)
        _need_types(parents)
        found = Ontology(parents).list_parents()
    made = KindDefinition(
        table.kind, table.attribute or table.kind.removesuffix("s"), columns=columns,
        nodes_for_types=table.nodes_for_types or 0,
    )  # fmt: skip
    return made.with_ontology(Ontology(found, table.synonyms))


def flatten_columns(columns: Mapping[str, Any]) -> dict[str, str]:
    """The declared attributes as one table of names and types."""
    if not columns:
        return {}
    return {write_path((name,)): str(kind) for name, kind in read_declaration(columns).items()}


def _need_types(parents: Mapping[str, tuple[str, ...]]) -> None:
    for name, above in parents.items():
        for one in above:
            if one not in parents:
                raise TidingsError(
                    f"types.{name}: found the type '{one}' in extends, expected one of "
                    f"{', '.join(parents)}"
                )
