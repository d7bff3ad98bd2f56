"""Measurements: workloads, the matching engine on them, and its peers."""

from tidings.studies.answers import match_counts, matching_pairs
from tidings.studies.checking import WrongMatches
from tidings.studies.conjunctions import (
    Attribute,
    AttributeTest,
    Conjunctions,
    StructuredFilter,
    sql_of_tests,
)
from tidings.studies.matching_bench import (
    Engine,
    MatchReport,
    MatchRun,
    bench_matching,
    new_matcher,
    parse_lines,
    schema_of_lines,
    settle,
)
from tidings.studies.peers import (
    Outcome,
    PeerReport,
    Settings,
    cache_folder,
    compare_peers,
    peers_folder,
    read_peers,
)
from tidings.studies.tables import absent_lines, growth_table, match_table, peer_table
from tidings.studies.workloads import RECIPES, Recipe, Workload, make_workload

__all__ = [
    "RECIPES",
    "Attribute",
    "AttributeTest",
    "Conjunctions",
    "Engine",
    "MatchReport",
    "MatchRun",
    "Outcome",
    "PeerReport",
    "Recipe",
    "Settings",
    "StructuredFilter",
    "Workload",
    "WrongMatches",
    "absent_lines",
    "bench_matching",
    "cache_folder",
    "compare_peers",
    "growth_table",
    "make_workload",
    "match_counts",
    "match_table",
    "matching_pairs",
    "new_matcher",
    "parse_lines",
    "peer_table",
    "peers_folder",
    "read_peers",
    "schema_of_lines",
    "settle",
    "sql_of_tests",
]
