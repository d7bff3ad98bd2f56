"""The result of a backtest: how often each filter fired, when, and on which rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.model import TidingsError
from tidings.snapshots import Snapshot
from tidings.spark.backtests import backtest_plots
from tidings.spark.backtests.fire_counts import NEVER, FireCounts
from tidings.spark.backtests.time_buckets import TimeBucket

Array = npt.NDArray[Any]
Id = str | int
_TIME = pa.timestamp("s", "UTC")
_MICROS = pa.timestamp("us", "UTC")


class Sample(msgspec.Struct, frozen=True):
    """A row on which a filter fired; the time is None if it is not known."""

    time: np.datetime64 | None
    row: dict[str, Any]


class Fired(msgspec.Struct, frozen=True):
    """How often one filter fired."""

    id: Id
    filter: str
    total: int
    """The number of rows on which the filter fired, with and without a time."""
    untimed: int
    """The number of rows without a time on which the filter fired."""
    share: float
    """The total as a share of all rows."""
    mean: float
    """The mean number of times that the filter fired per time bucket with rows."""
    most: int
    """The number of times that the filter fired in the busiest time bucket."""
    busiest: np.datetime64 | None
    """The start of the busiest time bucket; if several are equally busy, of the first of them."""
    first: np.datetime64 | None
    last: np.datetime64 | None


class Backtest:
    """How often filters would have fired, over time.

    `result["an id"]` returns the figures of one filter. Only time buckets with rows are listed, in
    order; times are in UTC. Equal filters are counted once and reported for each id.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        tally: FireCounts,
        every: TimeBucket,
        time: str | None,
        shown: list[str],
    ) -> None:
        self.every = every
        """The length of a time bucket; `every.name` is its name."""
        self.time = time
        """The time column; None if the table has none."""
        self.shown = shown
        """The columns of samples."""
        self.rows = tally.rows
        """The number of rows read."""
        self.untimed = tally.rows - int(tally.stretch_rows.sum())
        """The number of rows without a time."""
        self.stretches: Array = every.starts(tally.stretches)
        """The starts of the time buckets: datetime64[s]."""
        self.stretch_rows = tally.stretch_rows
        """The number of rows in each time bucket."""
        self.refused = snapshot.refused
        """Filters that `errors="collect"` left out, by id, with the reason."""
        self.worker_peak = tally.peak
        """The peak memory of a Python worker, in bytes; 0 if it is not known."""
        self._tally = tally
        self._snapshot = snapshot
        sizes = np.diff(snapshot.view.member_starts)
        places = np.repeat(np.arange(len(sizes)), sizes)
        self._place: dict[Id, int] = dict(
            zip(snapshot.ids.to_pylist(), places.tolist(), strict=True)
        )
        self._totals = tally.counts.sum(axis=0, dtype=np.int64) + tally.untimed
        self.ids: list[Id] = sorted(self._place, key=_natural)
        """The ids of all filters, in order."""

    def __repr__(self) -> str:
        return (
            f"<Backtest: {len(self)} filters, {self.rows} rows, {len(self.stretches)} time "
            f"buckets of one {self.every.name}>"
        )

    def __len__(self) -> int:
        """The number of filters."""
        return len(self.ids)

    def never(self) -> list[Id]:
        """The ids of filters that can never fire, whatever the rows are, in order."""
        return sorted(self._snapshot.never(), key=_natural)

    def __getitem__(self, id_: Id) -> Fired:
        place = self._at(id_)
        counts = self._tally.counts[:, place]
        total, untimed = int(self._totals[place]), int(self._tally.untimed[place])
        busiest = int(counts.argmax()) if total > untimed else None
        return Fired(
            id_,
            self.text(id_),
            total,
            untimed,
            total / self.rows if self.rows else 0.0,
            (total - untimed) / len(counts) if len(counts) else 0.0,
            0 if busiest is None else int(counts[busiest]),
            None if busiest is None else self.stretches[busiest],
            _convert_micros(self._tally.first[place], total > untimed),
            _convert_micros(self._tally.last[place], total > untimed),
        )

    def text(self, id_: Id) -> str:
        """The text of a filter; equal filters share the text of the first."""
        return self._snapshot.matcher.filter(self._at(id_)).sql()

    def total(self, id_: Id) -> int:
        """The number of rows on which a filter fired."""
        return int(self._totals[self._at(id_)])

    def counts(self, id_: Id) -> Array:
        """How often a filter fired in each time bucket: int64."""
        return self._tally.counts[:, self._at(id_)]

    def fired_in_all(self) -> Array:
        """How often all filters together fired in each time bucket: int64."""
        members = np.diff(self._snapshot.view.member_starts)
        return self._tally.counts @ members

    def samples(self, id_: Id) -> list[Sample]:
        """The first rows on which a filter fired, in order."""
        found = self._tally.earliest.samples_of(self._at(id_))
        return [Sample(_convert_micros(time, time != NEVER), row) for time, row in found]

    def never_fired(self) -> list[Id]:
        """The filters that did not fire on any row."""
        return [id_ for id_ in self.ids if not self._totals[self._place[id_]]]

    def noisiest(self, most: int | None = None) -> list[Id]:
        """The filters that fired most often, the noisiest first; by default, all filters that
        fired."""
        fired = [id_ for id_ in self.ids if self._totals[self._place[id_]]]
        return sorted(fired, key=lambda id_: -self._totals[self._place[id_]])[:most]

    # -- tables and charts ---------------------------------------------------------------------

    def to_table(self) -> pa.Table:
        """One row for each filter and time bucket in which it fired: filter, start, fired."""
        return pa.Table.from_batches(map(self._cells, self.ids), _CELLS)

    def _cells(self, id_: Id) -> pa.RecordBatch:
        counts = self.counts(id_)
        at = np.flatnonzero(counts)
        return pa.RecordBatch.from_arrays(
            [
                pa.repeat(pa.scalar(str(id_), pa.string()), len(at)),
                pa.array(self.stretches[at]).cast(_TIME),
                pa.array(counts[at]),
            ],
            schema=_CELLS,
        )

    def summary(self) -> pa.Table:
        """One row for each filter, with the fields of `Fired`."""
        rows = [msgspec.structs.asdict(self[id_]) for id_ in self.ids]
        columns: dict[str, Any] = {}
        for field in _SUMMARY:
            values = [row[field.name] for row in rows]
            if field.name == "id":
                values = [str(value) for value in values]
            if pa.types.is_timestamp(field.type):
                whole = np.array(["NaT" if one is None else one for one in values], "M8[us]")
                columns[field.name] = pa.array(whole).cast(_MICROS)
            else:
                columns[field.name] = pa.array(values, field.type)
        return pa.table(columns, schema=_SUMMARY)

    def plot_text(self, width: int = 80, id_: Id | None = None) -> str:
        """A text chart of how often a filter fired over time; without an id, of all filters."""
        counts = self.fired_in_all() if id_ is None else self.counts(id_)
        return backtest_plots.chart(counts, self.stretches, self.every, width)

    def sparkline(self, id_: Id, width: int = 16) -> str:
        """A one-line text chart of how often a filter fired over time."""
        return backtest_plots.sparkline(self.counts(id_), self.stretches, self.every, width)

    def plot_png(self, path: str | Path, title: str | None = None) -> None:
        """Draw bars over time into a PNG file. The counts of several filters are added up; the ten
        noisiest filters also get a row each.

        Needs matplotlib, from the extra `plot`.
        """
        backtest_plots.draw(self, Path(path), title)

    def _at(self, id_: Id) -> int:
        if id_ not in self._place:
            raise TidingsError(f"there is no filter with the id {id_!r} in this backtest")
        return self._place[id_]


_CELLS = pa.schema([("filter", pa.string()), ("start", _TIME), ("fired", pa.int64())])
_SUMMARY = pa.schema(
    [
        ("id", pa.string()), ("filter", pa.string()), ("total", pa.int64()),
        ("untimed", pa.int64()), ("share", pa.float64()), ("mean", pa.float64()),
        ("most", pa.int64()), ("busiest", _MICROS), ("first", _MICROS), ("last", _MICROS),
    ]
)  # fmt: skip


def _convert_micros(micros: Any, known: bool) -> np.datetime64 | None:
    return np.datetime64(int(micros), "us") if known else None


def _natural(id_: Id) -> tuple[int, int, str]:
    """A sort key that puts 2 before 10, even if the ids are strings."""
    text = str(id_)
    return (0, int(text), "") if text.isdecimal() else (1, 0, text)
