"""Event patterns of AWS EventBridge as expressions.

    JSON ──pattern_reader──> Pattern ──dialect──> a = 'x' AND b > 5
                             (pattern)            OR (isnested(a) OR isnested(b))
                                                     AND event_pattern('{...}')

The first line, built by plain.py and conditions.py, is for events whose leaves are all plain
values; its boxes are the same as for SQL. The rest is for arrays: bound_pattern.py is the program
of event_pattern('...'), and pattern_match.py matches arrays as event-ruler does.
complexity.py measures wildcards; those that EventBridge refuses as too complex are refused.
own_words.py explains a pattern field by field, as it is written.

Used only by the registry of dialects. Start at dialect.py; docs/dialects.md says how it differs
from EventBridge.
"""
