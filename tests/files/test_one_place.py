"""Syncing, locking and the user's cache folder are written once, in the room `files`."""

from __future__ import annotations

from pathlib import Path

from tools.contracts import calls_of

import tidings

PACKAGE = Path(tidings.__file__).parent
SYNCS_AND_LOCKS = ("os.fsync", "os.fdatasync", "os.replace", "fcntl.")
# one of them is in each file that has such a call, however it imports it
WORDS = ("fsync", "fdatasync", "import os", "from os", "fcntl")


def test_no_other_room_syncs_locks_or_looks_for_the_cache_folder() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if path.is_relative_to(PACKAGE / "files"):
            continue
        calls: set[str] = set()
        if any(word in text for word in WORDS):  # parsing takes long
            calls = {name for _, name in calls_of(text) if name.startswith(SYNCS_AND_LOCKS)}
        found += [f"{path.relative_to(PACKAGE)}: {name}" for name in sorted(calls)]
        if "XDG_CACHE_HOME" in text:
            found.append(f"{path.relative_to(PACKAGE)}: XDG_CACHE_HOME")
    assert found == []
