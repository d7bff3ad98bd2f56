"""The mapped files of a bulk, and what can be looked up in them.

The node at a place has the number `first` + place. If a filter already had a node when the bulk was
adopted, its place in the bulk is *shared*: its subscriptions belong to the existing node, and the
number of that place is never used.

Memory: the files are mapped, 24 bytes per node and 4 per subscription in addition to the snapshot.
A lookup takes about 20 steps in a sorted array.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.disk import SnapshotError, UnreadableSnapshot, as_array, read_table
from tidings.model import EnvironmentProblem, Id
from tidings.snapshots import identity_of, need_whole
from tidings.store.folder import BULKS
from tidings.store.layered import Layer

Array = npt.NDArray[Any]
SORTED, ORDER, SHARED = "sorted.arrow", "order.arrow", "shared.arrow"
PIECE = 10_000  # rows that are converted to objects at once
OPEN = 8  # at most this many bulks stay open
_TWO_NUMBERS = struct.Struct(">QQ")


class LostBulk(EnvironmentProblem):
    """A bulk is missing or damaged."""


class BulkId(NamedTuple):
    """A subscription of a bulk: the place of its filter, and its node."""

    place: int
    node: int


class Bulk:
    """The subscriptions that were adopted together."""

    def __init__(self, folder: Path, first: int) -> None:
        nodes = read_table(folder / "nodes.arrow")
        ids = read_table(folder / "subscriptions.arrow").column("id").combine_chunks()
        found, shared = read_table(folder / SORTED), read_table(folder / SHARED)
        self.first = first
        self.keys = nodes.column("key").combine_chunks()
        self.texts = read_table(folder / "index" / "filters.arrow").column("text")
        self.ids = ids
        self.starts: Array = np.append(as_array(nodes.column("members")), len(ids))
        self.shared: dict[int, int] = dict(
            zip(*(shared.column(name).to_pylist() for name in ("place", "node")), strict=True)
        )
        self._order = as_array(read_table(folder / ORDER).column("position"))
        self.high, self._low, self._places = (
            as_array(found.column(name)) for name in ("high", "low", "place")
        )
        """The first halves of the identities, ascending; then the second halves, and the places."""

    @property
    def integer(self) -> bool:
        """Whether the ids are integers."""
        return bool(pa.types.is_integer(self.ids.type))

    @property
    def last(self) -> int:
        """The last number of the bulk's range, which is also its version."""
        return self.first + len(self.keys) - 1

    def __len__(self) -> int:
        """The number of nodes, except those shared with the rest of the channel."""
        return len(self.keys) - len(self.shared)

    def __contains__(self, node: int) -> bool:
        return self.first <= node <= self.last and node - self.first not in self.shared

    def node_at(self, place: int) -> int:
        return self.shared.get(place, self.first + place)

    def text_at(self, place: int) -> str:
        found: str = self.texts[place].as_py()
        return found

    def key_at(self, place: int) -> bytes:
        found: bytes = self.keys[place].as_py()
        return found

    def find_id(self, id_: Id) -> BulkId | None:
        """The subscription with an id; None if there is none."""
        if (type(id_) is int) is not self.integer or not len(self.ids):
            return None
        order, ids = self._order, self.ids
        at = bisect_left(range(len(order)), id_, key=lambda one: ids[int(order[one])].as_py())
        if at == len(order) or ids[int(order[at])].as_py() != id_:
            return None
        place = int(np.searchsorted(self.starts, int(order[at]), "right")) - 1
        return BulkId(place, self.node_at(place))

    def find_key(self, key: bytes) -> int | None:
        """The number of the node with an identity; None if the bulk has no such node."""
        high, low = _TWO_NUMBERS.unpack(key)
        at = int(np.searchsorted(self.high, np.uint64(high)))
        while at < len(self.high) and int(self.high[at]) == high:
            if int(self._low[at]) == low:
                place = int(self._places[at])
                return None if place in self.shared else self.first + place
            at += 1
        return None

    def each_id(self) -> Iterator[tuple[Id, int, str]]:
        """All ids, with the nodes and the texts of their filters."""
        for at in range(0, len(self.keys), PIECE):
            texts = self.texts.slice(at, PIECE).to_pylist()
            starts = self.starts[at : at + len(texts) + 1]
            ids = self.ids.slice(starts[0], starts[-1] - starts[0]).to_pylist()
            rows = np.repeat(np.arange(len(texts)), np.diff(starts)).tolist()
            nodes = [self.node_at(place) for place in range(at, at + len(texts))]
            for id_, row in zip(ids, rows, strict=True):
                yield id_, nodes[row], texts[row]

    def each_key(self) -> Iterator[tuple[int, bytes]]:
        """All nodes with their identities."""
        for at in range(0, len(self.keys), PIECE):
            for place, key in enumerate(self.keys.slice(at, PIECE).to_pylist(), at):
                if place not in self.shared:
                    yield self.first + place, key

    def each_text(self) -> Iterator[tuple[int, bytes, str]]:
        """All nodes with their identities and texts."""
        found = self.each_key()
        for at in range(0, len(self.keys), PIECE):
            for place, text in enumerate(self.texts.slice(at, PIECE).to_pylist(), at):
                if place not in self.shared:
                    yield *next(found), text

    # -- layers of what a writer knows ----------------------------------------------------------

    def nodes_by_id(self) -> Layer[Id, int]:
        def find(id_: Id) -> int | None:
            found = self.find_id(id_)
            return None if found is None else found.node

        def each() -> Iterator[tuple[Id, int]]:
            return ((id_, node) for id_, node, _ in self.each_id())

        return Layer(find, each, len(self.ids), set())

    def nodes_by_key(self) -> Layer[bytes, int]:
        def each() -> Iterator[tuple[bytes, int]]:
            return ((key, node) for node, key in self.each_key())

        return Layer(self.find_key, each, len(self), set())

    def uses_by_node(self) -> Layer[int, int]:
        """How many subscriptions each node has."""

        def find(node: int) -> int | None:
            place = node - self.first
            return int(self.starts[place + 1] - self.starts[place]) if node in self else None

        def each() -> Iterator[tuple[int, int]]:
            for place, (start, end) in enumerate(pairwise(self.starts.tolist())):
                if place not in self.shared:
                    yield self.first + place, end - start

        return Layer(find, each, len(self), set())


def high_halves(keys: Sequence[bytes]) -> Array:
    """The first halves of identities, as numbers."""
    found: Array = np.frombuffer(b"".join(keys), ">u8").reshape(-1, 2)[:, 0].astype(np.uint64)
    return found


def open_bulk(folder: Path, name: str, first: int, identity: str) -> Bulk:
    """Compare the digests and map a bulk of the channel in a folder; raise LostBulk if it is
    missing or damaged, and EnvironmentProblem if it can't be read now."""
    return _open(folder.absolute() / BULKS / name, first, identity)


@lru_cache(OPEN)
def _open(path: Path, first: int, identity: str) -> Bulk:
    try:
        need_whole(path)
        found = identity_of(path)
        if found != identity:
            raise SnapshotError(f"'{path}' is not the snapshot that was adopted")
        return Bulk(path, first)
    except (UnreadableSnapshot, OSError) as problem:
        raise EnvironmentProblem(
            f"subscriptions of the channel in '{path}' can't be read now: {problem}; they may be "
            "intact, so none are given up"
        ) from problem
    except SnapshotError as problem:
        raise LostBulk(
            f"subscriptions of the channel are damaged: {problem}; restore '{path}' from a backup, "
            f"or give up the damaged subscriptions with `tidings subscriptions repair "
            f"{path.parent.parent}`"
        ) from problem
