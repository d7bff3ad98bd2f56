"""Event patterns of AWS EventBridge as expressions.

    JSON ──pattern_reader──> Pattern ──dialect──> a = 'x' AND b > 5
                             (pattern)            OR (isnested(a) OR isnested(b))
                                                     AND event_pattern('{...}')

The first line holds where all leaves are plain values, and its boxes are those that SQL would give.
The second is for arrays: event_pattern('...') holds the pattern against them (pattern_match.py) as
event-ruler does. conditions.py turns what a pattern asks of one leaf into a condition.

Exported for other rooms: which attributes of a filter are tested for nesting, for notes to the
user. Start at dialect.py; docs/dialects.md says how it differs from EventBridge.
"""
