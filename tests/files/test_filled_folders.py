"""Folders that several processes fill with the same content: one of them gets its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.files import filling_folder


def fill(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "file").write_text(text)


def test_a_folder_gets_its_place_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "jars"
    with filling_folder(path) as folder:
        fill(folder, "first")
        assert not path.exists()
    assert (path / "file").read_text() == "first"
    assert list(path.parent.iterdir()) == [path]


def test_the_folder_of_another_process_that_was_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "jars"
    with filling_folder(path) as folder:
        fill(folder, "second")
        fill(path, "first")
    assert (path / "file").read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def fill_half(path: Path) -> None:
    with filling_folder(path) as folder:
        fill(folder, "half")
        raise ValueError("no jar")


def test_nothing_is_left_of_a_block_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no jar"):
        fill_half(tmp_path / "jars")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_get_its_place_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "jars"
    path.write_text("a file")
    with pytest.raises(OSError, match="jars"), filling_folder(path) as folder:
        fill(folder, "new")
    assert list(tmp_path.iterdir()) == [path]
