"""Active subscriptions: the operator has installed predicates, which filters call by name.

    urgent(text, 3) AND region = 'EU'
       |
       `──arguments──> helper process, with a deadline ──true, false or null──> decisions

A predicate is a function of its arguments, and nothing else is known about it: equal calls have
equal results, and no call is assumed to imply another. Its code comes from an entry point of the
group `tidings.predicates`, never over the network.

Predicates may be slow, or never return, so they are not called while a notification is matched.
First, the calls that the notification needs are collected (`Undecided`), and a helper process
decides them. Then the notification is matched, and the result of each call is looked up.

    installed.py        entry points: which predicates there are, and their versions
    decisions.py        the results of calls, which filters look up
    call_index.py       which calls a notification needs
    helper_program.py   the program of a helper process; it needs only the standard library

Used by kinds and by the view of a channel; broker starts the processes. Start at decisions.py.
"""

from tidings.preprocessing.predicates.call_index import CallIndex, calls_in
from tidings.preprocessing.predicates.decisions import Decisions, PredicateCall
from tidings.preprocessing.predicates.helper_program import ANSWER, BATCH, Code
from tidings.preprocessing.predicates.installed import HELPER, PREDICATES, need_predicates

__all__ = [
    "ANSWER",
    "BATCH",
    "HELPER",
    "PREDICATES",
    "CallIndex",
    "Code",
    "Decisions",
    "PredicateCall",
    "calls_in",
    "need_predicates",
]
