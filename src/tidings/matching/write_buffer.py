"""The write buffer: filters that were added recently, kept in a dictionary index until they are
sealed."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters.canonical import AccessIndex, Form
from tidings.filters.language import Attribute
from tidings.filters.values import Key, key
from tidings.matching.buffer_rows import BufferRows
from tidings.model import Event

Array = npt.NDArray[Any]


class WriteBuffer:
    """Slots with the forms of their filters. A write buffer is not thread-safe: callers must hold a
    lock.

    The index uses internal numbers for forms, so it need not be changed when slots are renumbered.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._forms: dict[int, tuple[int, Form]] = {}
        self._by_slot: dict[int, int] = {}
        self._index: AccessIndex[int] = AccessIndex()
        # for `find_rows`: filters that were not added to the other two yet, then the filters that
        # `BufferRows` takes, and all others
        self._unsorted: dict[int, Form] = {}
        self._rows = BufferRows()
        self._others: AccessIndex[int] = AccessIndex()
        self._other_forms: dict[int, Form] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def add(self, slot: int, form: Form) -> None:
        number = next(self._numbers)
        self._forms[number] = (slot, form)
        self._by_slot[slot] = number
        self._index.add(number, form)
        self._unsorted[number] = form

    def discard(self, slot: int) -> None:
        """Remove a slot if this buffer contains it."""
        number = self._by_slot.pop(slot, None)
        if number is None:
            return
        self._index.discard(number, self._forms.pop(number)[1])
        self._rows.discard(number)
        other = self._other_forms.pop(number, None)
        if other is not None:
            self._others.discard(number, other)
        self._unsorted.pop(number, None)

    def match(self, event: Event) -> list[int]:
        """The slots of the filters that match an event."""
        values: dict[str, Key] = {}
        found = (self._forms[number] for number in self._index.may_hold(event, values))
        return [slot for slot, form in found if form.holds(event, values)]

    def find_rows(self, batch: pa.RecordBatch) -> Array:
        """A Boolean for each row: whether a filter may match it. Only the rows that may match have
        to be read as events. Cost: one pass over each column that filters test, and for each box of
        those that `BufferRows` takes, if its attributes are all there, one pass over the rows. A
        null in the batch may also represent an absent value."""
        for number, form in self._unsorted.items():
            if not self._rows.add(number, form):
                self._others.add(number, form)
                self._other_forms[number] = form
        self._unsorted.clear()
        found = self._rows.find(batch)
        _mark_others(batch, self._others, found)
        return found

    def items(self) -> list[tuple[int, Form]]:
        """The slots and forms that are in the buffer now."""
        return list(self._forms.values())

    def renumber(self, number: npt.NDArray[np.int64]) -> None:
        """Replace every slot with `number[slot]`."""
        self._forms = {n: (int(number[slot]), form) for n, (slot, form) in self._forms.items()}
        self._by_slot = {slot: n for n, (slot, _) in self._forms.items()}


def _mark_others(batch: pa.RecordBatch, index: AccessIndex[int], found: Array) -> None:
    """Mark the rows that have a value under which some filter is indexed."""
    if index.is_loose:
        found[:] = True
        return
    names = batch.schema.names
    for term, node in index.terms.items():
        assert type(node) is Attribute  # an index is loose if it has computed terms
        name, *deeper = node.path
        if name in names:
            _mark_rows(batch.column(name), term, index, bool(deeper), found)
        elif index.allows_absent(term):
            found[:] = True
        if found.all():
            break


def _mark_rows(
    column: pa.Array, term: str, index: AccessIndex[int], is_deeper: bool, found: Array
) -> None:
    """Mark the rows in which the value of a term may match. With `is_deeper`, the term is a field
    inside the column's values."""
    if pa.types.is_nested(column.type):
        found |= index.allows_absent(term) | np.asarray(column.is_valid())
        return
    values = column.dictionary_encode()
    keys = [index.may_take(term, key(one)) for one in values.dictionary.to_pylist()]
    takes = np.array([index.allows_absent(term), *keys], np.bool_)
    if is_deeper:
        takes[:] = True
    codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    found |= takes[codes + 1]
