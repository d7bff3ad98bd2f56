"""Filters of any dialect in the change log: the text stays as it was written, with its dialect.
Logs without dialects are SQL."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from tidings import Attributes, FilterError, parse
from tidings.snapshots import Snapshot, VersionedSnapshot
from tidings.spark.loading.log_snapshots import compile_version, home_of, open_pending_changes
from tidings.store import ChangeLog
from tidings.store.journal.rows import Row, Rows, decode_rows, encode_rows, entry_of

PATTERN = '{ "state": ["on", {"prefix": "st"}],\n  "n": [{"numeric": [">", 5]}] }'
SQL = "n > 5 AND (state = 'on' OR state LIKE 'st%')"
CESQL = "EXISTS n AND state LIKE 'o_'"
TYPES = Attributes({"n": "integer", "state": "string"})


def fill(log: ChangeLog) -> None:
    log.put("sql", SQL)
    log.put("pattern", PATTERN, "eventbridge")
    log.put_many({"cesql": CESQL, "gone": CESQL}, "cesql")
    log.drop("gone")


def test_the_dialect_is_kept(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    fill(log)
    for one in (log, ChangeLog(tmp_path)):
        state = one.state()
        assert {id_: text for id_, (text, _) in state.subscriptions.items()} == {
            "sql": SQL, "pattern": PATTERN, "cesql": CESQL,
        }  # fmt: skip
        assert state.dialects == {"pattern": "eventbridge", "cesql": "cesql"}
        assert [change.dialect for change in one.changes(0)] == [
            "sql", "eventbridge", "cesql", "cesql", "sql",
        ]  # fmt: skip
    log.put("pattern", "n > 1")  # SQL again
    assert log.state().dialects == {"cesql": "cesql"}
    log.put("cesql", parse(PATTERN, "eventbridge"))  # a Filter is kept as SQL
    assert log.state().dialects == {}


def test_after_older_files_are_dropped_and_after_a_repair(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path, segment_bytes=200)
    fill(log)
    log.forget_before(log.version)
    assert ChangeLog(tmp_path).state().dialects == {"pattern": "eventbridge", "cesql": "cesql"}
    log.put("late", PATTERN, "eventbridge")
    for file in tmp_path.glob("*.log"):
        file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    done = log.repair()
    assert done.problems
    assert {"pattern", "cesql"} <= set(log.state().dialects)


def test_equal_filters_share_a_node_in_any_dialect(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path, TYPES)
    log.put("sql", SQL)
    log.put("pattern", PATTERN, "eventbridge")
    nodes = {node for _, node in log.subscriptions().values()}
    assert nodes == {1}


@pytest.mark.parametrize("attributes", [None, TYPES])
def test_pipelines_compile_and_follow_them(tmp_path: Path, attributes: Attributes | None) -> None:
    """Against each filter by itself. A null cell is absent."""
    log = ChangeLog(tmp_path, attributes)
    fill(log)
    path = compile_version(log, log.version, home_of(tmp_path))
    before = log.version
    log.put("later", '{"n": [1]}', "eventbridge")
    log.put("sql", "n < 3")
    pending = open_pending_changes(path, attributes)
    changes = pending.read(log.changes(before))
    state = log.state()
    current = {
        id_: parse(text, state.dialect(id_), attributes=attributes)
        for id_, (text, _) in state.subscriptions.items()
    }
    rows = [{"n": n, "state": state} for n in (1, 6, None) for state in ("on", "sting", "x", None)]
    events = [{name: one for name, one in row.items() if one is not None} for row in rows]
    live = VersionedSnapshot(Snapshot.open(path))
    live.apply(changes)
    view = live.view(log.version)
    found: list[list[str]] = []
    for _, _, matched in view.pieces(*view.match_places(pa.RecordBatch.from_pylist(rows))):
        found += view.subscription_lists(*matched).to_pylist()
    assert [set(ids) for ids in found] == [
        {id_ for id_, one in current.items() if one.matches(event)} for event in events
    ]
    assert {id_ for ids in found for id_ in ids} == {"sql", "pattern", "cesql", "later"}


def test_what_is_refused(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    with pytest.raises(FilterError, match="there is no dialect 'latin'"):
        log.put("a", "n > 5", "latin")
    with pytest.raises(FilterError, match="expected"):
        log.put("a", '{"n": 5}', "eventbridge")
    assert log.version == 0


def test_records_of_earlier_versions_are_sql() -> None:
    """The bytes that logs were written with before there were dialects."""
    before = msgspec.msgpack.encode((7, [("ana", "n > 5", 1, b"k" * 16), ("ben", None, 0, None)]))
    entries = [("ana", "n > 5", 1, b"k" * 16), ("ben", None, 0, None)]
    found = decode_rows(b"S" + before)
    assert found == Rows(7, [Row(*one) for one in entries])
    assert encode_rows(7, [entry_of(*one) for one in entries]) == [b"S" + before]
    assert len(entry_of("ana", PATTERN, 1, None, "eventbridge")) == 5
