"""A few numbers that the processes of a run share, in a file that each of them maps."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

PUBLISHERS = 16  # at most
WAIT, PUBLISH, STOP, FINISH = range(4)
_SLOT = struct.Struct("<q")


class Board:
    """Every number has one writer."""

    def __init__(self, path: Path) -> None:
        size = _SLOT.size * (1 + 3 * PUBLISHERS)
        if not path.exists():
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), size)

    def _get(self, slot: int) -> int:
        return int(_SLOT.unpack_from(self._map, slot * _SLOT.size)[0])

    def _set(self, slot: int, value: int) -> None:
        _SLOT.pack_into(self._map, slot * _SLOT.size, value)

    @property
    def stage(self) -> int:
        return self._get(0)

    @stage.setter
    def stage(self, value: int) -> None:
        self._set(0, value)

    def said(self, publisher: int) -> int:
        """The last one that was handed to the agent."""
        return self._get(1 + publisher)

    def say(self, publisher: int, number: int) -> None:
        self._set(1 + publisher, number)

    def acknowledged(self, publisher: int) -> int:
        """All up to this one are acknowledged."""
        return self._get(1 + PUBLISHERS + publisher)

    def acknowledge(self, publisher: int, number: int) -> None:
        self._set(1 + PUBLISHERS + publisher, number)

    def told(self, reader: int) -> int:
        return self._get(1 + 2 * PUBLISHERS + reader)

    def tell(self, reader: int, count: int) -> None:
        self._set(1 + 2 * PUBLISHERS + reader, count)

    def total(self) -> int:
        """How many are acknowledged."""
        return sum(self.acknowledged(one) for one in range(PUBLISHERS))
