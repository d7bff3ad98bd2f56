"""The early bodies that a node has sent over all its links; one bound applies to all of them.

Links that have sent the same body share one copy of it. If the bodies of all links together take
too many bytes, the node forgets the oldest bodies. The links keep the positions and sizes of
forgotten bodies, so both ends of a link still drop the same bodies at the same position; a
notification whose body is forgotten is sent whole.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count
from weakref import ref

MOST_NODE_BYTES = 64 << 20


class SharedBody:
    """A body; `data` is None if the node has forgotten the body."""

    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes) -> None:
        self.data: bytes | None = data


class SharedBodies:
    """The bodies that the links of a node keep."""

    def __init__(self, most: int = MOST_NODE_BYTES) -> None:
        self.most = most
        self.bytes = 0
        self._kept: OrderedDict[int, tuple[ref[SharedBody], int]] = OrderedDict()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._kept)

    def share(self, body: bytes) -> SharedBody:
        """Return a body that several links can keep. The bytes of a body count towards the bound
        until no link keeps the body any more."""
        number, shared = next(self._numbers), SharedBody(body)
        self._kept[number] = ref(shared, lambda _: self._drop(number)), len(body)
        self.bytes += len(body)
        while self.bytes > self.most:
            oldest = next(iter(self._kept))
            found = self._kept[oldest][0]()
            if found is not None:
                found.data = None
            self._drop(oldest)
        return shared

    def _drop(self, number: int) -> None:
        found = self._kept.pop(number, None)
        if found is not None:
            self.bytes -= found[1]
