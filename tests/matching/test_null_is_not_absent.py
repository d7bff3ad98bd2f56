"""Null and absence are two things in JSON: the same bytes get the same answer on every path.

null_events.py draws the events, and the filters with their oracles.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.matching.null_events import SCHEMA, SQL, draw_event, draw_filters
from tests.repeats import rounds

from tidings import Attributes, ContentGraph, Filter, parse
from tidings.channel.interests import ArrayInterests
from tidings.matching import Matcher
from tidings.model import NULL_MARK
from tidings.notifications import decode_json, without_marks
from tidings.routing.protocol import Limits


def decoded(matcher: Matcher, lines: list[bytes]) -> pa.RecordBatch:
    found = decode_json(pa.array(lines), SCHEMA, nulls=matcher.null_paths())
    assert not found.reasons
    return found.good


@pytest.mark.parametrize("background", [False, True], ids=["plain", "in the background"])
@pytest.mark.usefixtures("costly_engine")
def test_every_path_gives_the_answer_of_the_oracle(seed: int, background: bool) -> None:
    dice = random.Random(seed)
    drawn = draw_filters(dice, 150)
    filters = [parse(text, dialect) for dialect, text, _ in drawn]
    graph, sealed, fresh = ContentGraph(), Matcher(background=background), Matcher(background=False)
    root = ArrayInterests(limits=Limits(match_millis=10_000))
    for one in filters:
        graph.insert(one)
    sealed.add_many(enumerate(filters))
    sealed.merge()
    fresh.add_many(enumerate(filters))
    numbers = [root.place(one.sql().encode()).node for one in filters]
    events = [draw_event(dice) for _ in rounds(60, 150)]
    lines = [json.dumps(event).encode() for event in events]
    texts = [one.canonical().sql() for one in filters]
    batch = decoded(sealed, lines)
    rows = sealed.match_batch(batch).to_pylist()
    counts = sealed.match_counts(batch).tolist()
    told = 0
    for at, (event, line) in enumerate(zip(events, lines, strict=True)):
        wanted = {n for n, (_, _, is_wanted) in enumerate(drawn) if is_wanted(event)}
        told += len(wanted)
        for number, one in enumerate(filters):
            asked = (drawn[number][:2], texts[number], event)
            assert one.matches(event) is (number in wanted), asked
            assert one.form.holds(event) is (number in wanted), asked
            if at % 10 == 0:
                assert one.explain(event).matched is (number in wanted), asked
        found = set(graph.matching(event))
        assert {n for n, one in enumerate(filters) if graph.node(one) in found} == wanted, event
        for matcher in (sealed, fresh):
            assert set(matcher.match(event)) == wanted, event
            assert set(matcher.match(line)) == set(matcher.match(line.decode())) == wanted, event
        assert set(rows[at]) == wanted, event
        assert counts[at] == len(wanted), event
        lowest = set(root.tag(line))
        assert lowest <= {numbers[n] for n in wanted}, event
        assert bool(lowest) is bool(wanted), event
    assert told > 400


def test_the_fast_way_from_json_tells_them_apart() -> None:
    """Filters on several top-level attributes, all sealed: only these are decoded from the text."""
    matcher = Matcher(background=False)
    matcher.add_many(
        {"absent": "isabsent(a)", "null": "a IS NULL", "both": "isabsent(a) AND b = 1"}
    )
    matcher.merge()
    assert matcher._match_text('{"b": 1}') is not None
    assert set(matcher.match('{"b": 1}')) == {"absent", "both", "null"}
    assert set(matcher.match('{"a": null, "b": 1}')) == {"null"}
    assert set(matcher.match({"a": None, "b": 1})) == {"null"}
    assert set(matcher.match({"b": 1})) == {"absent", "both", "null"}


@pytest.mark.usefixtures("engine")
def test_declared_attributes_keep_the_difference(seed: int) -> None:
    dice = random.Random(seed)
    declared = Attributes(
        {"a": "string", "n": "integer", "s.x": "string", "s.y": "integer", "l": "list",
         "o": "list", "o.x": "string", "o.y": "integer", "m": "map<string, integer>",
         "p": "map<string, struct<x: string, y: integer>>"}
    )  # fmt: skip
    drawn = draw_filters(dice, 150)
    filters = [parse(text, dialect, attributes=declared) for dialect, text, _ in drawn]
    matcher = Matcher(declared, background=False)
    matcher.add_many(enumerate(filters))
    events = [draw_event(dice) for _ in range(100)]
    rows = matcher.match_batch(decoded(matcher, [json.dumps(e).encode() for e in events]))
    for event, ids in zip(events, rows.to_pylist(), strict=True):
        wanted = {n for n, (_, _, is_wanted) in enumerate(drawn) if is_wanted(event)}
        assert set(matcher.match(event)) == wanted, event
        assert set(matcher.match(json.dumps(event))) == wanted, event
        assert set(ids) == wanted, event


@pytest.mark.usefixtures("engine")
def test_a_snapshot_keeps_the_difference(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    drawn = draw_filters(dice, 100)
    matcher = Matcher(background=False)
    matcher.add_many((str(n), parse(t, d)) for n, (d, t, _) in enumerate(drawn))
    matcher.save(tmp_path / "saved")
    opened = Matcher.open(tmp_path / "saved")
    assert opened.null_paths() == matcher.null_paths()
    for _ in range(60):
        event = draw_event(dice)
        wanted = {str(n) for n, (_, _, is_wanted) in enumerate(drawn) if is_wanted(event)}
        assert set(opened.match(event)) == wanted, event


def test_a_pipeline_keeps_the_difference(seed: int, tmp_path: Path) -> None:
    """What a worker does with rows of JSON, without Spark around it."""
    from tidings.snapshots import Snapshot
    from tidings.spark.outbox.batches import batch_stages as stages
    from tidings.spark.tagging.worker import Pinned

    dice = random.Random(seed)
    drawn = draw_filters(dice, 100)
    snapshot = Snapshot.build({str(n): parse(t, d) for n, (d, t, _) in enumerate(drawn)})
    events = [draw_event(dice) for _ in range(100)]
    lines = [json.dumps(event) for event in events]
    serialized = SCHEMA.serialize().to_pybytes()
    stage = stages.Stage(Pinned("", 1), str(tmp_path), serialized, "json")
    rows = pa.RecordBatch.from_arrays([pa.array(lines)], ["value"])
    with stages._Files(str(tmp_path), 0, stage.filing) as files:
        stages._stage_batch(snapshot.view, SCHEMA, stage, rows, files)
        (file,) = files.finish().files
    found = pq.ParquetFile(tmp_path / file.name).read()
    added = ["_place", "version", "nodes", "_places", "subscriptions"]
    assert found.schema.names == [*SCHEMA.names, *added]  # and no marks
    assert found.select(SCHEMA.names).schema == SCHEMA
    wanted = [{str(n) for n, (_, _, is_wanted) in enumerate(drawn) if is_wanted(e)} for e in events]
    assert list(map(set, found["subscriptions"].to_pylist())) == [one for one in wanted if one]


@pytest.mark.usefixtures("engine")
def test_a_null_cell_of_a_table_is_absent(seed: int) -> None:
    """At the top level and in structs, also those in lists and maps. In a list null is an element,
    and in a map it is the value of a key."""
    dice = random.Random(seed)
    drawn = draw_filters(dice, 150)
    matcher = Matcher(background=False)
    matcher.add_many((n, parse(t, d)) for n, (d, t, _) in enumerate(drawn))
    events = [draw_event(dice) for _ in range(100)]
    batch = decode_json(pa.array([json.dumps(event) for event in events]), SCHEMA).good
    for event, ids in zip(events, matcher.match_batch(batch).to_pylist(), strict=True):
        seen = without_cells(event, pa.struct(list(SCHEMA)))
        wanted = [n for n, (_, _, is_wanted) in enumerate(drawn) if is_wanted(seen)]
        assert sorted(ids) == wanted, event


def without_cells(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        types = {field.name: field.type for field in kind}
        there = {name: one for name, one in value.items() if one is not None}
        return {name: without_cells(one, types[name]) for name, one in there.items()}
    if pa.types.is_map(kind):
        return {name: without_cells(one, kind.item_type) for name, one in value.items()}
    return (
        [without_cells(one, kind.value_type) for one in value] if pa.types.is_list(kind) else value
    )


# -- nobody else pays ----------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_marks_are_only_where_filters_need_them() -> None:
    matcher = Matcher(background=False)
    matcher.add("sql", "a IS NULL AND s.x = 'x' AND n > 1")
    matcher.add("pattern", parse('{"l": ["x"], "o": {"x": [{"prefix": "x"}]}}', "eventbridge"))
    assert matcher.null_paths() == frozenset()
    assert decoded(matcher, [b"{}"]).schema == SCHEMA
    matcher.add(
        "null", parse('{"s": {"x": [null]}, "o": {"y": [{"exists": true}]}}', "eventbridge")
    )
    assert matcher.null_paths() == {("s", "x"), ("o", "y")}
    lines = [b'{"s": {"x": null}}', b'{"s": {"y": 1}}']
    marked = decoded(matcher, lines)
    assert marked.schema.names == SCHEMA.names
    names = [field.name for field in marked.schema.field("s").type]
    assert names == ["x", "y", NULL_MARK + "x"]
    assert without_marks(marked).equals(decode_json(pa.array(lines), SCHEMA).good)


def test_codes_of_null_and_absent_are_one_unless_a_filter_tells_them_apart() -> None:
    from tidings.matching.segments.segment_builder import build_segment

    def ranks(text: str) -> Any:
        return build_segment([(0, parse(text).form)]).terms[0].ranks

    assert not ranks("a IS NULL").tells_null
    assert not ranks("a = 'x'").tells_null
    assert ranks("isabsent(a)").tells_null
    assert (ranks("isabsent(a)").absent, ranks("isabsent(a)").null) == (1, 2)


@pytest.mark.parametrize("text", [text for text, _ in SQL])
def test_a_filter_is_written_and_read_as_the_same(text: str) -> None:
    one: Filter = parse(text)
    assert parse(one.sql()) == one
    assert parse(one.canonical().sql()) == one


def test_identities_of_filters_that_do_not_tell_them_apart_are_as_before() -> None:
    """Only filters that tell null from absent have new bytes, so stored filters keep their keys."""
    assert parse("a IS NULL OR a = 1").key.hex() == "b955ef7bbfd1b908d06f8304caa240ee"
    assert parse("a IS NOT NULL").key.hex() == "ce9b138ee973bfa9f0ffdce9b048fef7"
