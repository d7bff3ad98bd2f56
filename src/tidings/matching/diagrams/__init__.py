"""Decision diagrams with implications, for filters that would have too many boxes.

    filter ──planning──> units and gates ──node_classes──> groups that move together ──> arrays
                                               `──class_edges──> implications ──link──┘
    event ──codes──> the kernel evaluates tests in order, and returns each result once decided

    diagrams.py          many filters in use: events, batches, edges that are added later
    segment_trees.py     which filters of a segment become diagrams, and their trees of tests
    planning/            filters as units within a budget of nodes, joined by gates
    node_classes.py      joins nodes with equal knowledge, of any units, into classes and groups
    class_edges.py       implications from classes to groups
    diagram_arrays.py    diagrams as arrays, which can be saved
    removal.py           the arrays without some filters
    measured_tests.py    how often tests passed, kept from one build of diagrams to the next
    diagram_work.py      the state of one evaluation
    diagram_kernels.py, signal_kernels.py    the hot loop; units, gates and filters that it decides
    reference/           diagrams as Python objects: the reference for tests, also shown by
                         `tidings explain --implications` and `tidings graph --bdd`

The exports are for cli and studies; everything else is used only inside `matching`. Start at
reference/decision_tree.py and reference/frontier.py, which have the algorithm in its simplest form,
then planning/plan.py. docs/diagrams.md explains the algorithm.
"""

from tidings.matching.diagrams.diagrams import Diagrams
from tidings.matching.diagrams.planning.ranking import Ranking
from tidings.matching.diagrams.reference.decision_tree import Decision, build_tree
from tidings.matching.diagrams.reference.frontier import Frontier, graph_of
from tidings.matching.diagrams.reference.implication_graph import ImplicationGraph, edges_between
from tidings.matching.diagrams.segment_trees import factor

__all__ = [
    "Decision",
    "Diagrams",
    "Frontier",
    "ImplicationGraph",
    "Ranking",
    "build_tree",
    "edges_between",
    "factor",
    "graph_of",
]
