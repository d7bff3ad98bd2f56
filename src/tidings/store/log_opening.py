"""Prepares a channel's log when it is opened, in case a writer died or an older release wrote it.

Complete groups after the mark are kept, and an incomplete group is cut off. If another writer or an
owner is active, nothing is changed: that process prepares the log itself before it appends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from tidings.store import before, folder as f
from tidings.store.change_records import LogError, damage_error, last_version
from tidings.store.groups import EndMark, GroupLog, Position, end_of
from tidings.store.journal import checkpoint
from tidings.store.journal.losses import value_of, version_in
from tidings.store.reader import read_mark

PATIENCE = 5.0  # seconds that a reader waits for a writer; then it reads up to the mark
PAUSE = 0.001


def settle(folder: Path, key_of: before.KeyOf) -> None:
    """Make a log readable; raises LogError if it is damaged, or can't be converted. `key_of`
    computes the identity of a text."""
    if before.is_before(folder):
        with f.keep_unchanged(folder):  # waits while another process converts the log
            is_converted = not before.is_before(folder)
        if not is_converted:
            try:
                with f.writing(folder):
                    before.convert(folder, key_of)
            except PermissionError as problem:
                raise LogError(
                    f"the log '{folder}' was written by an older version of tidings and can't be "
                    f"rewritten: {problem.strerror}; ask its owner to run "
                    f"`tidings channel import {folder}` once"
                ) from problem
    _take_what_is_left(folder)


def _take_what_is_left(folder: Path) -> None:
    """If a writer died, keep or cut off the data that it wrote after the mark. If another writer is
    active, wait for it."""
    log = GroupLog(folder)
    mark, limit = log.read_mark(), time.monotonic() + PATIENCE
    while mark is not None and mark == log.read_mark() and log.has_more(end_of(mark)):
        try:
            with f.writing_at_once(folder) as turn:
                if turn == "free":
                    for _ in take_rest(folder, log, end_of(mark), version_in(mark)):
                        pass
                    log.close()
        except PermissionError:
            return  # without write permission, read only up to the mark
        if turn != "busy" or time.monotonic() > limit:
            return  # an owner prepares the log itself
        time.sleep(PAUSE)


def take_rest(
    folder: Path, log: GroupLog, after: Position, version: int
) -> Iterator[tuple[Position, list[bytes]]]:
    """Read the groups after a position up to the physical end of a log, and move the end mark
    there. `version` is the version at the position. The caller must hold the lock. Raises LogError
    if data is missing."""
    mark, walk = read_mark(folder, log), log.walk(after)
    for group in walk:
        if walk.damages:
            break
        found = [record for record in group.records if record is not None]
        version = max(version, last_version(found))
        yield group.end, found
    losses = log.losses(walk) if walk.finished else walk.damages
    if losses:
        raise damage_error(folder, losses[0], version, version_in(mark))
    log.take_end(walk, end_value(folder, mark, version))


def end_value(folder: Path, mark: EndMark, version: int) -> int:
    """The value of the end mark at a version."""
    there = bool(mark.value & checkpoint.THERE) or (folder / checkpoint.NAME).exists()
    return value_of(version, has_checkpoint=there)
