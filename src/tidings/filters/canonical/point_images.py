"""The values that computed terms can take in a box that restricts attributes to a few points.

In `name IN ('Bo', 'Al') AND lower(name) = 'bo'` the computed term is not needed: the filter means
`name = 'Bo'`. And `lower(name) = 'bo'` covers `name = 'BO'`, because `lower(name)` can be computed
for the point 'BO'.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

from tidings.filters.canonical.boxes import Box, WorkBudget
from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.expression import Attribute, Expression, attributes_of
from tidings.filters.language.foreign import null_paths
from tidings.filters.language.sql_writer import name_text
from tidings.filters.language.static_types import is_unbounded
from tidings.filters.values import sets
from tidings.filters.values.sets import Key, ValueSet
from tidings.model import ABSENT, from_micros

MOST_POINTS = 64  # the most combinations of points at which a term is computed
MOST_WORK = 1 << 15  # the most work for one term: 0.2 ms for a pattern
LEAST_WORK = 512  # the work charged for each computed test, even if the test is not evaluated
MOST_OF_UNION = 1 << 22  # the most work for all terms in all boxes of a filter
WORK_OF_STEP = 256  # the work that counts as one step of a WorkBudget
Path = tuple[str, ...]
Choices = tuple[list[Path], list[list[Any]], int]  # attributes, their values, and the work


def image(
    text: str, term: Expression, box: Box, effort: WorkBudget | None = None
) -> ValueSet | None:
    """The values that a computed term can take in a box; None if the box does not determine them,
    or if computing them is too much work. `text` is the text of the term."""
    chosen = _choose_points(text, term, box)
    if chosen is None:
        return None
    paths, choices, work = chosen
    if effort is not None and not effort.spend(work // WORK_OF_STEP):
        return None
    places = [_compute(term, paths, combination) for combination in product(*choices)]
    return sets.points(places) if all(p[0] != sets.OTHER for p in places) else None


def _choose_points(text: str, term: Expression, box: Box) -> Choices | None:
    """The points at which a term is computed. The work is the number of characters in all
    combinations times the length of the term, because a search may have to follow every position of
    a pattern for every character."""
    if isinstance(term, Attribute):
        return None
    names = _read_names.get(text)
    if names is None:
        names = _remember_names(text, term)
    for name in names:
        if name not in box:
            return None
    if is_unbounded(term):
        return None
    paths = sorted(attributes_of(term))
    choices: list[list[Any]] = []
    count, size = 1, 0
    for path in paths:
        values = box.get(name_text(path))
        if values is not None and values >= sets.NULL and path not in null_paths(term):
            # an absent value gives the term the same value as null does
            values = values - sets.IS_ABSENT
        points = values.points(MOST_POINTS) if values is not None else None
        if points is None:
            return None
        choices.append([value for place in points for value in values_at(place)])
        count *= len(choices[-1])
        size += max(len(one) if isinstance(one, str) else 1 for one in choices[-1])
        if count > MOST_POINTS or count * size * len(text) > MOST_WORK:
            return None
    # a struct can't be rebuilt from its fields alone; in sorted order, the struct comes right
    # before its fields
    if any(longer[: len(path)] == path for path, longer in pairwise(paths)):
        return None
    return paths, choices, count * size * len(text)


def is_too_much(union: Sequence[Box], terms: Mapping[str, Expression]) -> bool:
    """Whether evaluating all terms whose values follow from points takes more work than one filter
    is allowed."""
    if len(union) * len(terms) * MOST_WORK <= MOST_OF_UNION:
        return False
    computed = {text for text, term in terms.items() if not isinstance(term, Attribute)}
    work = sum(len(box.keys() & computed) for box in union) * LEAST_WORK
    for box in union:
        for text in box.keys() & computed:
            if work > MOST_OF_UNION:
                return True
            chosen = _choose_points(text, terms[text], box)
            work += 0 if chosen is None else chosen[2]
    return work > MOST_OF_UNION


# By the text of a computed term, the names that it reads; cached, because many boxes have the same
# terms.
_read_names: dict[str, tuple[str, ...]] = {}


def _remember_names(text: str, term: Expression) -> tuple[str, ...]:
    names = tuple(name_text(path) for path in attributes_of(term))
    if len(text) <= sets.LONGEST_REMEMBERED and len(names) <= 8:
        if len(_read_names) >= sets.MOST_REMEMBERED:
            _read_names.clear()
        _read_names[text] = names
    return names


def _compute(term: Expression, paths: list[Path], values: tuple[Any, ...]) -> Key:
    event: dict[str, Any] = {}
    for path, value in zip(paths, values, strict=True):
        if value is ABSENT:
            continue
        level = event
        for step in path[:-1]:
            level = level.setdefault(step, {})
        level[path[-1]] = value
    return sets.key(evaluate(term, event))


def values_at(place: Key) -> Iterator[Any]:
    """All values with one key. The key of 1 has an integer and a double; the key of 0 has an
    integer and the doubles 0.0 and -0.0; the key of a midnight has a date and a timestamp."""
    family, value = place[0], place[1]
    if family == sets.NO_VALUE:
        yield None if value else ABSENT
    elif family == sets.NAN:
        yield float("nan")
    elif family == sets.TIME:
        found = from_micros(value)
        yield found
        if not isinstance(found, dt.datetime):  # as text, a timestamp differs from a date
            yield dt.datetime(found.year, found.month, found.day, tzinfo=dt.UTC)
    else:
        yield value
        if family == sets.NUMBER and isinstance(value, int) and float(value) == value:
            yield float(value)
            if value == 0:
                yield -0.0


def settle(box: Box, terms: Mapping[str, Expression]) -> Box | None:
    """Remove the computed tests that the points of the box decide; None if no point passes them.

    A test that reads one attribute is removed, together with the points that fail it. The test
    stays if a point stands for several values (1 and 1.0) of which some pass and others fail. A
    test that reads several attributes is removed only if it always passes. Removing points can
    decide another test, so all tests are tried again until nothing changes; the order of the tests
    does not matter.
    """
    while True:
        out = dict(box)
        for text, allowed in box.items():
            possible = image(text, terms[text], out)
            if possible is None:
                continue
            if allowed >= possible:
                del out[text]
                continue
            if not possible & allowed:
                return None
            paths = attributes_of(terms[text])
            if len(paths) == 1:
                _keep_passing(out, text, terms[text], name_text(next(iter(paths))))
        if out == box:
            return out
        box = out


def _keep_passing(box: Box, text: str, term: Expression, attribute: str) -> None:
    kept: list[Key] = []
    decided = True
    for place in box[attribute].points() or []:
        found = image(text, term, {attribute: sets.points([place])})
        # the whole set has an image, so each of its points has an image too
        assert found is not None
        if found & box[text]:
            kept.append(place)
            decided = decided and box[text] >= found
    box[attribute] = sets.points(kept)
    if decided:
        del box[text]
