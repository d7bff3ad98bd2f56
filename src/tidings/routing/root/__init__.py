"""The rendezvous point of a channel: it knows every node, numbers and keeps notifications.

    Publish ──> tag ──> number ──> journal ──(on the disk)──> acknowledge, forward
    Ask ──> node ──> journal ──(on the disk)──> answer

    rendezvous.py   the state machine; what depends on a write is held until that is on the disk
    interests.py    what it needs of a preprocessor (broker/interests.py is the one that runs)
    journal.py      what it needs of a journal (store/journal is the one that runs)
    stamps.py       which publication of each publisher comes next
    shares.py       whose filters are set aside when a notification would have too many marks

For broker and store, not for users. Start at rendezvous.py.
"""

from tidings.routing.root.interests import Fair, Interests, Placed, TooMuchWork
from tidings.routing.root.journal import Journal, Memory, Record
from tidings.routing.root.rendezvous import Rendezvous

__all__ = [
    "Fair",
    "Interests",
    "Journal",
    "Memory",
    "Placed",
    "Record",
    "Rendezvous",
    "TooMuchWork",
]
