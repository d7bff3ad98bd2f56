"""The same bytes get the same answer from `match`, `match_batch`, a pipeline and a root, whatever
of them is declared: null is null and absent is absent on every path.

null_events.py draws the events, and the filters with their oracles.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.matching.null_events import SCHEMA, Event, Wanted, draw_event, draw_filters

from tidings import Attributes, Matcher, NotificationError, Snapshot, parse
from tidings.channel.interests import ArrayInterests
from tidings.routing.protocol import Limits
from tidings.spark.outbox import open_fields, stages
from tidings.spark.tagging.worker import Pinned

Drawn = Sequence[tuple[str, str, Wanted]]

SHORT = pa.struct([("x", pa.string())])
PARTS = pa.schema([
    ("n", pa.int64()), ("s", SHORT), ("o", pa.list_(SHORT)), ("p", pa.map_(pa.string(), SHORT)),
])  # fmt: skip
DECLARED = {"all": SCHEMA, "parts": PARTS, "nothing": pa.schema([])}
ALL = "all"  # the id of a subscription that every row matches


def wanted(drawn: Drawn, event: Event) -> set[str]:
    return {str(at) for at, (_, _, is_wanted) in enumerate(drawn) if is_wanted(event)}


def staged(lines: list[bytes], drawn: Drawn, schema: pa.Schema, folder: Path) -> list[set[str]]:
    """What a worker of a pipeline tells whom, without Spark around it."""
    filters = {str(at): parse(text, dialect) for at, (dialect, text, _) in enumerate(drawn)}
    view = Snapshot.build(filters | {ALL: parse("true")}).view
    stage = stages.Stage(Pinned("", 1), str(folder), b"", "json", extra="open")
    rows = pa.RecordBatch.from_arrays([pa.array(lines)], ["value"])
    with stages._Files(str(folder), 0) as files:
        stages._stage_batch(view, schema, stage, rows, files)
    assert files.staged.refused == 0
    found = pa.ipc.open_file(str(folder / str(files.staged.rows))).read_all()
    assert found.schema.names == [*schema.names, stages.EXTRA, stages.NODES, stages.TOLD]
    return [set(ids) - {ALL} for ids in found[stages.TOLD].to_pylist()]


class Root:
    """A root, which tags notifications with the lowest nodes alone."""

    def __init__(self, drawn: Drawn, schema: pa.Schema) -> None:
        attributes = Attributes.from_arrow(schema, extra="open") if len(schema) else None
        self._interests = ArrayInterests(attributes, limits=Limits(match_millis=60_000))
        filters = [parse(text, dialect, attributes=attributes) for dialect, text, _ in drawn]
        self._nodes = [self._interests.place(one.sql().encode()).node for one in filters]

    def told(self, line: bytes) -> set[str]:
        """The filters of the lowest nodes, and of all nodes that cover these."""
        todo = self._interests.tag(line)
        found = set(todo)
        while todo:
            above = set(self._interests.placed(todo.pop()).parents) - found
            found |= above
            todo += above
        return {str(at) for at, node in enumerate(self._nodes) if node in found}


@pytest.mark.parametrize("declared", DECLARED)
def test_every_path_gives_the_answer_of_the_oracle(
    seed: int, declared: str, tmp_path: Path
) -> None:
    dice, schema = random.Random(seed), DECLARED[declared]
    drawn = draw_filters(dice, 120)
    events = [draw_event(dice) for _ in range(120)]
    lines = [json.dumps(event).encode() for event in events]
    expected = [wanted(drawn, event) for event in events]
    attributes = Attributes.from_arrow(schema, extra="open") if len(schema) else None
    matcher, root = Matcher(attributes, background=False), Root(drawn, schema)
    matcher.add_many((str(at), parse(t, d)) for at, (d, t, _) in enumerate(drawn))
    batch = matcher.match_batch(events).to_pylist()
    counts = matcher.match_counts(events).tolist()
    staging = staged(lines, drawn, schema, tmp_path)
    for at, (event, line) in enumerate(zip(events, lines, strict=True)):
        assert set(matcher.match(event)) == expected[at], event
        assert set(matcher.match(line)) == expected[at], event
        assert set(batch[at]) == expected[at], event
        assert counts[at] == len(expected[at]), event
        assert staging[at] == expected[at], event
        assert root.told(line) == expected[at], event
    assert sum(map(len, expected)) > 1000


@pytest.mark.parametrize("declared", ["parts", "nothing"])
def test_fields_of_several_types_too(
    seed: int, declared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such rows of a pipeline are matched one by one."""
    dice, schema = random.Random(seed), DECLARED[declared]
    drawn = draw_filters(dice, 80)
    events = [draw_event(dice) for _ in range(80)]
    for event in events:
        if "a" in event and dice.random() < 0.5:
            event["a"] = dice.choice((1, True, ["x", 1]))
    events += [{"a": 1}, {"a": "x"}]
    lines = [json.dumps(event).encode() for event in events]
    matcher = Matcher(background=False)
    matcher.add_many((str(at), parse(t, d)) for at, (d, t, _) in enumerate(drawn))
    with pytest.raises(NotificationError, match="the attribute 'a' has values of the types"):
        matcher.match_batch(events)
    plain, counts = open_fields._match_rows, list[int]()

    def match_rows(view: Any, rows: Any) -> Any:
        counts.append(len(rows))
        return plain(view, rows)

    monkeypatch.setattr(open_fields, "_match_rows", match_rows)
    staging, root = staged(lines, drawn, schema, tmp_path), Root(drawn, schema)
    assert counts == [len(events)]
    for event, line, told in zip(events, lines, staging, strict=True):
        found = set(matcher.match(line))
        assert told == found == root.told(line) == set(matcher.match(event)), event


