"""The messages of routers, rendezvous points and clients.

    upward.py     towards the rendezvous point: Subscribe, Ask, Recover, Publish ...
    downward.py   away from the rendezvous point: Setup, Beat, Notification, Answer ...
    taggers.py    questions and answers of clients that tag, and of preprocessors
    links.py      between the two ends of a link
    statuses.py   the status of nodes, and advice about routers
    fields.py     the types and limits of fields; the bases of all messages

A link carries many channels, each under a number that its lower end chooses. Messages about
channels go between the two ends of a link:

    Open Close                  the lower end names a channel, or gives it up
    Closed                      the upper end does not serve a channel
    Pulse Repeat                the last message in each channel still holds; send all of them again
    Credit                      how much more the other end may send in some channels

A preprocessor can also sign a grant, which the agent presents to its router. A router can sign a
ticket, which its clients show to preprocessors instead of their tokens:

    Propose ──> Proposed with a grant, Present ──> Presented     the agent may subscribe to a node
    Identify ──> Identified with a ticket, Hello with a ticket   the agent is known to its router

Both ends of a link keep the same sets, and either end can miss a message. So each end sends a
digest of its sets now and then; if the digests differ, the other end asks for the whole set.

This folder is for other rooms, not for users. Import it as a module (`messages.Publish`). Start at
upward.py.
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
    Offered,
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
    KEY_ID,
    LONGEST_NAME,
    LONGEST_REASON,
    LONGEST_SUBJECT,
    LONGEST_TICKET,
    LONGEST_WITHIN,
    MOST_DIRECT,
    MOST_LIVES,
    MOST_LOCATED,
    MOST_NUMBER,
    MOST_PREPROCESSORS,
    MOST_RANGES,
    MOST_STEPS,
    MOST_SUGGESTED,
    MOST_TAG,
    MOST_TOGETHER,
    MOST_WANTED,
    MOST_WITHIN,
    NODE,
    SIGNATURE,
    UNKNOWN,
    WITHIN,
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
    Step,
    Steps,
    Up,
    Within,
)
from tidings.routing.protocol.messages.links import (
    REPLACED,
    Close,
    Closed,
    Credit,
    Goodbye,
    Hello,
    Identified,
    Identify,
    Open,
    Present,
    Presented,
    Pulse,
    Repeat,
    Welcome,
)
from tidings.routing.protocol.messages.statuses import (
    MOST_CARRIED,
    MOST_DEPTH,
    MOST_LEARNT,
    MOST_LINKS,
    MOST_MILLIS,
    MOST_NAME,
    MOST_NAMED,
    MOST_REPORTED,
    MOST_SOURCES,
    MOST_TOPICS,
    Advise,
    Advised,
    ChannelStatus,
    Inspect,
    Inspected,
    Kind,
    LearntBy,
    LearntNode,
    LearntTopic,
    LinkStatus,
    NameStatus,
    NodeStatus,
    PreprocessorStatus,
    Report,
    RouterLoad,
    SourceStatus,
    Watch,
)
from tidings.routing.protocol.messages.taggers import (
    Changed,
    Describe,
    Described,
    Fault,
    Follow,
    Found,
    HandOver,
    Locate,
    Located,
    NodeChange,
    NodePlace,
    Preprocess,
    Preprocessed,
    Propose,
    Proposed,
    Register,
    Seek,
    Suggest,
    Suggested,
    Suggestion,
    Taken,
)
from tidings.routing.protocol.messages.upward import (
    Apply,
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

CHANNELS = Open | Close | Closed | Pulse | Repeat | Credit
"""Messages about the channels of a link. They belong to no channel."""
LINK = (
    Hello | Welcome | Goodbye | Watch | Report | Present | Presented | Identify | Identified
    | Preprocess | Preprocessed
    | Propose | Proposed | Locate | Located | Inspect | Inspected | CHANNELS
)  # fmt: skip
UP = (Subscribe | Unsubscribe | Resubscribe | Wanted | Redraw | Trace | Ask | Count | Recover
      | Publish | Whose | Resume | Confirm | Apply | Describe | Follow | HandOver | Register
      | Fault | Seek | Advise | Suggest)  # fmt: skip
DOWN = (Notification | Setup | Gone | Refuse | Beat | Graph | Which | Who | Lineage | Answer
        | Counted | Recovered | Settled | Skipped | Published | Described | Changed
        | Resumption | Confirmed | Offered
        | Taken | Found | Advised | Suggested)  # fmt: skip
TAGGING = Describe | Follow | HandOver | Register | Fault | Suggest
"""Messages of clients that tag. These messages need a right of their own, and only a rendezvous
point answers them."""
ANSWERS = (
    Answer
    | Counted
    | Recovered
    | Settled
    | Resumption
    | Confirmed
    | Offered
    | Described
    | Changed
    | Found
    | Advised
    | Suggested
)
"""Answers to questions that routers pass on."""

__all__ = [
    "ANSWERS", "CHANNELS", "DOWN", "KEY_ID", "LINK", "LONGEST_NAME", "LONGEST_REASON",
    "LONGEST_SUBJECT",
    "LONGEST_TICKET", "LONGEST_WITHIN", "MOST_CARRIED", "MOST_DEPTH", "MOST_DIRECT",
    "MOST_LEARNT", "MOST_LINKS",
    "MOST_LIVES", "MOST_LOCATED", "MOST_MILLIS", "MOST_NAME", "MOST_NAMED", "MOST_NUMBER",
    "MOST_PREPROCESSORS", "MOST_RANGES", "MOST_REPORTED", "MOST_SOURCES", "MOST_STEPS",
    "MOST_SUGGESTED", "MOST_TAG", "MOST_TOGETHER",
    "MOST_TOPICS", "MOST_WANTED", "MOST_WITHIN", "NODE",
    "REPLACED", "SIGNATURE", "TAGGING", "UNKNOWN", "UP",
    "WITHIN",
    "Advise", "Advised", "Answer", "Apply", "Ask", "Beat", "Changed", "ChannelStatus", "Close",
    "Closed", "Confirm",
    "Confirmed", "Count", "Counted", "Credit", "Describe", "Described", "Digest", "Down", "Edges",
    "Fault", "Follow", "Found", "Gone", "Goodbye", "Graph", "HandOver", "Hello", "Identified",
    "Identify", "Inspect", "Inspected", "Kind", "Label", "LearntBy", "LearntNode", "LearntTopic",
    "Life", "Lineage", "LinkStatus", "Locate", "Located", "Mark",
    "Message", "NameStatus", "NodeChange", "NodePlace", "NodeStatus", "Notification", "Number",
    "Offered", "Open",
    "PartyName", "Preprocess", "Preprocessed", "PreprocessorStatus", "Present",
    "Presented", "Propose", "Proposed",
    "Publish", "Published", "Pulse", "Range", "Recover", "Recovered", "Redraw", "Refuse",
    "Register", "Repeat", "Report", "Resubscribe", "Resume", "Resumption", "RouterLoad", "Seek",
    "Settled", "Setup", "Skipped", "Slice", "SourceStatus", "Step", "Steps", "Subscribe", "Suggest",
    "Suggested", "Suggestion", "Taken", "Trace",
    "Unsubscribe", "Up",
    "Wanted", "Watch", "Welcome", "Which", "Who", "Whose", "Within",
]  # fmt: skip
