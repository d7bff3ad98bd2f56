"""The whole report of `tidings bench relations`: the repository, an overload, and the bars, which
are figures with their targets."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidings.studies.bars import Bar, at_least, at_most, none_of, without_target
from tidings.studies.relations.live_overload import LiveOverloadReport
from tidings.studies.relations.overload_bench import OverloadReport
from tidings.studies.relations.related_bench import RELATED
from tidings.studies.relations.relations_bench import STORE_SHARE, RelationsReport

SERVED, TIMES, RECALL, RATIO = 0.8, 3, 0.95, 2
ROUTER = 1.05  # a router should be no slower; medians of one variant differ by 5 % between runs


class WholeRelationsReport(RelationsReport, frozen=True, kw_only=True):
    overload: OverloadReport | LiveOverloadReport
    bars: list[Bar]


def complete_report(
    report: RelationsReport, overload: OverloadReport | LiveOverloadReport
) -> WholeRelationsReport:
    """Add the overload and the bars to a report."""
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    bars = [*_bars_of(report), *_overload_bars(overload)]
    return WholeRelationsReport(**fields, overload=overload, bars=bars)


def _bars_of(report: RelationsReport) -> Iterator[Bar]:
    yield at_least("messages that match: share served at once", SERVED, report.served)
    yield at_least(
        "fast path: rate against Matcher.match, messages served at once", TIMES, report.speedup,
        " times", note="these messages have a plan; the next bar is for all messages",
    )  # fmt: skip
    yield without_target(
        "fast path: rate against Matcher.match, average of all messages", report.first_speedup,
        note=f"with and without a plan ({report.planned:.1%} have one), and with the time to make "
        f"plans; the target of {TIMES} times is for messages that are served at once",
    )  # fmt: skip
    yield at_most("store: nodes, share of the distinct filters", STORE_SHARE, report.store_share)
    for row in report.forwarding:
        name = f"router: time with relations against without, {row.body:,} bytes"
        yield at_most(name, ROUTER, row.learning_micros / row.plain_micros, " times")
        if row.early_micros is not None:
            yield without_target(
                f"{name}, early bodies", row.early_micros / row.plain_micros,
                note="an early body is a second frame for each neighbour; a node spends at most a "
                "fifth of its time on them",
            )  # fmt: skip
    yield at_least(f"related deliveries at {RELATED}: recall", RECALL, report.related.recall)
    for one in report.related_limits:
        yield without_target(f"related deliveries at {one.limit}: precision", one.precision)
        if one.limit != RELATED:
            yield without_target(f"related deliveries at {one.limit}: recall", one.recall)


def _overload_bars(overload: OverloadReport | LiveOverloadReport) -> Iterator[Bar]:
    is_live = isinstance(overload, LiveOverloadReport)
    how = "real processes" if is_live else "simulated time, so only --live can meet the target"
    ratio = at_most(
        "overload: p99 of the top decile by merit, against without overload", RATIO,
        overload.ratio, " times", note=f"{how}; {overload.seconds:g} s of overload",
    )  # fmt: skip
    yield ratio if is_live else msgspec.structs.replace(ratio, met=None)
    arrived = "overload: publications that did not arrive"
    gaps = "overload: gaps in the serials of deliveries"
    if isinstance(overload, LiveOverloadReport):
        yield none_of(arrived, overload.published - overload.delivered)
        yield none_of(gaps, overload.gaps)
    else:
        yield none_of(arrived, overload.published - overload.served)
        yield none_of(gaps, None, note="only --live measures them")
