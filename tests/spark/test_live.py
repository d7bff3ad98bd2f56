"""Subscriptions that a stream follows: any version that a batch was begun with can be had again."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.archives import unpack
from tests.damage import flip_bit
from tests.repeats import runs

from tidings.channel import Description
from tidings.filters import Attributes, parse
from tidings.matching.disk.manifest import SnapshotError
from tidings.model import AttributesError, FilterError
from tidings.snapshots import Snapshot
from tidings.spark.loading import background
from tidings.spark.loading.log_filters import Unfit
from tidings.spark.loading.log_snapshots import compile_version
from tidings.spark.pipeline.inputs import declare_columns, load_checked_view
from tidings.spark.pipeline.settings import (
    OutboxSettings,
    Rate,
    Settings,
    Subscriptions,
    load_settings,
)
from tidings.spark.pipeline.subscription_source import FollowedSubscriptions
from tidings.spark.tagging.worker import view_of
from tidings.store import ChangeLog, LogError
from tidings.store.declared import DeclarationError
from tidings.store.known_log import RequestedChange
from tidings.store.writer import PendingGroup

pytestmark = pytest.mark.usefixtures("forked")


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog(tmp_path / "log", segment_bytes=200)


def grow(log: ChangeLog, upto: int) -> None:
    for number in range(log.version + 1, upto + 1):
        log.put(f"s{number % 7}", f"price > {number}")


def members(followed: FollowedSubscriptions, version: int) -> list[str]:
    view = view_of(followed.pin(version))
    return sorted(view.ids.to_pylist())


def test_a_batch_goes_on_when_the_log_forgot_the_changes_since_the_snapshot(log: ChangeLog) -> None:
    grow(log, 3)
    followed = FollowedSubscriptions(log.path)
    grow(log, 40)
    log.forget_before(30)
    with pytest.raises(LogError):
        log.changes(3, 35)
    assert members(followed, 35) == sorted(map(str, log.subscriptions(35)))
    assert followed.pin(35).changes == ()
    assert [c.version for c in followed.pin(37).changes] == [36, 37]


def test_a_version_that_the_log_forgot_is_had_from_its_snapshot_or_not_at_all(
    log: ChangeLog,
) -> None:
    grow(log, 3)
    followed = FollowedSubscriptions(log.path)
    before = members(followed, 3)
    grow(log, 40)
    log.forget_before(30)
    assert members(followed, 3) == before
    for version in (2, 20):
        with pytest.raises(LogError, match="was dropped"):
            followed.pin(version)


def test_a_version_that_was_lost_is_noticed_and_later_ones_go_on(log: ChangeLog) -> None:
    """No batch takes what a repaired log has for the subscriptions that it began with."""
    grow(log, 6)
    followed = FollowedSubscriptions(log.path)
    compiled = members(followed, 6)
    grow(log, 9)
    last = max(log.path.glob("*.log"))
    os.truncate(last, last.stat().st_size - 1)
    with pytest.raises(LogError, match="can't be read"):
        _ = followed.version
    assert ChangeLog(log.path).repair().lost[-1][1] == 9
    with pytest.raises(LogError, match="the state at version 9 was lost when the log was repaired"):
        followed.pin(9)
    assert followed.version == 10
    assert members(followed, 6) == compiled  # it was compiled before, so it can be had
    assert followed.pin(10).changes == ()
    assert members(followed, 10) == sorted(map(str, log.subscriptions(10)))
    grow(log, 12)
    assert [change.version for change in followed.pin(12).changes] == [11, 12]


def test_the_snapshot_that_a_batch_begins_with_is_not_removed(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is done again may need one that others have long left behind."""
    monkeypatch.setattr(
        "tidings.spark.loading.background.subprocess.Popen", lambda *_args, **_more: None
    )
    grow(log, 2)
    followed = FollowedSubscriptions(log.path, rebuild_after=2)
    grow(log, 30)
    for version in (1, 10, 20, 25, 30):
        compile_version(log, version, followed.home)
    pinned = followed.pin(5)
    assert Snapshot.open(pinned.path).number == 2
    assert [number for number in (1, 2, 10) if number in followed._compiled_versions()] == [2, 10]


