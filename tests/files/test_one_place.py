"""Syncing, locking, moving and the user's cache folder are written once, in the room `files`."""

from __future__ import annotations

from pathlib import Path

from tools.contracts import calls_of

import tidings

PACKAGE = Path(tidings.__file__).parent
SYNCS_AND_LOCKS = ("os.fsync", "os.fdatasync", "os.replace", "fcntl.")
RENAMES = (".rename", "os.rename", "shutil.move")
# one of them is in each file that has such a call, however it imports it
WORDS = ("fsync", "fdatasync", "import os", "from os", "fcntl", ".rename(", "shutil")
# Files that rename by themselves, and why nothing in `files` does it.
RENAMING = {
    "spark/outbox/outbox.py": "files of an attempt get their place; the commit syncs all at once",
    "spark/outbox/outbox_upgrade.py": "the new files get their place, one kind after the other",
    "spark/pipeline/dead_letters.py": "a file that was written under a hidden name is shown",
    "spark/tagging/parquet.py": "all files of a job get their place, or none",
    "spark/tagging/tagging.py": "an equal folder of another thread may be there already",
    "store/before/conversion.py": "an old log is converted in steps that a restart continues",
    "store/journal/sqlite_journal.py": "an old journal is converted, as an old log is",
}


def test_no_other_room_syncs_locks_renames_or_looks_for_the_cache_folder() -> None:
    found, renaming = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        text, name = path.read_text("utf-8"), path.relative_to(PACKAGE).as_posix()
        if path.is_relative_to(PACKAGE / "files"):
            continue
        calls: set[str] = set()
        if any(word in text for word in WORDS):  # parsing takes long
            calls = {one for _, one in calls_of(text)}
        found += [f"{name}: {one}" for one in sorted(calls) if one.startswith(SYNCS_AND_LOCKS)]
        if any(one.startswith(RENAMES) for one in calls):
            renaming.add(name)
        if "XDG_CACHE_HOME" in text:
            found.append(f"{name}: XDG_CACHE_HOME")
    assert found == []
    assert renaming == RENAMING.keys()
