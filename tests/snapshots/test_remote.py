"""Snapshots and outboxes at addresses: in S3, as moto serves it, and with file://."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pytest
from tests.snapshots.buckets import serve_bucket
from tests.spark.test_outbox_reading import GRAINS, oracle, put, rows_of

from tidings import Snapshot, TidingsError
from tidings.files import local_path, open_place, scheme_of
from tidings.matching.disk import SnapshotError
from tidings.snapshots import identity_of
from tidings.spark.outbox import Outbox, OutboxReader
from tidings.spark.pipeline.settings import SettingsError, load_settings
from tidings.spark.tagging.tagging import place_snapshot
from tidings.spark.tagging.worker import Pinned, view_of
from tidings.store import ChangeLog

FILTERS = {"ana": "price > 5", "ben": "price > 5 AND city = 'Bonn'", "cy": "city = 'Rome'"}
EVENTS = pa.table({"price": [1, 6, 7], "city": ["Rome", "Bonn", None]})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    yield from serve_bucket()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tidings" / "snapshots"


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_snapshot_in_a_bucket(cache: Path, scheme: str) -> None:
    address = f"{scheme}://box/{scheme}/snapshot"
    built = Snapshot.build(FILTERS)
    built.save(address)
    opened = Snapshot.open(address)
    assert opened.nodes_by_id() == built.nodes_by_id()
    assert opened.subscriptions(EVENTS).to_pylist() == built.subscriptions(EVENTS).to_pylist()
    assert (opened.address, opened.path) == (address, cache / identity_of(address) / "snapshot")
    # tasks get the address, and find the copy
    assert place_snapshot(opened, None) == (opened, address)
    again, path = place_snapshot(address, None)
    assert path == address
    view = view_of(Pinned(path, again.number, identity=identity_of(path)))
    assert view.subscriptions(EVENTS).to_pylist() == built.subscriptions(EVENTS).to_pylist()
    # another one takes its place
    Snapshot.build({"dee": "price > 1"}).save(address)
    assert Snapshot.open(address).nodes_by_id() == {"dee": 1}
    assert opened.nodes_by_id() == built.nodes_by_id()
    assert len(list(cache.iterdir())) == 2


@pytest.mark.usefixtures("server")
def test_without_a_cache_there_is_one_copy_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every worker process uses it."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/none")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    address = "s3://box/uncached/snapshot"
    Snapshot.build(FILTERS).save(address)
    first, second = Snapshot.open(address), Snapshot.open(address)
    assert first.path == second.path
    home = tmp_path / f"tidings-{os.getuid()}" / "snapshots"
    assert first.path == home / identity_of(address) / "snapshot"
    assert [one.name for one in tmp_path.iterdir()] == [home.parent.name]
    assert second.subscriptions(EVENTS).to_pylist() == first.subscriptions(EVENTS).to_pylist()


@pytest.mark.usefixtures("server", "cache")
def test_a_snapshot_that_is_damaged_or_missing() -> None:
    with pytest.raises(SnapshotError, match=r"'s3://box/none' is not a snapshot"):
        Snapshot.open("s3://box/none")
    Snapshot.build(FILTERS).save("s3://box/bad")
    system, root = open_place("s3://box/bad")
    with system.open_output_stream(f"{root}/nodes.arrow") as sink:
        sink.write(b"x")
    with pytest.raises(SnapshotError, match=r"nodes.arrow has 1 bytes"):
        Snapshot.open("s3://box/bad")
    system.delete_file(f"{root}/index/manifest.json")
    with pytest.raises(SnapshotError, match="is not a snapshot"):
        Snapshot.open("s3a://box/bad")
    with pytest.raises(TidingsError, match="can't be opened: Unrecognized filesystem"):
        Snapshot.open("nowhere://box/bad")


@pytest.mark.usefixtures("server")
def test_an_outbox_in_a_bucket(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "out")
    put(outbox, 0, {GRAINS[0]: rows_of(1, 10)}, dead=1)
    target = "s3://box/out"
    with pytest.raises(TidingsError, match="there is no outbox in s3://box/out"):
        OutboxReader(target)
    copy_outbox(outbox)
    reader = OutboxReader("s3a://box/out")
    put(outbox, 1, {GRAINS[1]: rows_of(11, 2)})
    assert reader.refresh() == 1
    copy_outbox(outbox)
    assert reader.refresh() == 2
    rows = [
        row
        for commit in reader.commits()
        for file in reader.files(commit)
        for batch in reader.batches(file)
        for row in batch.to_pylist()
    ]
    assert rows == [{k: v for k, v in row.items() if k != "grain"} for row in oracle(outbox)]


def copy_outbox(outbox: Outbox) -> None:
    system, root = open_place("s3://box/out")
    pyarrow.fs.copy_files(
        str(outbox.path), root, pyarrow.fs.LocalFileSystem(), system, use_threads=False
    )


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    folder = tmp_path / "a b%"
    Snapshot.build(FILTERS).save(folder.as_uri())
    assert Snapshot.open(folder).nodes_by_id() == Snapshot.open(f"file:{folder}").nodes_by_id()
    assert identity_of(folder.as_uri()) == identity_of(folder)
    ChangeLog((tmp_path / "log").as_uri()).put("ana", "a > 1")
    assert ChangeLog(tmp_path / "log").version == 1
    assert local_path(Path("x/y"), "it") == Path("x/y")
    assert scheme_of("C:thing") == scheme_of("a:b") == scheme_of("file:///a") == ""
    assert scheme_of(Path("s3a://b/x")) == "s3a"
    with pytest.raises(TidingsError, match="expected file:///PATH"):
        local_path("file://host/a", "it")


@pytest.mark.parametrize("address", ["s3a://b/x", "hdfs://h:8020/x", "gs://b/x"])
def test_logs_and_outboxes_are_written_here_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (ChangeLog, Outbox):
        for given in (address, Path(address)):
            with pytest.raises(TidingsError, match=r"expected a local path"):
                make(given)
    file = tmp_path / "p.toml"
    for at, name in enumerate(("out", "log", "check", "in")):
        text = PIPELINE
        text = text.replace(f'"{name}"', f'"{address}"')
        file.write_text(text)
        with pytest.raises(SettingsError, match="expected a local path") as found:
            load_settings(file)
        assert "\n" not in str(found.value), at
    file.write_text(PIPELINE.replace('log = "log"', f'snapshot = "{address}"'))
    settings = load_settings(file)
    assert settings.place(settings.subscriptions.snapshot or "") == address
    assert list(tmp_path.iterdir()) == [file]  # nothing is made, as a folder `s3a:` once was


PIPELINE = """
name = "p"
checkpoint = "check"
[source]
kind = "files"
path = "in"
[columns]
a = "integer"
[subscriptions]
log = "log"
[outbox]
path = "out"
"""
