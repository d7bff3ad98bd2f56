"""What an agent gives to an application besides itself.

    subscription.py   the items of one interest: an asynchronous iterator
    link_state.py     whether there is a link, to which router, since when, and if not, why
    refusals.py       the errors of agents

Used by agent.py and blocking.py. Users get the names from `tidings`. Start at subscription.py.
"""

from tidings.network.agents.link_state import LinkState
from tidings.network.agents.refusals import Broken, Refusal, TimedOut
from tidings.network.agents.subscription import Subscription

__all__ = ["Broken", "LinkState", "Refusal", "Subscription", "TimedOut"]
