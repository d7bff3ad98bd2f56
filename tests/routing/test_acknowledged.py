"""The stamps that a publisher reports as gone: they always include every lost one."""

from __future__ import annotations

import random

from tidings.routing.clients import acknowledged_runs
from tidings.routing.clients.acknowledged_runs import AcknowledgedRuns, merge_spans
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.lineage import Lineage, StampRange


def stamps(spans: tuple[StampRange, ...]) -> set[int]:
    return {stamp for one in spans for stamp in range(one.first, one.last + 1)}


def test_of_one_publisher_alone_all_is_known_exactly() -> None:
    runs = AcknowledgedRuns()
    for at in range(1, 100, 3):
        runs.add(7, at, at + 2, 1000 + at + 2)
    assert len(runs._runs) == 1
    lineage = Lineage([m.Life(7, 1), m.Life(8, 1051)])
    assert runs.take_lost(lineage) == (StampRange(51, 99),)
    assert runs.take_lost(lineage) == ()
    assert runs.take_lost(Lineage([m.Life(8, 1)])) == (StampRange(1, 50),)
    assert not runs


def test_from_a_stamp_on() -> None:
    runs = AcknowledgedRuns()
    for first, last, serial in ((1, 4, 10), (6, 9, 20), (10, 12, 30)):
        runs.add(7, first, last, serial)
    assert runs.take_from(8) == (StampRange(8, 12),)
    assert runs.take_from(1) == (StampRange(1, 4), StampRange(6, 7))


def test_stamps_that_were_refused_between_runs_that_became_one() -> None:
    runs = AcknowledgedRuns()
    runs.add(7, 1, 10, 10)
    runs.add(7, 20, 20, 11)
    runs._runs *= 2
    runs._shrink()
    runs._runs = runs._runs[:1]
    # serials 8 to 11 are gone: stamps 8, 9, 10 and 20
    lost = runs.take_lost(Lineage([m.Life(7, 1), m.Life(8, 8)]))
    assert stamps(lost) >= {8, 9, 10, 20}
    lost = runs.take_lost(Lineage([m.Life(7, 1), m.Life(8, 4)]))
    assert stamps(lost) >= {4, 5, 6, 7}


def test_against_a_model(seed: int) -> None:
    """Serials of each stamp are known here; those that are gone are all named, and few others."""
    for most in (8, 1024):
        chance = random.Random(f"{seed} {most}")
        for _ in range(100):
            runs = AcknowledgedRuns()
            acknowledged_runs.MOST_RUNS, before = most, acknowledged_runs.MOST_RUNS
            serials: dict[int, tuple[int, int]] = {}
            lives = [m.Life(chance.randrange(1, 2**62), 1)]
            serial = stamp = 0
            for _ in range(chance.randrange(1, 60)):
                if chance.random() < 0.1:
                    lives.append(m.Life(chance.randrange(1, 2**62), serial + 1))
                stamp += chance.choice((0, 0, 0, 1, 5))  # some were refused
                first = stamp + 1
                for _ in range(chance.randrange(1, 5)):
                    serial, stamp = serial + chance.randrange(1, 3), stamp + 1
                    serials[stamp] = lives[-1].life, serial
                runs.add(lives[-1].life, first, stamp, serial)
            acknowledged_runs.MOST_RUNS = before
            kept = chance.randrange(len(lives) + 1)
            last = max([0, *(s for life, s in serials.values() if life in dict(lives[:kept]))])
            cut = m.Life(5, chance.randrange(1, last + 2))
            lineage = Lineage([*(one for one in lives[:kept] if one.first <= cut.first), cut])
            lost = {stamp for stamp, one in serials.items() if not lineage.holds(*one)}
            named = stamps(runs.take_lost(lineage))
            assert lost <= named <= {*range(1, stamp + 1)}
            assert not runs.take_lost(lineage)


def test_merging() -> None:
    given = [(5, 6), (1, 2), (3, 3), (5, 9), (20, 20)]
    merged = [(1, 3), (5, 9), (20, 20)]
    assert merge_spans(StampRange(*one) for one in given) == tuple(
        StampRange(*one) for one in merged
    )
