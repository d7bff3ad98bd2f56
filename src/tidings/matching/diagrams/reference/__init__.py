"""Diagrams as Python objects, which pictures show, and which the arrays are tested against.

    decision_tree.py       the diagram of one filter
    implication_graph.py   the edges between the diagrams of several filters
    frontier.py            evaluates several filters on one event
    known_sets.py          what is known about terms, and what it decides

`tidings explain --implications` and `tidings graph --bdd` show these diagrams. The modules are used
inside `diagrams`, which exports them for cli, and by tests. Start at decision_tree.py.
"""
