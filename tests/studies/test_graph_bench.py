"""The measurement of building a graph, on small ones."""

from __future__ import annotations

import pytest

from tidings import ContentGraph, parse
from tidings.graph.node import untie
from tidings.studies.engine.graph_bench import STEPS, WrongGraph, bench_graph, check_graph


def test_a_report_has_all_figures() -> None:
    notes: list[str] = []
    report = bench_graph(["flights", "mixed"], [50, 400], sample=20, note=notes.append)
    assert [(run.workload, run.filters) for run in report.runs] == [
        ("flights", 50), ("flights", 400), ("mixed", 50), ("mixed", 400),
    ]  # fmt: skip
    for run in report.runs:
        assert set(run.steps) == set(STEPS)
        assert run.seconds == pytest.approx(sum(run.steps.values()))
        assert run.filters_per_second == pytest.approx(run.filters / run.seconds)
        assert 0 < run.nodes <= run.filters
        assert run.edges <= run.pairs <= run.candidates
        assert 0 < run.parsed_bytes <= run.peak_bytes
        assert run.checked_nodes >= 10
    assert report.runs[1].edges > 0
    assert [(one.smallest, one.largest) for one in report.growth] == [(50, 400)] * 2
    assert "flights, 50 filters: building" in notes


def test_a_wrong_graph_is_refused() -> None:
    graph = ContentGraph.build([parse(f"x > {n}") for n in range(5)])
    assert check_graph(graph, 10, 1) == 9
    child = graph.node(parse("x > 3"))
    assert child is not None
    untie(graph.parents(child)[0], child)
    with pytest.raises(WrongGraph, match="x > 3"):
        check_graph(graph, 10, 1)
