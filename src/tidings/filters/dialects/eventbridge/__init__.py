"""Event patterns of AWS EventBridge as expressions.

    JSON ──pattern_reader──> Pattern ──dialect──> a = 'x' AND b > 5
                             (pattern)            OR (isnested(a) OR isnested(b))
                                                     AND event_pattern('{...}')

The first line, made by plain.py with conditions.py, holds where all leaves are plain values; its
boxes are those that SQL would give. The second is for arrays: bound_pattern.py is the program of
event_pattern('...'), and pattern_match.py holds the pattern against them as event-ruler does.

Used only by the registry of dialects. Start at dialect.py; docs/dialects.md says how it differs
from EventBridge.
"""
