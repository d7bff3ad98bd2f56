"""Formats measurements as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from tidings.studies.bars import Bar
from tidings.studies.compare.compared_revision import ComparedRevision
from tidings.studies.compare.comparing import Comparison
from tidings.studies.compare.peers import HOME, PeerReport
from tidings.studies.engine.match_report import MatchReport, MatchRun
from tidings.studies.engine.update_bench import UpdateReport
from tidings.studies.host.machine_info import MachineInfo

if TYPE_CHECKING:
    from tidings.studies.engine.graph_bench import GraphReport
    from tidings.studies.spark.spark_bench import SparkReport
    from tidings.studies.spark.stream_bench import StreamReport

BATCH = f"{HOME} batch"
_STYLES = {"improvement": "green", "regression": "bold red", "too few": "dim"}


def machine_lines(machine: MachineInfo) -> list[str]:
    """One line about the machine, and one about the software."""
    load = "" if machine.load is None else f", load {machine.load:.1f} at the start"
    named = f" {machine.processor}" if machine.processor else ""
    return [
        f"{machine.system}, {machine.processors} x{named or ' processor'}{load}",
        f"Python {machine.python}, NumPy {machine.numpy}, pyarrow {machine.pyarrow}",
    ]


def match_sections(report: MatchReport) -> list[tuple[str, Table]]:
    """All tables of a report, each with a heading that gives its contents and unit."""
    run = report.runs[0]
    sections = [
        (
            f"{run.events:,} events in batches of {min(run.batch, run.events):,}: µs per event, "
            f"medians of {run.repeats} (range: that of pairs)",
            match_table(report),
        ),
        (f"One event at a time, in µs ({run.one_dict.events:,} events)", single_table(report)),
        ("The index; the first batch compiles kernels or loads them", index_table(report)),
    ]
    if run.tests is not None:
        heading = f"Tests evaluated per event, and different ones ({run.tests.events:,} events)"
        sections.append((heading, tests_table(report)))
    if report.growth:
        counted = any(one.counts is not None for one in report.growth)
        sections.append(
            (
                "Growth: the exponent e of time ~ filters^e"
                + (", with matches written out and only counted" if counted else ""),
                growth_table(report),
            )
        )
    return sections


def match_table(report: MatchReport) -> Table:
    """A table of batches, with one row per run."""
    several = len({run.threads for run in report.runs}) > 1
    counted = any(run.counts is not None for run in report.runs)
    table = plain_table(
        "workload", "filters#", "threads#", "matches/event#", *(["counts#"] if counted else []),
        "pairs#", "range#", "lists#", "from JSON#", *(["speed-up#"] if several else []),
    )  # fmt: skip
    base: MatchRun | None = None
    for run in report.runs:
        if base is None or (base.workload, base.filters) != (run.workload, run.filters):
            base = run  # the run with the first number of threads
        counts = [number(run.counts.median if run.counts else None)] if counted else []
        gain = [f"{base.pairs.median / run.pairs.median:.2f}"] if several else []
        table.add_row(
            run.workload, f"{run.filters:,}", str(run.threads), number(run.matches_per_event),
            *counts, number(run.pairs.median),
            f"{number(run.pairs.best)}-{number(run.pairs.worst)}", number(run.lists.median),
            number(run.json_batches.median), *gain,
        )  # fmt: skip
    return table


def single_table(report: MatchReport) -> Table:
    """A table of single events, with one row per number of filters."""
    table = plain_table("workload", "filters#", "dict p50#", "dict p99#", "JSON p50#", "JSON p99#")
    for run in _distinct(report):
        table.add_row(
            run.workload, f"{run.filters:,}", number(run.one_dict.p50), number(run.one_dict.p99),
            number(run.one_json.p50), number(run.one_json.p99),
        )  # fmt: skip
    return table


def index_table(report: MatchReport) -> Table:
    """A table of the cost of filters, with one row per number of filters."""
    table = plain_table(
        "workload", "filters#", "build s#", "filters/s#", "first batch s#", "index MB#",
        "bytes/filter#",
    )  # fmt: skip
    for run in _distinct(report):
        table.add_row(
            run.workload, f"{run.filters:,}", number(run.build_seconds),
            f"{run.filters_per_second:,.0f}", number(run.first_batch_seconds),
            number(None if run.index_bytes is None else run.index_bytes / 1e6),
            number(run.bytes_per_filter),
        )  # fmt: skip
    return table


def tests_table(report: MatchReport) -> Table:
    """A table of tests per event: filter by filter, then in the index. The table has one row per
    number of filters."""
    table = plain_table(
        "workload", "filters#", "one by one#", "different#", "index: values coded#", "boxes#",
        "compared#", "different#", "residuals asked#", "evaluated#",
    )  # fmt: skip
    for run in _distinct(report):
        one = run.tests
        if one is not None:
            counts = (
                one.one_by_one, one.shared, one.coded, one.candidates, one.compared,
                one.compared_different, one.asked, one.evaluated,
            )  # fmt: skip
            table.add_row(run.workload, f"{run.filters:,}", *(f"{count:,.1f}" for count in counts))
    return table


def growth_table(report: MatchReport) -> Table:
    """A table of how times grow: the exponent e of filters**e."""
    counted = any(one.counts is not None for one in report.growth)
    table = plain_table(
        "workload", "threads#", "from#", "to#", *(["counts#"] if counted else []), "pairs#",
        "lists#", "dict p50#",
    )  # fmt: skip
    for grown in report.growth:
        counts = [number(grown.counts)] if counted else []
        table.add_row(
            grown.workload, str(grown.threads), f"{grown.smallest:,}", f"{grown.largest:,}",
            *counts, number(grown.pairs), number(grown.lists), number(grown.one_dict),
        )  # fmt: skip
    return table


def graph_sections(report: GraphReport) -> list[tuple[str, Table]]:
    """All tables about building graphs, each with a heading."""
    steps = list(report.runs[0].steps)
    graphs = plain_table("workload", "filters#", "nodes#", "edges#", "coverings#", "looked at#",
                    "filters/s#", "MB#", "before#")  # fmt: skip
    times = plain_table("workload", "filters#", "threads#", "seconds#", "CPU#",
                   *(f"{step}#" for step in steps), "1 thread#")  # fmt: skip
    for run in report.runs:
        start = run.workload, f"{run.filters:,}"
        graphs.add_row(
            *start, f"{run.nodes:,}", f"{run.edges:,}", f"{run.pairs:,}", f"{run.candidates:,}",
            f"{run.filters_per_second:,.0f}", f"{run.peak_bytes / 1e6:,.0f}",
            f"{run.parsed_bytes / 1e6:,.0f}",
        )  # fmt: skip
        times.add_row(
            *start, str(run.threads), number(run.seconds), number(sum(run.processor.values())),
            *(number(run.steps[step]) for step in steps), number(run.join_alone),
        )  # fmt: skip
    sections = [
        ("Graphs; MB: peak memory, and before: peak memory before the build", graphs),
        ("Seconds: total, processor time, each step, and the join on 1 thread", times),
    ]
    if report.growth:
        sections.append(("Growth: the exponent e of time ~ filters^e", graph_growth_table(report)))
    return sections


def graph_growth_table(report: GraphReport) -> Table:
    """A table of how times grow: the exponent e of filters**e."""
    steps = list(report.growth[0].steps)
    table = plain_table("workload", "from#", "to#", "all#", *(f"{step}#" for step in steps))
    for grown in report.growth:
        table.add_row(
            grown.workload, f"{grown.smallest:,}", f"{grown.largest:,}", number(grown.seconds),
            *(number(grown.steps[step]) for step in steps),
        )  # fmt: skip
    return table


def describe_checks(report: MatchReport) -> str:
    """One line about the checks that were made before anything was measured."""
    asked = sum(run.checked_evaluations for run in _distinct(report))
    return (
        f"checked first: all matches of {report.runs[0].checked_events:,} events per row, "
        f"with {asked:,} evaluations of filters"
    )


def _distinct(report: MatchReport) -> list[MatchRun]:
    """A run for each workload and number of filters."""
    return list({(run.workload, run.filters): run for run in report.runs}.values())


def peer_table(report: PeerReport) -> Table:
    """A table with one row per system, with its time as a multiple of the time of tidings."""
    table = plain_table(
        "system", "version", "build s#", "us/event#", "p50#", "p99#", "events#", "MB#",
        f"x {HOME}#", f"x {BATCH}#",
    )  # fmt: skip
    for one in report.outcomes:
        if one.status != "ok":
            continue
        ratios = (report.ratio(one.system, base) for base in (HOME, BATCH))
        table.add_row(
            one.system, one.version, number(one.build_seconds), number(one.us_per_event),
            number(one.p50_us), number(one.p99_us), f"{one.events:,}" if one.events else "",
            "" if one.peak_bytes is None else f"{one.peak_bytes / 1e6:,.0f}",
            *(number(ratio) for ratio in ratios),
        )  # fmt: skip
    return table


def compare_table(report: Comparison) -> Table:
    """A table with one row per measure, with the change from the first revision to the second."""
    names = [_short(revision) for revision in (report.first, report.second)]
    table = plain_table("measure", "unit", *(f"{name}#" for name in names), "change#", "interval#",
                   "verdict")  # fmt: skip
    for one in report.verdicts:
        table.add_row(
            one.measure.name, one.measure.unit, number(one.first), number(one.second),
            f"{_percent(one.ratio)} %", f"{_percent(one.low)} to {_percent(one.high)} %",
            Text(one.word, _STYLES.get(one.word, "")),
        )  # fmt: skip
    return table


def compare_lines(report: Comparison) -> list[str]:
    """Two lines about the basis and the outcome of a comparison."""
    sure = {one.rounds: one.confidence for one in report.verdicts}
    told = ", ".join(f"{100 * sure[count]:.0f} % from {count} pairs" for count in sorted(sure))
    words = Counter(one.word for one in report.verdicts)
    found = [
        f"{words[word] or 'no'} {word}{'s' * (words[word] > 1)}"
        for word in ("regression", "improvement")
    ]
    return [
        f"change and interval are of the median ratio of adjacent runs; confidence: {told}",
        f"{', '.join(found)}; no other change is certain to exceed {100 * report.threshold:g} %",
    ]


def update_sections(report: UpdateReport) -> list[tuple[str, Table]]:
    """All tables about changes to a matcher, each with a heading that gives its contents and
    unit."""
    changes = plain_table(
        "workload", "filters#", "loaded/s#", "add p50#", "add p99#", "remove p50#"
    )
    merges = plain_table(
        "workload", "filters#", "quiet p50#", "quiet p99#", "merging p50#", "merging p99#",
        "slowdown#", "merge s#",
    )  # fmt: skip
    snapshots = plain_table("workload", "filters#", "save s#", "MB#", "open s#", "open again s#")
    for run in report.runs:
        start = run.workload, f"{run.filters:,}"
        changes.add_row(
            *start, f"{run.filters_per_second:,.0f}", number(run.add.p50), number(run.add.p99),
            number(run.remove.p50),
        )  # fmt: skip
        merges.add_row(
            *start, number(run.quiet.p50), number(run.quiet.p99), number(run.merging.p50),
            number(run.merging.p99), f"{run.slowdown:.2f}", number(run.merge_seconds),
        )  # fmt: skip
        snapshots.add_row(
            *start, number(run.save_seconds), number(run.snapshot_bytes / 1e6),
            number(run.open_seconds), number(run.open_again_seconds),
        )  # fmt: skip
    return [
        ("Changes: filters loaded in bulk from text, and single changes in µs", changes),
        ("One event in µs, while nothing else runs and while a thread merges", merges),
        ("Snapshots", snapshots),
    ]


def spark_sections(report: SparkReport) -> list[tuple[str, Table]]:
    """A table for each run on Spark: the rows per second of each method, and the ratio to the first
    method."""
    sections = []
    for run in dict.fromkeys(way.run for way in report.ways):
        ways = [way for way in report.ways if way.run == run]
        table = plain_table("way", "rows/s#", "range#", f"{ways[0].way} = 1#")
        for way in ways:
            table.add_row(
                way.way, f"{way.rows_per_second:,.0f}", f"{way.least:,.0f}-{way.most:,.0f}",
                number(way.rows_per_second / ways[0].rows_per_second),
            )  # fmt: skip
        heading = f"{run}: {ways[0].filters:,} filters, {ways[0].rows:,} rows, Parquet to Parquet"
        sections.append((heading, table))
    return sections


def stream_sections(report: StreamReport) -> list[tuple[str, Table]]:
    """Tables with the measurements of a pipeline."""
    latency = plain_table("notifications#", "told#", "p50#", "p99#", "most#")
    latency.add_row(
        f"{report.notifications:,}", f"{report.told:,}", number(report.p50), number(report.p99),
        number(report.most),
    )  # fmt: skip
    batches = plain_table("batches#", "p50#", "p99#")
    batches.add_row(f"{report.batches:,}", number(report.batch_p50), number(report.batch_p99))
    memory = plain_table("when", "driver#", "JVM#", "workers#")
    for when, size in (("early", report.early), ("at the end", report.late)):
        memory.add_row(when, number(size.driver), number(size.jvm), number(size.workers))
    what = f"{report.filters:,} filters, {report.rate:,} notifications/s, {report.seconds:.0f} s"
    return [
        (f"{what}: seconds from creation to commit", latency),
        ("Micro-batches, in seconds", batches),
        ("Memory, in MB", memory),
    ]


def absent_lines(report: PeerReport) -> list[str]:
    """For each system that is not in the table, a line that says why."""
    absent = (one for one in report.outcomes if one.status != "ok")
    return [f"{one.system}: {one.status}: {one.note}" for one in absent]


def bars_section(bars: Sequence[Bar]) -> tuple[str, Table]:
    """The table of bars, with a heading."""
    table = plain_table("", "asked for", "measured#", "met")
    for bar in bars:
        table.add_row(bar.name, bar.asked, _show_figure(bar.measured), _yes_or_no(bar.met))
    return "Asked for, and measured", table


def _show_figure(value: float | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return _yes_or_no(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if abs(value) < 1 else number(value)


def _yes_or_no(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def plain_table(*columns: str) -> Table:
    """Make a table; a column whose name ends in # holds numbers."""
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True,
        header_style="bold",
    )  # fmt: skip
    for name in columns:
        if name.endswith("#"):
            table.add_column(name.rstrip("#"), justify="right", no_wrap=True)
        else:
            table.add_column(name, no_wrap=True)
    return table


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}"


def _short(revision: ComparedRevision) -> str:
    if not revision.commit:
        return "working tree"
    return revision.name if len(revision.name) <= 16 else revision.commit


def number(value: float | None) -> str:
    """A number with about three significant digits."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
