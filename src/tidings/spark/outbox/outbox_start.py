"""Checks and cleans an outbox before a pipeline writes to it; the caller holds its lock.

The outbox must be complete: commits without a gap up to the end mark, and the files that they name.
There must be no traces of batches after the last commit, except for the batch that was in progress.
If there are traces of later batches, commits are missing, perhaps because an old copy was restored,
and new batches would use the same numbers again. An outbox with traces of later batches is refused,
and nothing in it is changed.

At the start, the files of uncommitted attempts are moved aside, and keep their relative path:

    _tidings/aside/2026-01-31T12-00-00.000000/data/00000042-ATTEMPT/

Files that were moved aside are neither read nor removed. Only work folders are removed; nothing in
them was ever moved into place.
"""

from __future__ import annotations

import datetime as dt
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

from tidings.files import move_aside
from tidings.spark.outbox.commits import Commit
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_upgrade import upgrade_outbox
from tidings.spark.outbox.spark_checkpoint import SparkCheckpoint
from tidings.store.groups import START

_log = logging.getLogger(__name__)


def take_outbox(outbox: Outbox, checkpoint: SparkCheckpoint) -> None:
    """Prepare an outbox for writing; raise DamagedOutbox if it is damaged."""
    upgrade_outbox(outbox)
    kept = outbox.read_last_kept()
    commits = outbox.log.begin(*((START, 0) if kept is None else (kept.end, kept.batch + 1)))
    for commit in commits:
        for one in commit.files:
            problem = outbox.find_problem(one)
            if problem:
                raise outbox.log.damage_error(f"{problem}, in committed batch {commit.batch}")
    _refuse_missing_commits(outbox, checkpoint)
    _sweep(outbox, {commit.batch: commit for commit in commits})


def _refuse_missing_commits(outbox: Outbox, checkpoint: SparkCheckpoint) -> None:
    """Raise DamagedOutbox if commits are missing: if the first batch without a commit was finished,
    or if a batch after that one was started."""
    next_ = len(outbox.log)
    ends = f"the commits end with batch {next_ - 1}" if next_ else "there are no commits"
    begun = [batch for home in ("data", "dead") for batch, _ in outbox.attempts(home)]
    last = max((*begun, *outbox.numbers("pins")), default=-1)
    if last > next_:
        raise outbox.log.damage_error(f"{ends}, but batch {last} was started")
    done = max((checkpoint.last(), *outbox.numbers("counters")))
    if done >= next_:
        raise outbox.log.damage_error(f"{ends}, but batch {done} was finished")


def _sweep(outbox: Outbox, commits: Mapping[int, Commit]) -> None:
    shutil.rmtree(outbox.home / "work", ignore_errors=True)
    next_ = len(outbox.log)
    aside = outbox.home / "aside" / f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H-%M-%S.%f}"
    for home in ("data", "dead"):
        for batch, folder in outbox.attempts(home):
            done = commits.get(batch)
            if done is None and batch < next_:
                # a start does not read such old commits; `tidings pipeline verify` does
                continue
            if done is None or folder.name != outbox.folder(batch, done.attempt).name:
                _move(folder, aside / home)


def _move(folder: Path, place: Path) -> None:
    move_aside(folder, place, folder.name)
    _log.warning("%s belongs to an uncommitted attempt; it was moved to %s", folder, place)
