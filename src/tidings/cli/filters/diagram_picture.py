"""Draws the diagrams of filters side by side, with their implication edges, as SVG."""

from __future__ import annotations

from html import escape

from tidings.cli.filters.implications import FilterDiagrams, list_edges
from tidings.matching.diagrams import Decision

WIDTH, HEIGHT = 132, 84  # the space for a node
BOX, LINE = 112, 30
CUT = 17  # characters of a test that fit into its box
STYLE = (
    "text{font:12px sans-serif;fill:#222}rect{fill:#fff;stroke:#555}.leaf{fill:#eee}"
    ".high{stroke:#555}.low{stroke:#555;stroke-dasharray:4 3}path{fill:none}"
    ".implies{stroke:#c2410c;stroke-width:1.6}.name{font-weight:bold}"
)
Place = tuple[float, float]


def draw_diagrams(diagrams: FilterDiagrams) -> str:
    """An SVG picture: solid lines if a test passes, dashed lines if it fails, and implications in
    colour."""
    places: dict[int, Place] = {}
    column, depth = 0.0, 0
    parts: list[str] = []
    for owner, root in diagrams.graph.roots.items():
        start = column
        column, deepest = _arrange(root, column, 0, places)
        depth = max(depth, deepest)
        middle = (start + column) / 2 * WIDTH
        parts.append(_text(middle, 18, f"filter {owner}", "name"))
        for node in root.walk():
            for child, kind in ((node.high, "high"), (node.low, "low")):
                if child is not None:
                    parts.append(_line(places[id(node)], places[id(child)], kind))
        for node in root.walk():
            parts += _box(node, places[id(node)], diagrams)
        column += 0.5
    edges = [
        _curve(places[id(one)], places[id(other)]) for one, other in list_edges(diagrams.graph)
    ]
    size = f'width="{column * WIDTH:.0f}" height="{(depth + 1) * HEIGHT + 40:.0f}"'
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#c2410c"/></marker>'
        "</defs>"
    )
    body = "\n".join([*parts, *edges])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}</style>\n{marker}\n'
        f"{body}\n</svg>\n"
    )


def _arrange(
    node: Decision, column: float, depth: int, places: dict[int, Place]
) -> tuple[float, int]:
    """Place a node above the middle of its branches; return the next free column, and the depth."""
    if node.high is None or node.low is None:
        places[id(node)] = (column + 0.5, depth)
        return column + 1, depth
    start, deepest = column, depth
    for child in (node.high, node.low):
        if id(child) not in places:
            column, below = _arrange(child, column, depth + 1, places)
            deepest = max(deepest, below)
    column = max(column, start + 1)
    places[id(node)] = ((start + column) / 2, depth)
    return column, deepest


def _point(place: Place, down: float = 0.0) -> str:
    return f"{place[0] * WIDTH:.1f},{place[1] * HEIGHT + 40 + down:.1f}"


def _line(one: Place, other: Place, kind: str) -> str:
    return f'<path class="{kind}" d="M{_point(one, LINE)}L{_point(other)}"/>'


def _curve(one: Place, other: Place) -> str:
    start, end = _point(one, LINE / 2), _point(other, LINE / 2)
    bend = _point(((one[0] + other[0]) / 2, min(one[1], other[1])), -LINE)
    return f'<path class="implies" marker-end="url(#tip)" d="M{start}Q{bend} {end}"/>'


def _box(node: Decision, place: Place, diagrams: FilterDiagrams) -> list[str]:
    left, top = place[0] * WIDTH - BOX / 2, place[1] * HEIGHT + 40
    kind = ' class="leaf"' if node.test is None else ""
    label = ("matches" if node.value else "no match") if node.test is None else ""
    text = label if node.test is None else diagrams.text(node.test)
    short = text if len(text) <= CUT else text[: CUT - 1] + "…"
    return [
        f'<g><title>{escape(text)}</title><rect{kind} x="{left:.1f}" y="{top:.1f}" width="{BOX}" '
        f'height="{LINE}" rx="4"/>{_text(place[0] * WIDTH, top + 19, short)}</g>'
    ]


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>'
