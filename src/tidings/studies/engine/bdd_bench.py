"""Measure decision diagrams: `tidings bench bdd`.

    clauses    (a OR b) AND (c OR d) AND ..., 10 to 30 tests over 50 shared attributes
    stock      a symbol, a price outside a range, a day: filters that an index of boxes finds faster

Each workload is evaluated in the same kernels in three ways that take turns: without implications
(every filter by itself, results of tests shared), with classes (nodes that know the same move
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

import msgspec
import numpy as np

from tidings.filters import Filter, parse
from tidings.filters.canonical import Form, Node, Test, covers_among, tree_of
from tidings.matching import Matcher, batch_of
from tidings.matching.diagrams import Diagrams, factor
from tidings.studies.host.machine_info import Machine, describe_machine
from tidings.studies.workloads.checking import WrongMatches

ATTRIBUTES, THRESHOLDS = 50, (20, 40, 60, 80)  # attributes are uniform in 0 to 99
SYMBOLS, DAYS = 500, 365
CHECKED = 3  # events that are checked against the reference
BATCH = 512  # events of the sweep
SLOW = 32  # events for filters that are evaluated one by one
Event = dict[str, Any]
Note = Callable[[str], None]


class Way(msgspec.Struct, frozen=True):
    """One way to evaluate the diagrams: counts and microseconds for each event."""

    name: str
    micros: float
    tests: float
    node_steps: float
    inferred: float
    """Steps that followed from implications."""
    touched: float
    """Filters that were decided, or of which a part was."""
    counted: float
    """Parts that were decided, while their filters were open."""


class DiagramRun(msgspec.Struct, frozen=True):
    """One workload."""

    workload: str
    filters: int
    wide: int
    matches: float
    parse_seconds: float
    build_seconds: float
    link_seconds: float
    units: int
    most_nodes: int
    """The nodes of the largest diagram; the budget is 256."""
    groups: int
    edges: int
    bytes: int
    bytes_per_edge: float
    ways: list[Way]
    trees_micros: float
    """The matcher without diagrams, batches."""
    matcher_micros: float
    """The matcher with diagrams, batches."""
    speedup: float
    step_share: float
    """Node steps with implications, as a share of those without."""


class SweepPoint(msgspec.Struct, frozen=True):
    """The three engines on a mix of narrow filters and clauses: microseconds for each event."""

    wide_percent: int
    clauses: int
    auto: float
    trees: float
    bdd: float
    ratio: float
    """The automatic choice, compared with the better of the others."""


class Coverings(msgspec.Struct, frozen=True):
    """Coverings that were found among wide filters, without and with the walk down both."""

    filters: int
    before: int
    after: int


class DiagramReport(msgspec.Struct, frozen=True):
    machine: Machine
    seed: int
    runs: list[DiagramRun]
    sweep: list[SweepPoint]
    coverings: Coverings


def bench_diagrams(
    filters: int,
    *,
    events: int = 128,
    repeats: int = 3,
    sweep: int = 300,
    seed: int = 1,
    note: Note = lambda _: None,
) -> DiagramReport:
    """Measure both workloads with so many filters, and a sweep with `sweep` filters at each point
    (0 for none)."""
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
    note("coverings")
    return DiagramReport(found, seed, runs, points, _count_coverings(rng))


# -- workloads ---------------------------------------------------------------------------------


def draw_clauses(rng: random.Random, least: int = 5, most: int = 15) -> str:
    """A filter of so many clauses, each with two tests, on different attributes."""
    count = rng.randint(least, most)
    tests = [f"a{at} < {rng.choice(THRESHOLDS)}" for at in rng.sample(range(ATTRIBUTES), 2 * count)]
    return " AND ".join(
        f"({one} OR {two})" for one, two in zip(tests[::2], tests[1::2], strict=True)
    )


def draw_stock(rng: random.Random) -> str:
    """A filter like those of the seed: a symbol, a price outside a range, a day."""
    symbol = min(int(rng.paretovariate(0.7)), SYMBOLS)
    low = 5 * rng.randint(1, 30)
    day = rng.randint(1, DAYS)
    return f"symbol = 'S{symbol}' AND (price < {low} OR price > {low + 20}) AND day >= {day}"


def draw_narrow(rng: random.Random) -> str:
    """An AND of three to five equalities and ranges."""
    some = rng.sample(range(ATTRIBUTES), rng.randint(3, 5))
    return " AND ".join(
        f"a{at} = {rng.randrange(100)}" if rng.random() < 0.5 else f"a{at} < {rng.randrange(100)}"
        for at in some
    )


def draw_event(rng: random.Random) -> Event:
    """An event that has the attributes of all workloads."""
    event: Event = {f"a{at}": rng.randrange(100) for at in range(ATTRIBUTES)}
    symbol = min(int(rng.paretovariate(0.7)), SYMBOLS)
    return {**event, "symbol": f"S{symbol}", "price": rng.randint(1, 200),
            "day": rng.randint(1, DAYS)}  # fmt: skip


# -- measurements ------------------------------------------------------------------------------


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
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
    parse_seconds, parsed = _timed(lambda: [_parsed(text) for text in texts])
    forms = [one.form for one in parsed]
    drawn = [draw_event(rng) for _ in range(events)]
    note(f"{name}: building")
    trees = [(slot, _tree(form)) for slot, form in enumerate(forms)]
    terms = {text: node for form in forms for text, node in form.terms.items()}
    apart = Diagrams.build(trees, terms, merge=False)
    build_seconds, joined = _timed(lambda: Diagrams.build(trees, terms))
    linked = Diagrams.build(trees, terms)
    link_seconds, _ = _timed(linked.link)
    ways = {"apart": apart, "classes": joined, "classes and edges": linked}
    dead = np.zeros(count, np.uint8)
    for event in drawn[:CHECKED]:
        want = {slot for slot, form in enumerate(forms) if form.holds(event)}
        for way, one in ways.items():
            if set(one.match(event, dead).tolist()) != want:
                raise WrongMatches(f"{name}: {way} finds other filters than the reference")
    note(f"{name}: measuring")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for one in ways.values():
        one.forget_counts()
    for way, one in [*ways.items()] * repeats:
        seconds, _ = _timed(lambda one=one: [one.match(event, dead) for event in drawn])  # type: ignore[misc]
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
    """The tree of a form; boxes that are a product become clauses again."""
    boxes = [[Test(*item) for item in box.items()] for box in form.boxes or ()]
    return factor(boxes) or tree_of(form)


def _parsed(text: str) -> Filter:
    found = parse(text)
    assert found.form is not None
    return found


def _way(name: str, diagrams: Diagrams, times: Sequence[float]) -> Way:
    counted = diagrams.counted()
    events = max(1, counted["events"])
    names = ("tests", "node_steps", "inferred", "touched", "counted")
    return Way(name, statistics.median(times), *(counted[one] / events for one in names))


def _compare(
    filters: Sequence[Filter], events: Sequence[Event], repeats: int, note: Note
) -> tuple[float, float, float]:
    """Microseconds per event of the matcher without and with diagrams, and the matches per event.
    The matcher without diagrams gets fewer events, because it takes long for each."""
    note("comparing with the matcher without diagrams")
    few = list(events[:4])
    wide = sum(one.form.tree is not None for one in filters)
    slow = _matcher(filters, "trees")
    fast = _matcher(filters, "auto" if wide else "bdd")
    if _pairs(slow, few) != _pairs(fast, few):
        raise WrongMatches("the matcher finds other filters with diagrams")
    batch = batch_of(events)
    given = batch.slice(0, len(few)) if wide else batch
    without = [_timed(lambda: slow.match_pairs(given))[0] / given.num_rows for _ in range(repeats)]
    found = [_timed(lambda: fast.match_pairs(batch)) for _ in range(repeats + 1)][1:]
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
    filters = [_parsed(text) for text in (*texts, *(draw_narrow(rng) for _ in range(count - wide)))]
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
        seconds, _ = _timed(lambda matcher=matcher, given=given: matcher.match_pairs(given))  # type: ignore[misc]
        times[engine].append(seconds / given.num_rows * 1e6)
    auto, trees, bdd = (statistics.median(times[engine]) for engine in ("auto", "trees", "bdd"))
    return SweepPoint(percent, clauses, auto, trees, bdd, auto / min(trees, bdd))


def _count_coverings(rng: random.Random, count: int = 60) -> Coverings:
    """Filters of 8 clauses, and weaker ones: a clause is left out, or is a resolvent of two."""
    forms: list[Form] = []
    for _ in range(count // 3):
        some = rng.sample(range(ATTRIBUTES), 16)
        pairs = [f"(a{a} = 1 OR a{b} = 1)" for a, b in zip(some[::2], some[1::2], strict=True)]
        forms += [
            parse(" AND ".join([*pairs, f"(a{some[0]} = 2 OR z = 1)"])).form,
            parse(" AND ".join([*pairs[1:], f"(a{some[1]} = 1 OR z = 1)"])).form,
            parse(" AND ".join(pairs)).form,
        ]
    before, after = (_covering_pairs(forms, walk) for walk in (False, True))
    return Coverings(len(forms), before, after)


def _covering_pairs(forms: Sequence[Form], walk: bool) -> int:
    pairs = itertools.permutations(forms, 2)
    return sum(covers_among(one, other, walk=walk) for one, other in pairs)
