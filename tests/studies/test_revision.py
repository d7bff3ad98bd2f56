"""Revisions of a repository, and what is said of those that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.studies.fake_revisions import git, make_checkout

from tidings.model import EnvironmentProblem
from tidings.studies.compare.compared_revision import (
    ComparedRevision,
    checkout_of,
    find_revision,
    take_out,
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "checkout", one="x = 1", two="x = 2")


def read(source: Path) -> str:
    return (source / "tidings" / "__init__.py").read_text()


def test_revisions_are_taken_out_side_by_side(checkout: Path, tmp_path: Path) -> None:
    top = checkout_of(checkout / "src" / "tidings")
    assert top == checkout.resolve()
    (checkout / "src" / "tidings" / "__init__.py").write_text("x = 3")
    for name, text in {"one": "x = 1", "two": "x = 2", "HEAD~1": "x = 1", ".": "x = 3"}.items():
        folder = tmp_path / name.replace(".", "now")
        folder.mkdir()
        assert read(take_out(top, find_revision(top, name), folder)) == text


def test_a_revision_is_called_what_it_was_asked_for(checkout: Path) -> None:
    commit = find_revision(checkout, "one").commit
    assert str(find_revision(checkout, "one")) == f"one ({commit})"
    assert str(find_revision(checkout, commit)) == commit
    assert str(ComparedRevision(f"{commit}0000", commit)) == commit
    assert str(ComparedRevision(".", "")) == "the working tree"


@pytest.mark.parametrize("name", ["three", "", "--all", "one..two", "HEAD:src"])
def test_a_revision_that_is_not_there(checkout: Path, name: str) -> None:
    with pytest.raises(EnvironmentProblem, match="there is no revision"):
        find_revision(checkout, name)


def test_a_revision_without_tidings(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "other")
    (checkout / "src" / "other").mkdir()
    (checkout / "src" / "other" / "x.py").write_text("")
    git(checkout, "add", ".")
    git(checkout, "commit", "--message", "other")
    for name in ("HEAD", "."):
        with pytest.raises(EnvironmentProblem, match=r"no src/tidings/__init__\.py in "):
            find_revision(checkout, name)


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="is not in a checkout"):
        checkout_of(tmp_path)
    with pytest.raises(EnvironmentProblem, match="there is no folder"):
        checkout_of(tmp_path / "gone")


def test_without_git(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentProblem, match="git, which is not on PATH"):
        checkout_of(checkout)
