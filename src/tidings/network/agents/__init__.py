"""The parts of agents: links, channels, subscriptions, errors, Arrow data, and tags.

    subscribe ──> agent_channel ──> agent_link ──> router     direct_link ──> rendezvous point
    items <── subscription <── agent_channel <── agent_link, or direct_link
    publish ──> publishing, encoding ──tags/──> agent_link

    agent_link.py     the link to a router, which reconnects if lost; it carries many channels
    direct_link.py    a second link, to the rendezvous point itself
    agent_channel.py  one channel: a small router with the application's subscriptions
    publishing.py     the publishing half of a channel
    blocking_channel.py  a channel for code without `async`
    subscription.py   the items of a subscription: an asynchronous iterator
    grants.py         signed grants, with which an agent subscribes to nodes
    refusals.py       the errors of agents
    moving.py         moves an agent to a better router, on the advice of its channel
    encoding.py       attributes as JSON or MessagePack
    tags/             who tags the notifications that the agent publishes
    arrow_rows.py     the rows of Arrow data as notifications

Used by agent.py and `blocking`. Users get the names from `tidings`. Start at subscription.py.
"""

from tidings.network.agents.agent_link import LinkState
from tidings.network.agents.arrow_rows import ArrowRows, Pairs, check_pair, pairs_of
from tidings.network.agents.encoding import encode_attributes
from tidings.network.agents.grants import SignedGrant
from tidings.network.agents.refusals import Broken, Outdated, Refusal, TimedOut
from tidings.network.agents.subscription import Subscription
from tidings.network.agents.tags.header import Header
from tidings.network.agents.tags.preprocessors import Preprocessors

__all__ = [
    "ArrowRows",
    "Broken",
    "Header",
    "LinkState",
    "Outdated",
    "Pairs",
    "Preprocessors",
    "Refusal",
    "SignedGrant",
    "Subscription",
    "TimedOut",
    "check_pair",
    "encode_attributes",
    "pairs_of",
]
