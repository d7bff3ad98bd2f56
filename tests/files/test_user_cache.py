"""Where caches are, and what is copied to them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidings.files import copy_missing, user_cache_folder


@pytest.mark.skipif(sys.platform != "linux", reason="the variable is one of Linux")
def test_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert user_cache_folder("jars") == Path("/somewhere/tidings/jars")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/someone")
    assert user_cache_folder("jars") == Path("/home/someone/.cache/tidings/jars")
    assert user_cache_folder() == Path("/home/someone/.cache/tidings")


def test_files_that_are_there_already_stay(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "cache" / "here"
    source.mkdir()
    for name in ("a.nbi", "b.nbc", "notes.txt"):
        (source / name).write_text("shipped")
    folder.mkdir(parents=True)
    (folder / "a.nbi").write_text("mine")
    copy_missing(source, "*.nb?", folder)
    found = {one.name: one.read_text() for one in folder.iterdir()}
    assert found == {"a.nbi": "mine", "b.nbc": "shipped"}
    copy_missing(source, "*.nb?", tmp_path / "source" / "notes.txt" / "cache")  # says nothing
