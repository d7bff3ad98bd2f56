"""The interface of a channel's relations: related nodes, and the bytes that describe them in
frames.

    content, lowest nodes ──relate──> lowest nodes with related ones, front of the body

In a channel without relations, a notification has no front, and its body is sent as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tidings.routing.forwarding.label_graph import Label
from tidings.routing.root.records import PayloadColumns

Numbers = npt.NDArray[np.int64]


class Relation(NamedTuple):
    """The lowest nodes of a notification, including related nodes, and its front: the bytes that
    precede its body (see protocol/contents/envelopes.py)."""

    lowest: Label
    front: bytes


class Relating(Protocol):
    """The relations of a channel (channel/related implements it). An interest in related
    notifications has a *related node*; below it lies the *exact node*, which stands for the filter
    alone. The exact node exists for as long as the related node does."""

    @property
    def bases(self) -> Mapping[int, int]:
        """The exact node of each related node."""

    def dependents(self, node: int) -> Sequence[int]:
        """The related nodes of an exact node."""

    def least(self, node: int) -> float:
        """The lowest weight at which a related node matches a notification."""

    def relate(
        self, content: bytes, lowest: Label, matched: Collection[int], upto: int | None
    ) -> Relation:
        """The relation of a notification, given its attributes, its lowest exact nodes, and all
        exact nodes that match it (`matched`). If `upto` is not None, the exact nodes were found at
        that version, so newer ones are not considered. Never raises."""

    def begin_slice(self) -> Callable[[], bool]:
        """Begin to relate many notifications. Return a function that says whether relating them has
        taken so long that the rest should wait for the next turn."""

    def context(self, content: bytes) -> bytes:
        """The context of a notification with these attributes; empty if it has none. The context
        does not depend on nodes. Never raises."""


class RelatedRows(NamedTuple):
    """The lowest nodes of many notifications, nodes[starts[i] : starts[i + 1]], and their fronts.
    `fronts` is empty in a channel without relations."""

    starts: Numbers
    nodes: Numbers
    fronts: list[bytes]


def enclose(fronts: Sequence[bytes], bodies: PayloadColumns) -> PayloadColumns:
    """The bodies of many notifications, each with its front."""
    if not any(fronts):
        return bodies
    places = bodies.starts.tolist()
    pieces: list[bytes] = []
    for at, front in enumerate(fronts):
        pieces += front, bodies.data[places[at] : places[at + 1]]
    starts = np.zeros(len(places), np.int64)
    np.cumsum(np.diff(bodies.starts) + [len(one) for one in fronts], out=starts[1:])
    return PayloadColumns(starts, b"".join(pieces))
