"""What is done to an outbox before anything is written to it, by the one that holds its lock.

It must be whole: commits without a gap up to the end mark, with the files that they name; and
nothing may be there of batches that no commit speaks of, but for the one that was under way. Else
commits are missing, be it that all of them were put back from a copy, and to go on would give
numbers twice: it is refused, and nothing is touched.

Then what an attempt left behind that was not committed is moved aside, with its path:

    _tidings/aside/2026-01-31T12-00-00.000000/data/00000042-ATTEMPT/

Nobody reads it there, and nothing here removes it. Only work folders go, of which nothing was ever
placed.
"""

from __future__ import annotations

import datetime as dt
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

from tidings.spark.outbox.commits import Commit
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_upgrade import upgrade_outbox
from tidings.spark.outbox.sealed_files import make_folder, sync
from tidings.spark.outbox.spark_checkpoint import SparkCheckpoint
from tidings.store.groups import START

_log = logging.getLogger(__name__)


def take_outbox(outbox: Outbox, checkpoint: SparkCheckpoint) -> None:
    """Make an outbox ready to be written to; DamagedOutbox in one sentence where it can't be."""
    upgrade_outbox(outbox)
    kept = outbox.read_last_kept()
    commits = outbox.log.begin(START if kept is None else kept.end)
    for commit in commits:
        for one in commit.files:
            problem = outbox.find_problem(one)
            if problem:
                raise outbox.log.damage_error(
                    f"{problem}, as batch {commit.batch} was committed with"
                )
    _refuse_missing_commits(outbox, checkpoint)
    _sweep(outbox, {commit.batch: commit for commit in commits})


def _refuse_missing_commits(outbox: Outbox, checkpoint: SparkCheckpoint) -> None:
    """Whatever tells of a batch beyond the next one, or of the next one as done, tells of a commit
    that is missing."""
    next_ = len(outbox.log)
    ends = f"the commits end with batch {next_ - 1}" if next_ else "there are no commits"
    begun = [batch for home in ("data", "dead") for batch, _ in outbox.attempts(home)]
    last = max((*begun, *outbox.numbers("pins")), default=-1)
    if last > next_:
        raise outbox.log.damage_error(f"{ends}, but batch {last} was begun")
    done = max((checkpoint.last(), *outbox.numbers("counters")))
    if done >= next_:
        raise outbox.log.damage_error(f"{ends}, but batch {done} was done")


def _sweep(outbox: Outbox, commits: Mapping[int, Commit]) -> None:
    shutil.rmtree(outbox.home / "work", ignore_errors=True)
    next_ = len(outbox.log)
    aside = outbox.home / "aside" / f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H-%M-%S.%f}"
    for home in ("data", "dead"):
        for batch, folder in outbox.attempts(home):
            done = commits.get(batch)
            if done is None and batch < next_:
                continue  # it is older than what was read; `tidings pipeline verify` reads all
            if done is None or folder.name != outbox.folder(batch, done.attempt).name:
                _move(folder, aside / home)


def _move(folder: Path, place: Path) -> None:
    make_folder(place)
    folder.rename(place / folder.name)
    sync(place)
    sync(folder.parent)
    _log.warning("%s was left by an attempt that was not committed; it is in %s", folder, place)
