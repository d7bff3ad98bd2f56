"""Named workloads: filters and events for measuring matching, reproducible by seed.

    mixed     20 attributes, half strings by Zipf's law, half integers; 3 to 7 tests per filter
    equality  10 string attributes of 1000 values; 3 equalities per filter
    ranges    10 attributes of doubles; 3 to 6 ranges per filter, one in ten open at an end
    prefix    paths: a prefix, a suffix or a LIKE pattern, and an equality or two
    flights   flights that left New York in 2013, with subscriptions of six kinds

Published figures use `mixed` and `equality`; do not change them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model import EnvironmentProblem
from tidings.studies.workloads.conjunctions import (
    LIKE,
    PREFIX,
    SUFFIX,
    ConjunctionBuilder,
    Conjunctions,
    DrawnAttribute,
    concatenate,
    event_lines,
    glue,
)
from tidings.studies.workloads.draws import BLOCK, Array, blocks, draw_distinct, draw_zipf

_FILTERS, _EVENTS = 0, 1  # added to the seed, so that filters and events are drawn independently


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """The functions that draw a workload, block by block."""

    name: str
    summary: str
    attributes: Callable[[], tuple[DrawnAttribute, ...]]
    draw_filters: Callable[[np.random.Generator, int], Conjunctions]
    draw_events: Callable[[np.random.Generator, int], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """Filters and events. The id of a filter is its number."""

    name: str
    seed: int
    filters: Conjunctions
    events: pa.Table

    @property
    def attributes(self) -> tuple[DrawnAttribute, ...]:
        return self.filters.attributes

    def texts(self) -> Iterator[tuple[int, str]]:
        """The id and the SQL text of each filter."""
        return enumerate(self.filters.sql())

    def batches(self, size: int = BLOCK) -> list[pa.RecordBatch]:
        """The events as record batches of at most `size`."""
        whole = self.events.combine_chunks()
        return list(whole.to_batches(max_chunksize=size))

    def event_lines(self) -> list[bytes]:
        """Each event as a JSON object; null attributes are left out."""
        return event_lines(self.events)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write `filters.jsonl` and `events.jsonl`, one object per line."""
        filters, events = folder / "filters.jsonl", folder / "events.jsonl"
        with filters.open("wb") as file:
            file.writelines(line + b"\n" for line in self.filters.json_lines())
        with events.open("wb") as file:
            file.writelines(line + b"\n" for line in self.event_lines())
        return filters, events


def make_workload(name: str, filters: int, events: int, seed: int = 1) -> Workload:
    """Make the named workload with the given numbers of filters and events.

    With the same seed, a smaller workload is the beginning of a larger one.
    """
    recipe = RECIPES.get(name)
    if recipe is None:
        raise EnvironmentProblem(
            f"there is no workload {name!r}, expected one of: {', '.join(sorted(RECIPES))}"
        )
    if filters < 1 or events < 1:
        raise EnvironmentProblem("a workload needs at least one filter and one event")
    drawn = [
        recipe.draw_filters(rng, BLOCK).part(0, size)
        for rng, size in blocks(filters, seed, _FILTERS)
    ]
    batches = [
        recipe.draw_events(rng, BLOCK).slice(0, size) for rng, size in blocks(events, seed, _EVENTS)
    ]
    return Workload(name, seed, concatenate(drawn), pa.Table.from_batches(batches))


# -- mixed -----------------------------------------------------------------------------------------

MIXED_VALUES = 1000
MIXED_EXPONENT = 1.3
MIXED_TOP = 9999
MIXED_WIDEST = 2000


def _mixed_attributes() -> tuple[DrawnAttribute, ...]:
    return tuple(DrawnAttribute(f"a{a}", "integer" if a % 2 else "string") for a in range(20))


def _mixed_filters(rng: np.random.Generator, count: int) -> Conjunctions:
    weights = (np.arange(20) + 1.0) ** -0.6
    lengths = rng.integers(3, 8, count)
    drawn = draw_distinct(rng, weights, 7, count)
    values = draw_zipf(rng, MIXED_EXPONENT, MIXED_VALUES, drawn.size).reshape(drawn.shape)
    low = rng.integers(0, MIXED_TOP + 1, drawn.shape)
    high = np.minimum(MIXED_TOP, low + rng.integers(0, MIXED_WIDEST + 1, drawn.shape))
    names = _names("v", MIXED_VALUES)
    pile = ConjunctionBuilder(_mixed_attributes())
    for place in range(7):
        attribute = drawn[:, place]
        there, text = lengths > place, attribute % 2 == 0
        rows = np.flatnonzero(there & text)
        pile.equal(rows, attribute[rows], _take(names, values[rows, place]))
        rows = np.flatnonzero(there & ~text)
        pile.between(rows, attribute[rows], low[rows, place], high[rows, place])
    return pile.filters(count)


