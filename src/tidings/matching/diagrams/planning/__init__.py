"""How filters become diagrams: numbered tests, conditions over them, units and gates.

    trees of tests ──numbered_tests──> conditions ──plan──> units within budgets, joined by gates

    plan.py                 units and gates; filters that exceed a budget are left out
    numbered_conditions.py  what is left of a condition when something is known, and its nodes
    numbered_tests.py       the distinct tests in their order, with a rank space for each term
    ranking.py              the global order of tests

Used only inside `diagrams`. Start at plan.py.
"""
