"""How long processes waited for a core of the machine.

The attackers run beside the nodes that they attack, on the same cores. What the nodes could not do
because they had no core says nothing about the nodes. So the time for which a process was ready and
did not run is measured, and taken off the latency of the honest pair. A message is in one process
at a time, and only the longest of the waits is taken off: a delay that the nodes caused stays.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable
from pathlib import Path

PERIOD = 0.02  # seconds

Samples = list[tuple[float, float]]  # when, and how many seconds it had waited until then


def waited_so_far(pid: int) -> float | None:
    """For how many seconds the main thread of a process, which runs its event loop, waited for a
    core. None if the process is over, or if this system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return None


class Cores:
    """Looks at processes every few milliseconds, in a thread."""

    def __init__(self, look: Callable[[int], float | None] = waited_so_far) -> None:
        self._look = look
        self._pids: dict[str, int] = {}
        self.samples: dict[str, Samples] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, name: str, pid: int) -> None:
        self._pids[name] = pid
        self.samples[name] = []

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _go_on(self) -> None:
        while not self._over.wait(PERIOD):
            self.note(time.monotonic())

    def note(self, now: float) -> None:
        for name, pid in [*self._pids.items()]:
            found = self._look(pid)
            if found is not None:
                self.samples[name].append((now, found))

    def longest(self, begin: float, end: float) -> float:
        """The longest time for which one of the processes waited meanwhile, in seconds."""
        found = (_at(one, end) - _at(one, begin) for one in self.samples.values() if one)
        return min(max(found, default=0.0), end - begin)

    def share(self, name: str, begin: float) -> float:
        """For which part of the time since then a process waited."""
        samples = self.samples.get(name)
        if not samples or samples[-1][0] <= begin:
            return 0.0
        return (samples[-1][1] - _at(samples, begin)) / (samples[-1][0] - begin)


def _at(samples: Samples, when: float) -> float:
    """What a process had waited at a moment between two samples."""
    after = bisect.bisect_left(samples, (when, 0.0))
    if after == 0:
        return samples[0][1]
    if after == len(samples):
        return samples[-1][1]
    (begin, low), (end, high) = samples[after - 1], samples[after]
    return low + (high - low) * (when - begin) / (end - begin)