def _mixed_events(rng: np.random.Generator, count: int) -> Any:
    names = _names("v", MIXED_VALUES)
    columns = {}
    for attribute in _mixed_attributes():
        if attribute.kind == "string":
            ranks = draw_zipf(rng, MIXED_EXPONENT, MIXED_VALUES, count)
            columns[attribute.name] = _take(names, ranks)
        else:
            columns[attribute.name] = pa.array(rng.integers(0, MIXED_TOP + 1, count))
    return pa.RecordBatch.from_pydict(columns)


# -- equality --------------------------------------------------------------------------------------

EQUALITY_VALUES = 1000


def _equality_attributes() -> tuple[DrawnAttribute, ...]:
    return tuple(DrawnAttribute(f"a{a}", "string") for a in range(10))


def _equality_filters(rng: np.random.Generator, count: int) -> Conjunctions:
    drawn = draw_distinct(rng, np.ones(10), 3, count)
    values = rng.integers(0, EQUALITY_VALUES, drawn.shape)
    names = _names("v", EQUALITY_VALUES)
    pile = ConjunctionBuilder(_equality_attributes())
    for place in range(3):
        pile.equal(np.arange(count), drawn[:, place], _take(names, values[:, place]))
    return pile.filters(count)


def _equality_events(rng: np.random.Generator, count: int) -> Any:
    names = _names("v", EQUALITY_VALUES)
    return pa.RecordBatch.from_pydict(
        {
            attribute.name: _take(names, rng.integers(0, EQUALITY_VALUES, count))
            for attribute in _equality_attributes()
        }
    )


# -- ranges ----------------------------------------------------------------------------------------

RANGES_TOP = 1000.0
RANGES_WIDEST = 120.0
RANGES_DECIMALS = 3


def _ranges_attributes() -> tuple[DrawnAttribute, ...]:
    return tuple(DrawnAttribute(f"x{a}", "double") for a in range(10))


def _readings(rng: np.random.Generator, attribute: int, count: int) -> Array:
    """Draw the values of an attribute: uniform if the number of the attribute is even, or else
    around the middle of the range."""
    if attribute % 2:
        drawn = np.clip(rng.normal(RANGES_TOP / 2, RANGES_TOP / 8, count), 0, RANGES_TOP)
    else:
        drawn = rng.uniform(0, RANGES_TOP, count)
    return np.round(drawn, RANGES_DECIMALS)


def _ranges_filters(rng: np.random.Generator, count: int) -> Conjunctions:
    lengths = rng.integers(3, 7, count)
    drawn = draw_distinct(rng, np.ones(10), 6, count)
    centres = np.stack([_readings(rng, attribute, count) for attribute in range(10)], axis=1)
    widths = rng.uniform(0, RANGES_WIDEST, drawn.shape)
    ends = rng.integers(0, 20, drawn.shape)  # 0: no upper end, 1: no lower end
    pile = ConjunctionBuilder(_ranges_attributes())
    for place in range(6):
        rows = np.flatnonzero(lengths > place)
        attribute = drawn[rows, place]
        centre, half = centres[rows, attribute], widths[rows, place] / 2
        low, high = (np.round(side, RANGES_DECIMALS) for side in (centre - half, centre + half))
        low[ends[rows, place] == 1] = np.nan
        high[ends[rows, place] == 0] = np.nan
        pile.between(rows, attribute, low, high)
    return pile.filters(count)


def _ranges_events(rng: np.random.Generator, count: int) -> Any:
    return pa.RecordBatch.from_pydict(
        {
            attribute.name: pa.array(_readings(rng, number, count))
            for number, attribute in enumerate(_ranges_attributes())
        }
    )


# -- prefix ----------------------------------------------------------------------------------------

