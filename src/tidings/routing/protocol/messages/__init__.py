"""The messages of routers, rendezvous points and clients. Messages that go down carry the life of
the rendezvous point as their epoch; see lineage.py.

    up      Subscribe Unsubscribe               nodes that a neighbour wants, or no longer wants
            Resubscribe Wanted Redraw           a digest of the wanted nodes; all of them; a request
                                                for their graph
            Trace                               which lives has the rendezvous point had?
            Ask Count Recover Publish           passed on towards the root
            Resume Confirm                      how far was I?; I have all this: for named
                                                subscriptions
            Whose                               the nodes that an owner wants
            Describe Follow HandOver Register   for the root itself: see below
            Seek                                which preprocessors are there?
    down    Setup Gone Refuse                   the place of a node; it was dropped; no such node
            Beat Which Graph                    totals and digests; what do you want?; the graph
            Lineage                             the lives of the rendezvous point
            Who                                 which owners want these nodes?
            Notification Skipped                a notification with its marks; some may be missing
            Answer Counted Recovered Settled Published      answers to questions
            Resumption Confirmed                answers to named subscriptions
            Described Changed Taken Found       answers to clients that tag

A client that tags notifications itself (a pipeline on Spark) is linked directly to the root. Such a
client follows the changes of nodes, and hands its notifications over in parts:

    Describe ──> Described      the definition of the channel
    Follow ──> Changed          the nodes that began and ended since a version, page by page
    HandOver ──> Taken          many tagged notifications as columns; each part is taken once

A preprocessor follows the changes too, and registers its address with the root. Agents look up
preprocessors, link themselves to one, and ask it for tags and nodes:

    Register                    a preprocessor says now and then where it listens
    Seek ──> Found              the addresses of preprocessors
    Preprocess ──> Preprocessed, Propose ──> Proposed     between an agent and a preprocessor

A preprocessor can also sign a grant, which the agent presents to its router:

    Propose ──> Proposed with a grant, Present ──> Presented     the agent may subscribe to a node

Both ends of a link keep the same sets, and either can miss a message. So each end sends a digest of
its sets now and then; if the digests differ, the other end asks for the whole set.

    fields.py     the types and limits of fields; the bases of all messages
    links.py      between the two ends of a link
    reports.py    the status of nodes
    upward.py     towards the rendezvous point
    downward.py   away from the rendezvous point
    tagging.py    questions and answers of clients that tag, and of preprocessors

Import this folder as a module (`messages.Publish`). Start at upward.py.
"""

from __future__ import annotations

from tidings.routing.protocol.messages.downward import (
    Answer,
    Beat,
    Confirmed,
    Counted,
    Gone,
    Graph,
    Lineage,
    Notification,
    Published,
    Recovered,
    Refuse,
    Resumption,
    Settled,
    Setup,
    Skipped,
    Which,
    Who,
)
from tidings.routing.protocol.messages.fields import (
    LONGEST_NAME,
    LONGEST_SUBJECT,
    LONGEST_WITHIN,
    MOST_LIVES,
    MOST_PREPROCESSORS,
    MOST_RANGES,
    MOST_TAG,
    MOST_WANTED,
    NODE,
    Digest,
    Down,
    Edges,
    Label,
    Life,
    Mark,
    Message,
    Number,
    PartyName,
    Range,
    Slice,
    Up,
    Within,
)
from tidings.routing.protocol.messages.links import Goodbye, Hello, Present, Presented, Welcome
from tidings.routing.protocol.messages.reports import (
    MOST_DEPTH,
    MOST_LINKS,
    MOST_MILLIS,
    MOST_NAME,
    MOST_REPORTED,
    Kind,
    LinkStatus,
    NodeStatus,
    Report,
    Watch,
)
from tidings.routing.protocol.messages.tagging import (
    Changed,
    Describe,
    Described,
    Follow,
    Found,
    HandOver,
    NodeChange,
    Preprocess,
    Preprocessed,
    Propose,
    Proposed,
    Register,
    Seek,
    Taken,
)
from tidings.routing.protocol.messages.upward import (
    Ask,
    Confirm,
    Count,
    Publish,
    Recover,
    Redraw,
    Resubscribe,
    Resume,
    Subscribe,
    Trace,
    Unsubscribe,
    Wanted,
    Whose,
)

LINK = (Hello | Welcome | Goodbye | Watch | Report | Present | Presented | Preprocess | Preprocessed
        | Propose | Proposed)  # fmt: skip
UP = (Subscribe | Unsubscribe | Resubscribe | Wanted | Redraw | Trace | Ask | Count | Recover
      | Publish | Whose | Resume | Confirm | Describe | Follow | HandOver | Register
      | Seek)  # fmt: skip
DOWN = (Notification | Setup | Gone | Refuse | Beat | Graph | Which | Who | Lineage | Answer
        | Counted | Recovered | Settled | Skipped | Published | Described | Changed
        | Resumption | Confirmed
        | Taken | Found)  # fmt: skip
TAGGING = Describe | Follow | HandOver | Register
"""Messages of clients that tag. They need a right of their own, and only a rendezvous point
answers them."""
ANSWERS = (
    Answer | Counted | Recovered | Settled | Resumption | Confirmed | Described | Changed | Found
)
"""Answers to questions that routers pass on."""

__all__ = [
    "ANSWERS", "DOWN", "LINK", "LONGEST_NAME", "LONGEST_SUBJECT", "LONGEST_WITHIN",
    "MOST_DEPTH", "MOST_LINKS", "MOST_LIVES", "MOST_MILLIS", "MOST_NAME", "MOST_PREPROCESSORS",
    "MOST_RANGES", "MOST_REPORTED", "MOST_TAG", "MOST_WANTED", "NODE", "TAGGING", "UP",
    "Answer", "Ask", "Beat", "Changed", "Confirm", "Confirmed", "Count", "Counted", "Describe",
    "Described", "Digest", "Down", "Edges", "Follow", "Found", "Gone", "Goodbye", "Graph",
    "HandOver", "Hello", "Kind", "Label", "Life", "Lineage", "LinkStatus", "Mark", "Message",
    "NodeChange", "NodeStatus", "Notification", "Number", "PartyName", "Preprocess",
    "Preprocessed", "Present", "Presented", "Propose", "Proposed", "Publish", "Published",
    "Range", "Recover", "Recovered", "Redraw",
    "Refuse", "Register", "Report", "Resubscribe", "Resume", "Resumption", "Seek", "Settled",
    "Setup", "Skipped", "Slice", "Subscribe", "Taken", "Trace", "Unsubscribe", "Up", "Wanted",
    "Watch", "Welcome", "Which", "Who", "Whose", "Within",
]  # fmt: skip
