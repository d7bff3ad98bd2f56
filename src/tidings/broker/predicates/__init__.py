"""Calls predicates in helper processes, while notifications that need them wait.

    publication ──> machine ──Undecided──> deciding.py ──calls──> helpers.py ──> a process for each
                       ^─────────── decided ───────┘                             predicate

    deciding.py   publications that wait, in the order of their publishers
    helpers.py    the processes, their deadlines, and predicates that must be switched off

The event loop never waits for a predicate, and the predicates do not wait for each other. Used by
root.py and preprocessors/. Start at deciding.py.
"""

from tidings.broker.predicates.deciding import Deciding
from tidings.broker.predicates.helpers import PredicateHelpers

__all__ = ["Deciding", "PredicateHelpers"]
