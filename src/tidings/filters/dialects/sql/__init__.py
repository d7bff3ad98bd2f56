"""The default dialect: conditions as in Spark's `df.filter("...")`.

    dialect.py    a precedence parser over the tokens of filters/language; it defines the grammar
    fast_sql.py   a fast path for tests of attributes against constants, joined by AND

fast_sql.py parses a subset of the grammar, about ten times faster; it never refuses a text, but
leaves every other text to dialect.py. A test on random texts checks that both parsers give the same
result.

This folder is used only by the registry of dialects. Start at dialect.py; docs/filters.md is the
specification.
"""
