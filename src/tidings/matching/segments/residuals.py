"""Evaluate residuals, to find which of the remaining pairs of an event and a box match.

Pairs come in runs; all pairs of a run have the same box. A term is evaluated once for all runs that
test it:

    term of one attribute     on its distinct values: by Arrow, or else by Python
    term of several           on the remaining events: by Arrow
    all others, wide filters  event by event, on the pairs that have passed so far

A term that only a few pairs test is also evaluated event by event, because computing it for all
rows would cost more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters.canonical import is_opaque, reads
from tidings.filters.language import Expression, attributes_of, evaluate, term_value
from tidings.filters.values import Key, ValueSet, key, look
from tidings.matching.rank_space import columns
from tidings.matching.rank_space.arrow_evaluation import Columnar
from tidings.matching.rank_space.arrow_functions import TRUTH, NotColumnar
from tidings.matching.segments.segment import Rest, Segment
from tidings.model import Event

Array = npt.NDArray[Any]
Path = tuple[str, ...]
Use = tuple[int, int, ValueSet]  # pairs [first, last), and the values that pass
Run = tuple[int, int, Rest]  # pairs [first, last) with one box, and what must be evaluated for it
WORTH = 32  # Arrow computes this many values in the time that one evaluation takes
LEAST = 16  # the overhead of one call to Arrow, in evaluations
_OUTCOMES = [key(None), key(False), key(True)]


def passes(segment: Segment, rest: Rest, event: Event, values: dict[str, Key]) -> bool:
    """Whether the remaining conditions of a box are true for one event; `values` caches the values
    of terms."""
    if rest.form is not None:
        look()
        return rest.form.holds(event, values)
    return all(_value(segment, text, event, values) in allowed for text, allowed in rest.tests)


def _value(segment: Segment, text: str, event: Event, values: dict[str, Key]) -> Key:
    if text not in values:
        values[text] = key(term_value(segment.opaque[text], event))
    return values[text]


def passing(segment: Segment, batch: pa.RecordBatch, events: Array, boxes: Array) -> Array:
    """For each pair of an event and a box (both uint32 [n]), whether it passes, as bool [n]."""
    kept = np.ones(len(events), bool)
    uses: dict[str, list[Use]] = {}
    left: list[Run] = []
    for first, last in _runs(boxes):
        rest = segment.rest[int(boxes[first])]
        left.append((first, last, rest))
        for text, allowed in rest.tests:
            uses.setdefault(text, []).append((first, last, allowed))
    demands = {text: sum(last - first for first, last, _ in some) for text, some in uses.items()}
    asked = [text for text, demand in demands.items() if demand >= LEAST]
    if asked:
        seen = np.zeros(batch.num_rows, bool)
        seen[events] = True
        places = (np.cumsum(seen) - 1)[events]
        residuals = Residuals(batch, np.flatnonzero(seen))
        done = set()
        for text in asked:
            outcomes = residuals.outcomes(segment.opaque[text], demands[text])
            if outcomes is not None:
                done.add(text)
                _keep(kept, outcomes, places, uses[text])
        left = list(_without(left, done))
    _check_by_rows(segment, batch, left, events, kept)
    return kept


def _runs(boxes: Array) -> Iterator[tuple[int, int]]:
    ends = np.flatnonzero(boxes[1:] != boxes[:-1]) + 1
    return pairwise([0, *ends.tolist(), len(boxes)])


def _keep(kept: Array, outcomes: Array, places: Array, uses: list[Use]) -> None:
    for first, last, allowed in uses:
        right = np.array([outcome in allowed for outcome in _OUTCOMES])
        kept[first:last] &= right[outcomes[places[first:last]]]


def _without(runs: list[Run], done: set[str]) -> Iterator[Run]:
    """Remove the terms in `done` from the runs; leave out runs that have nothing left to test."""
    for first, last, rest in runs:
        tests = tuple(test for test in rest.tests if test[0] not in done)
        if rest.form is not None or len(tests) == len(rest.tests):
            yield first, last, rest
        elif tests:
            yield first, last, Rest(tests=tests)


def _check_by_rows(
    segment: Segment, batch: pa.RecordBatch, runs: list[Run], events: Array, kept: Array
) -> None:
    """Evaluate each remaining pair by the reference semantics, and update `kept`."""
    if not runs:
        return
    numbers, alive = events.tolist(), kept.tolist()
    needed = {numbers[at] for first, last, _ in runs for at in range(first, last) if alive[at]}
    rows = sorted(needed)
    paths = _paths(segment, runs)
    found = dict(zip(rows, columns.rows(batch, paths, np.array(rows, np.int64)), strict=True))
    values: dict[int, dict[str, Key]] = {event: {} for event in rows}
    for first, last, rest in runs:
        for at in range(first, last):
            if alive[at]:
                event = numbers[at]
                alive[at] = passes(segment, rest, found[event], values[event])
    kept[:] = alive


def _paths(segment: Segment, runs: list[Run]) -> set[Path]:
    texts = {text for _, _, rest in runs for text, _ in rest.tests}
    forms = [reads(rest.form) for _, _, rest in runs if rest.form is not None]
    return set().union(*forms, *(attributes_of(segment.opaque[text]) for text in texts))


class Residuals:
    """Evaluates conditions on the needed rows of a batch."""

    def __init__(self, batch: pa.RecordBatch, needed: Array) -> None:
        self._batch = batch
        self._needed = pa.array(needed)
        self._columns: dict[Path, Any] = {}
        self._together: Columnar | None = None
        self._distinct: dict[Path, tuple[Any, Array, Columnar]] = {}

    def outcomes(self, node: Expression, demand: int) -> Array | None:
        """For each needed row 0, 1 or 2 (unknown, false, true); None if the condition must be
        evaluated row by row.

        `demand` is the number of rows on which the condition would be evaluated.
        """
        if not is_opaque(node):  # a term for which no column was left, not a condition
            return None
        if columns.are_marked(node, self._batch):
            return None
        paths = sorted(attributes_of(node))
        for path in paths:
            if path not in self._columns:
                self._columns[path] = columns.attribute(self._batch, path).take(self._needed)
        if len(paths) == 1 and not pa.types.is_nested(self._columns[paths[0]].type):
            return self._by_distinct(node, paths[0], demand)
        if demand * WORTH < len(self._needed):
            return None
        if self._together is None:
            self._together = Columnar(self._columns, len(self._needed))
        return _outcomes(self._together, node)

    def _by_distinct(self, node: Expression, path: Path, demand: int) -> Array | None:
        if path not in self._distinct:
            self._distinct[path] = self._encode(path)
        values, indices, columnar = self._distinct[path]
        if demand * WORTH < len(values):
            return None
        found = _outcomes(columnar, node)
        if found is None:
            if demand < len(values):
                return None
            found = _by_python(node, path, values)
        outcomes: Array = found[indices]
        return outcomes

    def _encode(self, path: Path) -> tuple[Any, Array, Columnar]:
        """The distinct values of an attribute, with null last, and for each row the index of its
        value."""
        column = self._columns[path]
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        count = len(column.dictionary)
        places = pa.array([*range(count), None], pa.int64())
        values = column.dictionary.take(places)
        indices = np.asarray(column.indices.cast(pa.int64()).fill_null(count))
        return values, indices, Columnar({path: values}, count + 1)


def _outcomes(columnar: Columnar, node: Expression) -> Array | None:
    try:
        found = columnar.condition(node)
    except NotColumnar:
        return None
    if found.type != TRUTH:
        return np.zeros(len(found), np.uint8)
    numbers = found.cast(pa.uint8()).fill_null(255)
    outcomes: Array = np.asarray(numbers) + np.uint8(1)  # 255 + 1 becomes 0, which means unknown
    return outcomes


def _by_python(node: Expression, path: Path, values: Any) -> Array:
    numbers = {outcome: at for at, outcome in enumerate(_OUTCOMES)}
    found = [
        numbers[key(evaluate(node, columns.nest_value(path, value)))]
        for value in columns.in_python(values)
    ]
    return np.array(found, np.uint8)
