"""Diagrams as Python objects: pictures show these objects, and the arrays are tested against them.

    decision_tree.py       the diagram of one filter
    implication_graph.py   the edges between the diagrams of several filters
    frontier.py            evaluates several filters on one event
    known_sets.py          what is known about terms, and which tests follow from it

`tidings explain --implications` and `tidings graph --bdd` show these diagrams. The modules are used
by tests and inside `diagrams`, which exports them for cli. Start at decision_tree.py.
"""
