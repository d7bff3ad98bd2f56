"""Calls predicates in helper processes, while notifications that need them wait.

    publication ──> machine ──Undecided──> deciding.py ──calls──> helper_processes.py
                       ^─────────── decided ───────┘                 `──> a process per predicate

    deciding.py           publications that wait, in the order of their publishers
    helper_processes.py   the processes, their deadlines, and predicates that must be switched off

The event loop never waits for a predicate, and predicates do not wait for each other. Used by
root_node.py and preprocessors/. Start at deciding.py.
"""

from tidings.broker.predicates.deciding import Deciding
from tidings.broker.predicates.helper_processes import PredicateHelpers

__all__ = ["Deciding", "PredicateHelpers"]
