"""Simulated time: events happen in the order of their times, and take no time themselves."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from typing import Any


class Simulation(ABC):
    """Events that wait, in a heap by time; those of one time happen in the order of their
    numbers."""

    now = 0.0
    operations = 0
    _order = 0
    _events: list[tuple[float, int, Any]]

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heapq.heappop(self._events)
            self.operations += 1
            self._happen(event)
        self.now = until

    def _put(self, when: float, event: Any) -> None:
        self._order += 1
        heapq.heappush(self._events, (when, self._order, event))

    @abstractmethod
    def _happen(self, event: Any) -> None: ...
