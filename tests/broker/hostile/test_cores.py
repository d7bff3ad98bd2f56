"""The time for which processes waited for a core, as the hostile run takes it off latencies."""

from __future__ import annotations

import os

import pytest
from tests.broker.hostile.cores import Cores, waited_so_far


def test_only_the_longest_wait_counts() -> None:
    waited = {1: 0.0, 2: 5.0}
    cores = Cores(waited.get)
    cores.add("root", 1)
    cores.add("edge", 2)
    cores.add("gone", 3)
    for now, root, edge in ((0.0, 0.0, 5.0), (1.0, 0.5, 5.0), (2.0, 0.5, 5.25), (3.0, 0.5, 6.25)):
        waited[1], waited[2] = root, edge
        cores.note(now)
    assert cores.longest(0.0, 1.0) == pytest.approx(0.5)
    assert cores.longest(0.5, 1.0) == pytest.approx(0.25)
    assert cores.longest(1.0, 2.0) == pytest.approx(0.25)
    assert cores.longest(0.0, 2.0) == pytest.approx(0.5)
    assert cores.longest(2.25, 2.5) == pytest.approx(0.25)
    assert cores.longest(10.0, 11.0) == 0.0
    assert cores.share("edge", 1.0) == pytest.approx(1.25 / 2)
    assert cores.share("gone", 0.0) == 0.0


def test_no_more_than_the_latency_itself_is_taken_off() -> None:
    cores = Cores({1: 0.0}.get)
    cores.add("root", 1)
    cores.samples["root"] = [(0.0, 0.0), (1.0, 2.0)]
    assert cores.longest(0.0, 1.0) == 1.0
    assert Cores().longest(0.0, 1.0) == 0.0


def test_a_process_that_is_over_is_left_out() -> None:
    found = waited_so_far(os.getpid())
    assert found is None or found >= 0
    assert waited_so_far(1 << 30) is None
