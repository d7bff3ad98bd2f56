"""Measures decision diagrams: `tidings bench bdd`.

    clauses    (a OR b) AND (c OR d) AND ..., 10 to 30 tests over 50 shared attributes
    stock      a symbol, a price outside a range, a day: filters that an index of boxes finds faster
    weakened   groups of three: a filter of clauses, and two that cover it; only for coverings

Each workload is evaluated by the same kernels in three ways, in turn: without implications (every
filter by itself, results of tests shared), with classes (nodes that know the same results move
together), and with classes and edges. "trees" is the matcher without diagrams. The sweep compares
the automatic choice with both engines. Times are processor times; medians over repeats.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidings.filters import Filter, parse
from tidings.filters.canonical import Form, Node, Test, tree_of
from tidings.matching import Matcher, batch_of
from tidings.matching.diagrams import Diagrams, factor
from tidings.studies.engine.bdd_report import DiagramReport, DiagramRun, DiagramWay, SweepPoint
from tidings.studies.engine.found_coverings import count_coverings
from tidings.studies.host.machine_info import describe_machine
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.wide_filters import (
    Event,
    draw_clauses,
    draw_common_event,
    draw_event,
    draw_narrow,
    draw_stock,
    draw_stock_event,
    draw_weakened,
)

CHECKED = 3  # how many events are checked against the reference
BATCH = 512  # events of the sweep
SLOW = 32  # how many events the filters are evaluated on one by one
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
    """Measure both workloads with this many filters, and a sweep with `sweep` filters at each point
    (0 for no sweep)."""
    found = describe_machine()
    rng = random.Random(seed)
    runs = [
        _run(name, draw, filters, events, repeats, rng, note)
        for name, draw in (("clauses", draw_clauses), ("stock", draw_stock))
    ]
    points = []
    for percent, clauses in itertools.product((0, 25, 50, 75, 100), (3, 5, 7, 10, 15)):
        if sweep:
            note(f"sweep: {percent} % wide, {clauses} clauses")
            points.append(_sweep(percent, clauses, sweep, repeats, rng))
    coverings = []
    for name, texts, draw in (
        ("clauses", [draw_clauses(rng) for _ in range(filters)], draw_event),
        ("stock", [draw_stock(rng) for _ in range(filters)], draw_stock_event),
        ("weakened", _draw_weakened(rng, filters), draw_common_event),
    ):
        note(f"{name}: coverings")
        coverings.append(count_coverings(name, texts, draw, rng))
    return DiagramReport(found, seed, runs, points, coverings)


def _draw_weakened(rng: random.Random, count: int) -> list[str]:
    return [text for _ in range(-(-count // 3)) for text in draw_weakened(rng)][:count]


# -- measurements ------------------------------------------------------------------------------


def _time(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


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
    parse_seconds, parsed = _time(lambda: [_parse(text) for text in texts])
    forms = [one.form for one in parsed]
    drawn = [draw_event(rng) for _ in range(events)]
    note(f"{name}: building")
    trees = [(slot, _tree(form)) for slot, form in enumerate(forms)]
    terms = {text: node for form in forms for text, node in form.terms.items()}
    apart = Diagrams.build(trees, terms, merge=False)
    build_seconds, joined = _time(lambda: Diagrams.build(trees, terms))
    linked = Diagrams.build(trees, terms)
    link_seconds, _ = _time(linked.link)
    ways = {"apart": apart, "classes": joined, "classes and edges": linked}
    dead = np.zeros(count, np.uint8)
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
        seconds, _ = _time(lambda one=one: [one.match(event, dead) for event in drawn])  # type: ignore[misc]
        times[way].append(seconds / events * 1e6)
    found = [_way(way, one, times[way]) for way, one in ways.items()]
    trees_micros, matcher_micros, matches = _compare(parsed, drawn, repeats, note)
    draft = joined.draft
    assert draft is not None, "only diagrams with edges have none"
    edges = len(linked.arrays.edges)
    spent = linked.arrays.edges.nbytes + linked.arrays.class_edges.nbytes
    return DiagramRun(
        name, count, sum(form.tree is not None for form in forms), matches, parse_seconds,
        build_seconds, link_seconds, len(draft.plan.units), draft.plan.nodes,
        len(draft.classes.groups), edges, linked.nbytes, spent / max(1, edges), found,
        trees_micros, matcher_micros, trees_micros / matcher_micros,
        found[2].node_steps / max(1.0, found[0].node_steps),
    )  # fmt: skip


def _tree(form: Form) -> Node:
    """The tree of a form. If its boxes are the product of clauses, the tree has these clauses."""
    boxes = [[Test(*item) for item in box.items()] for box in form.boxes or ()]
    return factor(boxes) or tree_of(form)


def _parse(text: str) -> Filter:
    found = parse(text)
    assert found.form is not None
    return found


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
    slow = _matcher(filters, "trees")
    fast = _matcher(filters, "auto" if wide else "bdd")
    if _pairs(slow, few) != _pairs(fast, few):
        raise WrongMatches("the matcher finds different filters with and without diagrams")
    batch = batch_of(events)
    given = batch.slice(0, len(few)) if wide else batch
    without = [_time(lambda: slow.match_pairs(given))[0] / given.num_rows for _ in range(repeats)]
    found = [_time(lambda: fast.match_pairs(batch)) for _ in range(repeats + 1)][1:]
    with_diagrams = statistics.median(seconds for seconds, _ in found) / len(events)
    matches = len(found[0][1][0]) / len(events)
    return statistics.median(without) * 1e6, with_diagrams * 1e6, matches


def _matcher(filters: Sequence[Filter], engine: str) -> Matcher:
    matcher = Matcher(background=False, engine=engine)
    matcher.add_many(enumerate(filters))
    matcher.merge()
    return matcher


def _pairs(matcher: Matcher, events: list[Event]) -> set[tuple[int, int]]:
    rows, ids = matcher.match_pairs(events)
    return set(zip(rows.tolist(), ids.tolist(), strict=True))


def _sweep(percent: int, clauses: int, count: int, repeats: int, rng: random.Random) -> SweepPoint:
    wide = count * percent // 100
    texts = [draw_clauses(rng, clauses, clauses) for _ in range(wide)]
    filters = [_parse(text) for text in (*texts, *(draw_narrow(rng) for _ in range(count - wide)))]
    events = [draw_event(rng) for _ in range(BATCH)]
    batch = batch_of(events)
    few = batch.slice(0, SLOW) if percent and clauses > 6 else batch
    matchers = {engine: _matcher(filters, engine) for engine in ("auto", "trees", "bdd")}
    found = [_pairs(matcher, events[:SLOW]) for matcher in matchers.values()]
    if found[0] != found[1] or found[0] != found[2]:
        raise WrongMatches("the engines find different filters")
    times: dict[str, list[float]] = {engine: [] for engine in matchers}
    turns = list(matchers.items())
    for engine, matcher in itertools.chain(turns, *([turns[::-1], turns] * max(repeats, 3))):
        given = few if engine == "trees" else batch
        seconds, _ = _time(lambda matcher=matcher, given=given: matcher.match_pairs(given))  # type: ignore[misc]
        times[engine].append(seconds / given.num_rows * 1e6)
    auto, trees, bdd = (statistics.median(times[engine]) for engine in ("auto", "trees", "bdd"))
    return SweepPoint(percent, clauses, auto, trees, bdd, auto / min(trees, bdd))
