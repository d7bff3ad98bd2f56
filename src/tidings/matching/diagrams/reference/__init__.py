"""Diagrams as Python objects: pictures show these objects, and the arrays are tested against them.

    filter: tree of tests ──decision_tree──> Decision ─┬─ high ─> Decision ...
                                  │                    └─ low ──> a leaf: True or False
                  known_sets: what each path proves
                                  │
    all diagrams ──implication_graph──> edges X -> Y: who is at X need not test its way to Y
                                  │
    event ──frontier──> one current node for each filter ──steps and edges──> leaves: the results

    decision_tree.py       the diagram of one filter
    implication_graph.py   the edges between the diagrams of several filters
    frontier.py            evaluates several filters on one event
    known_sets.py          what is known about terms, and which tests follow from it

`tidings explain --implications` and `tidings graph --bdd` show these diagrams. The modules are used
by tests and inside `diagrams`, which exports them for cli. Start at decision_tree.py.
"""
