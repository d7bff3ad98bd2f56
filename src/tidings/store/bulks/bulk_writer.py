"""Writes the folder of a bulk: a snapshot with other numbers, and what lookups need."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.files import make_durable_folder, sync
from tidings.snapshots import Snapshot, identity_of
from tidings.store.bulks.bulk import ORDER, SHARED, SORTED
from tidings.store.folder import BULKS


def write_bulk(
    folder: Path, snapshot: Snapshot, first: int, shared: Mapping[int, int], mark: str = ""
) -> tuple[str, str]:
    """Write a snapshot as a bulk whose nodes are numbered from `first` on; return its name, which
    ends with the mark, and its identity. `shared` maps places to the nodes that their filters
    already have in the channel."""
    home = folder / BULKS
    make_durable_folder(home)
    name = f"{first:020d}-{mark or uuid.uuid4().hex[:8]}"
    last = first + len(snapshot.numbers) - 1
    renumbered = snapshot.renumber(first, last)
    keys = snapshot.keys
    pairs = np.frombuffer(b"".join(keys), ">u8").reshape(-1, 2).astype(np.uint64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    renumbered.save(
        home / name,
        {
            SORTED: {
                "high": pa.array(pairs[order, 0]),
                "low": pa.array(pairs[order, 1]),
                "place": pa.array(order.astype(np.uint32)),
            },
            ORDER: {"position": pc.sort_indices(snapshot.ids).cast(pa.uint32())},
            SHARED: {
                "place": pa.array(shared.keys(), pa.int64()),
                "node": pa.array(shared.values(), pa.int64()),
            },
        },
    )
    sync(home)
    return name, identity_of(home / name)
