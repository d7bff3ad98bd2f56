"""Extracts revisions of a checkout of tidings, without changing the checkout."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem

WORKING_TREE = "."
"""The name of the working tree: the current files, committed or not."""

PACKAGE = "src/tidings/__init__.py"


class ComparedRevision(msgspec.Struct, frozen=True):
    """The name of a revision, and its commit, which is empty for the working tree."""

    name: str
    commit: str

    def __str__(self) -> str:
        if not self.commit:
            return "the working tree"
        is_hash = self.name.startswith(self.commit) or self.commit.startswith(self.name)
        return self.commit if is_hash else f"{self.name} ({self.commit})"


def checkout_of(folder: Path) -> Path:
    """The top folder of the checkout that contains a folder."""
    if not folder.is_dir():
        raise EnvironmentProblem(f"there is no folder {folder}")
    found = _git(folder, "rev-parse", "--show-toplevel")
    if found is None:
        raise EnvironmentProblem(f"{folder.resolve()} is not in a checkout of a git repository")
    return Path(found.decode().rstrip("\n"))


def find_revision(checkout: Path, name: str) -> ComparedRevision:
    """Find a revision by name; a revision without tidings is refused."""
    if name == WORKING_TREE:
        revision = ComparedRevision(name, "")
        there = (checkout / PACKAGE).is_file()
    else:
        # git would read a name that starts with a dash as an option.
        found = None if name.startswith("-") else _git(
            checkout, "rev-parse", "--verify", "--quiet", "--short", f"{name}^{{commit}}"
        )  # fmt: skip
        if not found:
            raise EnvironmentProblem(
                f"there is no revision {name!r} in {checkout}; "
                f"use '{WORKING_TREE}' for the working tree"
            )
        revision = ComparedRevision(name, found.decode().strip())
        there = _git(checkout, "cat-file", "-e", f"{revision.commit}:{PACKAGE}") is not None
    if not there:
        raise EnvironmentProblem(f"there is no {PACKAGE} in {revision} of {checkout}")
    return revision


def take_out(checkout: Path, revision: ComparedRevision, folder: Path) -> Path:
    """Copy the sources of a revision into a folder; return the path for PYTHONPATH."""
    if not revision.commit:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(checkout / "src", folder / "src", ignore=ignored)
        return folder / "src"
    packed = _git(checkout, "archive", "--format=tar", revision.commit, "src")
    if packed is None:
        raise EnvironmentProblem(f"git can't export {revision} from {checkout}")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        if hasattr(tarfile, "data_filter"):  # early releases of Python 3.11 lack this filter
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    return folder / "src"


def _git(folder: Path, *arguments: str) -> bytes | None:
    """The output of git, or None if it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise EnvironmentProblem("comparing revisions needs git, which is not on PATH") from None
    return done.stdout if done.returncode == 0 else None
