"""Places by name: continents, countries, regions and cities as a tree, with coordinates."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.model import AttributesError
from tidings.relations.semantic.term_values import Place
from tidings.relations.semantic.tree import NameTree


class Gazetteer:
    """A tree of places. A place is added under a place that is already known."""

    def __init__(self) -> None:
        self.tree = NameTree()
        self._places: dict[str, Place] = {}

    def add(self, place: Place, inside: str | None = None, also: Iterable[str] = ()) -> Place:
        """Add a place, and return it."""
        check_coordinates(place)
        self.tree.add(place.name, [inside] if inside else (), also)
        self._places[place.name] = place
        return place

    def find(self, name: str) -> Place | None:
        known = self.tree.find(name)
        return None if known is None else self._places[known]

    def ancestors(self, place: Place, links: int) -> dict[Place, int]:
        found = self.tree.ancestors(place.name, links)
        return {self._places[name]: distance for name, distance in found.items()}

    def descendants(self, place: Place, links: int) -> dict[Place, int]:
        found = self.tree.descendants(place.name, links)
        return {self._places[name]: distance for name, distance in found.items()}

    def __len__(self) -> int:
        return len(self.tree)


def check_coordinates(place: Place) -> None:
    """Raise AttributesError if coordinates are out of range, or if only one of latitude and
    longitude is given."""
    if (place.lat is None) != (place.lon is None):
        raise AttributesError(
            f"{place.name}: found one coordinate, expected a latitude and a longitude, or neither"
        )
    for name, value, most in (("latitude", place.lat, 90), ("longitude", place.lon, 180)):
        if value is not None and not -most <= value <= most:
            raise AttributesError(
                f"{place.name}: found the {name} {value}, expected -{most} to {most}"
            )
    if not -12_000 <= place.altitude <= 100_000:
        raise AttributesError(
            f"{place.name}: found the altitude {place.altitude}, expected metres from -12000 to "
            "100000"
        )
