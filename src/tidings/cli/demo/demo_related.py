"""`tidings demo --related`: delays near Chicago around Christmas, as matches and related flights.

An airport belongs to a city of the examples if it is named after the city and close to it, as
Chicago Midway is; other airports are known by their coordinates. For the days of a holiday, the
publisher writes the name of the holiday instead of the date, so `day = 'Christmas'` matches
exactly.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tidings.cli.common.arrow import rows_of
from tidings.cli.common.screen import count_of, emit, plain_text, say, show, table, track
from tidings.cli.demo.demo_flights import describe, load_airports, load_flights
from tidings.cli.relations.relation_picture import DayBar, Dot, Ring, draw_picture
from tidings.cli.relations.relations_command import write_picture

FILTER = "city = 'Chicago' AND day = 'Christmas' AND dep_delay > 30"
RELATED = 0.7
NEAR_KM = 300.0
CITY_KM = 60.0
HOLIDAY_DAYS = 7  # a longer span with a name counts as a season
FEET = 0.3048
SHOWN = 6
EXACT, NEAR = "exact", "related"
LEGEND = {EXACT: "match", NEAR: "related"}
SHOWN_KM = 1.5 * NEAR_KM  # the radius of the map around Chicago


class FlightDelivery(msgspec.Struct, frozen=True):
    """A flight that was delivered; a related flight also has its weight, and a reason for each
    context."""

    flight: str
    day: str
    dest: str
    weight: float | None = None
    reasons: Mapping[str, str] = {}


def show_related(rows: int | None, svg: str | None, json: bool) -> None:
    """Route the flights through a repository with one subscription."""
    airports = {row["faa"]: row for row in load_airports()}
    flights = load_flights().slice(0, rows)
    exact, related = find_deliveries(track(rows_of(flights), "flights", len(flights)), airports)
    if svg is not None:
        write_picture(draw_deliveries(exact, related, airports), svg)
    if json:
        emit({"filter": FILTER, "related": RELATED, "flights": len(flights),
              "exact_deliveries": exact, "related_deliveries": related})  # fmt: skip
        return
    show(plain_text(f"{FILTER}, related {RELATED}", "bold"), "")
    show("Exact", table(["flight", "to"], [[one.flight, one.dest] for one in exact[:SHOWN]]), "")
    best = sorted(related, key=lambda one: -(one.weight or 0))
    told = [best[at * len(best) // SHOWN] for at in range(min(SHOWN, len(best)))]
    cells = [[f"{one.weight:.2f}", one.flight, one.dest,
              ", ".join(f"{name}: {why}" for name, why in one.reasons.items())]
             for one in told]  # fmt: skip
    show("Related, a selection", table(["weight#", "flight", "to", "why"], cells), "")
    say(f"{count_of(len(flights), 'flight')}: {len(exact):,} match, {len(related):,} are related")


def find_deliveries(
    flights: Iterator[Mapping[str, Any]] | Any, airports: Mapping[str, Mapping[str, Any]]
) -> tuple[list[FlightDelivery], list[FlightDelivery]]:
    """The exact and the related deliveries."""
    from tidings.relations import Reading, Repository, Weights, load_relations

    semantic = load_relations(language=None)
    reading = Reading(place="city", coordinates=("lat", "lon", "altitude"), time="day")
    repository = Repository(semantic, reading, weights=Weights(near_km=NEAR_KM))
    repository.subscribe("me", FILTER, "me", related=RELATED)
    cities = {code: _city(semantic, row) for code, row in airports.items()}
    days: dict[dt.date, str] = {}
    exact, related = [], []
    for now, flight in enumerate(flights):
        airport = airports.get(flight["dest"])
        if airport is None:
            continue
        day = dt.date(flight["year"], flight["month"], flight["day"])
        if day not in days:
            days[day] = _name_day(semantic, day)
        city = cities[flight["dest"]]
        where = {"lat": airport["lat"], "lon": airport["lon"], "altitude": airport["alt"] * FEET}
        event: dict[str, Any] = {"day": days[day], **({"city": city} if city else where)}
        if flight.get("dep_delay") is not None:
            event["dep_delay"] = flight["dep_delay"]
        for frame in repository.route(event, now):
            place = city or airport["name"]
            if frame.ids:
                exact.append(FlightDelivery(describe(flight), day.isoformat(), place))
            for match in frame.related:
                why = {
                    str(name): f"{edge.reason} {edge.weight:.2f}" for name, edge in match.reasons
                }
                related.append(
                    FlightDelivery(describe(flight), day.isoformat(), place, match.weight, why)
                )
        repository.work()
    return exact, related


def draw_deliveries(
    exact: list[FlightDelivery],
    related: list[FlightDelivery],
    airports: Mapping[str, Mapping[str, Any]],
) -> str:
    """Deliveries on a map of the destinations, and on a time line."""
    from tidings.relations import Place, load_relations
    from tidings.relations.semantic import place_distance

    semantic = load_relations(language=None)
    chicago = semantic.places.find("Chicago")
    assert chicago is not None
    assert chicago.located
    names = {row["name"]: (row["lat"], row["lon"]) for row in airports.values()}
    counts: dict[str, dict[str, int]] = {}
    for kind, found in ((EXACT, exact), (NEAR, related)):
        for one in found:
            counts.setdefault(one.dest, {EXACT: 0, NEAR: 0})[kind] += 1

    def is_shown(lat: float, lon: float) -> bool:
        """Whether the map shows a place."""
        return place_distance(Place("", lat, lon), chicago, 0) <= SHOWN_KM

    dots = [Dot(lat, lon, None, 1.2) for lat, lon in names.values() if is_shown(lat, lon)]
    for dest, there in counts.items():
        place = semantic.places.find(dest)
        at = (place.lat, place.lon) if place is not None and place.located else names.get(dest)
        if at is None or at[0] is None or at[1] is None:
            continue
        told = ", ".join(f"{count} {LEGEND[kind]}" for kind, count in there.items() if count)
        # a city may have exact and related flights; the smaller dot is drawn on top
        for kind, count in there.items():
            is_last = kind == max(there, key=lambda one: there[one])
            label = f"{dest}: {told}" if is_last else ""
            if count:
                dots.append(Dot(at[0], at[1], kind, 3 + 1.5 * count**0.5, label))
    taken = [Place("", one.lat, one.lon) for one in dots if one.kind]
    for name in semantic.places.tree:  # other cities help readers to recognise the region
        place = semantic.places.find(name)
        if place is None or place.lat is None or place.lon is None:
            continue
        is_free = all(place_distance(place, one, 0) > CITY_KM for one in taken)
        if is_free and is_shown(place.lat, place.lon):
            dots.append(Dot(place.lat, place.lon, None, 2.5, name))
    assert chicago.lat is not None
    assert chicago.lon is not None
    rings = [Ring(chicago.lat, chicago.lon, NEAR_KM, NEAR, f"{NEAR_KM:.0f} km: no longer near")]
    bars = [DayBar(dt.date.fromisoformat(one.day), kind, 1)
            for kind, found in ((EXACT, exact), (NEAR, related)) for one in found]  # fmt: skip
    title = "Delays of flights to Chicago, 24 to 26 December 2013, and related flights (0.7)"
    legend = {
        EXACT: f"matches the filter: {len(exact)}",
        NEAR: f"related in place or time: {len(related)}",
    }
    return draw_picture(title, dots, rings, bars, [EXACT, NEAR], legend)


def _name_day(semantic: Any, day: dt.date) -> str:
    """The name of the holiday that a day belongs to; the date of any other day."""
    from tidings.relations.semantic import DAY, day_span

    span = day_span(day)
    holidays = [
        (one.stop - one.start, name)
        for one, name in semantic.calendar.named_in(day.year)
        if one.contains(span) and one.stop - one.start <= HOLIDAY_DAYS * DAY
    ]
    return min(holidays, default=(0, day.isoformat()))[1]


def _city(semantic: Any, airport: Mapping[str, Any]) -> str | None:
    """The city of an airport: one that its name begins with, if it is near enough."""
    from tidings.relations import Place
    from tidings.relations.semantic import place_distance

    here = Place("", airport["lat"], airport["lon"])
    title = airport["name"]
    for name in semantic.places.tree:
        place = semantic.places.find(name) if title.startswith(name) else None
        if place is not None and place.located and place_distance(here, place, 0) <= CITY_KM:
            return str(name)
    return None
