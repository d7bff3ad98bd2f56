"""Names the older format of a folder, for the command that converts folders."""

from __future__ import annotations

from pathlib import Path

from tidings.model import EnvironmentProblem
from tidings.store import folder as f
from tidings.store.before import text_log
from tidings.store.before.conversion import ASIDE, MADE
from tidings.store.before.old_log import CHANGES
from tidings.store.groups.end_mark import NAME as END
from tidings.store.journal.sqlite_journal import MAGIC, SUFFIX, is_before as is_sqlite


def find_format(path: Path) -> str:
    """The older format of a log or a journal, in words; empty if it has the current format. Raises
    EnvironmentProblem if there is no log and no journal, or if a later release wrote it."""
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise EnvironmentProblem(
                    f"{path}: found a file, expected a folder, or a journal in SQLite"
                )
    if is_sqlite(path):
        return "a journal in SQLite"
    if not path.is_dir():
        raise EnvironmentProblem(f"{path}: there is no such folder")
    known = f.read_format(path)
    if (path / MADE).exists():
        return "a log whose conversion was interrupted"
    if (path / CHANGES).exists():
        return "a log of changes"
    if known is not None:
        return ""
    if text_log.files_of(path):
        return "a log in text"
    if (path / END).exists():
        return "a journal without versions"
    raise EnvironmentProblem(
        f"{path}: found neither a log of subscriptions nor a journal in this folder; expected "
        f"{CHANGES!r} or segments such as 00000000000000000001.log in it"
    )


def list_copies(path: Path) -> list[Path]:
    """Where the files of older formats were moved."""
    old = path.with_name(path.name + SUFFIX)
    aside = path / ASIDE
    found = sorted(one for one in aside.iterdir() if one.is_dir()) if aside.is_dir() else []
    return [*([old] if old.exists() else []), *found]
