"""The table `relations` of a rendezvous point's file: what the channel knows about contexts.

[relations]                      the shipped example files
place = "city"                   the attributes that have the place, the time, tags, a person
time = "day"
tag = "topics"
person = "author"
coordinates = ["lat", "lon"]     used if no known place is named
text = "title"                   tags are drawn from its words

[relations]
folder = "relations"             with places.csv, calendar.toml, tags.toml, people.toml; relative
language = ""                    tags are not stemmed
dictionary = {tag = "words.csv"}    by context, the file that explains names these files lack
weights = {near_km = 50, descendant = 0.5}
limit = 1.0                      the merit at which a router sends at once
store = {least = 2, most = 10000}    how much a node remembers
order = "merit"                  under overload, publications of the highest merit go first
ageing = 600                     seconds of waiting that raise the merit of a publication by 1

[relations]                      in the file of a router: no attributes, no order, all else as above
folder = "relations"
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from tidings.model import Problem, TidingsError

if TYPE_CHECKING:
    from tidings.relations import RelationSettings, SemanticStore
    from tidings.relations.semantic import NameLookup
    from tidings.routing.learning import EarlySettings

Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class WeightsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of `tidings.relations.Weights` that a file sets."""

    ancestor: Share | None = None
    descendant: Share | None = None
    people: dict[str, Share] | None = None
    near_km: Positive | None = None
    near_days: Positive | None = None
    height: Annotated[float, msgspec.Meta(ge=0)] | None = None
    links: Annotated[int, msgspec.Meta(ge=0, le=64)] | None = None
    best: Annotated[int, msgspec.Meta(ge=1)] | None = None


class StoreTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of `tidings.relations.StoreSettings` that a file sets."""

    least: Annotated[int, msgspec.Meta(ge=1)] | None = None
    most: Annotated[int, msgspec.Meta(ge=1)] | None = None
    keep: Positive | None = None
    radius_km: Positive | None = None
    radius_days: Positive | None = None


class DictionaryTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files of dictionaries, by the context of the names that they explain."""

    place: str | None = None
    tag: str | None = None
    person: str | None = None


class RelationsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table as the file has it. If the table names no attributes of contexts, the channel has
    no relations."""

    folder: str | None = None
    dictionary: DictionaryTable = DictionaryTable()
    language: str = "english"
    place: str | None = None
    coordinates: tuple[str, ...] = ()
    time: str | None = None
    tag: str | None = None
    text: str | None = None
    person: str | None = None
    weights: WeightsTable = WeightsTable()
    limit: Positive | None = None
    hops: Annotated[int, msgspec.Meta(ge=1)] | None = None
    store: StoreTable = StoreTable()
    order: Literal["arrival", "merit"] = "arrival"
    ageing: Positive | None = None

    def list_given(self) -> dict[str, Any]:
        """The settings in the file, by their names in the file."""
        return _present(self)

    def at(self, folder: Path) -> RelationsTable:
        """The same table with absolute paths, for a file in another folder."""

        def absolute(path: str) -> str:
            return str((folder / path).absolute())

        return msgspec.structs.replace(
            self,
            folder=None if self.folder is None else absolute(self.folder),
            dictionary=DictionaryTable(
                **{one: absolute(path) for one, path in _present(self.dictionary).items()}
            ),
        )

    def for_router(self) -> RelationsTable:
        """The same table without attributes, which routers don't read."""
        return msgspec.structs.replace(
            self, place=None, coordinates=(), time=None, tag=None, text=None, person=None
        )

    def load(self, folder: Path) -> RelationSettings:
        """The settings in the table, with the files that it names loaded; `folder` is the folder of
        the table's file. Raises TidingsError if the table can't be used."""
        from tidings.relations import (  # loads the kernels, which most nodes don't need
            EXAMPLES,
            Limit,
            Reading,
            RelationSettings,
            StoreSettings,
            Weights,
            load_relations,
        )

        reading = Reading(
            self.place, self.coordinates, self.time, self.tag, self.text, self.person
        )  # fmt: skip
        files = EXAMPLES if self.folder is None else folder / self.folder
        semantic = load_relations(files, language=self.language or None)
        found = RelationSettings(
            semantic,
            reading,
            Weights(**_present(self.weights)),
            Limit(**self._limits()),
            StoreSettings(**_present(self.store)),
            self.order,
            asking=self._load_asking(semantic, folder),
        )
        return found if self.ageing is None else found._replace(ageing=self.ageing)

    def load_serving(self, folder: Path) -> EarlySettings:
        """Like `load`, for a router, which reads no attributes. Raises TidingsError if the table
        can't be used, or if it names attributes."""
        from tidings.relations import EXAMPLES, Limit, Weights, load_relations
        from tidings.routing.learning import EarlySettings

        given = (self.place, self.time, self.tag, self.text, self.person, *self.coordinates)
        named = [one for one in given if one is not None]
        if named:
            raise TidingsError(
                f"found the attribute {named[0]!r} in the file of a router; name attributes only "
                "in the file of the rendezvous point"
            )
        files = EXAMPLES if self.folder is None else folder / self.folder
        semantic = load_relations(files, language=None)  # routers need no stemming
        found = EarlySettings(
            semantic, Weights(**_present(self.weights)), Limit(**self._limits()),
            asking=self._load_asking(semantic, folder),
        )  # fmt: skip
        return found._replace(store=msgspec.structs.replace(found.store, **_present(self.store)))

    def _load_asking(self, semantic: SemanticStore, folder: Path) -> NameLookup | None:
        from tidings.relations import load_dictionary
        from tidings.relations.semantic import NameLookup, join_dictionaries

        files: dict[Any, str] = _present(self.dictionary)
        if not files:
            return None
        return NameLookup(
            semantic,
            join_dictionaries(
                {one: load_dictionary(one, folder / path) for one, path in files.items()}
            ),
        )

    def _limits(self) -> dict[str, Any]:
        given = {"merit": self.limit, "hops": self.hops}
        return {name: one for name, one in given.items() if one is not None}


def _present(table: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in table.__struct_fields__:
        value = getattr(table, name)
        if isinstance(value, msgspec.Struct):
            value = _present(value)
        if value is not None and value not in ({}, ()):
            found[name] = value
    return found


def find_relations_problems(
    table: RelationsTable | None, folder: Path, *, of_router: bool = False
) -> Iterator[Problem]:
    """Load the files, and yield the problems that a check of types can't find."""
    if table is None:
        return
    try:
        if of_router:
            table.load_serving(folder)
        else:
            table.load(folder)
    except TidingsError as problem:
        yield Problem(("relations",), f"relations: {problem}")
