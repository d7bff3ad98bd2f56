"""A content graph as an SVG picture, for any browser.

In a small graph, nodes are boxes with the beginning of their text; in a large one they are dots.
Pointing at a node shows its text and highlights the edges to its children. An edge leads down, from
the covering node to the covered one. The picture has no scripts, and all text in it is escaped.
"""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from tidings.graph.interest_graph import InterestNode, name_of
from tidings.graph.lattice import Lattice, Vertex
from tidings.graph.node import Node
from tidings.graph.picture_layout import Layout, Style, lay_out

LINE = 22.0  # the smallest distance between two layer names at the side
LONGEST = 1000  # at most this many characters of text are shown for a node
MARGIN, LEFT, TOP, BOTTOM = 24.0, 142.0, 92.0, 44.0


class Look(NamedTuple):
    """How nodes are drawn: their sizes, the most lines of text (0: nodes are dots), and the most
    characters per line."""

    style: Style
    lines: int
    letters: int
    font: float


# (most nodes, look): a graph gets the first look that allows its number of nodes; larger graphs are
# drawn as dots.
BOXES = (
    (40, Look(Style(186, 66, 20, 56, 16, 2), 3, 24, 11.5)),
    (160, Look(Style(106, 66, 10, 56, 6, 2), 4, 16, 9.5)),
)
DOTS = Look(Style(11, 11, 3, 36, 4, 40), 0, 0, 0)
# The colours of nodes, from the top of the graph to its bottom; all are readable on white and on
# black.
HUES = ((37, 99, 235), (13, 148, 136), (202, 138, 4), (219, 39, 119))

CSS = """
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2937 }
.paper { fill: #ffffff } .band { fill: #f3f4f6 } .faint { fill: #6b7280 }
.title { font-size: 20px; font-weight: 600 } .small { font-size: 13px }
.box { fill: #ffffff; stroke-width: 1.5 } .dot { stroke: #ffffff; stroke-width: .6 }
.label { font-family: ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace }
.e { fill: none; stroke: #64748b; stroke-width: 1.1; pointer-events: none }
.n:hover .box { stroke-width: 3 } .n:hover .dot { stroke: #111827; stroke-width: 2 }
.n:hover .e { stroke: #dc2626; stroke-width: 2.2; stroke-opacity: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .paper { fill: #111318 } .band { fill: #1b1f27 } .faint { fill: #9ca3af }
  .box { fill: #111318 } .dot { stroke: #111318 } .e { stroke: #94a3b8 }
  .n:hover .dot { stroke: #f9fafb } .n:hover .e { stroke: #f87171 }
}
"""


def text_of(node: Vertex) -> str:
    """The text of a node: its filter as SQL, or the name of its interest."""
    if isinstance(node, Node):
        return node.filter.sql()
    return name_of(node.interest) if isinstance(node, InterestNode) else ""


def draw(
    graph: Lattice[Any, Any],
    title: str = "Content graph",
    note: Callable[[Any], str] = lambda _: "",
) -> str:
    """The picture of a graph as SVG text. `note` returns further text that is shown when the
    pointer is over a node."""
    nodes = list(graph)
    places = {node.id: at for at, node in enumerate(nodes)}
    children = [[places[child.id] for child in graph.children(node)] for node in nodes]
    look = next((look for most, look in BOXES if len(nodes) <= most), DOTS)
    layout = lay_out(children, look.style)
    drawing = _Drawing(layout, look, children)
    for node, parents in zip(nodes, map(len, map(graph.parents, nodes)), strict=True):
        below = len(children[places[node.id]])
        lines = [f"{node.id}: {_cut(text_of(node), LONGEST)}", _cut(note(node), LONGEST)]
        lines += [f"{_count(parents, 'parent')}, {_count(below, 'child', 'children')}"]
        drawing.add(places[node.id], node.id, text_of(node), "\n".join(filter(None, lines)))
    return drawing.finish(title)


