"""Judges what agents received. The judge is an oracle that shares no code with the chain: it calls
`Filter.matches` for each row, on filters in the dialect in which the agent wrote them.

An interest that is in force from the start must receive every row that it matches. An interest that
is added later must receive the matching rows of all batches that begin after it was added, and may
receive matching rows of earlier batches. Each pair of an interest and a row is due once.

The rendezvous point numbers notifications in the order in which they are handed over: batch after
batch, in the order of the outbox. So serials must increase in the order of the outbox, and
notifications must arrive in the order of their serials.

Rows that are published in addition to those of the pipeline are judged in the same way: each is a
batch of its own, which begins when it is published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters import parse
from tidings.studies.chain.chain_rows import ATTRIBUTES, FIRST_PUBLISHED, Row, WrittenInterest
from tidings.studies.chain.listener import digest_row

SHARE = 2_000  # rows between two reports of progress

Numbers = npt.NDArray[np.int64]
DeliveredRows = npt.NDArray[np.void]


class RowPlaces(msgspec.Struct, frozen=True):
    """The place of each row, as arrays by the id of the row; -1 for a row that is in no batch."""

    batch: Numbers
    place: Numbers  # the index of the row in the order of the hand-over
    began: Numbers  # the time at which its batch began, in microseconds


class ChainVerdict(msgspec.Struct, frozen=True):
    """Counts of pairs, each of an interest and a row. Only `expected`, `delivered` and `optional`
    may be above 0."""

    expected: int  # pairs that had to arrive
    delivered: int  # pairs that arrived, and were due or allowed
    lost: int  # pairs that were due and did not arrive
    doubled: int  # repeated arrivals of a pair
    strays: int  # pairs that arrived although the interest does not match the row
    altered: int  # pairs that arrived with contents that differ from the row
    misnumbered: int  # pairs that arrived with a serial that is not in the order of the hand-over
    optional: int  # pairs that arrived but were not due: the interest came after the batch began
    out_of_order: int  # pairs that arrived after a notification with a higher serial

    def __add__(self, other: ChainVerdict) -> ChainVerdict:
        mine, theirs = msgspec.structs.asdict(self), msgspec.structs.asdict(other)
        return ChainVerdict(**{name: mine[name] + theirs[name] for name in mine})


class RowOracle:
    """Finds the rows that each interest matches."""

    def __init__(self, rows: Sequence[Row], note: Callable[[float], None] = lambda _: None) -> None:
        self.rows = rows
        self._note = note
        self._known: dict[tuple[str, str], npt.NDArray[np.bool_]] = {}

    def match_all(self, interests: Sequence[WrittenInterest]) -> list[npt.NDArray[np.bool_]]:
        """For each interest, whether each row matches. Interests with equal texts are evaluated
        once."""
        keys = [(one.dialect, one.text) for one in interests]
        for at, key in enumerate(dict.fromkeys(keys)):
            if key not in self._known:
                matches = parse(key[1], key[0], attributes=ATTRIBUTES).matches
                found = np.fromiter(map(matches, self.rows), bool, len(self.rows))
                self._known[key] = found
            self._note(at / len(keys))
        return [self._known[key] for key in keys]


def find_times(rows: Sequence[Row]) -> Numbers:
    """When each row was given to the source or published, in microseconds."""
    return np.array([row["made"] for row in rows], np.int64)


def count_due(wanted: Sequence[npt.NDArray[np.bool_]], began: Numbers, since: Sequence[int]) -> int:
    """The number of pairs of an interest and a row that are due."""
    return sum(int(_due(one, began, at).sum()) for one, at in zip(wanted, since, strict=True))


def _due(matched: npt.NDArray[np.bool_], began: Numbers, at: int) -> npt.NDArray[np.bool_]:
    return matched & (began > at) if at else matched


def judge(
    rows: Sequence[Row],
    placed: RowPlaces,
    wanted: Sequence[npt.NDArray[np.bool_]],
    since: Sequence[int],
    told: DeliveredRows,
) -> ChainVerdict:
    """Judge all deliveries. `wanted` holds the rows that each interest matches. `since` holds the
    time at which each interest was added, or 0. `told` is in the order of arrival for each
    interest."""
    digests = np.array([digest_row(row) for row in rows], np.int64)
    counts = dict.fromkeys(ChainVerdict.__struct_fields__, 0)
    for number, (matched, at) in enumerate(zip(wanted, since, strict=True)):
        mine = told[told["interest"] == number]
        ids, serials = mine["id"], mine["serial"]
        known = (ids >= 0) & (ids < len(rows))
        counts["strays"] += int((~known).sum())
        mine, ids, serials = mine[known], ids[known], serials[known]
        times = np.bincount(ids, minlength=len(rows))
        due = _due(matched, placed.began, at)
        counts["expected"] += int(due.sum())
        counts["delivered"] += int(((times > 0) & matched).sum())
        counts["lost"] += int((due & (times == 0)).sum())
        counts["doubled"] += int(np.maximum(times - 1, 0).sum())
        counts["strays"] += int(((times > 0) & ~matched).sum())
        counts["optional"] += int(((times > 0) & matched & ~due).sum())
        counts["altered"] += int((mine["digest"] != digests[ids]).sum())
        handed = np.argsort(placed.place[ids], kind="stable")
        counts["misnumbered"] += int((np.diff(serials[handed]) <= 0).sum())
    return ChainVerdict(**counts)


def judge_published(
    rows: Sequence[Row],
    wanted: Sequence[npt.NDArray[np.bool_]],
    since: Sequence[int],
    told: DeliveredRows,
) -> ChainVerdict:
    """Judge the deliveries of rows that were published, in the order of publishing."""
    order = np.arange(len(rows))
    mine = told.copy()
    mine["id"] -= FIRST_PUBLISHED
    return judge(rows, RowPlaces(order, order, find_times(rows)), wanted, since, mine)


def count_out_of_order(told: DeliveredRows) -> int:
    """How many deliveries an interest received after a delivery with a higher serial."""
    count = 0
    for number in np.unique(told["interest"]):
        serials = told["serial"][told["interest"] == number]
        count += int((serials < np.maximum.accumulate(serials)).sum())
    return count


def count_in_next_batch(
    placed: RowPlaces, wanted: npt.NDArray[np.bool_], at: int, told: DeliveredRows, number: int
) -> bool | None:
    """Whether an interest that was added at the time `at` received all its rows of the first batch
    that began later; None if the interest matches no row of that batch."""
    later = placed.began[(placed.began > at) & (placed.batch >= 0)]
    if not len(later):
        return None
    due = np.flatnonzero(wanted & (placed.began == later.min()))
    if not len(due):
        return None
    return bool(np.isin(due, told["id"][told["interest"] == number]).all())
