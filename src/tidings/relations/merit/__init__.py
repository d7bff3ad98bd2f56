"""Merit: which hops get a message at once, the exact search, and who gets related messages.

    event ──event_terms──> terms ──clusters──> nodes ──scoring──> hops
      └──exact_table──> ids          terms ──related──> subscriptions with related=...

    event_terms.py   the attributes of events that have a place, a time, tags, a person
    scoring.py       merits of hops, limits, the best nodes
    exact_table.py   the exact search, which skips filters with stored answers
    related_subscriptions.py   subscriptions that want related messages, by weight
    gates.py         finds these subscriptions also through an exact test
    postings.py, merit_kernels.py    nodes found by a term, as arrays; compiled sums of merits
    frame_plans.py   the frames to send at once, cached for values that occur repeatedly
    forwarded_merit.py    the merit of a message for a queue
    hop_frames.py    the frames that are sent to one hop
    repository.py    uses all of them: propose, complete, work

Users get `Repository` from `tidings.relations`. Start at repository.py.
"""

from tidings.relations.merit.event_terms import Reading, TermReader
from tidings.relations.merit.exact_table import ExactTable, MatchedIds
from tidings.relations.merit.forwarded_merit import ForwardedMerit
from tidings.relations.merit.hop_frames import Frame
from tidings.relations.merit.postings import Postings
from tidings.relations.merit.related_subscriptions import ROUNDING, RelatedInterests, RelatedMatch
from tidings.relations.merit.repository import Proposal, Repository
from tidings.relations.merit.scoring import Limit, best_nodes, choose_hops, score_hops

__all__ = [
    "ROUNDING",
    "ExactTable",
    "ForwardedMerit",
    "Frame",
    "Limit",
    "MatchedIds",
    "Postings",
    "Proposal",
    "Reading",
    "RelatedInterests",
    "RelatedMatch",
    "Repository",
    "TermReader",
    "best_nodes",
    "choose_hops",
    "score_hops",
]
