"""The pauses between slices of learning: short while a node is idle, long while it is busy.

Cost: two readings of clocks for each slice. A busy router that learnt every 20 ms needed 8 % more
time to forward a notification.
"""

from __future__ import annotations

import time

PAUSE = 0.02  # seconds between two slices, if the node is idle
BUSY = 0.5  # a node is busy if its thread works for more than this share of the time
BUSY_SHARE = 0.01  # the share of its time in which a busy node learns


class Pauses:
    """Chooses how long a node waits before it learns again."""

    def __init__(self) -> None:
        self.seconds = PAUSE
        """The pause before the next slice."""
        self._since, self._spent = time.monotonic(), time.thread_time()

    def note_slice(self, took: float) -> None:
        """Note the end of a slice that took `took` seconds."""
        now, spent = time.monotonic(), time.thread_time()
        is_busy = spent - self._spent > BUSY * (now - self._since)
        self._since, self._spent = now, spent
        self.seconds = pause_when_busy(took) if is_busy else PAUSE


def pause_when_busy(took: float) -> float:
    """The pause of a busy node after a slice that took `took` seconds."""
    return max(PAUSE, took / BUSY_SHARE)
