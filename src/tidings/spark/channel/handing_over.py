"""Hands the committed batches of an outbox over to the owner of a channel, in order.

    _tidings/channel/handed.json     the last batch that the owner has, and the life of the channel

The owner stores each part of a batch once. So if the process dies after a commit and before
`handed.json` is updated, the batch is handed over again, and no row is duplicated. `handed.json`
may be older than the actual state, but never newer.

If a sink is added to a pipeline, it gets the batches from the next one on. A sink that was removed
and is added again first gets the batches that were committed meanwhile, because the owner refuses a
gap. But if batches were tagged in another life of the channel, they can no longer be handed over;
they are skipped, with a warning.
"""

from __future__ import annotations

import logging
from itertools import islice
from pathlib import Path

import msgspec

from tidings.spark.channel.owner import ChannelOwner
from tidings.spark.channel.row_parts import parts_of
from tidings.spark.outbox.commits import Commit
from tidings.spark.outbox.outbox_reading import OutboxReader
from tidings.spark.outbox.sealed_files import read_sealed, write_sealed

TOGETHER = 8  # how many parts are acknowledged together; they stay in memory until then
HANDED = "handed.json"
_log = logging.getLogger(__name__)


class LastHandover(msgspec.Struct, frozen=True):
    """The last batch that was handed over."""

    batch: int
    life: int


class HandingOver:
    """Hands committed batches of an outbox over to the owner of a channel."""

    def __init__(
        self,
        owner: ChannelOwner,
        outbox: Path,
        folder: Path,
        source: str,
        extra: str | None = None,
        time: str | None = None,
    ) -> None:
        """`folder` is the folder of the mirror; `source` identifies the stream of the outbox;
        `extra` is the outbox's column of undeclared fields, and `time` its column with the time of
        a row, if it has them."""
        self._owner = owner
        self._outbox = outbox
        self._path = folder / HANDED
        self._source = source
        self._extra = extra
        self._time = time
        self._reader: OutboxReader | None = None

    def hand_over(self, done: Commit) -> None:
        """Hand over a committed batch, and all batches before it that were not handed over. When
        this returns, all their rows are on the owner's disk. This call waits for the owner."""
        last = read_handed(self._path.parent)
        if self._reader is None:  # this reads all commits; later calls read only new ones
            self._reader = OutboxReader(self._outbox)
        reader = self._reader
        if last is not None:
            for commit in reader.commits(last.batch + 1, done.batch):
                if commit.life == done.life:
                    self._hand_over(reader, commit)
                else:
                    _log.warning(
                        "batch %d was tagged in another life of the channel, and is not handed "
                        "over: %d notifications", commit.batch, commit.matched,
                    )  # fmt: skip
        self._hand_over(reader, done)
        if last is None or done.batch > last.batch or done.life != last.life:
            new = LastHandover(done.batch, done.life)
            write_sealed(self._path, msgspec.json.encode(new))

    def _hand_over(self, reader: OutboxReader, commit: Commit) -> None:
        parts = parts_of(reader, commit, self._source, self._extra, self._time)
        while some := list(islice(parts, TOGETHER)):
            self._owner.hand_over(some)


def read_handed(folder: Path) -> LastHandover | None:
    """The last batch that is recorded as handed over; a later one may have been handed over just
    before a crash. None if no batch is recorded."""
    data = read_sealed(folder / HANDED)
    return None if data is None else msgspec.json.decode(data, type=LastHandover)
