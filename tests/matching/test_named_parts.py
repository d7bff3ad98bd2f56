"""Named parts of filters and requests of many events, against the reference semantics."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from tests.filters import strategies
from tests.repeats import rounds

from tidings import Filter, Matcher, NotificationError, parse

FLIGHTS: list[dict[str, Any]] = [
    {"dest": "BOS", "delay": 70},
    {"dest": "LAX", "delay": 70},
    {"dest": "BOS", "delay": 5},
    {"dest": "BOS"},
]
BUSY = "named('late', delay > 60) OR named('near', dest = 'BOS')"


@pytest.fixture
def matcher() -> Matcher:
    made = Matcher(background=False)
    made.add_many([("ana", BUSY), ("ben", "delay > 60"), ("cy", f"NOT ({BUSY})")])
    return made


def test_parts_of_one_event(matcher: Matcher) -> None:
    assert matcher.match_parts(FLIGHTS[0]) == {"ana": ["late", "near"], "ben": []}
    assert matcher.match_parts(json.dumps(FLIGHTS[3])) == {"ana": ["near"]}
    assert matcher.match_parts({"dest": "LAX", "delay": 5}) == {"cy": []}
    matcher.replace("ana", "named('all', dest IS NOT NULL)")
    assert matcher.match_parts({"dest": "LAX"}) == {"ana": ["all"]}


def test_many_events(matcher: Matcher) -> None:
    found = matcher.match_many(FLIGHTS, parts=True)
    by_event = [sorted(map(str, ids)) for ids in found.by_event]
    assert by_event == [["ana", "ben"], ["ana", "ben"], ["ana"],
                                                       ["ana"]]  # fmt: skip
    assert found.by_filter == {"ana": [0, 1, 2, 3], "ben": [0, 1]}
    assert [one["ana"] for one in found.parts] == [["late", "near"], ["late"], ["near"], ["near"]]
    assert len(found) == 6
    assert matcher.match_many(FLIGHTS).parts == []
    table = matcher.match_many(pa.RecordBatch.from_pylist(FLIGHTS), parts=True)
    assert table.parts == found.parts
    assert matcher.match_many([]).by_event == []


def test_events_of_several_types_and_texts(matcher: Matcher) -> None:
    """A column has one type; a request has not."""
    mixed = [*FLIGHTS, {"dest": 5, "delay": "late"}, '{"delay": 61.5}']
    found = matcher.match_many(mixed, parts=True)
    assert found.parts[:4] == matcher.match_many(FLIGHTS, parts=True).parts
    assert found.parts[4:] == [{}, {"ana": ["late"], "ben": []}]
    for bad in ("[]", "{", 5):
        with pytest.raises(NotificationError, match=r"^event 2: "):
            matcher.match_many([{}, {"dest": 1}, bad, {"dest": "x"}])


def test_a_saved_matcher_keeps_names(matcher: Matcher, tmp_path: Any) -> None:
    matcher.save(tmp_path / "m")
    opened = Matcher.open(tmp_path / "m", background=False)
    assert opened.match_parts(FLIGHTS[0]) == {"ana": ["late", "near"], "ben": []}
    assert opened.match_many(FLIGHTS, parts=True).parts[2] == {"ana": ["near"]}


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.usefixtures("engine")
def test_random_parts_are_true_where_the_reference_says_so(seed: int, declared: bool) -> None:
    rng = random.Random(f"{seed} {declared}")
    for _ in rounds(3, 40):
        schema = strategies.schema(rng, dotted=not declared)
        writer = strategies.Writer(rng, schema, declared=declared)
        attributes = schema.attributes() if declared else None
        events = [strategies.event(rng, schema) for _ in range(12)]
        made: dict[int, tuple[str, dict[str, Filter]]] = {}
        matcher = Matcher(attributes, background=False)
        for id_ in range(12):
            texts = [writer.filter(1) for _ in range(3)]
            conditions = {f"p{at}": parse(text, attributes=attributes)
                          for at, text in enumerate(texts)}  # fmt: skip
            joined = rng.choice([" OR ", " AND "]).join(
                f"{rng.choice(['', 'NOT '])}named('p{at}', {text})" for at, text in enumerate(texts)
            )
            matcher.add(id_, joined)
            made[id_] = joined, conditions
        plain = {id_: parse(joined, attributes=attributes) for id_, (joined, _) in made.items()}
        expected = [
            {
                id_: [name for name, part in made[id_][1].items() if part.matches(event)]
                for id_, one in plain.items()
                if one.matches(event)
            }
            for event in events
        ]
        assert [matcher.match_parts(event) for event in events] == expected
        assert matcher.match_many(events, parts=True).parts == expected
