"""The named parts of subscriptions: which of them are true on the rows of a batch.

Subscriptions with equal filters share a node, but each has its own names. So the texts of filters
with names are stored for each subscription, separately from the nodes, and their parts are matched
separately.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters import Filter, parse
from tidings.matching import Matcher
from tidings.model import Id
from tidings.snapshots.view import View, as_lists

Array = npt.NDArray[Any]
FILE = "named.arrow"
"""The table of a snapshot with the ids and texts of filters that have named parts."""


class NamedMembers:
    """The subscriptions of a view whose filters have named parts."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._texts = view.texts_with_names

    @cached_property
    def _parts(self) -> dict[Id, list[tuple[str, int]]]:
        """For each subscription, the names of its parts, and their numbers in `_distinct`."""
        numbers: dict[bytes, int] = {}
        found: dict[Id, list[tuple[str, int]]] = {}
        for id_, filter_ in self._filters.items():
            for name, part in filter_.parts.items():
                number = numbers.setdefault(part.key, len(numbers))
                if number == len(self._distinct):
                    self._distinct.append(part)
                    self._owners.append(f"{id_}: {name}")
                found.setdefault(id_, []).append((name, number))
        return found

    @cached_property
    def _filters(self) -> dict[Id, Filter]:
        matcher = self._view.matcher
        self._distinct: list[Filter] = []
        self._owners: list[str] = []
        known = {"attributes": matcher.attributes, "functions": matcher.functions}
        return {id_: parse(text, **known) for id_, text in self._texts.items()}  # type: ignore[arg-type]

    @cached_property
    def parts_view(self) -> View:
        """A view in which each distinct part is a node with one member. This view says which
        columns a table must have."""
        _ = self._parts
        matcher = Matcher(
            self._view.matcher.attributes, functions=self._view.matcher.functions, background=False
        )
        matcher.add_many(enumerate(self._distinct))
        count = len(self._distinct)
        starts = np.arange(count + 1)
        none = np.zeros(count + 1, np.int64), np.zeros(0, np.uint32)
        return View(matcher, np.arange(count), none, (starts, pa.array(self._owners, pa.string())))

    @cached_property
    def _by_place(self) -> dict[int, list[Id]]:
        """The subscriptions whose filters have named parts, by the position of their node."""
        view = self._view
        ids = list(self._texts)
        at = pc.index_in(pa.array(ids, view.ids.type), value_set=view.ids).to_pylist()
        found: dict[int, list[Id]] = {}
        for id_, position in zip(ids, at, strict=True):
            if position is not None:
                place = int(np.searchsorted(view.member_starts, position, "right")) - 1
                found.setdefault(place, []).append(id_)
        return found

    def part_lists(self, batch: pa.RecordBatch, starts: Array, places: Array) -> Any:
        """For each row, the subscriptions with names that match it, each with the names of its
        parts that are true, as lists of structs; `starts` and `places` are the result of
        `View.match_places` for the batch."""
        rows, numbers = self.parts_view.matcher.match_pairs(batch)
        true = set(zip(rows.tolist(), numbers.tolist(), strict=True))
        ids: list[Id] = []
        names: list[list[str]] = []
        counts = np.zeros(len(starts), np.int64)
        by_place, some = self._by_place, list(self._by_place)
        for at in np.flatnonzero(np.isin(places, np.array(some, np.int64))).tolist():
            row = int(np.searchsorted(starts, at, "right")) - 1
            for id_ in by_place[int(places[at])]:
                ids.append(id_)
                names.append([name for name, part in self._parts[id_] if (row, part) in true])
                counts[row + 1] += 1
        arrays = [pa.array(ids, self._view.ids.type), pa.array(names, pa.list_(pa.string()))]
        return as_lists(np.cumsum(counts), pa.StructArray.from_arrays(arrays, ["id", "names"]))
