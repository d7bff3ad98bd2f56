"""Filters of a log or a snapshot that are refused now are left out, and the others go on."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest
from tests.channel.related_world import Clause, Want
from tests.channel.test_related_nodes import NEAR, RelatedRoot
from tests.cli.conftest import app
from typer.testing import CliRunner

from tidings import Matcher
from tidings.filters import Attributes
from tidings.filters.values import regular
from tidings.snapshots import Snapshot
from tidings.spark.loading.log_snapshots import ASIDE, compile_version, home_of, list_set_aside
from tidings.spark.pipeline.subscription_source import FixedSubscriptions, FollowedSubscriptions
from tidings.spark.tagging.worker import view_of
from tidings.store import ChangeLog

LONG = "s RLIKE 'aaaaaaaaaaaaaaaaaaaa'"
ROWS = pa.record_batch({"s": ["a" * 30, "b", None], "n": [1, 2, 3]})


@pytest.fixture
def stricter(monkeypatch: pytest.MonkeyPatch) -> object:
    """A rule that becomes stricter when it is called."""

    def change() -> None:
        monkeypatch.setattr(regular, "MAX_PATTERN", 10)
        regular.forget()

    yield change
    regular.forget()


def told(followed: FollowedSubscriptions, version: int) -> list[list[str]]:
    found = view_of(followed.pin(version)).subscriptions(ROWS).to_pylist()
    return [sorted(ids) for ids in found]


@pytest.mark.parametrize("columns", [None, Attributes({"s": "string", "n": "integer"})])
def test_a_pipeline_starts_without_them(
    tmp_path: Path, stricter: object, caplog: pytest.LogCaptureFixture, columns: Attributes | None
) -> None:
    log = ChangeLog(tmp_path, columns)
    log.put_many({"ana": "n > 0", "old": LONG, "ben": "n > 1"})
    assert told(FollowedSubscriptions(tmp_path, columns), 3) == [
        ["ana", "old"],
        ["ana", "ben"],
        ["ana", "ben"],
    ]
    log.put("late", LONG + " OR n = 7")
    stricter()  # type: ignore[operator]
    for made in home_of(tmp_path).iterdir():  # as of an earlier release
        made.rename(made.with_name(f"{made.name[:20]}-000000000000"))
    with caplog.at_level(logging.WARNING):
        followed = FollowedSubscriptions(tmp_path, columns)
    assert told(followed, 4) == [["ana"], ["ana", "ben"], ["ana", "ben"]]
    assert {one.id for one in list_set_aside(log)} == {"old", "late"}
    assert "'old' is set aside, because its filter is no longer accepted" in caplog.text
    log.put("ben", "n > 2")
    assert told(followed, 5) == [["ana"], ["ana"], ["ana", "ben"]]
    log.put("old", "n = 2")
    assert told(followed, 6) == [["ana"], ["ana", "old"], ["ana", "ben"]]
    assert [one.id for one in list_set_aside(log)] == ["late"]
    (line,) = [
        json.loads(line)
        for line in CliRunner()
        .invoke(app, ["subscriptions", "list", str(tmp_path), "--json"])
        .stdout.splitlines()
        if "refused" in line
    ]
    assert line["id"] == "late"
    assert "more than 10 characters" in line["refused"]
    shown = CliRunner().invoke(app, ["subscriptions", "list", str(tmp_path)]).stdout
    assert "now refused because" in shown


def test_one_that_comes_while_a_stream_runs(tmp_path: Path, stricter: object) -> None:
    log = ChangeLog(tmp_path)
    log.put("ana", "n > 0")
    log.put("old", LONG)  # by someone with an earlier release
    compile_version(log, 1, home_of(tmp_path))
    stricter()  # type: ignore[operator]
    assert told(FollowedSubscriptions(tmp_path), 2) == [["ana"]] * 3


@pytest.mark.parametrize("what", ["forgotten", "repaired", "altered", "no text", "missing"])
def test_they_are_found_though_nothing_tells_what_changed(
    tmp_path: Path, stricter: object, what: str
) -> None:
    log = ChangeLog(tmp_path, segment_bytes=1)
    for number in range(3):
        log.put(f"n{number}", f"n > {number}")
    FollowedSubscriptions(tmp_path)
    log.put("old", LONG)
    log.put("ana", "n > 0")
    log.put("ben", "n > 1")
    (snapshot,) = home_of(tmp_path).glob("[0-9]*")
    if what == "forgotten":
        log.forget_before(6)
    elif what == "repaired":
        last = sorted(tmp_path.glob("*.log"))[-2]
        last.write_bytes(last.read_bytes()[:-1] + b"\0")
        assert log.repair().problems
    elif what == "missing":
        (snapshot / ASIDE).unlink()
    else:
        (snapshot / ASIDE).write_bytes(b"[" if what == "altered" else b'[{"id":"\xff"}]')
    stricter()  # type: ignore[operator]
    assert [one.id for one in list_set_aside(log)] == ["old"]
    assert all("old" not in ids for ids in told(FollowedSubscriptions(tmp_path), log.version))
    shown = CliRunner().invoke(app, ["subscriptions", "list", str(tmp_path)])
    assert shown.exit_code == 0
    assert "now refused because" in shown.stdout


def test_a_snapshot_of_an_earlier_release_is_opened(tmp_path: Path, stricter: object) -> None:
    texts = {"ana": "n > 0", "old": LONG, "not": f"NOT ({LONG})", "or": f"{LONG} OR n = 3"}
    Snapshot.build(texts).save(tmp_path / "snapshot")
    matcher = Matcher()
    matcher.add_many(texts)
    matcher.save(tmp_path / "matcher")
    stricter()  # type: ignore[operator]
    opened = Matcher.open(tmp_path / "matcher")
    assert set(opened.set_aside) == {texts["old"], texts["not"], texts["or"]}
    for row in ROWS.to_pylist():
        assert set(opened.match(row)) <= {"ana", "or"}
        assert "ana" in opened.match(row)
    fixed = FixedSubscriptions(tmp_path / "snapshot")
    view = fixed.view(fixed.version)
    assert all("ana" in ids for ids in view.subscriptions(ROWS).to_pylist())


def test_related_nodes_are_skipped_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = RelatedRoot(tmp_path)
    exact = root.want(NEAR) - 1
    root.sync()
    root.journal.close()
    rows = pa.record_batch({"city": ["Chicago", "Evanston"], "late": [90, 90]})
    with caplog.at_level(logging.WARNING):
        followed = FollowedSubscriptions(root.path)
        assert view_of(followed.pin(followed.latest())).nodes(rows).to_pylist() == [[exact], []]
        root.open()  # the next one comes as a change since the snapshot
        later = root.want(Want((Clause(city=("Evanston",)),), 0.7)) - 1
        root.sync()
        root.journal.close()
        late = view_of(followed.pin(followed.latest()))
        assert late.nodes(rows).to_pylist() == [[exact], [later]]
        assert list_set_aside(ChangeLog(root.path)) == []
    assert "set aside" not in caplog.text
