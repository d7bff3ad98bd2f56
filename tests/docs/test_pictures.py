"""The pictures: what the scripts draw today, linked from pages, legible, and true to the code.

tools/pictures draws them; `make pictures` writes docs/pictures.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tools.pictures import hops, rank_space, subscription
from tools.pictures.__main__ import HOME, PICTURES, draw_all
from tools.pictures.shapes import PALETTES, SIZES, Drawing, Palette

from tidings import ContentGraph, Matcher, parse
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments.segment_builder import build_segment
from tidings.routing import LabelGraph
from tidings.routing.clients import Phase
from tidings.routing.forwarding.transitions import NodeState
from tidings.routing.protocol import Times, messages
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.pipeline.settings import Subscriptions

TOP = Path(__file__).resolve().parents[2]
PAGES = [*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")]
SVG = "{http://www.w3.org/2000/svg}"
LINK = re.compile(
    r"<picture>\s*"
    r'<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img alt="(?P<alt>[^"]+)" src="(?P<light>[^"]+)">\s*'
    r"</picture>"
)


# -- the files ---------------------------------------------------------------------------------


def test_files_are_what_the_scripts_draw() -> None:
    drawn = draw_all()
    there = {path.name: path.read_text() for path in HOME.iterdir()}
    assert there.keys() == drawn.keys()
    changed = [name for name, text in drawn.items() if there[name] != text]
    assert not changed, f"{changed} differ from what is drawn; run `make pictures`"


@pytest.mark.parametrize("path", sorted(HOME.glob("*.svg")), ids=lambda path: path.name)
def test_file_stands_alone(path: Path) -> None:
    """It has a title and a description, and names nothing outside of it."""
    text = path.read_text()
    root = ElementTree.fromstring(text)
    assert (root.findtext(f"{SVG}title") or "").strip()
    assert len(root.findtext(f"{SVG}desc") or "") > 100
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    tags = {one.tag.removeprefix(SVG) for one in root.iter()}
    shapes = {"rect", "path", "circle", "polyline", "polygon", "text"}
    assert tags <= {"svg", "title", "desc", "style", *shapes}
    assert not re.search(r"href|url\(|@import", text)


# -- the pages ---------------------------------------------------------------------------------


def test_every_picture_is_on_a_page() -> None:
    links = [link for path in PAGES for link in LINK.finditer(path.read_text())]
    named = {Path(link[kind]).name for link in links for kind in PALETTES}
    assert named == {path.name for path in HOME.iterdir()}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_pictures_of_a_page(path: Path) -> None:
    """A page has both files of a picture, and its title for those who do not see it."""
    text = path.read_text()
    links = [*LINK.finditer(text)]
    assert len(links) == text.count("<picture>") == text.count("<img ")
    for link in links:
        name = Path(link["light"]).name.removesuffix("-light.svg")
        for kind in PALETTES:
            assert (path.parent / link[kind]).resolve() == HOME / f"{name}-{kind}.svg"
        assert link["alt"] == PICTURES[name]().title


# -- legible -----------------------------------------------------------------------------------


def brightness(colour: str) -> float:
    """The relative luminance of WCAG."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((brightness(one), brightness(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_texts_stand_out(palette: Palette) -> None:
    papers = [palette.paper, *(paint.fill for paint in palette.tones.values())]
    pairs = [(ink, paper) for ink in (palette.ink, palette.faint) for paper in papers]
    pairs += [(paint.line, palette.paper) for paint in palette.tones.values()]
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []


def test_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", PICTURES)
def test_texts_do_not_overlap(name: str) -> None:
    drawing = PICTURES[name]()
    assert len(drawing.written) > 10
    assert [
        (one.words, other.words)
        for one, other in combinations(drawing.written, 2)
        if one.left < other.right and other.left < one.right
        and one.top < other.bottom and other.top < one.bottom
    ] == []  # fmt: skip


def test_small_texts_are_large_enough() -> None:
    """At the width that a page has, about 840 of the 880 that pictures are wide."""
    assert min(SIZES.values()) * 840 / 880 > 12
    assert {draw().width for draw in PICTURES.values()} == {880}


def test_what_does_not_fit_is_an_error() -> None:
    drawing = Drawing(200, 100, "a title", "a description")
    drawing.box(10, 10, 100, 40, "fits")
    with pytest.raises(ValueError, match="'is wider than its box' does not fit into 100 by 40"):
        drawing.box(10, 10, 100, 40, "is wider than its box")
    with pytest.raises(ValueError, match="'outside' reaches from"):
        drawing.text(190, 50, "outside")


