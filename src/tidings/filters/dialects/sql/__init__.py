"""The default dialect: a condition as one writes it in Spark's `df.filter("...")`.

    dialect.py    a precedence parser over the tokens of filters/language; it defines the grammar
    fast_sql.py   the short way for tests of attributes against constants that are joined by AND

fast_sql.py reads a subset, about ten times faster, and never refuses: what it does not know it
leaves to dialect.py. A test on random texts holds both to the same answers.

Used only by the registry of dialects. Start at dialect.py; docs/filters.md is the specification.
"""