class _Drawing:
    def __init__(self, layout: Layout, look: Look, children: list[list[int]]) -> None:
        self._layout, self._look = layout, look
        self._children = children
        self._ways: dict[int, list[tuple[int, list[tuple[float, float]]]]] = {}
        for a, b, points in layout.edges:
            self._ways.setdefault(a, []).append((b, points))
        self._depth = max(layout.layers, default=-1) + 1
        # The more edges there are, the fainter they are drawn, so that nodes stay visible.
        self._opacity = max(0.08, min(0.75, 7 / (len(layout.edges) + 1) ** 0.5))
        self._most = max([len(below) for below in children], default=0)
        self._marks: list[tuple[float, float, str]] = []

    def add(self, at: int, number: int, text: str, hover: str) -> None:
        layout, look = self._layout, self._look
        x, y = layout.x[at], layout.y[at]
        colour = _hue(layout.layers[at], self._depth)
        parts = [f"<title>{_escape(hover)}</title>"]
        parts += [self._edge(at, child, points) for child, points in self._ways.get(at, ())]
        if look.lines:
            parts.append(self._box(x, y, colour, number, text))
        else:
            radius = 3 + 2.5 * (len(self._children[at]) / self._most) ** 0.5 if self._most else 3
            parts.append(
                f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"/>'
            )
        # Nodes are drawn from top to bottom. Edges lead down, so a box always hides the edges that
        # pass behind it.
        self._marks.append((y, x, f'<g class="n">{"".join(parts)}</g>'))

    def _box(self, x: float, y: float, colour: str, number: int, text: str) -> str:
        look = self._look
        style = look.style
        left, top = x - style.width / 2, y - style.height / 2
        shown = textwrap.wrap(
            _cut(" ".join(text.split()), LONGEST), look.letters, max_lines=look.lines,
            placeholder="…",
        )  # fmt: skip
        line = look.font * 1.25
        first = top + look.font * 2.35
        texts = "".join(
            f'<text class="label" font-size="{look.font}" x="{left + look.font:.1f}" '
            f'y="{first + n * line:.1f}">{_escape(one)}</text>'
            for n, one in enumerate(shown)
        )
        return (
            f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{style.width:g}" '
            f'height="{style.height:g}" rx="5" stroke="{colour}"/>'
            f'<rect x="{left:.1f}" y="{top:.1f}" width="4" height="{style.height:g}" rx="2" '
            f'fill="{colour}"/>{texts}'
            f'<text class="faint" font-size="{look.font * 0.8:.1f}" '
            f'x="{left + look.font:.1f}" y="{top + look.font * 1.15:.1f}">{number}</text>'
        )

    def _edge(self, a: int, b: int, points: list[tuple[float, float]]) -> str:
        layout, half = self._layout, self._look.style.height / 2
        way = [(layout.x[a], layout.y[a] + half * bool(self._look.lines)), *points]
        way.append((layout.x[b], layout.y[b] - half * bool(self._look.lines)))
        path = f"M{way[0][0]:.1f} {way[0][1]:.1f}"
        for (x0, y0), (x1, y1) in pairwise(way):
            if x0 == x1:
                path += f"V{y1:.1f}" if y0 != y1 else ""
            else:
                middle = (y0 + y1) / 2
                path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        return f'<path class="e" stroke-opacity="{self._opacity:.2f}" d="{path}"/>'

    def finish(self, title: str) -> str:
        layout = self._layout
        counts = [_count(len(layout.x), "node"), _count(len(layout.edges), "edge")]
        counts.append(f"depth {max(0, self._depth - 1)}")
        alone = sum(layout.alone)
        if alone:
            counts.append(f"{alone:,} without edges")
        width = max(layout.width + LEFT + MARGIN, 640.0)
        height = layout.height + TOP + BOTTOM
        shift = LEFT + (width - LEFT - MARGIN - layout.width) / 2
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'role="img" aria-label="{_escape(title)}">',
            f"<style>{CSS}</style>",
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
            f'<text class="title" x="{MARGIN}" y="36">{_escape(_cut(title, 60))}</text>',
            f'<text class="small faint" x="{MARGIN}" y="58">{", ".join(counts)}</text>',
            *self._bands(width),
            f'<g transform="translate({shift:.1f} {TOP})">',
            *(mark for _, _, mark in sorted(self._marks)),
            "</g>",
            f'<text class="small faint" x="{MARGIN}" y="{height - 14:.0f}">A line leads down from '
            "a covering node to a covered one. Point at a node to read it.</text>",
            "</svg>\n",
        ]
        return "\n".join(out)

    def _bands(self, width: float) -> list[str]:
        """A strip behind each layer, with its depth and its number of nodes."""
        layout = self._layout
        pairs = zip(layout.layers, layout.alone, strict=True)
        linked = Counter(layer for layer, single in pairs if not single)
        out: list[str] = []
        named = -LINE
        room = min([9.0, *((low[0] - high[1]) / 3 for high, low in pairwise(layout.bands))])
        for at, (top, bottom) in enumerate(layout.bands):
            count = linked[at]
            name, hue = f"depth {at}", _hue(at, self._depth)
            if not count:
                name, hue, count = "no edges", _hue(0, self._depth), sum(layout.alone)
            out.append(
                f'<rect class="band" x="0" y="{TOP + top - room:.1f}" width="{width:.0f}" '
                f'height="{bottom - top + 2 * room:.1f}"/>'
            )
            if top - named < LINE:
                continue  # the names of these layers would overlap
            named = top
            out.append(
                f'<circle cx="{MARGIN + 4}" cy="{TOP + top + 7:.1f}" r="5" fill="{hue}"/>'
                f'<text class="small" x="{MARGIN + 16}" y="{TOP + top + 12:.1f}">{name} '
                f'<tspan class="faint">· {count:,}</tspan></text>'
            )
        return out


def _hue(layer: int, depth: int) -> str:
    """The colour of a layer, between the colours of the top and the bottom."""
    at = layer / max(1, depth - 1) * (len(HUES) - 1)
    low = min(int(at), len(HUES) - 2)
    mixed = (a + (b - a) * (at - low) for a, b in zip(HUES[low], HUES[low + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def _count(count: int, noun: str, nouns: str = "") -> str:
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escape(text: str) -> str:
    """Text for XML: special characters are escaped, and unprintable characters are replaced."""
    return html.escape("".join(c if c == "\n" or c.isprintable() else "·" for c in text))
