"""A join of filters on disk: the arrays, which all participating processes map into memory, and the
results, in one file for each block of places.

    hulls/, boxes/, prepared/    NAME.npy for each of their arrays
    order.npy, first.npy         the filters of the join; starts.npy: where the boxes of each begin
    FIRST-LAST.pairs             an Arrow stream: above and below, one batch for each piece of the
                                 block; the metadata of each batch is a CoverPiece

Files of pairs are written atomically.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from tidings.files import make_private, placing
from tidings.filters.canonical import Form
from tidings.matching.covering.cover_join import CoverJoin
from tidings.matching.covering.cover_kernels import JoinInput
from tidings.matching.covering.coverage import Block, CoveringPairs, Finder
from tidings.matching.covering.hulls import Boxes, Hulls
from tidings.matching.covering.undecided import Resolver

Arrays = TypeVar("Arrays", Hulls, JoinInput)
_PAIRS = pa.schema({"above": pa.uint32(), "below": pa.uint32()})


class CoverPiece(msgspec.Struct, frozen=True):
    """The metadata of one piece of a file of pairs: places [first, last)."""

    first: int
    last: int
    looked_at: int  # the number of pairs before they were confirmed
    seen: int  # the number of candidates


def write_finder(folder: Path, finder: Finder) -> None:
    """Write everything that is needed to find coverers, except the filters themselves, to a new
    folder."""
    folder.mkdir(0o700)
    _write_arrays(folder / "hulls", finder.join.hulls)
    _write_arrays(folder / "prepared", finder.join.prepared)
    _write_arrays(folder / "boxes", finder.boxes.rows)
    np.save(make_private(folder / "starts.npy"), finder.boxes.starts)
    np.save(make_private(folder / "order.npy"), finder.order)
    np.save(make_private(folder / "first.npy"), finder.first)


def open_finder(folder: Path, forms: Sequence[Form]) -> Finder:
    """Map a folder written by `write_finder` into memory.

    The digests of these files are not checked, unlike those of all other files that kernels use.
    The folder belongs to one user and to one compilation, which writes the folder, lets its tasks
    read it, and removes it. Nothing is kept for the next compilation.
    """
    join = CoverJoin(
        _open_arrays(folder / "hulls", Hulls), _open_arrays(folder / "prepared", JoinInput)
    )
    boxes = Boxes(_open_arrays(folder / "boxes", Hulls), _array(folder / "starts.npy"))
    order, first = _array(folder / "order.npy"), _array(folder / "first.npy")
    return Finder(join, order, first, boxes, Resolver(forms, boxes))


def _write_arrays(folder: Path, arrays: Hulls | JoinInput) -> None:
    folder.mkdir(0o700)
    for name, array in arrays._asdict().items():
        np.save(make_private(folder / f"{name}.npy"), array)


def _open_arrays(folder: Path, kind: type[Arrays]) -> Arrays:
    found: dict[str, Any] = {name: _array(folder / f"{name}.npy") for name in kind._fields}
    found = {name: one if one.ndim else int(one) for name, one in found.items()}
    return kind(**found)


def _array(path: Path) -> Any:
    # "c" is copy on write; if the arrays were read-only, Numba would compile the kernels again
    return np.asarray(np.load(path, mmap_mode="c"))


def pairs_path(folder: Path, first: int, last: int) -> Path:
    return folder / f"{first}-{last}.pairs"


def write_pairs(path: Path, finder: Finder, first: int, last: int) -> int:
    """Find the coverers of a block of places and write them; return the number of pairs."""
    count, seen = 0, finder.join.seen
    with (
        placing(path) as begun,
        pa.OSFile(str(begun), "wb") as sink,
        pa.ipc.new_stream(sink, _PAIRS) as writer,
    ):
        for begin, end, found in finder.pieces(first, last):
            piece = CoverPiece(begin, end, found.looked_at, finder.join.seen - seen)
            seen = finder.join.seen
            batch = pa.record_batch([found.above, found.below], schema=_PAIRS)
            writer.write_batch(batch, {"piece": msgspec.json.encode(piece)})
            count += batch.num_rows
    return count


def read_pairs(path: Path, join: CoverJoin) -> Iterator[Block]:
    """Read the pairs of a block piece by piece, and add the number of their candidates to
    `join.seen`."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
        while True:
            try:
                batch, noted = reader.read_next_batch_with_custom_metadata()
            except StopIteration:
                return
            piece = msgspec.json.decode(noted["piece"], type=CoverPiece)
            join.seen += piece.seen
            above, below = (column.to_numpy().copy() for column in batch.columns)
            yield piece.first, piece.last, CoveringPairs(above, below, piece.looked_at)
