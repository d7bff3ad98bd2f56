"""The picture is well-formed, says what the graph is, and is safe with hostile texts."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from tidings import ContentGraph, ObjectPreprocessor, StaticPreprocessor, TypePreprocessor, parse
from tidings.graph.picture import draw

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "name = '</title><script>alert(1)</script>'",
    "name = ']]>&amp;<!--'",
    "name = '\x01\x08\x1b[31m\ufffe\u202e'",
    "name = '\"><image href=x onerror=alert(1)>'",
    "name = '" + "x" * 5000 + "'",
    "name = '🙂\u0000'",
]


def hovers(svg: str) -> list[list[str]]:
    """The lines that each node says, from the top of the picture."""
    root = ET.fromstring(svg)
    titles = (group.find(f"{SVG}title") for group in root.iter(f"{SVG}g"))
    return [(one.text or "").split("\n") for one in titles if one is not None]


def test_every_node_says_what_it_is() -> None:
    graph = ContentGraph(parse(f"x > {n}") for n in (1, 5, 3))
    svg = draw(graph, "some & <filters>", lambda node: f"id {node.id * 10}")
    assert hovers(svg) == [
        ["1: x > 1", "id 10", "0 parents, 1 child"],
        ["3: x > 3", "id 30", "1 parent, 1 child"],
        ["2: x > 5", "id 20", "1 parent, 0 children"],
    ]
    words = "".join(ET.fromstring(svg).itertext())
    assert "some & <filters>" in words
    assert "3 nodes, 2 edges, depth 2" in words


@pytest.mark.parametrize("count", [1, 30, 100, 300])
def test_hostile_texts_are_only_text(count: int) -> None:
    graph = ContentGraph(parse(f"x > {n}") for n in range(count))
    for text in HOSTILE:
        graph.insert(parse(text))
    svg = draw(graph, HOSTILE[0], lambda _: HOSTILE[1])
    root = ET.fromstring(svg.encode())
    kinds = {one.tag.removeprefix(SVG) for one in root.iter()}
    assert kinds <= {"svg", "style", "rect", "text", "tspan", "circle", "g", "title", "path"}
    assert not any(
        name.startswith("on") or "href" in name for e in root.iter() for name in e.attrib
    )
    assert any("<script>alert(1)" in line for lines in hovers(svg) for line in lines)
    assert max(len(line) for lines in hovers(svg) for line in lines) < 1100
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ufffe]", svg)


def test_few_nodes_have_labels_and_many_are_dots() -> None:
    def kinds(count: int) -> tuple[int, int]:
        graph = ContentGraph(parse(f"x = {n}") for n in range(count))
        root = ET.fromstring(draw(graph))
        classes = [one.get("class") for one in root.iter()]
        return classes.count("box"), classes.count("dot")

    assert [kinds(count) for count in (0, 40, 160, 161)] == [(0, 0), (40, 0), (160, 0), (0, 161)]


def test_labels_stay_in_their_boxes() -> None:
    for count in (3, 60):
        graph = ContentGraph(parse(f"{'w' * 60} = {n} AND y > 1 OR z > 1") for n in range(count))
        for group in ET.fromstring(draw(graph)).iter(f"{SVG}g"):
            box = group.find(f"{SVG}rect")
            if box is None:
                continue
            left, top = float(box.get("x", "")), float(box.get("y", ""))
            right, bottom = left + float(box.get("width", "")), top + float(box.get("height", ""))
            for text in group.findall(f"{SVG}text"):
                size = float(text.get("font-size", ""))
                # a letter of a monospaced font is about six tenths as wide as it is high
                assert float(text.get("x", "")) + 0.61 * size * len(text.text or "") <= right
                assert top < float(text.get("y", "")) <= bottom - 0.2 * size


def test_edges_lead_down_from_nodes_to_nodes(seed: int) -> None:
    rng = random.Random(seed)
    graph = ContentGraph(
        parse(f"a > {rng.randint(0, 9)} AND b < {rng.randint(0, 9)}") for _ in range(30)
    )
    svg = draw(graph)
    paths = re.findall(r' d="([^"]*)"', svg)
    assert len(paths) == sum(len(graph.children(node)) for node in graph)
    for path in paths:
        ends = re.findall(r"[MC ]?(?:V|(?<= ))(-?[\d.]+)(?=[CV]|$)", path)
        downs = [float(y) for y in ends]
        assert all(high <= low for high, low in pairwise(downs)), path


def test_graphs_of_every_kind_can_be_drawn() -> None:
    topics = StaticPreprocessor({"mlb": "baseball"})
    assert [lines[0] for lines in hovers(draw(topics.graph))] == ["1: 'baseball'", "2: 'mlb'"]
    types = TypePreprocessor()
    types.subscribe(dict)
    assert [lines[0] for lines in hovers(draw(types.graph))] == ["1: dict"]
    assert hovers(draw(ObjectPreprocessor().graph)) == []
