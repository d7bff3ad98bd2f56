"""`tidings bench bdd`, with small sizes: what it reports, and that wrong results are refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidings import parse, studies
from tidings.filters.canonical import Form
from tidings.matching.diagrams import Diagrams
from tidings.model import Event
from tidings.studies.bars import at_least, at_most, is_true, none_of, without_target
from tidings.studies.diagrams import figure_nine, small_domains, sweep
from tidings.studies.diagrams.bdd_bars import list_bars
from tidings.studies.workloads.wide_filters import draw_stock

WAYS = ["apart", "merged", "classes", "classes and edges", "measured order"]


def test_the_benchmark_reports_what_it_measured() -> None:
    report = studies.bench_diagrams(40, events=4, repeats=1, sweep=0)
    assert [run.workload for run in report.runs] == ["clauses", "stock", "stock inside"]
    for run in report.runs:
        assert [way.name for way in run.ways] == WAYS
        steps = [way.node_steps for way in run.ways]
        assert steps[:4] == sorted(steps[:4], reverse=True)
        assert run.ordered_steps == steps[4] / steps[3]
        assert run.ordered_tests == run.ways[4].tests / run.ways[3].tests
        assert run.step_share == steps[3] / steps[1]
        assert run.apart_share == steps[3] / steps[0]
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
    assert headings[-2].startswith("Coverings and edges")
    assert headings[-1] == "Asked for, and measured"
    check_bars(report)


def check_bars(report: studies.DiagramReport) -> None:
    bars = {bar.name: bar for bar in report.bars}
    assert len(bars) == len(report.bars)
    clauses, stock, inside = report.runs
    times = bars["clauses: events per second, against trees of sets"]
    assert (times.asked, times.measured) == ("at least 20 times", clauses.speedup)
    assert times.met == (clauses.speedup >= 20)
    share = bars["clauses: node steps with implications, share of those without"]
    assert share.met == (clauses.step_share <= 0.2)
    boxes = bars["stock: events per second, against the index of boxes"]
    assert (boxes.asked, boxes.measured, boxes.met) == ("", stock.speedup, None)
    assert "20 times does not apply" in boxes.note
    assert inside.wide == 0
    same = bars["stock inside: node steps with implications, share of those without"]
    assert same.measured == inside.step_share
    built = bars["clauses: seconds to parse, build and link 40 filters"]
    assert built.measured > 0  # type: ignore[operator]
    assert built.met is None  # the target is for 10,000 filters
    assert bars["clauses: filters left out, as they exceed a budget"].met
    assert bars["clauses: filters split into parts"].measured == clauses.split
    assert clauses.too_large <= clauses.split
    assert bars["automatic choice: most time, against the better engine"].met is None
    assert bars["weakened: coverings, without the walk"].measured == 13
    assert bars["weakened: coverings, with the walk"].measured == 26
    assert bars["coverings refuted by brute force"].measured == 0
    assert bars["edges of figure 9 are exact"].measured is True


def test_the_sweep_compares_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PERCENT", (0, 50))
    monkeypatch.setattr(sweep, "CLAUSES", (7,))
    monkeypatch.setattr(sweep, "BATCH", 64)
    notes: list[str] = []
    points = sweep.measure_sweep(12, 1, random.Random(1), notes.append)
    assert notes == ["sweep: 0 % wide, 7 clauses", "sweep: 50 % wide, 7 clauses"]
    assert [(point.wide_percent, point.clauses) for point in points] == [(0, 7), (50, 7)]
    for point in points:
        assert point.ratio == point.auto / min(point.trees, point.bdd) > 0
    bars = {bar.name: bar for bar in list_bars([], points, [], no_domain(), True)}
    most = bars["automatic choice: most time, against the better engine"]
    assert most.measured == max(point.ratio for point in points)
    assert most.met == (most.measured <= 1.2)


def no_domain() -> small_domains.SmallDomain:
    return small_domains.SmallDomain(0, 0, 0, 0, 0, 0, 0)


def test_wrong_results_end_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([{(0, 1)}, {(0, 1)}, {(0, 2)}])
    monkeypatch.setattr(sweep, "find_pairs", lambda *_: next(sizes))
    with pytest.raises(studies.WrongMatches, match="the engines find different"):
        sweep.measure_sweep(4, 1, random.Random(1), lambda _: None)


def test_stock_filters_have_a_price_outside_or_inside(seed: int) -> None:
    outside, inside = (
        parse(draw_stock(random.Random(seed), inside=inside)).form for inside in (False, True)
    )
    for price in range(200):
        event = {"symbol": f"S{symbol_of(outside)}", "price": price, "day": 400}
        assert outside.holds(event) is not inside.holds(event)


def symbol_of(form: Form) -> int:
    places = form.hull["symbol"].points()
    assert places is not None
    return int(places[0][1][1:])


def test_a_bar_is_met_or_not() -> None:
    found = [at_least("a", 20, 19.9, " times"), at_most("b", 1.2, 1.2), none_of("c", 1),
             at_most("d", 1, None), is_true("e", False),
             without_target("f", 3, note="why")]  # fmt: skip
    assert [bar.asked for bar in found] == ["at least 20 times", "at most 1.2", "none",
                                            "at most 1", "yes", ""]  # fmt: skip
    assert [bar.met for bar in found] == [False, True, False, None, False, None]
    assert studies.notes_of(found) == ["f: why"]


def test_brute_force_refutes_wrong_coverings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_domains, "covers_among", lambda *_: True)
    found = small_domains.compare_with_brute_force(random.Random(1), 5)
    assert found.found == found.coverings
    assert found.refuted == found.pairs - found.coverings > 0


def test_brute_force_agrees_with_the_reference(seed: int) -> None:
    """On a few events of the domain, each filter is evaluated."""
    rng = random.Random(seed)
    filters = small_domains.draw_relatives(rng)
    matched = np.unpackbits(small_domains._match_all(filters), axis=1)
    for event in rng.choices([*np.flatnonzero(matched.any(axis=0)), *range(500)], k=40):
        given = {f"a{at}": 1 for at in range(small_domains.ATTRIBUTES) if event >> at & 1}
        if (value := int(event) >> small_domains.ATTRIBUTES) < 3:
            given["b"] = value
        for bits, one in zip(matched, filters, strict=True):
            assert bool(bits[event]) is parse(small_domains.write_filter(one)).matches(given)


def test_other_edges_are_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    assert figure_nine.is_figure_exact()
    monkeypatch.setattr(figure_nine, "ORDER", figure_nine.ORDER[::-1])
    assert not figure_nine.is_figure_exact()


def test_wrong_results_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_self: Diagrams, _event: Event, _dead: object) -> object:
        return np.array([39])

    monkeypatch.setattr(Diagrams, "match", nothing)
    with pytest.raises(studies.WrongMatches, match="and the reference find different"):
        studies.bench_diagrams(40, events=4, repeats=1, sweep=0)
