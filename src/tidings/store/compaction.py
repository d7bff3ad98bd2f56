"""Drops old segments once a checkpoint contains the state that results from them.

The order is: write the checkpoint to the disk, record in the end mark that older segments may be
missing, and then remove them. So the log is complete even if the compaction is interrupted, and the
next compaction removes the remaining segments.
"""

from __future__ import annotations

from pathlib import Path

from tidings.store import checkpoint
from tidings.store.groups import GroupLog, end_of
from tidings.store.locks import FORGETTING, locked
from tidings.store.reader import read_mark
from tidings.store.records import CHANGES, Point, encode_changes
from tidings.store.settling import take_rest


def forget(folder: Path, version: int) -> None:
    """Drop every segment that contains only versions up to `version`, which was acknowledged."""
    with locked(folder, FORGETTING):  # writers may append while the checkpoint is written
        log = GroupLog(folder / CHANGES)
        mark = read_mark(folder, log)
        base = checkpoint.read(folder, mark)
        if version > base.version:
            base = checkpoint.state_at(folder, version, mark)
            checkpoint.write(log.folder, base)
        with locked(folder):
            try:
                mark = read_mark(folder, log)
                for _ in take_rest(folder, log, Point(mark.value, end_of(mark))):
                    pass
                following = base.point.at.number + 1
                if log.end.number < following:
                    # if all segments are dropped, a group without changes records the version
                    log.begin_segment()
                    log.append(encode_changes(base.version + 1, []), base.version)
                log.drop_before(max(one for one in log.segments() if one <= following))
            finally:
                log.close()
