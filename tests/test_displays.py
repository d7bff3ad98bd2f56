"""How things look at a prompt and in a notebook."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tidings import ContentGraph, Matcher, Snapshot, parse
from tidings.graph import content_graph

HOSTILE = "name = '<script>alert(1)</script>'"


def test_prompts() -> None:
    matcher = Matcher(background=False)
    assert repr(matcher) == "<Matcher of 0 filters>"
    matcher.add("a", "x > 1")
    assert repr(matcher) == "<Matcher of 1 filter>"
    assert repr(ContentGraph([parse("x > 1"), parse("x > 2")])) == "<ContentGraph of 2 nodes>"


def test_snapshots(tmp_path: Path) -> None:
    snapshot = Snapshot.build({"a": "x > 1", "b": "x > 1", "c": "x > 2"}, number=7)
    assert repr(snapshot) == "<Snapshot: version 7, 3 subscriptions, 2 nodes>"
    snapshot.save(tmp_path / "<b>")
    opened = Snapshot.open(tmp_path / "<b>")
    assert repr(opened).startswith(f"<Snapshot in '{tmp_path}/<b>': version 7, ")
    page = ElementTree.fromstring(opened._repr_html_())
    cells = {row[0].text: row[1].text for row in page}
    assert cells["directory"] == str(tmp_path / "<b>")
    assert [cells[name] for name in ("subscriptions", "nodes", "edges")] == ["3", "2", "1"]


def test_explanations() -> None:
    found = parse(f"{HOSTILE} AND n > 5 OR n < 2").explain({"name": "x", "n": 7})
    page = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert page.findtext("p") == "does not match"
    rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    assert ["failed", HOSTILE, "name is 'x'"] in rows
    assert ["passed", "n > 5", "n is 7"] in rows
    assert ["alternative 2"] in rows
    never = parse("n > 5 AND n < 2").explain({"n": 7})
    why = "no value of n is both &gt; 5 and &lt; 2"
    said = f"<p>does not match: the filter can never match: {why}</p>"
    assert never._repr_html_().startswith(said)


def test_graphs() -> None:
    graph = ContentGraph([parse(HOSTILE), parse("name LIKE '<%'")])
    page = ElementTree.fromstring(graph._repr_html_())
    assert page.tag.endswith("svg")
    assert "script" not in {one.tag.split("}")[-1] for one in page.iter()}
    many = ContentGraph([parse(f"x = {n}") for n in range(content_graph.MOST_DRAWN + 1)])
    assert many._repr_html_() == "<p>a content graph of 2,001 nodes, too many to draw</p>"
