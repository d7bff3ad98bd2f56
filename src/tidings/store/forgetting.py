"""Dropping old segments, once a checkpoint has what they add up to.

The checkpoint is on the disk and counts before the first segment goes, and segments go from the
oldest on. Whenever this is interrupted, the log is whole; the next time drops what was left.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tidings.files import make_private
from tidings.store import checkpoint
from tidings.store.checkpoint import Checkpoint
from tidings.store.disk import sync, sync_end
from tidings.store.locks import FORGETTING, locked
from tidings.store.segments import Position, firsts, records, segment_path
from tidings.store.state import apply
from tidings.store.tail import look


def state_at(folder: Path, version: int, end: Position) -> Checkpoint:
    """The state at a version that is neither older than the checkpoint nor beyond the end."""
    base = checkpoint.read(folder)
    for record in records(folder, base.version, end):
        if record.version > version:
            break
        base.nodes.apply(record, folder)
        apply(record, base.subscriptions)
    return Checkpoint(version, base.subscriptions, base.nodes)


def forget(folder: Path, version: int, end: Position) -> None:
    """Drop every segment that holds only versions up to one that was acknowledged."""
    with locked(folder, FORGETTING):  # writers go on while the state is written
        newer = version > checkpoint.version_of(folder)
        if newer:
            checkpoint.write(folder, state_at(folder, version, end))
        with locked(folder):
            if newer:
                checkpoint.take_place(folder)
            _begin_segment(folder, version)
            for first, following in pairwise(firsts(folder)):
                if following > version + 1:
                    break
                segment_path(folder, first).unlink()
            sync(folder)


def _begin_segment(folder: Path, version: int) -> None:
    """Where the last segment is to go too, begin the next: its name keeps the latest version."""
    sight = look(folder, None)
    end = sight.complete
    if end.version <= version and end.offset and not sight.unfinished:
        sync_end(folder, end)
        path = segment_path(folder, end.version + 1)
        make_private(path)
        sync(folder)
