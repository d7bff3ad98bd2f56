"""The parts of agents: subscriptions, link states, errors, Arrow data, and tags.

    subscription.py   the items of a subscription: an asynchronous iterator
    link_state.py     whether there is a link, to which router, since when, and if not, why
    header.py         a tag that was obtained in advance
    refusals.py       the errors of agents
    following.py      tags in the agent's own process, which follows the nodes of the channel
    preprocessors.py  tags from preprocessors, which the agent finds through the channel
    encoding.py       attributes as JSON or MessagePack
    untagged.py       notifications that wait for their tags
    arrow_rows.py     the rows of Arrow data as notifications

Used by agent.py and blocking.py. Users get the names from `tidings`. Start at subscription.py.
"""

from tidings.network.agents.arrow_rows import ArrowRows, Pairs, pairs_of
from tidings.network.agents.encoding import encode_attributes
from tidings.network.agents.header import Header
from tidings.network.agents.link_state import LinkState
from tidings.network.agents.refusals import Broken, Outdated, Refusal, TimedOut
from tidings.network.agents.subscription import Subscription

__all__ = [
    "ArrowRows",
    "Broken",
    "Header",
    "LinkState",
    "Outdated",
    "Pairs",
    "Refusal",
    "Subscription",
    "TimedOut",
    "encode_attributes",
    "pairs_of",
]
