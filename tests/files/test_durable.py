"""Files are complete or absent, and synced; no temporary files are left."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tidings.files import (
    durable,
    move_aside,
    place_file,
    placing,
    remove_folder,
    replace_file,
    sync_handle,
    write_file,
)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_file_is_replaced_whole(tmp_path: Path, hidden: bool) -> None:
    path = tmp_path / "state"
    replace_file(path, b"old", hidden=hidden)
    replace_file(path, b"new", hidden=hidden)
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_data_is_synced_before_the_rename_and_the_name_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def fsync(handle: int) -> None:
        calls.append(Path(f"/proc/self/fd/{handle}").readlink().name)

    def replace(self: Path, target: Path) -> None:
        calls.append(f"{self.name} -> {target.name}")
        os.rename(self, target)  # noqa: PTH104  pathlib's own is what is patched

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    replace_file(tmp_path / "state", b"new")
    assert calls == ["state.new", "state.new -> state", tmp_path.name]
    calls.clear()
    replace_file(tmp_path / "state", b"new", hidden=True)
    assert calls == [".state.new", ".state.new -> state", tmp_path.name]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    write_file(path, b"old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["state"]


def test_a_placed_file_has_its_mode_and_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run"
    before = os.umask(0o077)
    try:
        place_file(path, b"#!/bin/sh\n", 0o755)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    with suppress(KeyboardInterrupt), placing(path) as beside:
        beside.write_bytes(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"#!/bin/sh\n"
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_data_alone_is_synced_by_its_own_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append("fsync"))
    monkeypatch.setattr(os, "fdatasync", lambda handle: calls.append("fdatasync"))
    with (tmp_path / "log").open("wb") as file:
        sync_handle(file.fileno())
        sync_handle(file.fileno(), data_only=True)
    assert calls == ["fsync", "fdatasync"]


def test_what_is_moved_aside_keeps_its_files_and_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    for text in ("a", "b"):
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "file").write_text(text)
        monkeypatch.setattr(durable, "sync", synced.append)
        place = move_aside(tmp_path / "one", tmp_path / "kept" / "aside")
        assert place.name.startswith("one.")
        assert (place / "file").read_text() == text
        assert synced[-2:] == [place.parent, tmp_path]
    assert len([*(tmp_path / "kept" / "aside").iterdir()]) == 2
    assert synced[:2] == [tmp_path, tmp_path / "kept"]  # the new folders
    (tmp_path / "one").mkdir()
    assert move_aside(tmp_path / "one", tmp_path / "kept", "two") == tmp_path / "kept" / "two"


def test_a_folder_is_hidden_before_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_folder(tmp_path / "none")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "file").write_text("a")
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", lambda *_, **__: None)  # killed just before
        remove_folder(tmp_path / "one")
    (rest,) = tmp_path.iterdir()
    assert rest.name.startswith(".")
    remove_folder(rest)
    assert [*tmp_path.iterdir()] == []
