"""Benchmarks of the engine, the network, Spark and the whole chain, and comparisons with other
systems.

    workloads/   reproducible filters and events, with the correct matches
    engine/      matching, updates, graphs      network/   routers, mosquitto and nats-server
    diagrams/    decision diagrams
    spark/       tagging and pipelines          compare/   two revisions, or peers, in turn
    relations/   the relation repository
    chain/       from rows through Spark and routers to agents, with kills
    host/        the machine, its processes, and driver programs that measure on request
    bars.py      figures with their targets
    result_tables.py, diagram_tables.py, relation_results.py    format measurements as tables

Results are checked against the correct answers before they are timed; if a result is wrong, no
figures are reported. This room is for cli (`tidings bench`) and the tests, not for users of the
package. docs/performance.md quotes the figures, and docs/command-line.md describes each command.
Start at workloads/workloads.py, then engine/matching_bench.py.
"""

from tidings.studies.bars import Bar, notes_of
from tidings.studies.compare.comparing import Comparison, Disagreement, compare_revisions
from tidings.studies.compare.peers import (
    Outcome,
    PeerReport,
    PeerSettings,
    cache_folder,
    compare_peers,
    read_peers,
)
from tidings.studies.diagram_tables import diagram_sections
from tidings.studies.diagrams.bdd_bench import bench_diagrams
from tidings.studies.diagrams.bdd_report import DiagramReport
from tidings.studies.engine.graph_bench import GraphReport, bench_graph
from tidings.studies.engine.match_report import MatchReport, MatchRun
from tidings.studies.engine.matching_bench import Engine, bench_matching, new_matcher, settle
from tidings.studies.engine.update_bench import UpdateReport, bench_updates
from tidings.studies.host.machine_info import MachineInfo
from tidings.studies.relation_results import (
    live_overload_lines,
    overload_lines,
    planned_lines,
    relation_lines,
    relation_sections,
)
from tidings.studies.relations.live_overload import LiveOverloadReport, bench_live_overload
from tidings.studies.relations.overload_bench import OverloadReport, bench_overload
from tidings.studies.relations.planned_tagging import PlannedReport, bench_planned
from tidings.studies.relations.relation_bars import complete_report
from tidings.studies.relations.relations_bench import RelationsReport, bench_relations
from tidings.studies.result_tables import (
    absent_lines,
    bars_section,
    compare_lines,
    compare_table,
    describe_checks,
    graph_sections,
    machine_lines,
    match_sections,
    peer_table,
    spark_sections,
    stream_sections,
    update_sections,
)
from tidings.studies.workloads.answers import match_counts, matching_pairs
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.conjunctions import (
    AttributeTest,
    Conjunctions,
    DrawnAttribute,
    StructuredFilter,
    sql_of_tests,
)
from tidings.studies.workloads.json_lines import parse_lines, schema_of_lines
from tidings.studies.workloads.workloads import RECIPES, Recipe, Workload, make_workload

__all__ = [
    "RECIPES",
    "AttributeTest",
    "Bar",
    "Comparison",
    "Conjunctions",
    "DiagramReport",
    "Disagreement",
    "DrawnAttribute",
    "Engine",
    "GraphReport",
    "LiveOverloadReport",
    "MachineInfo",
    "MatchReport",
    "MatchRun",
    "Outcome",
    "OverloadReport",
    "PeerReport",
    "PeerSettings",
    "PlannedReport",
    "Recipe",
    "RelationsReport",
    "StructuredFilter",
    "UpdateReport",
    "Workload",
    "WrongMatches",
    "absent_lines",
    "bars_section",
    "bench_diagrams",
    "bench_graph",
    "bench_live_overload",
    "bench_matching",
    "bench_overload",
    "bench_planned",
    "bench_relations",
    "bench_updates",
    "cache_folder",
    "compare_lines",
    "compare_peers",
    "compare_revisions",
    "compare_table",
    "complete_report",
    "describe_checks",
    "diagram_sections",
    "graph_sections",
    "live_overload_lines",
    "machine_lines",
    "make_workload",
    "match_counts",
    "match_sections",
    "matching_pairs",
    "new_matcher",
    "notes_of",
    "overload_lines",
    "parse_lines",
    "peer_table",
    "planned_lines",
    "read_peers",
    "relation_lines",
    "relation_sections",
    "schema_of_lines",
    "settle",
    "spark_sections",
    "sql_of_tests",
    "stream_sections",
    "update_sections",
]
