"""Runs of publications: consecutive frames of one publisher in one buffer, as columns.

    buffer    [Publish a 7][Publish a 8][Publish a 9][Ask][Publish b 1] ...
    found     Run a 7-9                              one by one

A kernel reads the frames, which stay in the buffer. Single publications and short runs are read one
by one, because that is faster for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.envelopes import MAGIC
from tidings.routing.protocol.tags import FRONT
from tidings.routing.root.handover import TagColumns
from tidings.routing.root.records import PayloadColumns
from tidings.routing.root.runs.frame_columns import VALUES, Column

FEW = 8  # the publications of shorter runs are read one by one
MOST_ROWS = 1024  # the most publications of a run
BYTES = 1 << 20  # the most bytes in the frames of a run, unless a single frame has more

Numbers = npt.NDArray[np.int64]
_MAGIC = np.frombuffer(MAGIC, np.uint8)
_PAIR = b"\x92"  # the first byte of an array of two elements in MessagePack
_decode = msgspec.msgpack.Decoder(tuple[str, int]).decode


class Rows:
    """The frames of a run in a buffer; see frame_columns.py. `done` says how many of
    them were accepted or refused so far."""

    def __init__(self, buffer: bytes, columns: Numbers) -> None:
        self.buffer = buffer
        self.columns = columns
        self.done = 0


class Run(m.Message, frozen=True):
    """Publications of one publisher, in the order of arrival. A run is never sent over a link."""

    publisher: str
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows.columns)

    @property
    def is_done(self) -> bool:
        return self.rows.done >= len(self)

    @property
    def left(self) -> int:
        """How many publications are not done."""
        return len(self) - self.rows.done

    @property
    def size(self) -> int:
        """The approximate size in bytes of the attributes and payloads still to be processed."""
        rest = self.rows.columns[self.rows.done :]
        return int(rest[-1, Column.PAYLOAD_END] - rest[0, Column.CONTENT]) if len(rest) else 0

    def take_rest(self) -> list[m.Publish]:
        """The publications that are not done, as messages; afterwards, the whole run is done."""
        first, self.rows.done = self.rows.done, len(self)
        return [self.message(at) for at in range(first, len(self))]

    def contents(self, first: int, end: int) -> list[bytes]:
        """The attributes of some publications."""
        buffer, rows = self.rows.buffer, self.rows.columns[first:end]
        starts, ends = rows[:, Column.CONTENT].tolist(), rows[:, Column.CONTENT_END].tolist()
        return [buffer[start:stop] for start, stop in zip(starts, ends, strict=True)]

    @property
    def lacks_contents(self) -> bool:
        """Whether any of the publications has no attributes."""
        rows = self.rows.columns
        return bool((rows[:, Column.CONTENT] == rows[:, Column.CONTENT_END]).any())

    def drop_tags(self) -> None:
        """Treat all publications as if they were not tagged."""
        columns = self.rows.columns
        columns[:, Column.TAG_END] = columns[:, Column.TAG]

    def tags(self, first: int, end: int) -> tuple[int, TagColumns | None]:
        """Find the consecutive publications from `first` on whose tags have the same version;
        return the position after them, and their tags. If `first` has no tag, return the position
        after the publications without tags, and None."""
        rows = self.rows.columns[first:end]
        begins, ends = rows[:, Column.TAG], rows[:, Column.TAG_END]
        sizes = ends - begins
        tagged = (sizes >= FRONT) & (sizes % 8 == 0)
        many = _first_other(tagged)
        if not tagged[0]:
            return first + many, None
        buffer = self.rows.buffer
        places = zip(begins[:many].tolist(), ends[:many].tolist(), strict=True)
        data = b"".join([buffer[start:stop] for start, stop in places])
        words = np.frombuffer(data, "<i8")
        sizes = sizes[:many] // 8
        heads = np.cumsum(sizes) - sizes
        same = (words[heads] == words[0]) & (words[heads + 1] == words[1])
        many = _first_other(same)
        starts = np.zeros(many + 1, np.int64)
        np.cumsum(sizes[:many] - 2, out=starts[1:])
        is_node = np.ones(int(sizes[:many].sum()), bool)
        is_node[heads[:many]] = is_node[heads[:many] + 1] = False
        nodes = words[: len(is_node)][is_node].astype(np.int64)
        return first + many, TagColumns(int(words[0]), int(words[1]), starts, nodes)

    def write_bodies(self, first: int, end: int) -> PayloadColumns:
        """The bodies of some publications in one array, as `body_of` makes them. The bodies are
        copies, so the buffer need not be kept."""
        from tidings.routing.root.runs import run_kernels as kernels  # compiled

        rows = self.rows.columns[first:end]
        places = np.empty(len(rows) + 1, np.int64)
        data = np.frombuffer(self.rows.buffer, np.uint8)
        kernels.measure_bodies(data, rows, _MAGIC, places)
        found = np.empty(int(places[-1]), np.uint8)
        kernels.write_bodies(data, rows, _MAGIC, places, found)
        return PayloadColumns(places, found.tobytes())

    def find_large(self, least: int, most: int) -> list[int]:
        """The positions of the publications that are not done and whose payloads have between
        `least` and `most` bytes."""
        rest = self.rows.columns[self.rows.done :]
        sizes = rest[:, Column.PAYLOAD_END] - rest[:, Column.PAYLOAD]
        found = np.flatnonzero((sizes >= least) & (sizes <= most)) + self.rows.done
        return [*map(int, found)]

    def message(self, at: int) -> m.Publish:
        """The publication at a position, as a message."""
        buffer = self.rows.buffer
        row = self.rows.columns[at].tolist()
        subject, time = _decode(_PAIR + buffer[row[Column.SUBJECT] : row[Column.TIME_END]])
        return m.Publish(
            self.publisher,
            row[Column.STAMP],
            row[Column.UNSETTLED],
            buffer[row[Column.CONTENT] : row[Column.CONTENT_END]],
            buffer[row[Column.PAYLOAD] : row[Column.PAYLOAD_END]],
            row[Column.SHARES] == 1,
            subject,
            time,
            tag=buffer[row[Column.TAG] : row[Column.TAG_END]],
        )


def join_runs(runs: Sequence[Run]) -> Run:
    """Join several runs of one publisher into one run, without the publications that are done.
    Cost: a copy of the frames."""
    if len(runs) == 1:
        return runs[0]
    buffers, columns, at = list[bytes](), list[Numbers](), 0
    for run in runs:
        rest = run.rows.columns[run.rows.done :]
        if len(rest):
            first, end = int(rest[0, Column.NAME]), int(rest[-1, Column.TAG_END])
            buffers.append(run.rows.buffer[first:end])
            moved = rest + (at - first)
            moved[:, VALUES] = rest[:, VALUES]
            columns.append(moved)
            at += end - first
    return Run(runs[0].publisher, Rows(b"".join(buffers), np.concatenate(columns)))


def find_runs(buffer: bytes, starts: Sequence[int]) -> Iterator[tuple[int, Run | None]]:
    """Find the runs of publications in a buffer. Yields pairs in order: for a run, the position of
    its first frame and the run; for a frame outside runs, its position and None."""
    from tidings.routing.root.runs import run_kernels as kernels  # compiled

    columns = np.empty((len(starts), len(Column)), np.int64)
    kinds = np.empty(len(starts), np.uint8)
    places = np.array(starts, np.int64)
    data, read = np.frombuffer(buffer, np.uint8), kernels.read_frames
    most = m.LONGEST_NAME, m.LONGEST_SUBJECT, m.MOST_TAG
    if read(data, places, *most, columns, kinds) < FEW:
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
            size = columns[first, Column.NAME] + BYTES
            upto = first + int(
                np.searchsorted(columns[first:end, Column.PAYLOAD_END], size, "right")
            )
            upto = min(max(upto, first + 1), first + MOST_ROWS, end)
            yield first, Run(name, Rows(buffer, columns[first:upto]))
            first = upto


def _first_other(flags: npt.NDArray[np.bool_]) -> int:
    """The position of the first flag that differs from the one at position 0; the number of flags
    if none does."""
    other = flags != flags[0]
    return int(np.argmax(other)) if other.any() else len(flags)


def _name(buffer: bytes, row: Numbers) -> str | None:
    """The publisher's name; None if it is not valid UTF-8. If the name is not valid, the usual
    decoder refuses the publication."""
    try:
        return buffer[row[Column.NAME] : row[Column.NAME_END]].decode()
    except UnicodeDecodeError:
        return None
