"""The slots of filters: ids and texts by slot, and slots by id.

The ids and texts of a snapshot stay in its mapped Arrow columns; those that are added later are in
lists.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters import Filter
from tidings.model import TidingsError

FEW = 16  # for up to this many ids, looking them up one by one is as fast as using NumPy


class Register:
    """Assigns slots to ids, in order. A slot is never reused; `compact` creates a new register."""

    def __init__(self, ids: Any = None, texts: Any = None) -> None:
        self._base_ids = ids  # an Arrow ChunkedArray, or None
        self._base_texts = texts
        self._base = len(ids) if ids is not None else 0
        self._lock = threading.Lock()
        self._ids: list[Hashable] = []
        self._texts: list[str | Filter] = []
        self._slots: dict[Hashable, int] | None = None if self._base else {}
        self._array: npt.NDArray[Any] = np.empty(0, np.int64)
        self._seen_size = -1
        self.gone = 0
        """The number of slots of removed filters."""
        self._column: Any = None
        self.dead = np.zeros(max(1024, self._base), np.uint8)

    @property
    def size(self) -> int:
        """One more than the highest assigned slot."""
        return self._base + len(self._ids)

    def __len__(self) -> int:
        """The number of live filters."""
        return self._base if self._slots is None else len(self._slots)

    @property
    def columns(self) -> tuple[Any, Any] | None:
        """(ids, texts) in Arrow memory; None if filters have been added or removed."""
        untouched = self._base and not self._ids and not self.gone
        return (self._base_ids, self._base_texts) if untouched else None

    @property
    def slots(self) -> dict[Hashable, int]:
        """The slots of the ids that are alive. The mapping is built when it is first used, because
        matching a snapshot does not need it."""
        with self._lock:
            if self._slots is None:
                known = zip(self._base_ids.to_pylist(), range(self._base), strict=True)
                self._slots = dict(known)
        return self._slots

    def give(self, id_: Hashable, filter_: Filter | str) -> int:
        """Assign a new slot to an id."""
        slot = self.size
        self.slots[id_] = slot
        self._append(id_, filter_)
        return slot

    def _append(self, id_: Hashable, filter_: Filter | str) -> None:
        self._ids.append(id_)
        self._texts.append(filter_)
        if self.size > len(self.dead):
            self.dead = np.concatenate([self.dead, np.zeros(len(self.dead), np.uint8)])

    def slot(self, id_: Hashable) -> int:
        slot = self.slots.get(id_)
        if slot is None:
            raise TidingsError(f"there is no filter with the id {id_!r}")
        return slot

    def id(self, slot: int) -> Hashable:
        if slot >= self._base:
            return self._ids[slot - self._base]
        found: Hashable = self._base_ids[slot].as_py()
        return found

    def text(self, slot: int) -> str | Filter:
        if slot >= self._base:
            return self._texts[slot - self._base]
        found: str = self._base_texts[slot].as_py()
        return found

    def ids_of(self, slots: npt.NDArray[Any]) -> list[Hashable]:
        known = self._array
        if len(known) == self.size or (len(slots) > FEW and slots.max() < len(known)):
            # NumPy briefly releases the GIL here. A background thread that waits for the GIL then
            # has to start its wait again, so it does not interrupt a match.
            found: list[Hashable] = known[slots].tolist()
            return found
        return [self.id(slot) for slot in slots.tolist()]

    def keep_ids(self) -> None:
        """Prepare the array of ids for `ids_of`, unless ids are still being added."""
        size = self.size
        if size == self._seen_size:
            self.id_array()
        self._seen_size = size

    def id_array(self) -> npt.NDArray[Any]:
        """All ids, by slot; the type of the array is int64 if all of them fit, else object. The
        array is cached until ids are added."""
        size, known = self.size, self._array
        if len(known) != size:
            if not len(known) and self._base:
                known = self._base_ids.to_numpy()
            start = len(known)
            added = _as_array(self._ids[start - self._base : size - self._base])
            if start:
                same = added.dtype if added.dtype == known.dtype else np.dtype(object)
                known = np.concatenate([known.astype(same), added.astype(same)])
            else:
                known = added
            self._array = known
        return known

    def id_column(self) -> Any:
        """All ids as an Arrow array, ordered by slot. The array is cached until ids are added."""
        column = self._column
        if column is None or len(column) != self.size:
            column = self._column = self._make_column()
        return column

    def _make_column(self) -> Any:
        base = self._base_ids.combine_chunks() if self._base else None
        ids = self._ids[:]
        kinds = {type(id_) for id_ in ids}
        if base is not None:
            kinds.add(int if pa.types.is_integer(base.type) else str)
        # the ids of removed filters are never used, so any value may replace them
        if len(kinds) > 1:
            alive = self.dead[self._base : self._base + len(ids)] == 0
            kinds = {type(id_) for id_, is_alive in zip(ids, alive, strict=True) if is_alive}
            if base is not None:
                kinds.add(int if pa.types.is_integer(base.type) else str)
            if len(kinds) == 1:
                other = 0 if kinds == {int} else ""
                ids = [id_ if is_alive else other for id_, is_alive in zip(ids, alive, strict=True)]
        try:
            if len(kinds) > 1:
                raise TypeError
            tail = pa.array(ids, base.type if base is not None else None)
        except (TypeError, OverflowError, UnicodeEncodeError, pa.ArrowException):
            raise TidingsError(
                "the ids have several types, or a type that Arrow can't hold; use match_pairs"
            ) from None
        return tail if base is None else pa.concat_arrays([base, tail])

    def kill(self, slot: int) -> None:
        """Mark a slot dead; it is dropped when parts are merged."""
        self.dead[slot] = 1
        self.gone += 1

    def compact(self, dead: npt.NDArray[np.uint8]) -> Register:
        """A new register with only the slots that are alive. `dead` is a copy of the marks of dead
        slots.

        Ids and texts are only ever appended, so this may run while filters are being added;
        `catch_up` then applies the changes that were made meanwhile.
        """
        kept = np.nonzero(dead == 0)[0].tolist()
        new = Register()
        new._ids = [self.id(slot) for slot in kept]
        new._texts = [self.text(slot) for slot in kept]
        new._slots = {id_: at for at, id_ in enumerate(new._ids)}
        new.dead = np.zeros(max(1024, 2 * len(kept)), np.uint8)
        return new

    def catch_up(self, old: Register, dead: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Apply to this register the changes that were made to `old` after `dead` was copied;
        return the new number of every old slot. Cost: one pass over all marks, plus one step for
        each change."""
        before = len(dead)
        number = np.cumsum(np.append(dead == 0, np.ones(old.size - before, bool))) - 1
        for slot in range(before, old.size):
            self._append(old.id(slot), old.text(slot))
        killed = np.nonzero(old.dead[:before] != dead)[0].tolist()
        for slot in (*killed, *range(before, old.size)):
            if old.dead[slot]:
                self.kill(int(number[slot]))
            id_ = old.id(slot)
            now = old.slots.get(id_)
            if now is None:
                self.slots.pop(id_, None)
            else:
                self.slots[id_] = int(number[now])
        return number


def _as_array(ids: list[Hashable]) -> npt.NDArray[Any]:
    if set(map(type, ids)) <= {int}:
        try:
            return np.array(ids, np.int64)
        except OverflowError:
            pass
    out = np.empty(len(ids), object)
    out[:] = ids
    return out
