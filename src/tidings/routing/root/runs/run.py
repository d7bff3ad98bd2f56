"""Runs of publications: consecutive frames of one publisher in one buffer, as columns.

    buffer    [Publish a 7][Publish a 8][Publish a 9][Ask][Publish b 1] ...
    found     Run a 7-9                              one by one

The frames are read by a kernel, and stay where they are. Single publications, and short runs, are
not worth it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tidings.routing.protocol import messages as m
from tidings.routing.root.records import PayloadColumns

FEW = 8  # shorter runs are read one by one
MOST_ROWS = 1024  # publications of a run, at most
BYTES = 1 << 20  # bytes of the frames of a run, unless a single one has more

Numbers = npt.NDArray[np.int64]


class Rows:
    """The frames of a run in a buffer; see run_kernels.py for the columns. `done` says how many
    were accepted or refused so far."""

    def __init__(self, buffer: bytes, columns: Numbers) -> None:
        self.buffer = buffer
        self.columns = columns
        self.done = 0


class Run(m.Message, frozen=True):
    """Publications of one publisher, in the order in which they came. It never travels."""

    publisher: str
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows.columns)

    @property
    def is_done(self) -> bool:
        return self.rows.done >= len(self)

    @property
    def left(self) -> int:
        """How many are not done."""
        return len(self) - self.rows.done

    @property
    def size(self) -> int:
        """Bytes of the attributes and payloads that are not done, roughly."""
        rest = self.rows.columns[self.rows.done :]
        return int(rest[-1, 7] - rest[0, 4]) if len(rest) else 0

    def contents(self, first: int, end: int) -> list[bytes]:
        """The attributes of some publications."""
        buffer, places = self.rows.buffer, self.rows.columns[first:end, 4:6].tolist()
        return [buffer[start:end] for start, end in places]

    def copy_payloads(self, first: int, end: int) -> PayloadColumns:
        """The payloads of some publications, one after the other. The buffer has their attributes
        too, and need not be kept."""
        from tidings.routing.root.runs import run_kernels as kernels  # compiled

        rows = self.rows.columns[first:end]
        places = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(rows[:, 7] - rows[:, 6], out=places[1:])
        found = np.empty(int(places[-1]), np.uint8)
        data, firsts = np.frombuffer(self.rows.buffer, np.uint8), rows[:, 6].copy()
        kernels.gather(data, firsts, places, found)
        return PayloadColumns(places, found.tobytes())

    def message(self, at: int) -> m.Publish:
        """One of the publications."""
        buffer = self.rows.buffer
        _, _, stamp, first, content, behind, payload, end = self.rows.columns[at].tolist()
        return m.Publish(self.publisher, stamp, first, buffer[content:behind], buffer[payload:end])


def join_runs(runs: Sequence[Run]) -> Run:
    """What is left of runs of one publisher, as one run. Cost: a copy of their frames."""
    if len(runs) == 1:
        return runs[0]
    buffers, columns, at = list[bytes](), list[Numbers](), 0
    for run in runs:
        rest = run.rows.columns[run.rows.done :]
        if len(rest):
            first, end = int(rest[0, 0]), int(rest[-1, 7])
            buffers.append(run.rows.buffer[first:end])
            moved = rest + (at - first)
            moved[:, 2:4] = rest[:, 2:4]
            columns.append(moved)
            at += end - first
    return Run(runs[0].publisher, Rows(b"".join(buffers), np.concatenate(columns)))


def find_runs(buffer: bytes, starts: Sequence[int]) -> Iterator[tuple[int, Run | None]]:
    """All frames of a buffer, in order: runs of publications, each with the position of its first
    frame, and for every other frame its position and None."""
    from tidings.routing.root.runs import run_kernels as kernels  # compiled

    columns = np.empty((len(starts), kernels.COLUMNS), np.int64)
    kinds = np.empty(len(starts), np.uint8)
    places = np.array(starts, np.int64)
    data = np.frombuffer(buffer, np.uint8)
    if kernels.read_frames(data, places, m.LONGEST_NAME, columns, kinds) < FEW:
        yield from ((at, None) for at in range(len(starts)))
        return
    breaks = np.flatnonzero(kinds != kernels.SAME)
    ends = np.append(breaks[1:], len(starts))
    for first, end in zip(breaks.tolist(), ends.tolist(), strict=True):
        name = _name(buffer, columns[first]) if end - first >= FEW else None
        if name is None:
            yield from ((at, None) for at in range(first, end))
            continue
        while first < end:
            most = columns[first, 0] + BYTES
            upto = first + int(np.searchsorted(columns[first:end, 7], most, "right"))
            upto = min(max(upto, first + 1), first + MOST_ROWS, end)
            yield first, Run(name, Rows(buffer, columns[first:upto]))
            first = upto


def _name(buffer: bytes, row: Numbers) -> str | None:
    """The publisher's name; None if it is not valid UTF-8, which the usual decoder refuses."""
    try:
        return buffer[row[0] : row[1]].decode()
    except UnicodeDecodeError:
        return None
