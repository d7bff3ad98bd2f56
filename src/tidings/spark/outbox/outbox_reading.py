"""Reads the committed rows of an outbox, in a local folder or at an address.

    commits ──> the files of each batch ──> Arrow batches, or tables and streams (outbox_tables.py)
    numbers ────────────────────────────────^

The folder of an attempt that was never committed looks like any other, so only the commits say
which files count. A batch can be read once it is committed and, if it needs numbers, these are in
the log too. The files of the batch do not contain the numbers; the reader joins them with the rows
(numbered_rows.py). The commits and numbers of an outbox at an address (s3a://, hdfs://) are copied
to a temporary folder, about 1 kB for each batch; a refresh copies only the files that have grown.
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
from tidings.spark.outbox.batches.numbering import PLACE
from tidings.spark.outbox.commits import Commit, Commits
from tidings.spark.outbox.numbered_rows import (
    RowNumbers,
    add_numbers_to_schema,
    number_files,
    stored_columns,
)
from tidings.spark.outbox.outbox import HOME

ROWS = 16_384  # at most this many rows are read at once
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
        # the batch read last, and the numbers of its files
        self._numbered: tuple[int, dict[str, RowNumbers]] = -1, {}
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
        """Look for new commits; return the number of batches that can be read."""
        if self._system is not None:
            self._copy_commits()
        return self._log.count_readable()

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
        known = self._log.count_readable()
        for batch in range(first, known if end is None else min(end, known)):
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
        """The rows of a file, with their numbers."""
        for rows in self.read_stored(file, columns):
            found = self.numbers_of(file).join(rows) if PLACE in rows.schema.names else rows
            yield found if columns is None else found.select(columns)

    def read_stored(self, file: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a file as they are stored, with places instead of numbers; `columns` may
        name the numbers."""
        try:
            with pq.ParquetFile(
                f"{self._root}/{file}", filesystem=self._system, buffer_size=1 << 20
            ) as opened:
                wanted = columns
                if columns is not None:
                    wanted = stored_columns(columns, opened.schema_arrow.names)
                yield from opened.iter_batches(ROWS, columns=wanted)
        except (pa.ArrowException, OSError) as problem:
            first = str(problem).partition("\n")[0]
            raise TidingsError(f"{self.place_of(file)} can't be read: {first}") from problem

    def numbers_of(self, file: str) -> RowNumbers:
        """The last numbers before the rows of a file. The file is named by its path in the outbox,
        and must contain places."""
        batch = int(file.split("/")[1].partition("-")[0])
        if self._numbered[0] != batch:
            commit = self._log.read(batch)
            if commit is None:
                raise TidingsError(f"{self.place_of(file)} belongs to no batch of the outbox")
            numbers = self._log.read_numbers(batch)
            self._numbered = batch, number_files(commit, numbers)
        return self._numbered[1][file]

    def schema(self, file: str) -> pa.Schema:
        """The columns of a file, as readers get them."""
        return add_numbers_to_schema(
            pq.read_schema(f"{self._root}/{file}", filesystem=self._system)
        )


def grain_of(file: str) -> str | None:
    """The grain that a file is filed under, as in 2013-01-01T09-00, or `mixed`."""
    found = _GRAIN_FOLDER.search(file)
    return None if found is None else found[1]
