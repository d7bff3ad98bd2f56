"""Processes that a node or a tree starts on its event loop.

    signals.py    sends signals to them

Used by predicates/ and tree.py. Start at signals.py.
"""

from tidings.broker.processes.signals import send_signal

__all__ = ["send_signal"]
