"""Checkouts with a stand-in for tidings, whose speed is set by what it sleeps."""

from __future__ import annotations

import subprocess
from pathlib import Path

PACKAGE = """
import time
import numpy as np
import pyarrow as pa

class Matcher:
    def add_many(self, pairs):
        time.sleep({pause})
        self.ids = [id for id, _ in pairs][:{found}]
        self.count = len(pairs)

    def match(self, event):
        time.sleep({pause})
        return self.ids

    def match_pairs(self, events):
        time.sleep({pause})
        return np.repeat(np.arange(len(events)), len(self.ids)), np.tile(self.ids, len(events))

    def match_batch(self, events):
        time.sleep({pause})
        return pa.array([self.ids] * len(events), pa.list_(pa.int64()))

    def stats(self):
        return {{"index_bytes": {size} * self.count}}
"""


def package(pause: float = 0.002, found: int = 2, size: int = 40) -> str:
    """A package that takes `pause` seconds for everything and finds the first filters."""
    return PACKAGE.format(pause=pause, found=found, size=size)


def git(checkout: Path, *arguments: str) -> None:
    settings = {"user.name": "Ana", "user.email": "ana@example.org", "commit.gpgsign": "false"}
    given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    subprocess.run(
        ["git", "-C", str(checkout), *given, *arguments], check=True, capture_output=True
    )


def make_checkout(folder: Path, **revisions: str) -> Path:
    """A repository with a tag for each text of `src/tidings/__init__.py`."""
    source = folder / "src" / "tidings"
    source.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for tag, text in revisions.items():
        (source / "__init__.py").write_text(text)
        git(folder, "add", "src")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", tag)
        git(folder, "tag", tag)
    return folder
