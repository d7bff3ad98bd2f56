"""Tables of `tidings bench bdd`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from tidings.studies.result_tables import bars_section, number, plain_table

if TYPE_CHECKING:
    from tidings.studies.diagrams.bdd_report import DiagramReport, DiagramRun


def diagram_sections(report: DiagramReport) -> list[tuple[str, Table]]:
    """All tables, each with a heading."""
    sections = [
        (f"{run.workload}, {run.filters:,} filters: for each event", _ways(run))
        for run in report.runs
    ]
    sections.append(("Building: processor seconds, and sizes", _builds(report)))
    sections.append(("Batches: µs per event of the matcher", _matchers(report)))
    if report.sweep:
        heading = "Sweep: µs per event; ratio: auto, divided by the better of the others"
        sections.append((heading, _sweep(report)))
    heading = (
        "Coverings and edges of the content graph, without and with the walk down both filters"
    )
    sections.append((heading, _coverings(report)))
    sections.append(bars_section(report.bars))
    return sections


def _ways(run: DiagramRun) -> Table:
    out = plain_table("", "µs#", "tests#", "node steps#", "inferred#", "filters touched#",
                      "parts counted#")  # fmt: skip
    for way in run.ways:
        out.add_row(
            way.name, *map(number, (way.micros, way.tests, way.node_steps, way.inferred,
                                    way.touched, way.counted)),
        )  # fmt: skip
    return out


def _builds(report: DiagramReport) -> Table:
    out = plain_table("workload", "parse#", "build#", "link#", "units#", "groups#", "edges#",
                      "bytes/edge#", "MB#", "most nodes#")  # fmt: skip
    for run in report.runs:
        out.add_row(
            run.workload, number(run.parse_seconds), number(run.build_seconds),
            number(run.link_seconds), f"{run.units:,}", f"{run.groups:,}", f"{run.edges:,}",
            number(run.bytes_per_edge), number(run.bytes / 1e6), str(run.most_nodes),
        )  # fmt: skip
    return out


def _matchers(report: DiagramReport) -> Table:
    out = plain_table("workload", "wide#", "matches#", "without#", "with diagrams#", "times#",
                      "steps: share#")  # fmt: skip
    for run in report.runs:
        out.add_row(
            run.workload, f"{run.wide:,}", number(run.matches), number(run.trees_micros),
            number(run.matcher_micros), number(run.speedup), f"{run.step_share:.3f}",
        )  # fmt: skip
    return out


def _sweep(report: DiagramReport) -> Table:
    out = plain_table("wide %#", "clauses#", "auto#", "trees#", "bdd#", "ratio#")
    for point in report.sweep:
        out.add_row(
            str(point.wide_percent), str(point.clauses), number(point.auto), number(point.trees),
            number(point.bdd), f"{point.ratio:.2f}",
        )  # fmt: skip
    return out


def _coverings(report: DiagramReport) -> Table:
    out = plain_table("workload", "filters#", "compared#", "before#", "after#", "edges before#",
                      "edges after#")  # fmt: skip
    for one in report.coverings:
        counts = (one.filters, one.compared, one.before, one.after, one.edges_before,
                  one.edges_after)  # fmt: skip
        out.add_row(one.workload, *(f"{count:,}" for count in counts))
    return out
