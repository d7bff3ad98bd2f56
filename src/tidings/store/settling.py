"""Making a log ready when it is opened: after a process that died, and when it is rewritten.

    changes/         the log of groups and its checkpoint: the valid log
    changes.made     its replacement: complete, and from now on the valid log
    changes.making   an unfinished replacement
    aside/           replaced logs, by the id of the log that replaced them

A log of the previous format is rewritten (migration.py), and so is a log that is repaired
(repair.py). The new one is made beside the old one. Once it has the name `changes.made`, the next
process goes on from there, however often it is interrupted.
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
PATIENCE = 5.0  # seconds that a reader waits for a writer; then it sees what is marked
PAUSE = 0.001


def settle(folder: Path) -> None:
    """Make a log readable; LogError if it is damaged, or can't be rewritten."""
    if _is_to_be_renewed(folder) or not (folder / CHANGES).exists():
        with shared(folder):  # not while another process rewrites it
            renewed = not _is_to_be_renewed(folder)
        if not renewed:
            try:
                with locked(folder):
                    _finish(folder)
            except PermissionError as problem:
                raise LogError(
                    f"the log '{folder}' was written by an older tidings and can't be rewritten: "
                    f"{problem.strerror}; let its owner run `tidings subscriptions list {folder}` "
                    f"once"
                ) from problem
    _take_what_is_left(folder)


def _is_to_be_renewed(folder: Path) -> bool:
    return (folder / MADE).exists() or bool(migration.files_of(folder))


def _finish(folder: Path) -> None:
    old = migration.files_of(folder)
    if (folder / MADE).exists():
        install(folder)
    elif old and (folder / CHANGES).exists():
        raise LogError(
            f"found {old[0]}, which an older tidings wrote beside a log of this one; move it away, "
            f"and put its changes again"
        )
    elif old:
        renew(folder, lambda beside: migration.rewrite(folder, beside))


def renew(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Make a new log and replace the present one, for a caller that has the lock; return the folder
    where the old one is now."""
    shutil.rmtree(folder / MAKING, ignore_errors=True)
    make_durable_folder(folder / MAKING)
    fill(folder / MAKING)
    (folder / MAKING).rename(folder / MADE)
    sync(folder)
    return install(folder)


def install(folder: Path) -> Path:
    """Replace a log by the one that was made; the old one is moved aside."""
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
    """Take over or cut off what lies after the mark, if its writer died. While a writer is at work,
    wait until it has done so itself: it does before it appends."""
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
            return  # with read permission only, we see what is marked
        if alone or time.monotonic() > limit:
            return
        time.sleep(PAUSE)


def take_rest(folder: Path, log: GroupLog, after: Point) -> Iterator[tuple[Point, list[Record]]]:
    """Read what comes after a point, up to the very end of a log, and make that its end. Complete
    groups count, even if they were not acknowledged; an incomplete one is cut off. For a caller
    that has the lock. LogError if something is missing."""
    mark, version = read_mark(folder, log), after.version
    walk = log.walk(after.at)
    for point, records in read_groups(walk, version, folder, mark.value):
        version = point.version
        yield point, records
    losses = log.losses(walk)
    if losses:
        raise damage_error(folder, losses[0], version, mark.value)
    log.take_end(walk, version)
