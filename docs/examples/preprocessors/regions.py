"""An application-defined preprocessor: places, as boxes of latitudes and longitudes.

Prints:

the coast covers new york, boston
new york covers manhattan
Times Square goes to manhattan
Fenway Park goes to boston
Denver goes to nobody
"""

from typing import NamedTuple

import tidings


class Region(NamedTuple):
    name: str
    south: float
    west: float
    north: float
    east: float

    def covers(self, other: "Region") -> bool:
        latitude = self.south <= other.south and other.north <= self.north
        return latitude and self.west <= other.west and other.east <= self.east

    def matches(self, notification: tuple[float, float]) -> bool:
        latitude, longitude = notification
        return self.south <= latitude <= self.north and self.west <= longitude <= self.east

    def key(self) -> tuple[float, ...]:
        return self[1:]  # equal boxes are the same interest, whatever their names


desk = tidings.ObjectPreprocessor()
york = desk.subscribe(Region("new york", 40.4, -74.3, 41.0, -73.6))
desk.subscribe(Region("manhattan", 40.7, -74.02, 40.88, -73.9))
coast = desk.subscribe(Region("the coast", 38.0, -77.5, 43.0, -70.0))
desk.subscribe(Region("boston", 42.2, -71.2, 42.4, -70.9))

for node in (coast, york):
    below = (child.interest for child in desk.graph.children(node))
    print(node.interest.name, "covers", ", ".join(region.name for region in below))

places = {"Times Square": (40.758, -73.986), "Fenway Park": (42.346, -71.097)}
for name, place in {**places, "Denver": (39.74, -104.99)}.items():
    print(name, "goes to", ", ".join(n.interest.name for n in desk.tag(place)) or "nobody")
