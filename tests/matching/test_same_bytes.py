"""The same bytes get the same answer from `match`, `match_batch`, a pipeline and a root, whatever
of them is declared: null is null and absent is absent on every path.

null_events.py draws the events, and the filters with their oracles.
"""

from __future__ import annotations

import json
import operator
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.matching.null_events import SCHEMA, Event, Wanted, draw_event, draw_filters
from tests.repeats import rounds

from tidings import Attributes, Matcher, NotificationError, Snapshot, parse
from tidings.channel.interests import ArrayInterests
from tidings.notifications import arrow_schema
from tidings.routing.protocol import Limits
from tidings.snapshots import View
from tidings.spark.outbox.batches import batch_stages as stages, open_fields
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
    return stage_lines(lines, Snapshot.build(filters | {ALL: parse("true")}).view, schema, folder)


def stage_lines(lines: list[bytes], view: View, schema: pa.Schema, folder: Path) -> list[set[str]]:
    stage = stages.Stage(Pinned("", 1), str(folder), b"", "json", extra="open")
    rows = pa.RecordBatch.from_arrays([pa.array(lines)], ["value"])
    with stages._Files(str(folder), 0, stage.filing) as files:
        stages._stage_batch(view, schema, stage, rows, files)
        staged = files.finish()
    assert staged.refused == 0
    found = pq.ParquetFile(folder / staged.files[0].name).read()
    added = ["_place", "version", "nodes", "_places", "subscriptions"]
    assert found.schema.names == [*schema.names, stages.EXTRA, *added]
    return [set(ids) - {ALL} for ids in found["subscriptions"].to_pylist()]


class Root:
    """A root, which tags notifications with the lowest nodes alone."""

    def __init__(self, drawn: Drawn, schema: pa.Schema) -> None:
        attributes = Attributes.from_arrow(schema, extra="open") if len(schema) else None
        self._interests = ArrayInterests(attributes, limits=Limits(match_millis=60_000))
        filters = [parse(text, dialect, attributes=attributes) for dialect, text, _ in drawn]
        self._nodes = [self._interests.place(one.sql().encode()).node for one in filters]

    def told(self, line: bytes) -> set[str]:
        found = above(self._interests, line)
        return {str(at) for at, node in enumerate(self._nodes) if node in found}


def above(interests: ArrayInterests, line: bytes) -> set[int]:
    """The lowest nodes that match, and all nodes that cover these."""
    todo = interests.tag(line)
    found = set(todo)
    while todo:
        more = set(interests.make_placed(todo.pop()).parents) - found
        found |= more
        todo += more
    return found


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.usefixtures("costly_engine")
def test_every_path_gives_the_answer_of_the_oracle(
    seed: int, declared: str, tmp_path: Path
) -> None:
    dice, schema = random.Random(seed), DECLARED[declared]
    drawn = draw_filters(dice, 120)
    events = [draw_event(dice) for _ in rounds(60, 120)]
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
    assert sum(map(len, expected)) > 500


@pytest.mark.parametrize("declared", ["parts", "nothing"])
@pytest.mark.usefixtures("costly_engine")
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
    plain, counts = open_fields.match_rows, list[int]()

    def match_rows(view: Any, rows: Any) -> Any:
        counts.append(len(rows))
        return plain(view, rows)

    monkeypatch.setattr(open_fields, "match_rows", match_rows)
    staging, root = staged(lines, drawn, schema, tmp_path), Root(drawn, schema)
    assert counts == [len(events)]
    for event, line, told in zip(events, lines, staging, strict=True):
        found = set(matcher.match(line))
        assert told == found == root.told(line) == set(matcher.match(event)), event


@pytest.mark.usefixtures("engine")
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


LONG = Attributes(
    {"x": "decimal(38, 20)", "w": "decimal(38, 0)", "d": "double", "l": "list<decimal(38, 20)>",
     "s": "struct<x: decimal(38, 20)>", "m": "map<string, decimal(38, 20)>"},
    extra="open",
)  # fmt: skip


def draw_number(dice: random.Random, whole: bool = False) -> str:
    """The text of a number of JSON: short, longer than a double, or next to another one."""
    number = dice.choice(("0.1", "0.10000000000000000001", "0.3", "0.30000000000000004", "12", "0"))
    if whole:
        number = str(dice.choice((5, 10**30, 10**30 + 1, 2**63, 2**53 + 1)))
    return dice.choice(("", "-")) + number + (dice.choice(("", "0")) if "." in number else "")


@pytest.mark.usefixtures("engine")
def test_declared_decimals_keep_all_their_digits(seed: int, tmp_path: Path) -> None:
    """As numbers of JSON too, which are doubles wherever no decimal is declared."""
    dice = random.Random(seed)

    def line() -> bytes:
        fields = {
            "x": draw_number(dice), "w": draw_number(dice, whole=True), "d": draw_number(dice),
            "l": f"[{draw_number(dice)}, null]", "s": f'{{"x": {draw_number(dice)}}}',
            "m": f'{{"k": {draw_number(dice)}}}', "u": draw_number(dice),
        }  # fmt: skip
        some = dice.sample(list(fields), dice.randint(1, len(fields)))
        return ("{" + ", ".join(f'"{name}": {fields[name]}' for name in some) + "}").encode()

    lines = [line() for _ in range(150)]
    terms = ["x", "w", "d", "s.x", "m.k", "any(l)", "u"]
    texts = [
        f"{term} {op} {draw_number(dice, whole=term == 'w')}"
        for term in terms
        for op in ("=", "<", ">=", "!=")
        for _ in range(3)
    ]
    schema = pa.schema([field for field in arrow_schema(LONG) if field.name != "subject"])
    matcher = Matcher(LONG, background=False)
    matcher.add_many((str(at), text) for at, text in enumerate(texts))
    root = ArrayInterests(LONG, limits=Limits(match_millis=60_000))
    nodes = [root.place(text.encode()).node for text in texts]
    view = Snapshot.build({str(at): text for at, text in enumerate(texts)} | {ALL: "true"}, LONG)
    told = stage_lines(lines, view.view, schema, tmp_path)
    for one, found in zip(lines, told, strict=True):
        exact = json.loads(one, parse_float=Decimal)
        expected = {str(at) for at, text in enumerate(texts) if judge(text, exact)}
        assert found == expected, one
        assert set(matcher.match(one)) == set(matcher.match(one.decode())) == expected, one
        reached = above(root, one)
        assert {str(at) for at, node in enumerate(nodes) if node in reached} == expected


def judge(text: str, event: dict[str, Any]) -> bool:
    """The oracle: fractions, and doubles where no decimal is declared."""
    term, op, right = text.rsplit(" ", 2)
    if term == "any(l)":
        values = event.get("l") or []
    else:
        value: Any = event
        for step in term.split("."):
            value = (value or {}).get(step)
        values = [value]
    ops = {"=": operator.eq, "<": operator.lt, ">=": operator.ge, "!=": operator.ne}
    wanted = rounded(right) if term == "d" else Fraction(right)
    there = [str(one) for one in values if one is not None]
    return any(
        ops[op](rounded(one) if term in ("d", "u") else Fraction(one), wanted) for one in there
    )


def rounded(text: str) -> Fraction:
    """Where the nearest double lies."""
    return Fraction(repr(float(text)))


@pytest.mark.usefixtures("engine")
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
