"""Ids of slots: from the array of those that are known, or one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidings.matching.register import FEW, Register


@pytest.mark.parametrize("base", [0, 50])
def test_ids_while_more_are_added(base: int) -> None:
    """The array that is known may end before the slots that were given last."""
    names = [f"b{number}" for number in range(base)]
    texts = pa.chunked_array([pa.array(["a = 1"] * base, pa.string())])
    register = Register(pa.chunked_array([pa.array(names)]), texts) if base else Register()
    for number in range(100):
        register.give(f"n{number}", "a = 1")
        names.append(f"n{number}")
    register.id_array()
    known = len(names)
    for number in range(100, 120):
        register.give(number, "a = 1")  # an id of another kind
        names.append(number)  # type: ignore[arg-type]
    for slots in (
        np.arange(known - FEW - 1, known),  # many, all of them known
        np.arange(known - FEW, known),  # few
        np.arange(known - FEW, known + 1),  # many, one of them not
        np.arange(known, known + 20),
        np.arange(known + 20)[::-1],
        np.arange(0),
    ):
        assert register.ids_of(slots) == [names[slot] for slot in slots.tolist()]
    register.keep_ids()
    register.keep_ids()  # none was added in between
    assert len(register._array) == len(names)
    assert register.ids_of(np.arange(len(names))) == names


def test_ids_that_are_known_come_from_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    register = Register()
    for number in range(100):
        register.give(number, "a = 1")
    register.id_array()
    register.give(100, "a = 1")

    def never(self: Register, slot: int) -> int:
        raise AssertionError(f"slot {slot} was looked up by itself")

    monkeypatch.setattr(Register, "id", never)
    assert register.ids_of(np.arange(FEW + 1)) == list(range(FEW + 1))
    with pytest.raises(AssertionError):
        register.ids_of(np.arange(FEW))
