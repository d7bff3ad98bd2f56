"""Prepares a log when it is opened: after a writer died, or when the log must be rewritten.

    changes/         the log of groups and its checkpoint: the valid log
    changes.made     its replacement: complete, and from now on the valid log
    changes.making   an unfinished replacement
    aside/           replaced logs, by the id of the log that replaced them

A log from an older version is rewritten (migration.py), and so is a log that is repaired
(repair.py). The new log is written next to the old one. Once the new log has the name
`changes.made`, any process can finish the replacement, however often it was interrupted.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tidings.files import make_durable_folder, sync
from tidings.store import migration
from tidings.store.groups import GroupLog, end_of
from tidings.store.locks import locked, locked_at_once, shared
from tidings.store.reader import read_mark
from tidings.store.records import CHANGES, LogError, Point, Record, damage_error, read_groups

MADE, MAKING, ASIDE = "changes.made", "changes.making", "aside"
PATIENCE = 5.0  # seconds that a reader waits for a writer; then it reads up to the mark
PAUSE = 0.001


def settle(folder: Path, key_of: migration.KeyOf) -> None:
    """Make a log readable; raise LogError if it is damaged, or can't be rewritten. `key_of`
    computes the identity of a text."""
    if _is_to_be_renewed(folder) or not (folder / CHANGES).exists():
        with shared(folder):  # waits while another process rewrites the log
            renewed = not _is_to_be_renewed(folder)
        if not renewed:
            try:
                with locked(folder):
                    _finish(folder)
            except PermissionError as problem:
                raise LogError(
                    f"the log '{folder}' was written by an older version of tidings and can't be "
                    f"rewritten: {problem.strerror}; ask its owner to run "
                    f"`tidings subscriptions list {folder}` once"
                ) from problem
    _take_what_is_left(folder)
    if not migration.is_current(folder):
        _renew_identities(folder, key_of)


def _renew_identities(folder: Path, key_of: migration.KeyOf) -> None:
    try:
        with locked(folder):
            if migration.is_current(folder):
                return
            if migration.has_rekeyed(folder):
                renew(folder, lambda beside: migration.renew_identities(folder, beside, key_of))
            else:
                migration.note_current(folder / CHANGES)
    except PermissionError:
        pass  # a process that may only read the log needs no identities


def _is_to_be_renewed(folder: Path) -> bool:
    return (folder / MADE).exists() or bool(migration.files_of(folder))


def _finish(folder: Path) -> None:
    old = migration.files_of(folder)
    if (folder / MADE).exists():
        install(folder)
    elif old and (folder / CHANGES).exists():
        raise LogError(
            f"found {old[0]}, which an older version of tidings wrote next to the log; move it "
            "away, and repeat its changes"
        )
    elif old:
        renew(folder, lambda beside: migration.rewrite(folder, beside))


def renew(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Create a new log that replaces the present one; return the folder to which the old one was
    moved. The caller must hold the lock."""
    shutil.rmtree(folder / MAKING, ignore_errors=True)
    make_durable_folder(folder / MAKING)
    fill(folder / MAKING)
    (folder / MAKING).rename(folder / MADE)
    sync(folder)
    return install(folder)


def install(folder: Path) -> Path:
    """Replace a log with the finished new one, and move the old one aside."""
    mark = GroupLog(folder / MADE).acknowledged()
    assert mark is not None, "the new log is complete"
    aside = folder / ASIDE / f"{mark.log:016x}"
    make_durable_folder(aside)
    for path in [*migration.files_of(folder), folder / CHANGES]:
        if path.exists():
            path.rename(aside / path.name)
    sync(aside)
    (folder / MADE).rename(folder / CHANGES)
    sync(folder)
    return aside


def _take_what_is_left(folder: Path) -> None:
    """If a writer died, keep or cut off the data that it wrote after the mark. If another writer is
    active, wait for it: a writer does the same before it appends."""
    log = GroupLog(folder / CHANGES)
    mark, limit = log.acknowledged(), time.monotonic() + PATIENCE
    while mark is not None and mark == log.acknowledged() and log.has_more(end_of(mark)):
        try:
            with locked_at_once(folder) as alone:
                if alone:
                    for _ in take_rest(folder, log, Point(mark.value, end_of(mark))):
                        pass
                    log.close()
        except PermissionError:
            return  # without write permission, read only up to the mark
        if alone or time.monotonic() > limit:
            return
        time.sleep(PAUSE)


def take_rest(folder: Path, log: GroupLog, after: Point) -> Iterator[tuple[Point, list[Record]]]:
    """Read the groups after a point up to the physical end of a log, and move the end mark there.
    Complete groups are kept even if they were not acknowledged, and an incomplete group is cut off.
    The caller must hold the lock. Raise LogError if data is missing."""
    mark, version = read_mark(folder, log), after.version
    walk = log.walk(after.at)
    for point, records in read_groups(walk, version, folder, mark.value):
        version = point.version
        yield point, records
    losses = log.losses(walk)
    if losses:
        raise damage_error(folder, losses[0], version, mark.value)
    log.take_end(walk, version)
