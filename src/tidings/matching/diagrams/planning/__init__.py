"""How filters become diagrams: numbered tests, conditions over them, units and gates.

    trees of tests ──numbered_tests──> conditions ──plan──> units within budgets, joined by gates

    plan.py                 units and gates; filters that exceed a budget are left out
    numbered_conditions.py  simplifies conditions by what is known; the nodes of their diagrams
    numbered_tests.py       the distinct tests in their order, with a rank space for each term
    ranking.py              the global order of tests

This folder is used only inside `diagrams`. Start at plan.py.
"""
