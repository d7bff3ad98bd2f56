"""Drops old segments once a checkpoint contains the state that results from them.

The order is: write the checkpoint to the disk, record in the end mark that older segments may be
missing, and then remove them. So the log is complete even if this is interrupted, and the next call
removes the remaining segments. A rendezvous point does the same for its own log: see
journal/journal.py.
"""

from __future__ import annotations

from pathlib import Path

from tidings.store import folder as f
from tidings.store.groups import GroupLog, end_of
from tidings.store.journal import checkpoint, things as t
from tidings.store.journal.losses import value_of, version_in
from tidings.store.reader import read_checkpoint, read_mark, state_at
from tidings.store.settling import take_rest


def forget(folder: Path, version: int, *, is_owner: bool = False) -> None:
    """Drop every segment that contains only versions up to `version`, which was acknowledged."""
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
        finally:
            log.close()
