"""The pieces of rows that do not fit into a part.

A pipeline sends a long row as consecutive notifications. Subscribers put the pieces together by the
stamp of the first one. Only the rendezvous point knows the stamps of a source, so it puts this
stamp into each piece.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from tidings.routing.protocol.contents.bodies import number_piece
from tidings.routing.root.records import PayloadColumns

LEAST = 1 << 20
"""Smaller payloads are not examined, because a pipeline makes no smaller pieces."""


def number_pieces(payloads: PayloadColumns, stamp: int) -> PayloadColumns:
    """The payloads of a source, with the stamps of first pieces. `stamp` is the stamp of the first
    payload. Cost: only payloads of LEAST bytes or more are looked at one by one."""
    long = np.flatnonzero(np.diff(payloads.starts) >= LEAST)
    if not len(long):
        return payloads
    found = [*payloads.each()]
    is_changed = False
    for at in long.tolist():
        numbered = number_piece(found[at], stamp + at)
        is_changed |= numbered is not found[at]
        found[at] = numbered
    return _join(found) if is_changed else payloads


def _join(payloads: Iterable[bytes]) -> PayloadColumns:
    given = list(payloads)
    starts = np.fromiter(accumulate(map(len, given), initial=0), np.int64, len(given) + 1)
    return PayloadColumns(starts, b"".join(given))
