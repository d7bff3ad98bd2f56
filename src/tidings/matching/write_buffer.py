"""The write buffer: newly added filters, kept in a dictionary index until they are sealed."""

from __future__ import annotations

from itertools import count

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import AccessIndex, Form
from tidings.filters.values import Key
from tidings.model import Event


class WriteBuffer:
    """Slots with the forms of their filters. A write buffer is not safe to use without a lock.

    The index refers to forms by internal numbers, so renumbering slots does not change the index.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._forms: dict[int, tuple[int, Form]] = {}
        self._by_slot: dict[int, int] = {}
        self._index: AccessIndex[int] = AccessIndex()

    def __len__(self) -> int:
        return len(self._forms)

    def add(self, slot: int, form: Form) -> None:
        number = next(self._numbers)
        self._forms[number] = (slot, form)
        self._by_slot[slot] = number
        self._index.add(number, form)

    def discard(self, slot: int) -> None:
        """Remove a slot, if it is in this buffer."""
        number = self._by_slot.pop(slot, None)
        if number is not None:
            self._index.discard(number, self._forms.pop(number)[1])

    def match(self, event: Event) -> list[int]:
        """The slots of the filters that match an event."""
        values: dict[str, Key] = {}
        found = (self._forms[number] for number in self._index.may_hold(event, values))
        return [slot for slot, form in found if form.holds(event, values)]

    def items(self) -> list[tuple[int, Form]]:
        """The current slots and forms."""
        return list(self._forms.values())

    def renumber(self, number: npt.NDArray[np.int64]) -> None:
        """Replace every slot with `number[slot]`."""
        self._forms = {n: (int(number[slot]), form) for n, (slot, form) in self._forms.items()}
        self._by_slot = {slot: n for n, (slot, _) in self._forms.items()}
