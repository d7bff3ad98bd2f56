"""Reads the committed rows of an outbox, in a local folder or at an address.

    commits ──> the files of each batch ──> Arrow batches, or tables and streams (outbox_tables.py)

Folders of attempts that were never committed look like any other folders, so only the commits say
which files count. The commits of an outbox at an address (s3a://, hdfs://) are copied to a
temporary folder, about 1 kB for each batch; a refresh copies only the files that have grown.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.files import address_of, copy_here, local_path, open_place, scheme_of
from tidings.model import TidingsError
from tidings.spark.outbox.commits import Commit, Commits
from tidings.spark.outbox.outbox import HOME

ROWS = 16_384  # the most rows of a batch
COMMITS = f"{HOME}/commits"
_GRAIN_FOLDER = re.compile("grain=([^/]+)/")


class OutboxReader:
    """The committed batches of an outbox. A reader needs no lock, and works while a pipeline
    writes."""

    def __init__(self, path: str | Path) -> None:
        self.address = address_of(path)
        """The outbox, as Spark and messages name it."""
        self._system: Any = None
        self._sizes: dict[str, int] = {}  # the copied files
        if scheme_of(path):
            self._system, self._root = open_place(path)
            folder = tempfile.mkdtemp(prefix="tidings-commits-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._log = Commits(Path(folder, COMMITS))
        else:
            self.address = self._root = str(local_path(path, "an outbox").absolute())
            self._log = Commits(Path(self._root, COMMITS))
            if not Path(self._root, HOME).is_dir():
                raise TidingsError(f"there is no outbox in {self._root}: it has no folder {HOME}")
        self.refresh()

    @property
    def is_local(self) -> bool:
        return self._system is None

    def refresh(self) -> int:
        """Look for new commits; return the number of committed batches."""
        if self._system is not None:
            self._copy_commits()
        return len(self._log)

    def _copy_commits(self) -> None:
        from pyarrow import fs

        wanted = fs.FileSelector(f"{self._root}/{COMMITS}", allow_not_found=True)
        try:
            there = self._system.get_file_info(wanted)
            sizes = {one.base_name: one.size for one in there if one.is_file}
            # The end mark is copied first, so that the segments have at least the groups that it
            # counts.
            new = sorted(
                (name for name in sizes if name == "end" or sizes[name] != self._sizes.get(name)),
                key=lambda name: (name != "end", name),
            )
            copy_here(f"{self.address}/{COMMITS}", self._log.folder, new)
        except OSError as problem:
            first = str(problem).partition("\n")[0]
            raise TidingsError(f"the outbox {self.address} can't be read: {first}") from problem
        if not sizes:
            raise TidingsError(f"there is no outbox in {self.address}: it has no commits")
        self._sizes = sizes

    def commits(self, first: int = 0, end: int | None = None) -> Iterator[Commit]:
        """The commits of the batches from `first` up to but excluding `end`."""
        for batch in range(first, len(self._log) if end is None else min(end, len(self._log))):
            found = self._log.read(batch)
            if found is not None:
                yield found

    def files(self, commit: Commit, *, dead: bool = False) -> list[str]:
        """The files of a batch, relative to the outbox: matched rows, or refused ones."""
        home = "dead/" if dead else "data/"
        return [one.path for one in commit.files if one.rows and one.path.startswith(home)]

    def place_of(self, file: str) -> str:
        """The path or address of a file."""
        return f"{self.address}/{file}"

    def batches(self, file: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        try:
            with pq.ParquetFile(
                f"{self._root}/{file}", filesystem=self._system, buffer_size=1 << 20
            ) as opened:
                yield from opened.iter_batches(ROWS, columns=columns)
        except (pa.ArrowException, OSError) as problem:
            first = str(problem).partition("\n")[0]
            raise TidingsError(f"{self.place_of(file)} can't be read: {first}") from problem

    def schema(self, file: str) -> pa.Schema:
        """The columns of a file."""
        return pq.read_schema(f"{self._root}/{file}", filesystem=self._system)


def grain_of(file: str) -> str | None:
    """The grain that a file is filed under, as in 2013-01-01T09-00, or `mixed`."""
    found = _GRAIN_FOLDER.search(file)
    return None if found is None else found[1]