def test_declared_attributes_of_a_list_of_mappings_are_read_as_by_match() -> None:
    """Texts inside structs too, and decimals, of which a column can hold what `read` makes of
    them: an integer, a double or neither."""
    declared = Attributes(
        {"user": "struct<age: integer>", "price": "decimal(38, 20)", "day": "date",
         "prices": "list<decimal(38, 20)>", "rates": "map<string, decimal(10, 2)>"}
    )  # fmt: skip
    matcher = Matcher(declared, background=False)
    matcher.add_many(
        {"old": "user.age >= 18", "above": "price > 0.1", "tenth": "price = 0.1",
         "day": "day = '2024-02-29'", "one": "array_contains(prices, 1)",
         "rate": "rates.eur = 1.5"}
    )  # fmt: skip
    events: list[Event] = [
        {"user": {"age": "18"}, "price": "0.1", "day": "2024-02-29"},
        {"user": {"age": 17}, "price": 1, "prices": ["1", 0.5], "rates": {"eur": "1.50"}},
        {"price": "0.10000000000000000001", "prices": [None, "0.10000000000000000001"]},
        {"price": None, "rates": {"eur": None}},
    ]
    expected = [{"old", "tenth", "day"}, {"above", "one", "rate"}, {"above"}, set()]
    assert [set(ids) for ids in matcher.match_batch(events).to_pylist()] == expected
    assert [set(matcher.match(event)) for event in events] == expected
    with pytest.raises(NotificationError, match=r"attribute 'user\.age': 'x' is not an integer"):
        matcher.match_batch([{"user": {"age": "x"}}])


def test_a_map_with_a_null_under_its_key_has_the_key() -> None:
    """In a table too: a map lacks the keys that are absent."""
    matcher = Matcher(background=False)
    matcher.add_many({"absent": "isabsent(m.k)", "null": "m.k IS NULL", "deep": "isabsent(s.m.k)"})
    kind = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("k", 1)], [("k", None)], [], None, [("j", 1)]], kind)
    struct = pa.StructArray.from_arrays([maps], ["m"])
    batch = pa.RecordBatch.from_arrays([maps, struct], ["m", "s"])
    expected = [set(), {"null"}, *[{"absent", "null", "deep"}] * 3]
    for first in range(5):  # slices have offsets
        found = matcher.match_batch(batch.slice(first)).to_pylist()
        assert [set(ids) for ids in found] == expected[first:]
