"""Reads Spark's checkpoint of a stream, which records the rows of each batch.

    offsets/42          the position of each source after batch 42
    sources/0/42        for a folder of files: the names of the files
    tidings-stream      added by tidings: the stream's id, which the outbox and the spool store too

Spark renames these files into place but does not sync them. After a power failure, the last of
these files may be missing. Without them, Spark would form batch 42 again from other rows, and an
outbox that already has a batch 42 would skip it. So these files are synced before any file of a
batch is written, and the batch's pin has a digest of its offsets.
"""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from tidings.spark.outbox.sealed_files import sync, write_whole

STREAM = "tidings-stream"


class _Offset(msgspec.Struct):
    logOffset: int  # noqa: N815


class _Entry(msgspec.Struct):
    path: str


def stream_of(checkpoint: Path) -> str:
    """The id of the stream with this checkpoint; a new id is stored if there is none."""
    path = checkpoint / STREAM
    if not path.exists():
        write_whole(path, uuid.uuid4().hex.encode())
    return path.read_text()


class SparkCheckpoint:
    """The checkpoint folder of one stream."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._synced: set[Path] = set()

    def sync_offsets(self, batch: int) -> str:
        """Sync Spark's records of a batch; return a digest of its offsets."""
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
            except FileNotFoundError:  # an old file, removed by Spark in a compaction
                continue
        self._synced = there
        return hashlib.sha256(content).hexdigest()[:32]

    def last(self) -> int:
        """The last batch that Spark recorded as done; -1 if there is none."""
        names = [path.name for path in (self.path / "commits").glob("[0-9]*")]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def files(self, batch: int) -> list[Path]:
        """The files that a batch is read from, if the source is a folder of files.

        Spark itself treats a missing file as if it were empty.
        """
        upto = self._log_offset(batch)
        before = self._log_offset(batch - 1) if batch else -1
        if upto is None or before is None:
            return []
        return [path for log in range(before + 1, upto + 1) for path in self._files_in_log(log)]

    def _log_offset(self, batch: int) -> int | None:
        try:
            last = (self.path / "offsets" / str(batch)).read_bytes().splitlines()[-1]
            return msgspec.json.decode(last, type=_Offset).logOffset
        except (FileNotFoundError, IndexError, msgspec.DecodeError):
            return None

    def _files_in_log(self, log: int) -> list[Path]:
        for name in (str(log), f"{log}.compact"):  # a compacted log repeats all earlier entries
            try:
                lines = (self.path / "sources" / "0" / name).read_bytes().splitlines()[1:]
            except FileNotFoundError:
                continue
            mine = [line for line in lines if line.endswith(b'"batchId":%d}' % log)]
            entries = [msgspec.json.decode(line, type=_Entry) for line in mine]
            return [Path(unquote(urlsplit(entry.path).path)) for entry in entries]
        return []
