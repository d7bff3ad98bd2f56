"""Event patterns of AWS EventBridge as expressions.

    JSON ──pattern_reader──> Pattern ──dialect──> a = 'x' AND b > 5
                             (pattern)            OR (isnested(a) OR isnested(b))
                                                     AND event_pattern('{...}')

The condition before OR, built by flat_pattern.py and conditions.py, is for events in which no leaf
is nested; it has the same boxes as a filter written in SQL. The condition after OR is for arrays:
the program of event_pattern('...') is in bound_pattern.py, and pattern_match.py matches arrays as
event-ruler does. The module complexity.py measures how complex wildcards are; those that
EventBridge refuses as too complex are refused here too. The module own_words.py explains a pattern
field by field, in the words of the pattern.

This folder is used only by the registry of dialects. Start at dialect.py; docs/dialects.md says how
this dialect differs from EventBridge.
"""
