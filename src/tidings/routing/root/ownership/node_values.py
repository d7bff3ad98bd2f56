"""A number for each node, in arrays instead of objects.

    node 71    pages[71 >> 8] ──> [ . . . 6 . . . ]       71 & 255

Nodes are numbered in sequence, so pages are nearly full, and a node takes about 9 bytes here
instead of about 100 in a dictionary. A node that is alone on its page takes about 2 KB.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

BITS = 8  # a page has 2**BITS entries
LAST = (1 << BITS) - 1
_EMPTY_PAGE = bytes(8 << BITS)


class NodeValues:
    """Numbers by node; 0 means "none"."""

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def get(self, node: int) -> int:
        page = self._pages.get(node >> BITS)
        return 0 if page is None else page[node & LAST]

    def set(self, node: int, value: int) -> None:
        page = self._pages.get(node >> BITS)
        if page is None:
            if not value:
                return
            page = self._pages[node >> BITS] = array("q", _EMPTY_PAGE)
        page[node & LAST] = value
        if not value and not any(page):
            del self._pages[node >> BITS]

    def load(self, nodes: Any, values: Any) -> None:
        """Replace all values. `nodes` and `values` are arrays of int64; the nodes are distinct, and
        no value is 0."""
        keys, which = np.unique(nodes >> BITS, return_inverse=True)
        pages = np.zeros((len(keys), 1 << BITS), np.int64)
        pages[which, nodes & LAST] = values
        each = zip(keys.tolist(), pages, strict=True)
        self._pages = {key: array("q", page.tobytes()) for key, page in each}
