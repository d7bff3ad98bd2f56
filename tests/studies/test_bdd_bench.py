"""`tidings bench bdd`, with small sizes: what it reports, and that wrong results are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tidings import studies
from tidings.matching.diagrams import Diagrams
from tidings.model import Event


def test_the_benchmark_reports_what_it_measured() -> None:
    report = studies.bench_diagrams(40, events=4, repeats=1, sweep=0)
    assert [run.workload for run in report.runs] == ["clauses", "stock"]
    for run in report.runs:
        assert [way.name for way in run.ways] == ["apart", "classes", "classes and edges"]
        assert run.ways[2].node_steps <= run.ways[0].node_steps
        assert run.most_nodes <= 256
    clauses, stock, weakened = report.coverings
    assert clauses.before <= clauses.after
    assert stock.edges_before == stock.edges_after
    assert weakened.filters == 40
    assert (weakened.before, weakened.after) == (13, 26)  # of 13 whole groups
    assert (weakened.edges_before, weakened.edges_after) == (13, 26)
    assert all(one.refuted for one in report.coverings)
    headings = [heading for heading, _ in studies.diagram_sections(report)]
    assert headings[0] == "clauses, 40 filters: for each event"
    assert headings[-1].startswith("Coverings and edges")


def test_wrong_results_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_self: Diagrams, _event: Event, _dead: object) -> object:
        return np.array([39])

    monkeypatch.setattr(Diagrams, "match", nothing)
    with pytest.raises(studies.WrongMatches, match="and the reference find different"):
        studies.bench_diagrams(40, events=4, repeats=1, sweep=0)
