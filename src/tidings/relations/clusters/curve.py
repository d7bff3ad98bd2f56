"""A space-filling curve through all places: latitude, longitude and altitude as one number.

The bits of the three coordinates are interleaved (Z-order, or Morton order). So a cube of an octree
is one range of numbers, and a box around a place consists of a few ranges:

    0 1 | 4 5       a square of 2 x 2 cells is 0-3, 4-7, 8-11 or 12-15
    2 3 | 6 7       a box over the middle two columns is 1, 3, 4, 6, 9, 11, 12, 14
    ----+----       or, with cells on its border taken whole, 0-15
    8 9 | ...
"""

from __future__ import annotations

from tidings.filters.values import circle_box
from tidings.relations.semantic import Place

BITS = 20  # bits of each coordinate: a cell is 19 m by 38 m by 11 cm
CELLS = 1 << BITS
MOST_RANGES = 24  # instead of splitting into more ranges, include cubes on the border as a whole
LOWEST, HIGHEST = -12_000.0, 100_000.0  # metres
Cell = tuple[int, int, int]
Range = tuple[int, int]


def curve_place(place: Place) -> int:
    """The number of a place that has coordinates."""
    assert place.lat is not None
    assert place.lon is not None
    return _interleave(_cell(place.lat, place.lon, place.altitude))


def ranges_around(place: Place, km: float, height: float) -> list[Range]:
    """Ranges of numbers (first, last) that contain all places less than `km` kilometres away. A
    kilometre of altitude counts as much as `height` kilometres on the ground."""
    assert place.lat is not None
    assert place.lon is not None
    (south, north), wide = circle_box(place.lat, place.lon, km)
    west, east = wide[0] if wide else (-180.0, 180.0)
    steep = km / height * 1000 if height else HIGHEST - LOWEST
    low = _cell(south, west, place.altitude - steep)
    high = _cell(north, east, place.altitude + steep)
    return _cover(low, high)


def _cover(low: Cell, high: Cell) -> list[Range]:
    """The ranges of a box of cells, level by level of the octree."""
    whole: list[Range] = []
    # the number and the corner of each cube; the unit of the corner is the size of the cube
    split: list[tuple[int, Cell]] = [(0, (0, 0, 0))]
    for level in range(1, BITS + 1):
        size = CELLS >> level
        inner: list[Range] = []
        border: list[tuple[int, Cell]] = []
        for number, corner in split:
            for octant in range(8):
                x, y, z = (
                    (2 * corner[axis] + (octant >> (2 - axis) & 1)) * size for axis in range(3)
                )
                first, last = (x, y, z), (x + size - 1, y + size - 1, z + size - 1)
                if any(last[axis] < low[axis] or first[axis] > high[axis] for axis in range(3)):
                    continue
                child = number << 3 | octant
                if all(low[axis] <= first[axis] and last[axis] <= high[axis] for axis in range(3)):
                    inner.append(_range(child, level))
                else:
                    border.append((child, (x // size, y // size, z // size)))
        if len(whole) + len(inner) + len(border) > MOST_RANGES:
            return _join([*whole, *(_range(number, level - 1) for number, _ in split)])
        whole += inner
        split = border
        if not split:
            return _join(whole)
    return _join([*whole, *(_range(number, BITS) for number, _ in split)])


def _range(number: int, level: int) -> Range:
    below = 3 * (BITS - level)
    return number << below, (number + 1 << below) - 1


def _join(ranges: list[Range]) -> list[Range]:
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def _cell(lat: float, lon: float, altitude: float) -> Cell:
    return (
        _step((lat + 90) / 180),
        _step((lon + 180) / 360),
        _step((altitude - LOWEST) / (HIGHEST - LOWEST)),
    )


def _step(share: float) -> int:
    return min(max(int(share * CELLS), 0), CELLS - 1)


def _interleave(cell: Cell) -> int:
    x, y, z = (_spread(one) for one in cell)
    return x << 2 | y << 1 | z


def _spread(number: int) -> int:
    """The bits of a 20-bit number, with two zeros between neighbouring bits."""
    number = (number | number << 32) & 0x1F00000000FFFF
    number = (number | number << 16) & 0x1F0000FF0000FF
    number = (number | number << 8) & 0x100F00F00F00F00F
    number = (number | number << 4) & 0x10C30C30C30C30C3
    return (number | number << 2) & 0x1249249249249249
