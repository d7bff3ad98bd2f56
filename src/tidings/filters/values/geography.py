"""Boxes and circles on the globe, in degrees and kilometres."""

from __future__ import annotations

import math
from typing import Any

from tidings.model import compare, is_number

EARTH_KM = 6371.0088  # mean radius

# The box around a circle is widened by this many degrees, which is far more than the rounding
# error.
_SLACK = 1e-7


def _between(value: Any, low: float, high: float) -> bool | None:
    above, below = compare(value, low), compare(value, high)
    return None if above is None or below is None else above >= 0 and below <= 0


def within_box(
    lat: Any, lon: Any, south: float, west: float, north: float, east: float
) -> bool | None:
    """`lat BETWEEN south AND north AND lon BETWEEN west AND east`, evaluated in three-valued logic.

    If west > east, the box crosses the date line, and the test is lon >= west OR lon <= east.
    """
    if None in (south, west, north, east):
        return None
    tall = _between(lat, south, north)
    if west <= east:
        wide = _between(lon, west, east)
    else:
        order = (compare(lon, west), compare(lon, east))
        wide = None if order[0] is None or order[1] is None else order[0] >= 0 or order[1] <= 0
    if tall is False or wide is False:
        return False
    return None if tall is None or wide is None else True


def within_km(lat: Any, lon: Any, lat0: float, lon0: float, km: float) -> bool | None:
    """Whether a place is at most `km` kilometres (great circle) from the centre."""
    if not all(is_number(v) for v in (lat, lon, lat0, lon0, km)):
        return None
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        return False  # not a place on the globe; this includes NaN
    return distance_km(lat, lon, lat0, lon0) <= km


def distance_km(lat: float, lon: float, lat0: float, lon0: float) -> float:
    """Great-circle distance by the haversine formula."""
    a, b = math.radians(lat), math.radians(lat0)
    half_lat, half_lon = (b - a) / 2, math.radians(lon0 - lon) / 2
    h = math.sin(half_lat) ** 2 + math.cos(a) * math.cos(b) * math.sin(half_lon) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(min(1.0, h)))


def circle_box(
    lat0: float, lon0: float, km: float
) -> tuple[tuple[float, float], list[tuple[float, float]]]:
    """Return ((south, north), longitude intervals): a box around the circle, for the index.

    If the circle crosses the date line or a pole, every longitude is allowed, and the list of
    intervals is empty.
    """
    angle = math.degrees(km / EARTH_KM) + _SLACK
    south, north = lat0 - angle, lat0 + angle
    if south <= -90 or north >= 90:
        return (max(south, -90.0), min(north, 90.0)), []
    reach = math.sin(math.radians(angle)) / math.cos(math.radians(lat0))
    if reach >= 1:
        return (south, north), []
    wide = math.degrees(math.asin(reach)) + _SLACK
    west, east = lon0 - wide, lon0 + wide
    if west <= -180 or east >= 180:
        return (south, north), []
    return (south, north), [(west, east)]
