"""Judges what agents were told, by an oracle that shares no code with the chain: `Filter.matches`,
row by row, on filters in the dialect in which the agent wrote them.

An interest that is in force from the start must get every row that it matches. One that was added
at a time must get those of all batches that began later, and may get others. Each pair of interest
and row is due once.

Order: the rendezvous point numbers notifications as they are handed over, batch after batch, in the
order of the outbox. So serials must rise with the places in the outbox, and notifications must
come in the order of their serials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters import parse
from tidings.studies.chain.chain_rows import ATTRIBUTES, Interest, Row
from tidings.studies.chain.listener import digest_row

SHARE = 2_000  # rows between two reports of progress

Numbers = npt.NDArray[np.int64]
Told = npt.NDArray[np.void]


class Placed(msgspec.Struct, frozen=True):
    """Where each row is: arrays by the row's id; -1 for a row that is in no batch."""

    batch: Numbers
    place: Numbers  # in the order of the hand-over
    began: Numbers  # when its batch began, in microseconds


class Verdict(msgspec.Struct, frozen=True):
    """Counts of pairs of interest and row. Only `expected`, `delivered` and `optional` may be above
    0."""

    expected: int  # due
    delivered: int  # that came, and were due or allowed
    lost: int  # due, and never came
    doubled: int  # came again
    strays: int  # came, although the interest does not match the row
    altered: int  # came, with other contents than the row has
    misnumbered: int  # came, with a serial that is not in the order of the hand-over
    optional: int  # came, and were not due: before an interest was promised to hold
    out_of_order: int  # came later than one with a higher serial


class Oracle:
    """What each interest is due."""

    def __init__(self, rows: Sequence[Row], note: Callable[[float], None] = lambda _: None) -> None:
        self.rows = rows
        self._note = note
        self._known: dict[tuple[str, str], npt.NDArray[np.bool_]] = {}

    def match_all(self, interests: Sequence[Interest]) -> list[npt.NDArray[np.bool_]]:
        """For each interest, whether each row matches. Equal texts are asked once."""
        keys = [(one.dialect, one.text) for one in interests]
        for at, key in enumerate(dict.fromkeys(keys)):
            if key not in self._known:
                matches = parse(key[1], key[0], attributes=ATTRIBUTES).matches
                found = np.fromiter(map(matches, self.rows), bool, len(self.rows))
                self._known[key] = found
            self._note(at / len(keys))
        return [self._known[key] for key in keys]


def judge(
    rows: Sequence[Row],
    placed: Placed,
    wanted: Sequence[npt.NDArray[np.bool_]],
    since: Sequence[int],
    told: Told,
) -> Verdict:
    """`wanted` has the rows that each interest matches, and `since` when it was added, or 0. `told`
    is in the order of arrival for each interest."""
    digests = np.array([digest_row(row) for row in rows], np.int64)
    counts = dict.fromkeys(Verdict.__struct_fields__, 0)
    for number, (matched, at) in enumerate(zip(wanted, since, strict=True)):
        mine = told[told["interest"] == number]
        ids, serials = mine["id"], mine["serial"]
        known = (ids >= 0) & (ids < len(rows))
        counts["strays"] += int((~known).sum())
        mine, ids, serials = mine[known], ids[known], serials[known]
        times = np.bincount(ids, minlength=len(rows))
        due = matched & (placed.began > at) if at else matched
        counts["expected"] += int(due.sum())
        counts["delivered"] += int(((times > 0) & matched).sum())
        counts["lost"] += int((due & (times == 0)).sum())
        counts["doubled"] += int(np.maximum(times - 1, 0).sum())
        counts["strays"] += int(((times > 0) & ~matched).sum())
        counts["optional"] += int(((times > 0) & matched & ~due).sum())
        counts["altered"] += int((mine["digest"] != digests[ids]).sum())
        handed = np.argsort(placed.place[ids], kind="stable")
        counts["misnumbered"] += int((np.diff(serials[handed]) <= 0).sum())
        highest = np.maximum.accumulate(serials) if len(serials) else serials
        counts["out_of_order"] += int((serials < highest).sum())
    return Verdict(**counts)


def count_in_next_batch(
    placed: Placed, wanted: npt.NDArray[np.bool_], at: int, told: Told, number: int
) -> bool | None:
    """Whether an interest that was added at a time was told everything of the first batch that
    began later; None if there is nothing in it for the interest."""
    later = placed.began[(placed.began > at) & (placed.batch >= 0)]
    if not len(later):
        return None
    due = np.flatnonzero(wanted & (placed.began == later.min()))
    if not len(due):
        return None
    return bool(np.isin(due, told["id"][told["interest"] == number]).all())
