"""Measures decision diagrams: `tidings bench bdd`.

    clauses       (a OR b) AND (c OR d) AND ..., 10 to 30 tests over 50 shared attributes
    stock         a symbol, a price outside a range, a day: no filter is wide
    stock inside  a symbol, a price inside a range, a day: no filter is wide
    weakened      groups of three: a filter of clauses, and two that cover it; only for coverings

The same kernels evaluate each workload in five ways, in turn. In each of them, filters share the
results of equal tests:

    apart              every filter by itself
    merged             equal parts of filters are one unit, but there are no implications
    classes            in addition, nodes at which the same test results are known are
                       evaluated together
    classes and edges  in addition, the edges between other nodes
    measured order     the same, built again with pass rates that were learnt from other events

What implications save is the difference between "merged" and "classes and edges". "trees" is the
matcher without diagrams. Times are processor times; medians over repeats.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tidings.filters import Filter
from tidings.filters.canonical import Form, Node, Test, tree_of
from tidings.filters.language import Expression
from tidings.matching import batch_of
from tidings.matching.diagrams import Diagrams, factor
from tidings.studies.diagrams.bdd_bars import list_bars
from tidings.studies.diagrams.bdd_report import DiagramReport, DiagramRun, DiagramWay
from tidings.studies.diagrams.figure_nine import is_figure_exact
from tidings.studies.diagrams.found_coverings import count_coverings
from tidings.studies.diagrams.small_domains import compare_with_brute_force
from tidings.studies.diagrams.sweep import (
    build_matcher,
    find_pairs,
    measure_sweep,
    parse_wide,
    time_of,
)
from tidings.studies.host.machine_info import describe_machine
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.wide_filters import (
    Event,
    draw_clauses,
    draw_common_event,
    draw_event,
    draw_stock,
    draw_stock_event,
    draw_stock_inside,
    draw_weakened,
)

LEARNT = 256  # the events from which pass rates are learnt
CHECKED = 3  # how many events are checked against the reference
EXHAUSTIVE = 100  # the highest number of filters that are compared with brute force
Note = Callable[[str], None]


def bench_diagrams(
    filters: int,
    *,
    events: int = 128,
    repeats: int = 3,
    sweep: int = 300,
    seed: int = 1,
    note: Note = lambda _: None,
) -> DiagramReport:
    """Measure the workloads with this many filters, and a sweep with `sweep` filters at each point
    (0 for no sweep)."""
    found = describe_machine()
    rng = random.Random(seed)
    runs = [
        _run(name, draw, filters, events, repeats, rng, note)
        for name, draw in (
            ("clauses", draw_clauses), ("stock", draw_stock), ("stock inside", draw_stock_inside)
        )
    ]  # fmt: skip
    points = measure_sweep(sweep, repeats, rng, note) if sweep else []
    coverings = []
    for name, texts, draw in (
        ("clauses", [draw_clauses(rng) for _ in range(filters)], draw_event),
        ("stock", [draw_stock(rng) for _ in range(filters)], draw_stock_event),
        ("weakened", _draw_weakened(rng, filters), draw_common_event),
    ):
        note(f"{name}: coverings")
        coverings.append(count_coverings(name, texts, draw, rng))
    note("coverings by brute force")
    domain = compare_with_brute_force(rng, min(EXHAUSTIVE, max(10, filters // 4)))
    is_exact = is_figure_exact()
    bars = list_bars(runs, points, coverings, domain, is_exact)
    return DiagramReport(found, seed, runs, points, coverings, domain, is_exact, bars)


def _draw_weakened(rng: random.Random, count: int) -> list[str]:
    return [text for _ in range(-(-count // 3)) for text in draw_weakened(rng)][:count]


# -- measurements ------------------------------------------------------------------------------


def _run(
    name: str,
    draw: Callable[[random.Random], str],
    count: int,
    events: int,
    repeats: int,
    rng: random.Random,
    note: Note,
) -> DiagramRun:
    note(f"{name}: parsing {count:,} filters")
    texts = [draw(rng) for _ in range(count)]
    parse_seconds, parsed = time_of(lambda: [parse_wide(text) for text in texts])
    forms = [one.form for one in parsed]
    drawn = [draw_event(rng) for _ in range(events)]
    note(f"{name}: building")
    trees = [(slot, _tree(form)) for slot, form in enumerate(forms)]
    terms = {text: node for form in forms for text, node in form.terms.items()}
    apart = Diagrams.build(trees, terms, merge=False, join=False)
    merged = Diagrams.build(trees, terms, join=False)
    build_seconds, joined = time_of(lambda: Diagrams.build(trees, terms))
    linked = Diagrams.build(trees, terms)
    link_seconds, _ = time_of(linked.link)
    dead = np.zeros(count, np.uint8)
    ordered = _learn(linked, trees, terms, dead)
    ways = {
        "apart": apart, "merged": merged, "classes": joined, "classes and edges": linked,
        "measured order": ordered,
    }  # fmt: skip
    for event in drawn[:CHECKED]:
        want = {slot for slot, form in enumerate(forms) if form.holds(event)}
        for way, one in ways.items():
            if set(one.match(event, dead).tolist()) != want:
                raise WrongMatches(f"{name}: {way} and the reference find different filters")
    note(f"{name}: measuring")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for one in ways.values():
        one.forget_counts()
    for way, one in [*ways.items()] * repeats:
        seconds, _ = time_of(lambda one=one: [one.match(event, dead) for event in drawn])  # type: ignore[misc]
        times[way].append(seconds / events * 1e6)
    found = [_way(way, one, times[way]) for way, one in ways.items()]
    steps = {one.name: one.node_steps for one in found}
    trees_micros, matcher_micros, matches = _compare(parsed, drawn, repeats, note)
    draft = joined.draft
    assert draft is not None, "only diagrams with edges have none"
    edges = len(linked.arrays.edges)
    spent = linked.arrays.edges.nbytes + linked.arrays.class_edges.nbytes
    return DiagramRun(
        workload=name, filters=count, wide=sum(form.tree is not None for form in forms),
        matches=matches, parse_seconds=parse_seconds, build_seconds=build_seconds,
        link_seconds=link_seconds, units=len(draft.plan.units), most_nodes=draft.plan.nodes,
        left_out=len(draft.plan.left_out), split=draft.plan.split, too_large=draft.plan.too_large,
        groups=len(draft.classes.groups), edges=edges, bytes=linked.nbytes,
        bytes_per_edge=spent / max(1, edges), ways=found, trees_micros=trees_micros,
        matcher_micros=matcher_micros, speedup=trees_micros / matcher_micros,
        step_share=steps["classes and edges"] / max(1.0, steps["merged"]),
        apart_share=steps["classes and edges"] / max(1.0, steps["apart"]),
        ordered_steps=steps["measured order"] / max(1.0, steps["classes and edges"]),
        ordered_tests=found[-1].tests / max(1.0, found[-2].tests),
    )  # fmt: skip


def _learn(
    linked: Diagrams,
    trees: Sequence[tuple[int, Node]],
    terms: Mapping[str, Expression],
    dead: npt.NDArray[np.uint8],
) -> Diagrams:
    """The same diagrams, ordered by pass rates that were learnt from events other than the measured
    ones."""
    rng = random.Random(len(trees))
    for _ in range(LEARNT):
        linked.match(draw_event(rng), dead)
    ordered = Diagrams.build(trees, terms, linked.read_measured())
    ordered.link()
    return ordered


def _tree(form: Form) -> Node:
    """The tree of a form. If the boxes of the form are the product of clauses, the tree has these
    clauses."""
    boxes = [[Test(*item) for item in box.items()] for box in form.boxes or ()]
    return factor(boxes) or tree_of(form)


def _way(name: str, diagrams: Diagrams, times: Sequence[float]) -> DiagramWay:
    counted = diagrams.total_counts()
    events = max(1, counted["events"])
    names = ("tests", "node_steps", "inferred", "touched", "counted")
    return DiagramWay(name, statistics.median(times), *(counted[one] / events for one in names))


def _compare(
    filters: Sequence[Filter], events: Sequence[Event], repeats: int, note: Note
) -> tuple[float, float, float]:
    """Microseconds per event of the matcher without and with diagrams, and the matches per event.
    The matcher without diagrams gets fewer events, because it is slow."""
    note("comparing with the matcher without diagrams")
    few = list(events[:4])
    wide = sum(one.form.tree is not None for one in filters)
    slow = build_matcher(filters, "trees")
    fast = build_matcher(filters, "auto" if wide else "bdd")
    if find_pairs(slow, few) != find_pairs(fast, few):
        raise WrongMatches("the matcher finds different filters with and without diagrams")
    batch = batch_of(events)
    given = batch.slice(0, len(few)) if wide else batch
    without = [time_of(lambda: slow.match_pairs(given))[0] / given.num_rows for _ in range(repeats)]
    found = [time_of(lambda: fast.match_pairs(batch)) for _ in range(repeats + 1)][1:]
    with_diagrams = statistics.median(seconds for seconds, _ in found) / len(events)
    matches = len(found[0][1][0]) / len(events)
    return statistics.median(without) * 1e6, with_diagrams * 1e6, matches
