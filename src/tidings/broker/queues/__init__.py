"""Messages that wait at a node, and their order: one sender's flood does not delay others.

    publications ──> at once, or in turns: owner, link, name ─────> a slice of time ──> machine
    subscribe, ask, recover ──> backlog, after publications ──────> a slice of time ──> machine
    ask, at a root ──> preparing, in a thread ──> backlog

    turns.py          fair turns by owner, then link, then name; a long turn counts as several
    publications.py   publications, which go first
    merit_publications.py    the same in a channel whose order is merit
    merit_queue.py    a queue by merit and age, partly on the disk
    spill.py          bytes that wait on the disk
    backlog.py        subscription work; reading pauses if a neighbour has too many messages waiting
    command_changes.py    changes of subscriptions that commands hand over, beside all of these
    preparing.py      questions about new filters, which a thread reads first

Used inside `broker`, and by `studies`, which measures the queue by merit. Start at turns.py.
"""

from tidings.broker.queues.merit_queue import MeritQueue
from tidings.broker.queues.spill import Spill

__all__ = ["MeritQueue", "Spill"]
