"""Agents for scripts and notebooks, without `async`.

    caller's threads ──publish, next──> [agent's thread: event loop, asynchronous agent] ──> router

    blocking_agent.py         publishes, subscribes, and runs the thread
    blocking_subscription.py  reads the notifications of one filter
    interruptible_waits.py    waits that Ctrl-C can interrupt

Users get `connect_blocking` from `tidings`. Start at blocking_agent.py.
"""

from tidings.network.blocking.blocking_agent import BlockingAgent, connect_blocking
from tidings.network.blocking.blocking_subscription import BlockingSubscription

__all__ = ["BlockingAgent", "BlockingSubscription", "connect_blocking"]
