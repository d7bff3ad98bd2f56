"""A tree of routers, and the label of one notification from hop to hop.

tests/docs/test_pictures.py computes the edges and the labels with tidings itself.
"""

from __future__ import annotations

from typing import NamedTuple

from tools.pictures.shapes import Drawing, Point, Tone

FILTERS = {
    1: "price > 50",
    2: "price > 90",
    3: "symbol = 'SNE'",
    4: "symbol = 'SNE' AND price > 90",
    5: "symbol = 'IBM'",
}
EDGES = [(1, 2), (2, 4), (3, 4)]  # from the covering to the covered filter
NOTIFICATION = {"symbol": "SNE", "price": 95.0}
TAG = (4,)  # the lowest nodes that match the notification


class Hop(NamedTuple):
    """A link, the nodes that the lower end subscribed to, and the label that the notification has
    on the link; the label is empty if the notification is not sent."""

    above: str
    below: str
    wants: tuple[int, ...]
    label: tuple[int, ...]


HOPS = [
    Hop("root", "west", (1, 4), (4,)),
    Hop("root", "east", (2, 3), (2, 3)),
    Hop("root", "south", (5,), ()),
    Hop("west", "coast", (4,), (4,)),
    Hop("west", "ben", (1,), (1,)),
    Hop("coast", "ana", (4,), (4,)),
    Hop("east", "cy", (2,), (2,)),
    Hop("east", "dee", (3,), (3,)),
    Hop("south", "eve", (5,), ()),
]
PLACES: dict[str, Point] = {
    "root": (590, 96),
    "west": (442, 232),
    "east": (650, 232),
    "south": (802, 232),
    "coast": (380, 368),
    "ana": (380, 490),
    "ben": (492, 490),
    "cy": (600, 490),
    "dee": (700, 490),
    "eve": (802, 490),
}
NODES: dict[int, Point] = {1: (48, 82), 2: (48, 146), 3: (200, 146), 4: (48, 226), 5: (48, 290)}


def hops() -> Drawing:
    drawing = Drawing(
        880,
        566,
        "A tree of routers, with a header that changes from hop to hop",
        "On the left, the content graph of five filters. A notification with symbol SNE and price "
        "95 matches four of them, and the lowest one is node 4. On the right, the root sends it to "
        "the router west with the label 4 and to the router east with the label 2 3, the lowest "
        "nodes that each of them subscribed to. It does not send it to the router south, which "
        "subscribed to node 5 only. Each router looks up the label and writes the label for the "
        "next hop.",
    )
    _draw_graph(drawing)
    _draw_tree(drawing)
    return drawing


def _draw_graph(d: Drawing) -> None:
    d.text(24, 34, "Content graph, at the root", "head", anchor="start")
    for above, below in EDGES:
        (x0, y0), (x1, y1) = NODES[above], NODES[below]
        d.line((x0, y0 + 15), (x1 + (15 if x0 > x1 else 0), y1 - (8 if x0 > x1 else 15)))
    for node, (x, y) in NODES.items():
        d.circle(x, y, 15, str(node), "match" if node in TAG else "plain")
        d.text(x + 22, y, FILTERS[node], "code", anchor="start")

    d.lines(
        24,
        340,
        [
            "A line leads from a filter down to",
            "one that it covers.",
        ],
    )
    d.text(24, 396, "Header of the notification", "head", anchor="start")
    d.box(24, 412, 74, 42, "node 4", tone="match", first="code")
    d.box(98, 412, 104, 42, "number 12", tone="match", first="code")
    d.box(202, 412, 96, 42, "label 2 3", tone="told", first="code")
    d.lines(
        24,
        474,
        [
            "The mark, a node and a number,",
            "never changes. The label is for one hop,",
            "here from root to east: the lowest",
            "nodes that the lower router wants.",
        ],
    )


def _draw_tree(d: Drawing) -> None:
    x, y = PLACES["root"]
    d.text(x, 26, "{symbol: SNE, price: 95.0}", "code", tone="input")
    d.arrow((x, 36), (x, y - 24), tone="input")
    for hop in HOPS:
        _draw_hop(d, hop)
    d.text(802, 164, "nothing", "small")
    d.text(PLACES["cy"][0], 530, "agents of subscribers", "small")
    d.text(PLACES["cy"][0], 547, "drawn for routers with forwarding = 'labels'", "small")
    for name, (x, y) in PLACES.items():
        if name == "root":
            d.box(x - 76, y - 22, 152, 44, "root", "matches: 1 2 3 4", tone="match")
            continue
        is_router = any(hop.above == name for hop in HOPS)
        (hop,) = (hop for hop in HOPS if hop.below == name)
        tone: Tone = "plain" if is_router else "told" if hop.label else "plain"
        wants = f"wants {_said(hop.wants)}"
        d.box(x - 46, y - 22, 92, 44, name, wants, tone=tone)


def _draw_hop(d: Drawing, hop: Hop) -> None:
    (x0, y0), (x1, y1) = PLACES[hop.above], PLACES[hop.below]
    reach = 60 if hop.above == "root" else 30
    start = (x0 + max(-reach, min(reach, (x1 - x0) / 3)), y0 + 24)
    end = (x1, y1 - 24)
    if not hop.label:
        d.line(start, end, dashed=True)
        return
    d.arrow(start, end, tone="told")
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    words = _said(hop.label)
    width = 24 + 9 * len(words)
    d.box(x - width / 2, y - 13, width, 26, words, tone="told", first="code")


def _said(nodes: tuple[int, ...]) -> str:
    return " ".join(map(str, nodes))
