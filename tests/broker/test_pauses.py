"""How often a node learns: seldom while its thread is busy."""

from __future__ import annotations

import time

import pytest

from tidings.broker.early import PAUSE, pauses


class Clocks:
    """The clocks of a thread, set by hand."""

    def __init__(self) -> None:
        self.now = self.spent = 0.0

    def run(self, seconds: float, working: float) -> None:
        self.now += seconds
        self.spent += working


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    found = Clocks()
    monkeypatch.setattr(time, "monotonic", lambda: found.now)
    monkeypatch.setattr(time, "thread_time", lambda: found.spent)
    return found


def test_a_busy_node_learns_for_a_hundredth_of_its_time(clocks: Clocks) -> None:
    chosen = pauses.Pauses()
    assert chosen.seconds == PAUSE
    clocks.run(0.02, 0.019)
    chosen.note_slice(0.001)
    assert chosen.seconds == pytest.approx(0.1)
    clocks.run(0.1, 0.1)
    chosen.note_slice(0.00001)
    assert chosen.seconds == PAUSE
    clocks.run(0.02, 0.001)
    chosen.note_slice(0.01)
    assert chosen.seconds == PAUSE
