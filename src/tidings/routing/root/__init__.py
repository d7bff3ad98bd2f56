"""The rendezvous point of a channel: it knows every node, numbers and keeps notifications.

    Publish ──publishing──> tag ──> number ──> journal ──(on the disk)──> acknowledge, forward
    Ask ──nodes──> node ──> journal ──(on the disk)──> answer

    rendezvous.py    the state machine: hands messages and time to the parts
    publishing/      from a publisher's message to the acknowledgment
    nodes/           how filters become nodes, and how nodes go
    ownership/       whose filters the nodes are, and how many each owner may have
    write_queue.py   what waits until a write is on the disk
    counts.py        how many notifications each node had
    problems.py      unexpected exceptions: logged, counted, survived
    interests.py     what it needs of a preprocessor (broker/interests.py is the one that runs)
    journal.py       what it needs of a journal (store/journal is the one that runs)

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
