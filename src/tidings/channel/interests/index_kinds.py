"""Kinds of filters, by how they are indexed.

- PLAIN: a union of boxes over attributes and topics, kept completely in arrays.
- WIDE: a tree of such tests, matched in arrays, but compared with other filters one by one.
- COMPUTING: calls, patterns and programs, matched separately because they can be slow
  (computing.py).
- NEVER: a filter that matches nothing; its node has no edges.
"""

from __future__ import annotations

from tidings.filters.canonical import Form, is_plain_term
from tidings.matching.placing import is_plain

PLAIN, WIDE, COMPUTING, NEVER = range(4)
# Diagrams of wide filters take too long to build in a process with an event loop. So they are built
# and saved by the process that compiles; until then, a wide filter is evaluated by itself.
COMPILED_ENGINE, RECENT_ENGINE = "saved", "trees"


def kind_of(form: Form) -> int:
    if form.never:
        return NEVER
    if is_plain(form):
        return PLAIN
    return COMPUTING if computes(form) else WIDE


def computes(form: Form) -> bool:
    """Whether a filter does more than test attributes and topics."""
    return not all(map(is_plain_term, form.terms.values()))