# -- true to the code --------------------------------------------------------------------------


def words_of(drawing: Drawing) -> str:
    """All texts of a drawing, one to a line."""
    return "\n".join(one.words for one in drawing.written)


def test_graph_of_the_hops() -> None:
    graph = ContentGraph()
    for number, text in hops.FILTERS.items():
        assert graph.insert(parse(text)).id == number
    edges = {(node.id, child.id) for node in graph for child in graph.children(node)}
    assert edges == set(hops.EDGES)
    matching = graph.matching(hops.NOTIFICATION)
    assert [node.id for node in matching] == [1, 2, 3, 4]
    assert tuple(node.id for node in graph.lowest(matching)) == hops.TAG


def test_labels_of_the_hops() -> None:
    """Each router's graph, made of what is wanted below it, forwards with the labels drawn."""
    above = {hop.below: hop for hop in hops.HOPS}
    for name in {hop.above for hop in hops.HOPS}:
        below = [hop for hop in hops.HOPS if hop.above == name]
        wanted = {node for hop in below for node in hop.wants}
        if name != "root":
            assert wanted == set(above[name].wants)
        graph = LabelGraph[str]()
        for node in sorted(wanted):
            text = parse(hops.FILTERS[node])
            known = {one: parse(hops.FILTERS[one]) for one in graph}
            graph.insert(
                node,
                [one for one, other in known.items() if other.covers(text)],
                [one for one, other in known.items() if text.covers(other)],
            )
        for hop in below:
            for node in hop.wants:
                graph.subscribe(node, hop.below)
        header = hops.TAG if name == "root" else above[name].label
        expected = {hop.below: hop.label for hop in below if hop.label}
        assert graph.forward(header) == expected, name


def ranks_of_the_picture() -> tuple[Any, dict[str, Ranks]]:
    forms = [parse(text).form for text in rank_space.FILTERS.values()]
    segment = build_segment(enumerate(forms))
    return segment, {term.text: term.ranks for term in segment.terms}


def test_codes_of_rank_space() -> None:
    _, ranks = ranks_of_the_picture()
    delays = ranks["dep_delay"]
    assert len(delays) == len(rank_space.PIECES)
    for name, text in rank_space.FILTERS.items():
        (box,) = parse(text).form.boxes or ()
        assert delays.intervals(box["dep_delay"]) == [rank_space.INTERVALS[name]]
    for origin, delay in rank_space.EVENTS:
        assert ranks["origin"].code(origin) == rank_space.ORIGINS[origin]
        assert delays.code(delay) == rank_space.code_of_delay(delay)
    samples = [(None, 4), (5, 60), (61, 100), (101, 10**6), ("late", "")]
    for code, values in enumerate(samples):
        assert {delays.code(value) for value in values} == {code}


def test_join_of_rank_space() -> None:
    segment, _ = ranks_of_the_picture()
    access = {segment.terms[column - 1].text for column in segment.arrays.group_column}
    assert access == {"origin"}
    events = [{"origin": origin, "dep_delay": delay} for origin, delay in rank_space.EVENTS]
    inside = [at for at in rank_space.order() if events[at]["origin"] == "EWR"]
    assert rank_space.order()[rank_space.SLICE] == inside
    matcher = Matcher()
    matcher.add_many(rank_space.FILTERS)
    found = [at for at, event in enumerate(events) if rank_space.BOX in matcher.match(event)]
    assert sorted(rank_space.matches()) == found


def test_words_of_the_subscription() -> None:
    words = words_of(PICTURES["subscription"]())
    said = {one for one in re.findall(r"[A-Z]\w+", words) if hasattr(messages, one)}
    assert said == {*subscription.MESSAGES}
    assert [phase.value for phase in Phase if phase.value in words.splitlines()] == [
        *subscription.PHASES
    ]
    assert {state.value for state in NodeState if state.value in words.splitlines()} == {
        *subscription.STATES
    }
    assert f"for {2 * Times().expire:.0f} seconds" in words
    assert Times().beat == 1
    assert f"{Subscriptions().rebuild_after:,} changes" in words


def test_words_of_the_micro_batch(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    words = words_of(PICTURES["micro-batch"]())
    assert f"{outbox.pin_path(42).parent.name}/\n{outbox.pin_path(42).stem}\n" in words
    assert f"{outbox.work_folder(42, 'a').parent.name}/\n" in words
    data, dead = outbox.folder(42, "a").parent.name, outbox.dead_folder(42, "a").parent.name
    assert f"{data}/, {dead}/\n" in words
    assert outbox.log.folder.name in words.splitlines()
