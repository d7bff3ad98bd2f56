"""Rank space: the values of one term as small integers, so that each test is an interval of codes.

    cuts        (2,)      (2, 5, 0)   (2, 5, 1)    (4,)       ends of all sets that test the term
    codes    0   |    1       |    2      |    3     |    4   the number of cuts before a value
          absent, null  below 5    5         above 5    strings

    ranks.py          one rank space; gathering.py collects the cuts while filters are added
    encoder.py, rank_kernels.py, lists.py      Arrow columns to codes, in bulk
    event_lists.py    lists of mappings as record batches
    columns.py        the column of a term; a computed term is computed once per distinct value
    arrow_evaluation.py, arrow_functions.py    expressions that Arrow computes like the reference
    event_coder.py    one event to codes

Used only inside `matching`. Start at ranks.py.
"""
