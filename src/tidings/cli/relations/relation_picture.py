"""Draws places on a map and days on a time line, as SVG.

The map has no coastlines: it shows where places lie relative to each other, with the names of some
of them. The projection is equirectangular, with true scale at the middle latitude of the map.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import msgspec

WIDTH, MAP_HEIGHT, LINE_HEIGHT, MARGIN = 860, 480, 120, 30
KM_PER_DEGREE = 111.195
MOST_DAYS = 120  # the most bars of a time line; with more days, several days share a bar
MOST_TOLD = 16  # the most bars that are labelled with their days and counts
LETTER = 6.6  # the approximate width of a letter
COLOURS = ("#c2410c", "#1d4ed8", "#15803d", "#7e22ce", "#a16207", "#0e7490")
STYLE = (
    "text{font:12px sans-serif;fill:#222}.name{font-size:11px;fill:#555}.head{font-weight:bold}"
    ".frame{fill:#f8fafc;stroke:#cbd5e1}.known{fill:#cbd5e1}.ring{fill:none;stroke-width:1.3}"
)


class Dot(msgspec.Struct, frozen=True):
    """A place on the map. `kind` selects the colour; a dot without a kind is grey."""

    lat: float
    lon: float
    kind: str | None = None
    size: float = 3.0
    name: str = ""


class Ring(msgspec.Struct, frozen=True):
    """A circle around a place, with its radius in kilometres, and its label."""

    lat: float
    lon: float
    km: float
    kind: str
    name: str = ""


class DayBar(msgspec.Struct, frozen=True):
    """A bar of the time line: the count of one kind on one day."""

    day: dt.date
    kind: str
    count: int


def draw_picture(
    title: str,
    dots: Sequence[Dot],
    rings: Sequence[Ring],
    bars: Sequence[DayBar],
    kinds: Sequence[str],
    names: Mapping[str, str] | None = None,
) -> str:
    """An SVG picture: a map, a time line below it, and a legend of the kinds in their order.
    `names` has other names for kinds, which the legend shows."""
    colours = {kind: COLOURS[at % len(COLOURS)] for at, kind in enumerate(kinds)}
    legend = {(names or {}).get(kind, kind): colour for kind, colour in colours.items()}
    parts = [_text(MARGIN, 20, title, "head"), *_legend(legend)]
    parts += _map(dots, rings, colours)
    parts += _time_line(bars, colours)
    height = MAP_HEIGHT + LINE_HEIGHT + 4 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">\n'
        f"<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _legend(colours: dict[str, str]) -> Iterable[str]:
    x = float(MARGIN)
    for kind, colour in colours.items():
        yield f'<circle cx="{x + 5:.1f}" cy="36" r="5" fill="{colour}"/>'
        yield _text(x + 15, 40, kind)
        x += max(150, 40 + LETTER * len(kind))


def _map(dots: Sequence[Dot], rings: Sequence[Ring], colours: dict[str, str]) -> Iterable[str]:
    top, left = 50, MARGIN
    wide, high = WIDTH - 2 * MARGIN, MAP_HEIGHT
    yield f'<rect class="frame" x="{left}" y="{top}" width="{wide}" height="{high}"/>'
    if not dots:
        yield _text(left + 10, top + 20, "no places")
        return
    south, north = min(one.lat for one in dots), max(one.lat for one in dots)
    west, east = min(one.lon for one in dots), max(one.lon for one in dots)
    stretch = max(0.1, math.cos(math.radians((south + north) / 2)))
    scale = min((wide - 80) / max(1e-3, (east - west) * stretch),
                (high - 60) / max(1e-3, north - south), 400)  # fmt: skip
    middle_x, middle_y = left + wide / 2, top + high / 2

    def place(lat: float, lon: float) -> tuple[float, float]:
        x = middle_x + (lon - (west + east) / 2) * stretch * scale
        return x, middle_y - (lat - (south + north) / 2) * scale

    for ring in rings:
        x, y = place(ring.lat, ring.lon)
        radius = ring.km / KM_PER_DEGREE * scale
        yield (f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" '
               f'stroke="{colours[ring.kind]}"/>')  # fmt: skip
        if ring.name:
            yield _text(x - LETTER / 2 * len(ring.name), y - radius - 6, ring.name, "name")
    for dot in sorted(dots, key=lambda one: (one.kind is not None, -one.size)):
        x, y = place(dot.lat, dot.lon)
        paint = 'class="known"' if dot.kind is None else (
            f'fill="{colours[dot.kind]}" fill-opacity="0.75"')  # fmt: skip
        yield f'<circle {paint} cx="{x:.1f}" cy="{y:.1f}" r="{dot.size:.1f}"/>'
        if dot.name:
            yield _text(x + dot.size + 2, y + 4, dot.name, "name")


def _time_line(bars: Sequence[DayBar], colours: dict[str, str]) -> Iterable[str]:
    top, left, wide = MAP_HEIGHT + 80, MARGIN, WIDTH - 2 * MARGIN
    bottom = top + LINE_HEIGHT
    yield f'<rect class="frame" x="{left}" y="{top}" width="{wide}" height="{LINE_HEIGHT}"/>'
    if not bars:
        yield _text(left + 10, top + 20, "no times")
        return
    first, last = min(bar.day for bar in bars), max(bar.day for bar in bars)
    each = -(-((last - first).days + 1) // MOST_DAYS)  # days per bar
    columns = (last - first).days // each + 1
    counts: dict[tuple[int, str], int] = {}
    for bar in bars:
        key = (bar.day - first).days // each, bar.kind
        counts[key] = counts.get(key, 0) + bar.count
    totals = [sum(counts.get((at, kind), 0) for kind in colours) for at in range(columns)]
    unit = (LINE_HEIGHT - 25) / max(1, *totals)
    step = wide / columns
    few = columns <= MOST_TOLD
    for at in range(columns):
        y = float(bottom)
        if few and each == 1:
            day = first + dt.timedelta(at)
            told = day.isoformat() if step > LETTER * 10 else f"{day.day} {day:%b}"
            yield _text(
                left + (at + 0.5) * step - LETTER / 2 * len(told), bottom + 16, told
            )  # fmt: skip
        for kind, colour in colours.items():
            height = counts.get((at, kind), 0) * unit
            y -= height
            if height:
                yield (f'<rect x="{left + at * step + 1:.1f}" y="{y:.1f}" fill="{colour}" '
                       f'width="{max(1.0, step - 2):.1f}" height="{height:.1f}"/>')  # fmt: skip
        if few and totals[at]:
            count = f"{totals[at]:,}"
            yield _text(left + (at + 0.5) * step - LETTER / 2 * len(count), y - 4, count)
    if few and each == 1:
        return
    yield _text(left, bottom + 16, first.isoformat())
    yield _text(left + wide - 70, bottom + 16, last.isoformat())
    yield _text(
        left + 5, top + 15, f"at most {max(totals):,} in {'a day' if each == 1 else f'{each} days'}"
    )


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
