"""Boxes and circles on the globe: the date line, the poles, and the box around a circle."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from tests.repeats import draws

from tidings.filters.values.geography import (
    EARTH_KM,
    circle_box,
    distance_km,
    within_box,
    within_km,
)

NAN, INF = math.nan, math.inf
QUARTER = EARTH_KM * math.pi / 2

FIJI = (-20, 170, 0, -170)  # south, west, north, east: over the date line
OSLO = (59, 10, 60, 11)


@pytest.mark.parametrize(
    ("lat", "lon", "box", "expected"),
    [
        (59.5, 10.5, OSLO, True),
        (59, 10, OSLO, True),  # the edges are inside
        (60, 11, OSLO, True),
        (58.9, 10.5, OSLO, False),
        (59.5, 11.1, OSLO, False),
        (NAN, 10.5, OSLO, False),
        (None, 10.5, OSLO, None),
        (59.5, None, OSLO, None),
        (None, 9, OSLO, False),
        (61, None, OSLO, False),
        ("59.5", 10.5, OSLO, None),
        (59.5, True, OSLO, None),
        (-10, 170, FIJI, True),
        (-10, 180, FIJI, True),
        (-10, -180, FIJI, True),
        (-10, -170, FIJI, True),
        (-10, 169.9, FIJI, False),
        (-10, -169.9, FIJI, False),
        (-10, 0, FIJI, False),
        (1, 175, FIJI, False),
        (-10, None, FIJI, None),
        (-10, "175", FIJI, None),
        (-10, NAN, FIJI, True),  # NaN is above every number, so above the west
        (5, 5, (0, 0, 0, 10), False),
        (0, 5, (0, 0, 0, 10), True),
        (0, 5, (10, 0, -10, 10), False),  # north of nothing
        (0, 5, (0, 0, 0, None), None),
    ],
)
def test_within_box(lat: Any, lon: Any, box: tuple[Any, ...], expected: bool | None) -> None:
    assert within_box(lat, lon, *box) is expected


@pytest.mark.parametrize(
    ("a", "b", "km"),
    [
        ((0, 0), (0, 0), 0),
        ((0, 0), (0, 90), QUARTER),
        ((0, 0), (90, 123), QUARTER),
        ((90, 0), (-90, 77), 2 * QUARTER),
        ((0, 0), (0, 180), 2 * QUARTER),
        ((0, 179), (0, -179), QUARTER / 45),
        ((89, 0), (89, 180), QUARTER / 45),
    ],
)
def test_distances(a: tuple[float, float], b: tuple[float, float], km: float) -> None:
    assert distance_km(*a, *b) == pytest.approx(km, rel=1e-7, abs=1e-9)
    assert distance_km(*b, *a) == pytest.approx(distance_km(*a, *b))


def by_vectors(lat: float, lon: float, lat0: float, lon0: float) -> float:
    """The distance from the angle between two arrows out of the middle of the Earth."""

    def arrow(lat: float, lon: float) -> tuple[float, float, float]:
        a, b = math.radians(lat), math.radians(lon)
        return math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a)

    return 2 * EARTH_KM * math.asin(min(1.0, math.dist(arrow(lat, lon), arrow(lat0, lon0)) / 2))


def test_distances_agree_with_vectors(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2_000):
        places = [rng.uniform(-limit, limit) for limit in (90, 180, 90, 180)]
        assert distance_km(*places) == pytest.approx(by_vectors(*places), rel=1e-6)


@pytest.mark.parametrize(
    ("lat", "lon", "circle", "expected"),
    [
        (0, 179.5, (0, -179.5, 112), True),
        (0, 179.5, (0, -179.5, 111), False),
        (89.5, 0, (89.5, 180, 112), True),
        (0, 0, (0, 0, 0), True),
        (-45, 10, (45, -170, 20_016), True),  # the other end of the world
        (90.5, 0, (90, 0, 1_000), False),
        (-90.5, 0, (-90, 0, 1_000), False),
        (0, 180.5, (0, 180, 1_000), False),
        (0, -180.5, (0, -180, 1_000), False),
        (0, INF, (0, 0, 20_038), False),
        (NAN, 0, (0, 0, 20_038), False),
        (None, 0, (0, 0, 1), None),
        (0, "0", (0, 0, 1), None),
        (True, 0, (0, 0, 1), None),
    ],
)
def test_within_km(lat: Any, lon: Any, circle: tuple[Any, ...], expected: bool | None) -> None:
    assert within_km(lat, lon, *circle) is expected


def boxed(lat: float, lon: float, circle: tuple[float, float, float]) -> bool:
    (south, north), wide = circle_box(*circle)
    return south <= lat <= north and (not wide or any(a <= lon <= b for a, b in wide))


def towards(lat: float, lon: float, km: float, bearing: float) -> tuple[float, float]:
    """The place that many kilometres away in that direction."""
    a, far = math.radians(lat), km / EARTH_KM
    sine = math.sin(a) * math.cos(far) + math.cos(a) * math.sin(far) * math.cos(bearing)
    b = math.asin(max(-1.0, min(1.0, sine)))
    east = math.atan2(
        math.sin(bearing) * math.sin(far) * math.cos(a),
        math.cos(far) - math.sin(a) * math.sin(b),
    )
    around = (lon + math.degrees(east) + 180) % 360 - 180
    return math.degrees(b), around


def test_the_box_holds_the_circle(seed: int) -> None:
    rng = random.Random(seed)
    inside = boxes = 0
    for _ in draws(400, lambda: inside > 10000 and boxes > 50):
        lat0 = rng.choice((rng.uniform(-90, 90), rng.choice((-90, 90, 0, 89.999, -89.5))))
        lon0 = rng.choice((rng.uniform(-180, 180), rng.choice((-180, 180, 0, 179.999))))
        to_pole = (90 - abs(lat0)) / 90 * QUARTER  # circles that just reach the pole, or do not
        km = rng.choice((0, 1e-6, rng.uniform(0, 50), rng.uniform(0, 20_038), to_pole,
                         to_pole * 0.999999, to_pole * 1.000001))  # fmt: skip
        circle = (lat0, lon0, km)
        boxes += bool(circle_box(*circle)[1])
        for _ in range(50):
            share = rng.choice((1.0, 1 - 1e-12, rng.random()))
            lat, lon = towards(lat0, lon0, km * share, rng.uniform(0, 2 * math.pi))
            if within_km(lat, lon, *circle):
                inside += 1
                assert boxed(lat, lon, circle), (lat, lon, circle)
    assert inside > 10_000
    assert boxes > 50


@pytest.mark.parametrize(
    "circle",
    [(90, 0, 1), (-89.99, 5, 2), (0, 179.99, 5), (0, -180, 1), (80, 0, 1_200), (0, 0, 20_038)],
)
def test_over_a_pole_or_the_date_line_longitudes_are_free(
    circle: tuple[float, float, float],
) -> None:
    (south, north), wide = circle_box(*circle)
    assert wide == []
    assert -90 <= south < north <= 90


@pytest.mark.parametrize(
    ("circle", "south", "west", "north", "east"),
    [
        ((0, 0, QUARTER / 90), -1, -1, 1, 1),
        ((60, 20, QUARTER / 90), 59, 18, 61, 22),
        ((-60, -20, QUARTER / 90), -61, -22, -59, -18),
    ],
)
def test_the_box_is_no_larger_than_it_must_be(
    circle: tuple[float, float, float], south: float, west: float, north: float, east: float
) -> None:
    tall, wide = circle_box(*circle)
    assert tall == pytest.approx((south, north), abs=1e-3)
    assert wide == [pytest.approx((west, east), abs=1e-3)]
