"""What applications use with an agent: subscriptions, link states, errors and Arrow data.

    subscription.py   the items of a subscription: an asynchronous iterator
    link_state.py     whether there is a link, to which router, since when, and if not, why
    refusals.py       the errors of agents
    arrow_rows.py     the rows of Arrow data as notifications

Used by agent.py and blocking.py. Users get the names from `tidings`. Start at subscription.py.
"""

from tidings.network.agents.arrow_rows import ArrowRows, Pairs, pairs_of
from tidings.network.agents.link_state import LinkState
from tidings.network.agents.refusals import Broken, Refusal, TimedOut
from tidings.network.agents.subscription import Subscription

__all__ = [
    "ArrowRows",
    "Broken",
    "LinkState",
    "Pairs",
    "Refusal",
    "Subscription",
    "TimedOut",
    "pairs_of",
]
