"""The rendezvous point of a channel: it knows every node, and numbers and stores notifications.

    Publish, Run ──publishing──> tag ──> number ──> journal ──(on the disk)──> acknowledge, forward
    Ask ──nodes──> node ──> journal ──(on the disk)──> answer
    HandOver ──handover──> number ──> journal ──(on the disk)──> acknowledge, forward

    rendezvous.py    the state machine: hands messages and time to the parts
    publishing/      from a publisher's message to the acknowledgment
    runs/            publications that wait, many of one publisher at a time
    handover/        notifications that somebody else tagged, in parts
    nodes/           how nodes are created from filters, and how they are removed
    ownership/       who owns each node, and how many nodes an owner may have
    records/         numbered notifications, one by one and in blocks
    naming.py        named subscriptions: where they are, and what they confirm
    cursors.py       how far each of them was confirmed
    history.py       the versions of a channel, and what stood for nodes that are gone
    write_queue.py   messages that wait until a write is on the disk
    counts.py        how many notifications each node has had
    problems.py      unexpected exceptions: logged, counted, survived
    interests.py     what it needs from a preprocessor (broker/interests.py implements it)
    journal.py       what it needs from a journal (store/journal implements it)

For broker and store, not for users. Start at rendezvous.py.
"""

from tidings.routing.root.cursors import Cursor
from tidings.routing.root.handover import Definition, NodeTable, Piece, number_alone
from tidings.routing.root.history import Gone, History
from tidings.routing.root.interests import Fair, Interests, Placed, TaggedMany, TooMuchWork
from tidings.routing.root.journal import Journal, Memory
from tidings.routing.root.records import (
    Block,
    MarkColumns,
    MatchColumns,
    PayloadColumns,
    Progress,
    Record,
)
from tidings.routing.root.rendezvous import Rendezvous
from tidings.routing.root.runs import MOST_ROWS, Run, find_runs, join_runs

__all__ = [
    "MOST_ROWS",
    "Block",
    "Cursor",
    "Definition",
    "Fair",
    "Gone",
    "History",
    "Interests",
    "Journal",
    "MarkColumns",
    "MatchColumns",
    "Memory",
    "NodeTable",
    "PayloadColumns",
    "Piece",
    "Placed",
    "Progress",
    "Record",
    "Rendezvous",
    "Run",
    "TaggedMany",
    "TooMuchWork",
    "find_runs",
    "join_runs",
    "number_alone",
]
