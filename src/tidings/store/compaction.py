"""Drops old segments when a checkpoint contains the state that results from them.

The order is: write the checkpoint to the disk, record in the end mark that older segments may be
missing, and then remove them. So the log is complete even if the compaction is interrupted, and the
next call removes the remaining segments. A rendezvous point does the same for its own log: see
journal/journal.py.

A bulk whose nodes and subscriptions have all ended is dropped in the same way: the checkpoint does
not name it.

Without a rendezvous point, a writer drops segments when it begins a new one: those that nobody has
written to for KEPT_SECONDS. So recent versions stay readable, for batches that are repeated and for
`subscriptions list --at`, and the log does not grow forever.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tidings.store import folder as f
from tidings.store.groups import GroupLog, end_of
from tidings.store.journal import checkpoint, entries as t
from tidings.store.journal.losses import value_of, version_in
from tidings.store.log_opening import take_rest
from tidings.store.reader import read_checkpoint, read_mark, state_at

KEPT_SECONDS = 90 * 86_400.0


def last_version_before(folder: Path, moment: float) -> int:
    """The last version in the segments that were not written to since `moment`, in seconds since
    1970; 0 if there is no such segment, or if the version is not known. The last segment of the log
    is never considered."""
    log = GroupLog(folder)
    with contextlib.suppress(FileNotFoundError):  # another process has just dropped the segment
        segments = log.segments()
        kept = next(
            (one for one in segments if log.path_of(one).stat().st_mtime >= moment), segments[-1]
        )
        if kept != segments[0] and (start := log.start_of(kept)) is not None:
            group = next(iter(log.walk(start)), None)
            first = None if group is None else group.records[0]
            if first is not None and first[:1] == t.THING:
                entry = t.decode_small(first)
                return entry.version if isinstance(entry, t.At) else 0
    return 0


def forget(folder: Path, version: int, *, is_owner: bool = False) -> None:
    """Drop every segment that contains only versions up to `version`, which is an acknowledged
    version."""
    with f.writing(folder, is_owner=is_owner):
        log = GroupLog(folder)
        try:
            mark = read_mark(folder, log)
            for _ in take_rest(folder, log, end_of(mark), version_in(mark)):
                pass
            mark = read_mark(folder, log)
            state = read_checkpoint(folder, mark)
            if version > state.version:
                state = state_at(folder, mark, version, counted=True)
                checkpoint.write(folder, state)
            following = state.at.number + 1
            if log.end.number < following:
                # if all segments are dropped, a group without changes records the version
                log.begin_segment()
                last = version_in(mark)
                log.append([t.encode(t.At(last))], value_of(last, has_checkpoint=True))
            log.drop_before(max(one for one in log.segments() if one <= following))
            if (folder / f.BULKS).exists():
                from tidings.store.bulks import remove_unnamed  # loads pyarrow

                now = state_at(folder, read_mark(folder, log))  # includes later adoptions
                remove_unnamed(folder, (one.name for one in now.bulks))
        finally:
            log.close()
