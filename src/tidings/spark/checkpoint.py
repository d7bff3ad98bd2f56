"""What Spark noted of its place in a stream: which rows a batch is made of.

    offsets/42          where each source stands after batch 42
    sources/0/42        for files, which ones they are

Spark renames these files into place and does not sync them. A machine that loses its power may come
up without the last ones, and Spark would then make a batch 42 anew, of other rows; an outbox that
has a 42 already would take it for done. So they are synced before anything of a batch is written,
and the batch's pin remembers what they said.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tidings.spark.durable import sync_folder as sync  # a file is synced in the same way


class SparkCheckpoint:
    """The checkpoint folder of one stream."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._synced: set[Path] = set()

    def made_of(self, batch: int) -> str:
        """A digest of what Spark noted for a batch, which the disk has from now on."""
        noted = self.path / "offsets" / str(batch)
        try:
            content = noted.read_bytes()
        except FileNotFoundError:
            return ""
        there = {noted, *(p for p in self.path.glob("sources/*/[0-9]*") if p.is_file())}
        new = there - self._synced
        for path in (*new, *{path.parent for path in new}):
            try:
                sync(path)
            except FileNotFoundError:  # an old one, which Spark has just put together with others
                continue
        self._synced = there
        return hashlib.sha256(content).hexdigest()[:32]
