"""The rendezvous point of a channel: it knows every node, and numbers and stores notifications.

    Publish, Run ──publishing──> tag ──> number ──> journal ──(on the disk)──> acknowledge, forward
    Ask ──nodes──> node ──> journal ──(on the disk)──> answer
    HandOver ──handover──> number ──> journal ──(on the disk)──> acknowledge, forward

    rendezvous.py    the state machine, which passes messages and the time to its parts
    publishing/      from a publisher's message to the acknowledgment
    runs/            many waiting publications of one publisher at a time
    handover/        notifications that were tagged elsewhere, in parts
    nodes/           how nodes are created from filters, and how they are removed
    ownership/       who owns each node, and how many nodes an owner may have
    records/         numbered notifications, one by one and in blocks
    naming.py        answers named subscriptions, and journals what they confirm
    cursors.py       how far each named subscription was confirmed
    node_history.py   the versions of a channel, and the nodes that replace removed nodes
    revising.py      how subscribers get from one meaning of their interest to the next
    offers.py        links of agents that bypass the tree
    write_queue.py   messages that wait until a write is on the disk
    counts.py        how many notifications each node has received
    problems.py      logs and counts unexpected exceptions
    interests.py     the interface of the preprocessor (channel/interests implements it)
    relating.py      the interface of relations (channel/related implements it)
    journal.py       the interface of the journal (store/journal implements it)

This folder is for broker and store, not for users. Start at rendezvous.py.
"""

from tidings.routing.root.cursors import Confirmation, Cursor, read_key
from tidings.routing.root.handover import Definition, FollowerState, Piece, number_alone
from tidings.routing.root.interests import Fair, Interests, Placed, Places, TaggedMany, TooMuchWork
from tidings.routing.root.journal import Journal, Memory
from tidings.routing.root.node_history import History, RemovedNode
from tidings.routing.root.offers import SECONDS, name_direct
from tidings.routing.root.ownership import CHANNEL
from tidings.routing.root.records import (
    Block,
    MarkColumns,
    MatchColumns,
    PayloadColumns,
    Progress,
    Record,
)
from tidings.routing.root.relating import Relating, Relation
from tidings.routing.root.rendezvous import Rendezvous
from tidings.routing.root.revising import load_graph, make_steps
from tidings.routing.root.runs import MOST_ROWS, Run, find_runs, join_runs

__all__ = [
    "CHANNEL",
    "MOST_ROWS",
    "SECONDS",
    "Block",
    "Confirmation",
    "Cursor",
    "Definition",
    "Fair",
    "FollowerState",
    "History",
    "Interests",
    "Journal",
    "MarkColumns",
    "MatchColumns",
    "Memory",
    "PayloadColumns",
    "Piece",
    "Placed",
    "Places",
    "Progress",
    "Record",
    "Relating",
    "Relation",
    "RemovedNode",
    "Rendezvous",
    "Run",
    "TaggedMany",
    "TooMuchWork",
    "find_runs",
    "join_runs",
    "load_graph",
    "make_steps",
    "name_direct",
    "number_alone",
    "read_key",
]
