"""Decision diagrams with implications, for filters that would have too many boxes.

    filter ──plan──> units and gates ──classes──> groups that move together ──freeze──> arrays
                                         `──class_edges──> implications ──link──┘
    event ──codes──> the kernel takes test after test, and hands out results as they are decided

    diagrams.py          many filters in use: events, batches, edges that are switched in later
    segment_trees.py     which filters of a segment become diagrams, and their trees of tests
    plan.py              filters as units within a budget of nodes, joined by gates
    classes.py           nodes that know the same, of all units, as classes and groups
    class_edges.py       implications from classes to groups
    diagram_arrays.py    the arrays; diagram_kernels.py evaluates them
    ranking.py           the global order of tests
    known_sets.py        what is known about terms, and what it decides

    decision_tree.py, implication_graph.py, frontier.py    the same on objects, node by node: the
                         reference for tests, and what `tidings explain --implications` and
                         `tidings graph --bdd` show

The exports are for cli and studies; everything else is used only inside `matching`. Start at
decision_tree.py and frontier.py, which have the algorithm in its simplest form, then plan.py.
docs/diagrams.md explains it.
"""

from tidings.matching.diagrams.decision_tree import Decision
from tidings.matching.diagrams.diagrams import Diagrams
from tidings.matching.diagrams.frontier import Frontier, graph_of
from tidings.matching.diagrams.implication_graph import ImplicationGraph
from tidings.matching.diagrams.segment_trees import factor

__all__ = ["Decision", "Diagrams", "Frontier", "ImplicationGraph", "factor", "graph_of"]