PREFIX_USERS = 1000
_METHODS = ("GET", "PUT", "POST", "DELETE")
_ENDINGS = ("csv", "json", "parquet", "txt", "log", "gz", "png", "bin")


def _prefix_attributes() -> tuple[DrawnAttribute, ...]:
    return tuple(DrawnAttribute(name, "string") for name in ("path", "user", "method"))


def _path_parts(rng: np.random.Generator, count: int) -> tuple[Any, ...]:
    """The parts of a path such as /data3/team14/run159/part26.csv."""
    return (
        _take(_names("data", 50), draw_zipf(rng, 1.5, 50, count)),
        _take(_names("team", 200), draw_zipf(rng, 1.3, 200, count)),
        _take(_names("run", 1000), rng.integers(0, 1000, count)),
        _take(_names("part", 100), rng.integers(0, 100, count)),
        _take(pa.array(_ENDINGS), draw_zipf(rng, 2.0, len(_ENDINGS), count)),
    )


def _draw_users(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    users = _take(_names("u", PREFIX_USERS), rng.integers(0, PREFIX_USERS, count))
    return users, _take(pa.array(_METHODS), draw_zipf(rng, 2.0, len(_METHODS), count))


def _prefix_filters(rng: np.random.Generator, count: int) -> Conjunctions:
    top, team, run, part, ending = _path_parts(rng, count)
    users, methods = _draw_users(rng, count)
    shapes = (
        (0.20, PREFIX, glue("/", top, "/")),
        (0.20, PREFIX, glue("/", top, "/", team)),
        (0.10, PREFIX, glue("/", top, "/", team, "/", run)),
        (0.15, SUFFIX, glue(".", ending)),
        (0.10, SUFFIX, glue("/", part, ".", ending)),
        (0.15, LIKE, glue("/", top, "/%.", ending)),
        (0.10, LIKE, glue("%/", team, "/%.", ending)),
    )
    shape = rng.choice(len(shapes), count, p=[share for share, _, _ in shapes])
    pile = ConjunctionBuilder(_prefix_attributes())
    for number, (_, operator, texts) in enumerate(shapes):
        rows = np.flatnonzero(shape == number)
        pile.pattern(rows, "path", operator, _take(texts, rows))
    pile.equal(np.arange(count), "user", users)
    rows = np.flatnonzero(rng.random(count) < 0.2)
    pile.equal(rows, "method", _take(methods, rows))
    return pile.filters(count)


def _prefix_events(rng: np.random.Generator, count: int) -> Any:
    top, team, run, part, ending = _path_parts(rng, count)
    users, methods = _draw_users(rng, count)
    paths = glue("/", top, "/", team, "/", run, "/", part, ".", ending)
    return pa.RecordBatch.from_pydict({"path": paths, "user": users, "method": methods})


# -- flights ---------------------------------------------------------------------------------------


def _flights_attributes() -> tuple[DrawnAttribute, ...]:
    from tidings.studies.workloads import flights

    return flights.attributes()


def _flights_filters(rng: np.random.Generator, count: int) -> Conjunctions:
    from tidings.studies.workloads import flights

    return flights.draw_filters(rng, count)


def _flights_events(rng: np.random.Generator, count: int) -> Any:
    from tidings.studies.workloads import flights

    return flights.draw_events(rng, count)


def _names(letter: str, count: int) -> Any:
    return pa.array([f"{letter}{number}" for number in range(count)])


def _take(values: Any, indexes: Array) -> Any:
    return values.take(pa.array(indexes))


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "mixed", "20 attributes, strings by Zipf's law and integers; 3 to 7 tests",
            _mixed_attributes, _mixed_filters, _mixed_events,
        ),
        Recipe(
            "equality", "10 string attributes of 1000 values; 3 equalities",
            _equality_attributes, _equality_filters, _equality_events,
        ),
        Recipe(
            "ranges", "10 attributes of doubles; 3 to 6 ranges",
            _ranges_attributes, _ranges_filters, _ranges_events,
        ),
        Recipe(
            "prefix", "paths: prefix, suffix or LIKE, and one or two equalities",
            _prefix_attributes, _prefix_filters, _prefix_events,
        ),
        Recipe(
            "flights", "flights from New York in 2013; subscriptions of six kinds",
            _flights_attributes, _flights_filters, _flights_events,
        ),
    )
}  # fmt: skip
"""The recipes, by name."""
