"""From subscriptions to the arrays of a snapshot: nodes, edges, and who subscribed to what.

    (id, text) ──parse──> filter ──key──> distinct filters ──cover──> nodes and edges
                                              |
                                         index over them

Filters that are equal, or that are written differently and cover each other, are one node, whose
text is that of the first. Nodes lie in the order of their numbers; a node's place is its position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters import Attributes, Filter, parse
from tidings.filters.form import Form
from tidings.matching import Matcher
from tidings.matching.coverage import cover
from tidings.model import FilterError, TidingsError

Array = npt.NDArray[Any]
Id = str | int
Functions = Mapping[str, Callable[..., Any]]


class Nodes(msgspec.Struct, frozen=True):
    """The nodes of a graph by place, and their members: the subscriptions, node by node."""

    numbers: Array  # int64 [N], rising
    keys: list[bytes]  # of the filter that the node's text is of
    parent_starts: Array  # int64 [N + 1]
    parents: Array  # uint32: places
    member_starts: Array  # int64 [N + 1]
    ids: list[Id]  # of the members


class Distinct:
    """Subscriptions by filter: the ids of each, the first filter of each."""

    def __init__(
        self, attributes: Attributes | None = None, functions: Functions | None = None
    ) -> None:
        self.attributes = attributes
        self.functions = functions
        self.filters: dict[bytes, Filter] = {}
        self.ids: dict[bytes, list[Id]] = {}
        self._seen: set[Id] = set()

    def add(self, id_: Id, filter_: Filter | str) -> None:
        if type(id_) not in (str, int):
            raise TidingsError(f"found the id {id_!r:.80}, expected a text or an integer")
        if id_ in self._seen:
            raise TidingsError(f"the id {id_!r} is there twice")
        try:
            if not isinstance(filter_, Filter):
                filter_ = parse(filter_, attributes=self.attributes, functions=self.functions)
            key = filter_.key
        except FilterError as problem:
            problem.add_note(f"It is the filter of the id {id_!r}.")
            raise
        self._seen.add(id_)
        self.filters.setdefault(key, filter_)
        self.ids.setdefault(key, []).append(id_)


def build_nodes(
    distinct: Distinct,
    numbers: Mapping[bytes, int] | None = None,
    progress: Callable[[int], None] = lambda _: None,
    threads: int | None = None,
) -> tuple[Nodes, Matcher]:
    """The graph of distinct filters and the index over its nodes, whose ids are their places.

    `numbers` has the number of the node of each key; without it they are counted from 1.
    """
    keys = list(distinct.filters)
    if numbers is not None:
        keys.sort(key=numbers.__getitem__)
    forms: list[Form] = [distinct.filters[key].form for key in keys]
    found = cover(forms, progress, threads)
    firsts, place_of = np.unique(found.first, return_inverse=True)
    count = len(firsts)
    kept = [keys[at] for at in firsts.tolist()]
    given = [numbers[key] for key in kept] if numbers is not None else range(1, count + 1)
    parent_starts, parents = _grouped(place_of[found.below], place_of[found.above], count)
    members: list[list[Id]] = [[] for _ in range(count)]
    for key, place in zip(keys, place_of.tolist(), strict=True):
        members[place] += distinct.ids[key]
    sizes = np.fromiter(map(len, members), np.int64, count)
    nodes = Nodes(
        np.array(given, np.int64),
        kept,
        parent_starts,
        parents,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        [id_ for ids in members for id_ in ids],
    )
    matcher = Matcher(distinct.attributes, functions=distinct.functions, background=False)
    matcher.add_many((place, distinct.filters[key]) for place, key in enumerate(kept))
    return nodes, matcher


def gather(
    pairs: Iterable[tuple[Id, Filter | str]] | Mapping[Any, Filter | str], into: Distinct
) -> Distinct:
    """Put (id, filter) pairs, or a mapping, where equal filters meet."""
    for id_, filter_ in pairs.items() if isinstance(pairs, Mapping) else pairs:
        into.add(id_, filter_)
    return into


def _grouped(groups: Array, values: Array, count: int) -> tuple[Array, Array]:
    """(starts, values) by group."""
    order = np.lexsort((values, groups))
    starts = np.searchsorted(groups[order], np.arange(count + 1)).astype(np.int64)
    return starts, values[order].astype(np.uint32)
