"""Tasks that run in Spark's Python workers while subscriptions are loaded: they parse filters,
gather the hulls of the filters, and join the hulls. Large results go to files in a folder that the
driver can read; only one row per file travels through Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.files import make_private
from tidings.filters import Attributes, Filter, parse
from tidings.matching.covering import Finder, HullGathering, open_finder, pairs_path, write_pairs
from tidings.model import FilterError
from tidings.snapshots import Forms

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]
CHUNK = "hulls-{:06d}"
_finders: dict[str, Finder] = {}


def make_reader(attributes: Attributes | None, canonical: bool) -> Task:
    """Make a task that maps rows of (id, filter) to (id, filter, canonical, key, reason). The
    column `canonical` is left out unless it is requested."""

    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts: list[str | None] = []
            keys: list[bytes | None] = []
            reasons: list[str | None] = []
            ids, filters = batch.columns
            for is_null, text in zip(ids.is_null().to_pylist(), filters.to_pylist(), strict=True):
                found = "the id is null" if is_null else _read(text, attributes)
                reasons.append(found if isinstance(found, str) else None)
                keys.append(None if isinstance(found, str) else found.key)
                if canonical:
                    texts.append(None if isinstance(found, str) else found.canonical().sql())
            columns = {"id": ids, "filter": filters}
            if canonical:
                columns["canonical"] = pa.array(texts, pa.string())
            columns["key"] = pa.array(keys, pa.binary())
            columns["reason"] = pa.array(reasons, pa.string())
            yield pa.RecordBatch.from_pydict(columns)

    return read


def _read(text: str | None, attributes: Attributes | None) -> Filter | str:
    """The filter, or the reason why it is refused."""
    if text is None:
        return "the filter is null"
    try:
        found = parse(text, attributes=attributes)
        _ = found.key
    except FilterError as problem:
        return str(problem)
    return found


def make_gatherer(files: list[str], folder: str, attributes: Attributes | None) -> Task:
    """Make a task that reads numbered files of filter texts and writes a file of hulls for each."""

    def gather(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number in _numbers(batches):
            gathering = HullGathering()
            for batch in pq.ParquetFile(files[number]).iter_batches(columns=["filter"]):
                for text in batch.column(0).drop_null().to_pylist():
                    gathering.add(parse(text, attributes=attributes).form)
            path = Path(folder, CHUNK.format(number))
            make_private(path).write_bytes(gathering.pack())
            yield pa.RecordBatch.from_pydict({"count": pa.array([len(gathering)], pa.int64())})

    return gather


def make_joiner(
    folder: str, texts: str, attributes: Attributes | None, size: int, count: int
) -> Task:
    """Make a task that finds the coverings in numbered blocks of hulls and writes a file for each
    block."""

    def join_blocks(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number in _numbers(batches):
            finder = _open_finder(folder, texts, attributes)
            first, last = number * size, min((number + 1) * size, count)
            found = write_pairs(pairs_path(Path(folder), first, last), finder, first, last)
            yield pa.RecordBatch.from_pydict({"count": pa.array([found], pa.int64())})

    return join_blocks


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _open_finder(folder: str, texts: str, attributes: Attributes | None) -> Finder:
    """The finder of coverings, opened once in this process."""
    if folder not in _finders:
        _finders.clear()
        forms = Forms(read_texts(texts), attributes)
        _finders[folder] = open_finder(Path(folder), forms)
    return _finders[folder]


def read_texts(path: str) -> pa.ChunkedArray:
    """The filter texts of an Arrow file, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(path)).read_all().column(0)
