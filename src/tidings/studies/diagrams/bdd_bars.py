"""The bars of decision diagrams: the targets, and the measured figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidings.studies.bars import Bar, at_least, at_most, is_true, none_of, without_target
from tidings.studies.diagrams.bdd_report import DiagramRun, SweepPoint
from tidings.studies.diagrams.found_coverings import Coverings
from tidings.studies.diagrams.small_domains import SmallDomain

TIMES, SHARE, SECONDS, NODES, RATIO = 20, 0.2, 60, 256, 1.2
FILTERS = 10_000  # the number of filters for which the building time has a target


def list_bars(
    runs: Sequence[DiagramRun],
    sweep: Sequence[SweepPoint],
    coverings: Sequence[Coverings],
    domain: SmallDomain,
    is_figure_exact: bool,
) -> list[Bar]:
    """All bars of `tidings bench bdd`."""
    return [
        *(bar for run in runs for bar in _bars_of(run)),
        at_most(
            "automatic choice: most time, against the better engine",
            RATIO, max((point.ratio for point in sweep), default=None), " times",
            note="" if sweep else "not measured without the sweep",
        ),
        *(bar for one in coverings for bar in _coverings(one)),
        none_of(
            "coverings refuted by brute force", domain.refuted,
            note=f"all {domain.pairs:,} pairs of {domain.filters} filters ({domain.wide} of them "
            f"wide), each on all {domain.events:,} events of a small domain",
        ),
        without_target(
            "coverings by brute force: share that is found",
            domain.found / max(1, domain.coverings),
            note=f"{domain.found:,} of {domain.coverings:,}; the others only make headers longer",
        ),
        is_true("edges of figure 9 are exact", is_figure_exact),
    ]  # fmt: skip


def _bars_of(run: DiagramRun) -> Iterator[Bar]:
    name = run.workload
    if run.wide:
        yield at_least(
            f"{name}: events per second, against trees of sets", TIMES, run.speedup, " times"
        )
    else:
        yield without_target(
            f"{name}: events per second, against the index of boxes", run.speedup,
            note=f"the target of {TIMES} times does not apply: an index of boxes serves these "
            "filters, and is faster; diagrams are used only on request",
        )  # fmt: skip
    yield at_most(
        f"{name}: node steps with implications, share of those without", SHARE, run.step_share,
        note="without implications, equal parts of filters are merged as well",
    )  # fmt: skip
    yield without_target(
        f"{name}: node steps, share of those of each filter alone", run.apart_share
    )
    yield without_target(
        f"{name}: node steps, measured order against unmeasured", run.ordered_steps
    )
    yield without_target(f"{name}: tests, measured order against unmeasured", run.ordered_tests)
    total = run.parse_seconds + run.build_seconds + run.link_seconds
    building = f"{name}: seconds to parse, build and link {run.filters:,} filters"
    if run.filters >= FILTERS:
        yield at_most(building, SECONDS, total)
    else:
        yield Bar(building, f"at most {SECONDS} for {FILTERS:,} filters", total, None)
    yield at_most(f"{name}: nodes of the largest diagram", NODES, run.most_nodes)
    yield none_of(f"{name}: filters left out, as they exceed a budget", run.left_out)
    yield without_target(
        f"{name}: filters split into parts", run.split,
        note=f"{run.too_large:,} of them because one diagram would have more than {NODES} nodes, "
        "the others because their parts occur in other filters",
    )  # fmt: skip
    yield without_target(f"{name}: bytes of memory per edge", run.bytes_per_edge)


def _coverings(one: Coverings) -> Iterator[Bar]:
    yield without_target(f"{one.workload}: coverings, without the walk", one.before)
    yield at_least(f"{one.workload}: coverings, with the walk", one.before, one.after)
