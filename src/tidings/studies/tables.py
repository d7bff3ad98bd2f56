"""Measurements as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from tidings.studies.matching_bench import MatchReport
from tidings.studies.peers import HOME, PeerReport

if TYPE_CHECKING:
    from tidings.studies.graph_bench import GraphReport

BATCH = f"{HOME} batch"


def match_table(report: MatchReport) -> Table:
    """One row per run; times in microseconds per event."""
    table = _table(
        "workload", "filters#", "threads#", "matches/event#", "build s#", "pairs us#", "lists us#",
        "JSON us#", "dict p50#", "dict p99#", "JSON p50#", "JSON p99#", "bytes/filter#",
    )  # fmt: skip
    for run in report.runs:
        table.add_row(
            run.workload, f"{run.filters:,}", str(run.threads), _number(run.matches_per_event),
            _number(run.build_seconds), _number(run.pairs.median), _number(run.lists.median),
            _number(run.json_batches.median), _number(run.one_dict.p50),
            _number(run.one_dict.p99), _number(run.one_json.p50), _number(run.one_json.p99),
            _number(run.bytes_per_filter),
        )  # fmt: skip
    return table


def growth_table(report: MatchReport) -> Table:
    """How times grow: the exponent e of filters**e."""
    table = _table("workload", "from#", "to#", "pairs#", "lists#", "counts#", "dict p50#")
    for grown in report.growth:
        table.add_row(
            grown.workload, f"{grown.smallest:,}", f"{grown.largest:,}", _number(grown.pairs),
            _number(grown.lists), _number(grown.counts), _number(grown.one_dict),
        )  # fmt: skip
    return table


def graph_table(report: GraphReport) -> Table:
    """One row per run; seconds as a whole and by step."""
    steps = list(report.runs[0].steps)
    table = _table(
        "workload", "filters#", "threads#", "nodes#", "edges#", "pairs#", "candidates#", "s#",
        "CPU s#", *(f"{step}#" for step in steps), "join, 1 thread#", "filters/s#", "MB#",
        "MB before#",
    )  # fmt: skip
    for run in report.runs:
        table.add_row(
            run.workload, f"{run.filters:,}", str(run.threads), f"{run.nodes:,}",
            f"{run.edges:,}", f"{run.pairs:,}", f"{run.candidates:,}", _number(run.seconds),
            _number(sum(run.processor.values())), *(_number(run.steps[step]) for step in steps),
            _number(run.join_alone), _number(run.filters_per_second),
            f"{run.peak_bytes / 1e6:,.0f}", f"{run.parsed_bytes / 1e6:,.0f}",
        )  # fmt: skip
    return table


def graph_growth_table(report: GraphReport) -> Table:
    """How times grow: the exponent e of filters**e."""
    steps = list(report.growth[0].steps)
    table = _table("workload", "from#", "to#", "all#", *(f"{step}#" for step in steps))
    for grown in report.growth:
        table.add_row(
            grown.workload, f"{grown.smallest:,}", f"{grown.largest:,}", _number(grown.seconds),
            *(_number(grown.steps[step]) for step in steps),
        )  # fmt: skip
    return table


def peer_table(report: PeerReport) -> Table:
    """One row per system, with how many times as long as tidings it takes."""
    table = _table(
        "system", "version", "build s#", "us/event#", "p50#", "p99#", "events#", "MB#",
        f"x {HOME}#", f"x {BATCH}#",
    )  # fmt: skip
    for one in report.outcomes:
        if one.status != "ok":
            continue
        ratios = (report.ratio(one.system, base) for base in (HOME, BATCH))
        table.add_row(
            one.system, one.version, _number(one.build_seconds), _number(one.us_per_event),
            _number(one.p50_us), _number(one.p99_us), f"{one.events:,}" if one.events else "",
            "" if one.peak_bytes is None else f"{one.peak_bytes / 1e6:,.0f}",
            *(_number(ratio) for ratio in ratios),
        )  # fmt: skip
    return table


def absent_lines(report: PeerReport) -> list[str]:
    """Why each of the other systems is not in the table."""
    absent = (one for one in report.outcomes if one.status != "ok")
    return [f"{one.system}: {one.status}: {one.note}" for one in absent]


def _table(*columns: str) -> Table:
    """A name that ends in # is a column of numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in columns:
        if name.endswith("#"):
            table.add_column(name.rstrip("#"), justify="right", no_wrap=True)
        else:
            table.add_column(name, no_wrap=True)
    return table


def _number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
