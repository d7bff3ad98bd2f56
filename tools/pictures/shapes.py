"""Boxes, disks, arrows and texts as SVG, with only the standard library.

A drawing names tones, such as "disk" or "match", and never a colour. So it is drawn once and
written to one file per palette:

    Drawing ──svg(LIGHT)──> NAME-light.svg
            └─svg(DARK)───> NAME-dark.svg

The fonts are those of the reader's system, so the exact width of a text is not known. `width_of`
estimates it for a wide font. A text that would leave its box or the picture is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import hypot
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

Tone = Literal["plain", "input", "match", "disk", "told", "bad"]
Style = Literal["head", "text", "small", "code"]
Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

SIZES: dict[Style, float] = {"head": 14.5, "text": 13.5, "small": 13, "code": 13}
NARROW, WIDE = frozenset("fijlrt .,:;'|!()[]"), frozenset("mwMW")  # letters of a sans serif font
LEADING = 17.0  # from line to line in a box
SANS = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


class Paint(NamedTuple):
    """The colours of a tone; a text may use the line colour."""

    fill: str
    line: str


class Palette(NamedTuple):
    paper: str
    ink: str  # the colour of most texts
    faint: str  # the colour of less important texts
    tones: dict[Tone, Paint]


LIGHT = Palette(
    paper="#ffffff",
    ink="#1f2328",
    faint="#59636e",
    tones={
        "plain": Paint("#f6f8fa", "#6e7781"),
        "input": Paint("#ddf4ff", "#0969da"),
        "match": Paint("#f5edff", "#8250df"),
        "disk": Paint("#fff8c5", "#8a5a00"),
        "told": Paint("#dafbe1", "#1a7f37"),
        "bad": Paint("#ffebe9", "#cf222e"),
    },
)
DARK = Palette(
    paper="#0d1117",
    ink="#e6edf3",
    faint="#9da7b3",
    tones={
        "plain": Paint("#1b2129", "#8b949e"),
        "input": Paint("#10243e", "#58a6ff"),
        "match": Paint("#261c3d", "#bc8cff"),
        "disk": Paint("#2d2410", "#d9a429"),
        "told": Paint("#10291a", "#3fb950"),
        "bad": Paint("#311519", "#ff7b72"),
    },
)
PALETTES = {"light": LIGHT, "dark": DARK}


class Written(NamedTuple):
    """A text, and the rectangle that it occupies."""

    words: str
    left: float
    top: float
    right: float
    bottom: float


def width_of(words: str, style: Style) -> float:
    """The width of a text in a wide font."""
    if style == "code":
        return 0.61 * SIZES[style] * len(words)
    narrow = sum(letter in NARROW for letter in words)
    wide = sum(letter in WIDE for letter in words)
    ems = 0.37 * narrow + 0.95 * wide + 0.62 * (len(words) - narrow - wide)
    return ems * SIZES[style] * (1.08 if style == "head" else 1)


class Drawing:
    """A picture to draw on. Later shapes cover earlier ones."""

    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        self.written: list[Written] = []
        self._parts: list[str] = []

    # -- texts ---------------------------------------------------------------------------------

    def text(
        self,
        x: float,
        y: float,
        words: str,
        style: Style = "text",
        *,
        anchor: Anchor = "middle",
        tone: Tone | None = None,
    ) -> None:
        """Draw a line of text; `y` is its vertical middle."""
        width, size = width_of(words, style), SIZES[style]
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        self._need_room(words, left, left + width, y - size / 2, y + size / 2)
        self.written.append(Written(words, left, y - size / 2, left + width, y + size / 2))
        classes = style if tone is None else f"{style} ink-{tone}"
        place = f'x="{_number(x)}" y="{_number(y + 0.35 * size)}" text-anchor="{anchor}"'
        self._parts.append(f'<text class="{classes}" {place}>{escape(words)}</text>')

    def lines(
        self,
        x: float,
        y: float,
        lines: Sequence[str],
        style: Style = "small",
        *,
        anchor: Anchor = "start",
        tone: Tone | None = None,
    ) -> None:
        """Draw lines of text; `y` is the vertical middle of the first."""
        for at, words in enumerate(lines):
            self.text(x, y + at * LEADING, words, style, anchor=anchor, tone=tone)

    # -- shapes --------------------------------------------------------------------------------

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *lines: str,
        tone: Tone = "plain",
        first: Style = "head",
        rest: Style = "small",
        dashed: bool = False,
        corner: float = 7,
    ) -> None:
        """A box with lines of text in its middle."""
        self._need_room("a box", x, x + width, y, y + height)
        self._parts.append(
            f'<rect class="fill-{tone}{" dashed" * dashed}" x="{_number(x)}" y="{_number(y)}" '
            f'width="{_number(width)}" height="{_number(height)}" rx="{_number(corner)}"/>'
        )
        self._fill(x, y, width, height, lines, first, rest)

    def disk(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *lines: str,
        tone: Tone = "disk",
        first: Style = "head",
        rest: Style = "small",
    ) -> None:
        """A cylinder, for data on a disk."""
        self._need_room("a disk", x, x + width, y, y + height)
        lid = 7.0
        left, right, top, bottom = x, x + width, y + lid, y + height - lid
        arc = f"{_number(width / 2)} {_number(lid)} 0 0"
        self._parts.append(
            f'<path class="fill-{tone}" d="M{_number(left)} {_number(top)}'
            f"A{arc} 1 {_number(right)} {_number(top)}V{_number(bottom)}"
            f'A{arc} 1 {_number(left)} {_number(bottom)}Z"/>'
            f'<path class="line-{tone}" d="M{_number(left)} {_number(top)}'
            f'A{arc} 0 {_number(right)} {_number(top)}"/>'
        )
        self._fill(x, y + lid, width, height - lid, lines, first, rest)

    def cell(
        self, x: float, y: float, width: float, height: float, words: str, tone: Tone = "plain"
    ) -> None:
        """A cell of a table."""
        self.box(x, y, width, height, words, tone=tone, first="code", corner=0)

    def circle(self, x: float, y: float, radius: float, words: str, tone: Tone = "plain") -> None:
        """A circle with a short text."""
        self._need_room("a circle", x - radius, x + radius, y - radius, y + radius)
        self._parts.append(
            f'<circle class="fill-{tone}" cx="{_number(x)}" cy="{_number(y)}" '
            f'r="{_number(radius)}"/>'
        )
        self.text(x, y, words, "code")

    def band(self, x: float, y: float, width: float, height: float) -> None:
        """A frame around things that belong together."""
        self._need_room("a band", x, x + width, y, y + height)
        self._parts.append(
            f'<rect class="band" x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" '
            f'height="{_number(height)}" rx="12"/>'
        )

    def line(self, *points: Point, tone: Tone = "plain", dashed: bool = False) -> None:
        """A line from point to point."""
        path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        kind = f"line-{tone}{' dashed' * dashed}"
        self._parts.append(f'<polyline class="{kind}" points="{path}"/>')

    def arrow(self, *points: Point, tone: Tone = "plain", dashed: bool = False) -> None:
        """A line with a head at its end."""
        (x0, y0), (x, y) = points[-2:]
        length = hypot(x - x0, y - y0)
        dx, dy = (x - x0) / length, (y - y0) / length
        self.line(*points[:-1], (x - 6 * dx, y - 6 * dy), tone=tone, dashed=dashed)
        back_x, back_y, across_x, across_y = x - 9 * dx, y - 9 * dy, -4.5 * dy, 4.5 * dx
        head = (
            (x, y),
            (back_x + across_x, back_y + across_y),
            (back_x - across_x, back_y - across_y),
        )
        path = " ".join(f"{_number(a)},{_number(b)}" for a, b in head)
        self._parts.append(f'<polygon class="tip-{tone}" points="{path}"/>')

    def row(self, y: float, *stops: tuple[float, float], tone: Tone = "plain") -> None:
        """Arrows between boxes in a row; each box is given by its left and right edge."""
        for (_, right), (left, _) in pairwise(stops):
            self.arrow((right + 2, y), (left - 2, y), tone=tone)

    # -- the file ------------------------------------------------------------------------------

    def svg(self, palette: Palette) -> str:
        """The picture as a file, in the colours of a palette."""
        size = f"{_number(self.width)} {_number(self.height)}"
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
                f'width="{_number(self.width)}" height="{_number(self.height)}" '
                f'role="img" aria-labelledby="title desc">',
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="desc">{escape(self.description)}</desc>',
                f"<style>\n{_style(palette)}\n</style>",
                '<rect class="paper" width="100%" height="100%" rx="12"/>',
                *self._parts,
                "</svg>\n",
            ]
        )

    def _fill(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        lines: Sequence[str],
        first: Style,
        rest: Style,
    ) -> None:
        middle, top = x + width / 2, y + height / 2 - (len(lines) - 1) * LEADING / 2
        for at, words in enumerate(lines):
            style = first if at == 0 else rest
            if width_of(words, style) > width - 6 or len(lines) * LEADING > height:
                raise ValueError(f"'{words}' does not fit into {width:g} by {height:g}")
            self.text(middle, top + at * LEADING, words, style)

    def _need_room(self, what: str, left: float, right: float, top: float, bottom: float) -> None:
        if left < 4 or top < 4 or right > self.width - 4 or bottom > self.height - 4:
            raise ValueError(
                f"'{what}' reaches from ({left:.0f}, {top:.0f}) to ({right:.0f}, {bottom:.0f}), "
                f"expected it inside {self.width:g} by {self.height:g}"
            )


def _number(value: float) -> str:
    """A number rounded to a tenth, without a trailing `.0`."""
    return f"{value:.1f}".removesuffix(".0")


def _style(palette: Palette) -> str:
    rules = [
        f".paper {{ fill: {palette.paper} }}",
        f"text {{ font-family: {SANS}; fill: {palette.ink} }}",
        *(f".{style} {{ font-size: {size:g}px }}" for style, size in SIZES.items()),
        ".head { font-weight: 600 }",
        f".small {{ fill: {palette.faint} }}",
        f".code {{ font-family: {MONO} }}",
        f".band {{ fill: none; stroke: {palette.faint}; stroke-opacity: 0.45 }}",
        "rect, path, circle { stroke-width: 1.3 }",
        "polyline { stroke-width: 1.5; stroke-linejoin: round }",
    ]
    for tone, paint in palette.tones.items():
        rules += [
            f".fill-{tone} {{ fill: {paint.fill}; stroke: {paint.line} }}",
            f".line-{tone} {{ fill: none; stroke: {paint.line} }}",
            f".tip-{tone} {{ fill: {paint.line} }}",
            f".ink-{tone} {{ fill: {paint.line} }}",
        ]
    return "\n".join([*rules, ".dashed { stroke-dasharray: 5 4 }"])