def test_a_snapshot_is_removed_at_one_stroke(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidings.spark.loading.background.subprocess.Popen", lambda *_args, **_more: None
    )
    # as if it was killed
    monkeypatch.setattr(
        "tidings.spark.loading.log_snapshots.shutil.rmtree", lambda *_args, **_more: None
    )
    grow(log, 30)
    followed = FollowedSubscriptions(log.path, rebuild_after=1)
    for version in (5, 10, 20):
        compile_version(log, version, followed.home)
    grow(log, 32)
    followed.pin(32)
    assert followed._compiled_versions() == [10, 20, 30]
    assert members(followed, 7) == sorted(map(str, log.subscriptions(7)))


def test_what_was_compiled_stays_when_it_is_compiled_again(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(log, 9)
    home = log.path / "snapshots"
    path = compile_version(log, 9, home)
    inode = path.stat().st_ino
    compile_version(log, 9, home)
    assert path.stat().st_ino == inode
    # two processes at once: both find none, the first one's stays
    exists = Path.exists
    looks = iter([False])
    monkeypatch.setattr(
        Path, "exists", lambda self: next(looks, True) if self == path else exists(self)
    )
    compile_version(log, 9, home)
    monkeypatch.undo()
    assert path.stat().st_ino == inode
    assert [one.name for one in home.iterdir()] == [path.name]


def test_what_dead_processes_left_goes_after_a_while(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidings.spark.loading.background.subprocess.Popen", lambda *_args, **_more: None
    )
    grow(log, 3)
    followed = FollowedSubscriptions(log.path, rebuild_after=1)
    for name, age in ((".old", 2 * background.LEFT_OVER), (".new", 10.0)):
        folder = followed.home / name
        folder.mkdir()
        os.utime(folder, (time.time() - age,) * 2)
    grow(log, 5)
    followed.pin(5)
    assert not (followed.home / ".old").exists()
    assert (followed.home / ".new").exists()


def test_a_compilation_of_its_own_process(log: ChangeLog) -> None:
    grow(log, 3)
    followed = FollowedSubscriptions(log.path, rebuild_after=5)
    grow(log, 9)
    first = followed.pin(9)
    assert len(first.changes) == 6
    followed.close()
    second = followed.pin(9)
    assert second.changes == ()
    assert sorted(view_of(first).ids.to_pylist()) == sorted(view_of(second).ids.to_pylist())


WHOLE, BROKEN = Attributes({"x": "integer"}), Attributes({"x": "double"})
MORE = Attributes({"x": "integer", "y": "integer"})
ROWS = pa.record_batch({"x": [1.0, 1.5, 2.0, 3.0, 4.5]})


def told(followed: FollowedSubscriptions, version: int) -> list[list[str]]:
    return [sorted(ids) for ids in followed.view(version).subscriptions(ROWS).to_pylist()]


def test_an_attribute_that_is_declared_later(tmp_path: Path) -> None:
    ChangeLog(tmp_path, WHOLE).put("ana", "x > 1")
    FollowedSubscriptions(tmp_path, WHOLE).close()
    followed = FollowedSubscriptions(tmp_path, rebuild_after=1)
    assert ChangeLog(tmp_path).declare(MORE) == 2
    ChangeLog(tmp_path, MORE).put("ben", "y > 1")
    rows = pa.record_batch({"x": [0, 2], "y": [2, 0]})
    view = followed.view(3)
    assert view.subscriptions(rows).to_pylist() == [["ben"], ["ana"]]
    assert view.nodes(rows).to_pylist() == [[3], [1]]
    followed.close()  # what the process beside it compiled has the same attributes
    pinned = followed.pin(3)
    assert pinned.changes == ()
    assert Snapshot.open(pinned.path).attributes.to_declared() == MORE.to_declared()  # type: ignore[union-attr]
    assert view_of(pinned).subscriptions(rows).to_pylist() == [["ben"], ["ana"]]


def test_columns_that_are_not_those_of_the_channel(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path, WHOLE)
    log.put("ana", "x > 1")
    sentence = r"^'x' is double here, but the channel '.*' declares integer; correct it here, or"
    with pytest.raises(DeclarationError, match=sentence):
        FollowedSubscriptions(tmp_path, BROKEN)
    sentence = r"^'x' is integer and would become double; 1 filter does not fit the declaration: "
    with pytest.raises(DeclarationError, match=sentence + "the subscription 'ana': x > 1; drop it"):
        log.declare(BROKEN)
    log.drop("ana")
    assert log.declare(BROKEN) == 3
    FollowedSubscriptions(tmp_path, BROKEN).close()


@pytest.mark.parametrize(
    ("columns", "extra", "sentence"),
    [
        ('x = "integer"', "", ""),
        ("", "", ""),
        ('x = "integer"', 'extra = "refuse"', ""),
        ('x = "double"', "", "columns: 'x' is double here, but the channel {} declares integer;"),
        ('z = "date"', "", "columns: 'z' is given, but the channel {} does not declare it;"),
        ("", 'extra = "keep"', "columns: extra is 'keep' here, but the channel {} has 'refuse';"),
    ],
)
def test_columns_that_repeat_those_of_a_channel(
    tmp_path: Path, columns: str, extra: str, sentence: str
) -> None:
    """A channel at an address declares the columns; a file may repeat some of them."""
    address = "tidings://127.0.0.1:7400"
    file = tmp_path / "pipeline.toml"
    file.write_text(
        f'name = "n"\n{extra}\n[source]\nkind = "files"\npath = "in"\n[columns]\n{columns}\n'
        f'[subscriptions]\nchannel = "{address}"\n[outbox]\npath = "out"\n'
    )
    said = Description("n", 1, {"subject": "string", "x": "integer", "y": "date"}, "refuse")
    settings = load_settings(file)
    if sentence:
        expected = sentence.format(address) + " correct the file, or change the channel with `tid"
        with pytest.raises(DeclarationError) as caught:
            declare_columns(settings, said)
        assert str(caught.value).startswith(expected)
    else:
        found = declare_columns(settings, said)
        assert (found.columns, found.extra) == (said.attributes, "refuse")


def test_a_log_that_was_written_before_there_were_declarations(tmp_path: Path) -> None:
    """Subscriptions that share a node, and are two filters now, get nodes of the log."""
    log = ChangeLog(tmp_path)
    log.put_many({"gt1": "x > 1", "ge2": "x >= 2", "in": "x IN (1, 2, 3)"})
    shared = parse("x >= 2").key  # as if x had been an integer when they were put
    log._writer._known = None
    group = PendingGroup([RequestedChange("gt1", "x > 1", shared)])
    log._writer.commit([group])
    assert log.subscriptions()["gt1"] == ("x > 1", 2)
    followed = FollowedSubscriptions(tmp_path, BROKEN)
    expected = [["in"], ["gt1"], ["ge2", "gt1", "in"], ["ge2", "gt1", "in"], ["ge2", "gt1"]]
    assert log.last_declaration.version == 5
    assert log.version == 6
    assert told(followed, 6) == expected
    assert {id_: node for id_, (_, node) in log.subscriptions().items()} == {
        "ge2": 2, "in": 3, "gt1": 6,
    }  # fmt: skip
    with pytest.raises(Unfit, match=r"the subscription 'gt1' shares a node with another one, but"):
        followed.pin(4)
    followed.close()


def test_filters_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put_many({"ana": "x > 1", "ben": "y > 1"})
    sentence = r"^there is no attribute 'y'; .*: the subscription 'ben': y > 1; drop it first"
    with pytest.raises(DeclarationError, match=sentence):
        FollowedSubscriptions(tmp_path, WHOLE)
    log.drop("ben")
    followed = FollowedSubscriptions(tmp_path, WHOLE)
    with pytest.raises(FilterError, match="there is no attribute 'y'"):
        log.put("ben", "y > 2")  # whoever puts it has the attributes of the channel
    log.put("ben", "x > 2")
    assert told(followed, log.version)[3] == ["ana", "ben"]
    followed.close()


@pytest.mark.parametrize("run", runs(1, 3))
def test_changes_and_declarations_are_like_a_fresh_compilation(
    tmp_path: Path, seed: int, run: int
) -> None:
    """Filters of an open channel, whose attributes are declared one after another: every number
    stays, and every version has the rows that each filter matches by itself."""
    rng = random.Random(f"{seed} declared {run}")
    texts = [f"{name} {sign} {n}" for name in "xyz" for sign in (">", ">=", "<") for n in range(3)]
    texts += ["x IN (1, 2, 3)", "y BETWEEN 1 AND 3", "NOT (x <= 1)", "x > 1 AND z < 3"]
    types: dict[str, str] = {}
    log_path = tmp_path / "log"
    log = ChangeLog(log_path)
    log.put("s0", "x > 1")
    followed = FollowedSubscriptions(log_path)
    values: list[dict[str, int]] = [{name: rng.randrange(5) for name in "xyz"} for _ in range(20)]
    rows = pa.RecordBatch.from_pylist(values)
    for _ in range(25):
        known = log.subscriptions()
        id_, undeclared = f"s{rng.randrange(8)}", [name for name in "xyz" if name not in types]
        if undeclared and rng.random() < 0.2:
            types[rng.choice(undeclared)] = rng.choice(["integer", "double"])
            before = log.subscriptions()
            log.declare(Attributes(types, extra="open"))
            assert log.subscriptions() == before
        elif id_ in known and rng.random() < 0.3:
            ChangeLog(log_path).drop(id_)
        else:
            ChangeLog(log_path).put(id_, rng.choice(texts))
        version, now = followed.version, log.subscriptions()
        view = followed.view(version)
        declared = log.attributes
        filters = {id_: parse(text, attributes=declared) for id_, (text, _) in now.items()}
        found = [{*ids} for ids in view.subscriptions(rows).to_pylist()]
        assert found == [{id_ for id_, one in filters.items() if one.matches(row)}
                         for row in values]  # fmt: skip
        fresh = Snapshot.open(compile_version(followed.log, version, tmp_path / "fresh"))
        assert {*fresh.numbers.tolist()} <= {node for _, node in now.values()}
    followed.close()


def test_a_filter_that_was_dropped_is_in_nobodys_way(log: ChangeLog, tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    log.put("a", "price > 1")
    settings = Settings("x", Rate(), Subscriptions(log="log"), OutboxSettings("out"))
    schema = StructType([StructField("price", LongType())])
    load_checked_view(settings, schema, FollowedSubscriptions(log.path))
    log.put("b", "prise > 1")
    with pytest.raises(AttributesError, match="'prise', which the table does not have"):
        load_checked_view(settings, schema, FollowedSubscriptions(log.path))
    log.drop("b")
    assert len(load_checked_view(settings, schema, FollowedSubscriptions(log.path)).ids) == 1


@pytest.mark.parametrize("name", ["nodes.arrow", "index/entry_low.arrow"])
def test_a_damaged_snapshot_is_moved_aside_and_compiled_anew(
    log: ChangeLog, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    grow(log, 9)
    path = Path(FollowedSubscriptions(log.path).pin(9).path)
    flip_bit(path / name)
    followed = FollowedSubscriptions(log.path)
    assert members(followed, 9) == sorted(map(str, log.subscriptions(9)))
    (aside,) = (followed.home / "aside").iterdir()
    assert aside.name.startswith(path.name)
    assert "is corrupt" in caplog.text
    assert str(aside) in caplog.text


def test_a_worker_refuses_a_snapshot_that_was_altered(log: ChangeLog) -> None:
    grow(log, 9)
    pinned = FollowedSubscriptions(log.path).pin(9)
    flip_bit(Path(pinned.path) / "index" / "entry_box.arrow")
    with pytest.raises(SnapshotError, match=r"entry_box\.arrow is corrupt"):
        view_of(pinned)


def test_a_snapshot_under_the_name_of_another_version_is_moved_aside(log: ChangeLog) -> None:
    grow(log, 4)
    followed = FollowedSubscriptions(log.path)
    grow(log, 9)
    old = followed._path(4)
    old.rename(followed._path(8))
    assert members(followed, 9) == sorted(map(str, log.subscriptions(9)))
    assert len([*(followed.home / "aside").iterdir()]) == 1


def test_snapshots_of_the_format_before_are_compiled_anew(tmp_path: Path) -> None:
    unpack(Path(__file__).parents[1] / "store" / "before.tar.gz", tmp_path)
    columns = Attributes(
        {"dest": "string", "origin": "string", "dep_delay": "integer", "day": "date"}
    )
    followed = FollowedSubscriptions(tmp_path / "before" / "log", columns)
    kept = [(one / "manifest.json").read_text() for one in followed.home.glob("[0-9]*")]
    assert sum('"version": 3' in text for text in kept) == 1
    assert members(followed, 9) == sorted(map(str, followed.log.subscriptions(9)))
