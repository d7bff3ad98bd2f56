"""From subscriptions to the arrays of a snapshot: nodes, edges, and who subscribed to what.

    (id, text) ──parse──> form ──key──> distinct filters ──cover──> nodes and edges
                                              |
                                         index over them

Filters that are equal, or that are written differently and cover each other, are one node, whose
text is that of the first. Nodes lie in the order of their numbers; a node's place is its position.
Of a filter, only its text and what was gathered of its form are kept; where the form is needed once
more, the text is parsed again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters import Attributes, Filter, parse
from tidings.filters.canonical import Form
from tidings.matching import Matcher
from tidings.matching.covering import (
    Blocks,
    GatheredHulls,
    HullGathering,
    cover_hulls,
    in_threads,
    segment_of_hulls,
)
from tidings.matching.disk import SnapshotError
from tidings.matching.segments import Segment
from tidings.model import FilterError, Id, TidingsError, id_pairs, need_id

Array = npt.NDArray[Any]
Functions = Mapping[str, Callable[..., Any]]
Told = Callable[[int], None]
REMEMBERED = 1 << 14  # forms that are kept when they were parsed again


class Nodes(msgspec.Struct, frozen=True):
    """The nodes of a graph by place, and their members: the subscriptions, node by node."""

    numbers: Array  # int64 [N], rising
    keys: Any  # Arrow: of the filter that the node's text is of
    parent_starts: Array  # int64 [N + 1]
    parents: Array  # uint32: places
    member_starts: Array  # int64 [N + 1]
    ids: Any  # Arrow: of the members


class Forms(Sequence[Form]):
    """The forms of filters, made when they are asked for."""

    def __init__(
        self, filters: Any, attributes: Attributes | None, functions: Functions | None = None
    ) -> None:
        self._filters = filters  # a list, or an Arrow column of texts
        self._attributes = attributes
        self._functions = functions
        self._form = lru_cache(REMEMBERED)(self._make)

    def __len__(self) -> int:
        return len(self._filters)

    @overload
    def __getitem__(self, at: int) -> Form: ...
    @overload
    def __getitem__(self, at: slice) -> list[Form]: ...
    def __getitem__(self, at: int | slice) -> Form | list[Form]:
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        return self._form(int(at))

    def _make(self, at: int) -> Form:
        filter_ = self._filters[at]
        if isinstance(filter_, Filter):
            return filter_.form
        text = filter_ if isinstance(filter_, str) else filter_.as_py()
        return parse(text, attributes=self._attributes, functions=self._functions).form


class Graph(msgspec.Struct, frozen=True):
    """The nodes of n filters and the index over them."""

    firsts: Array  # int64 [N]: by place, the filter that the node's text is of
    place_of: Array  # int64 [n]: the place of each filter's node
    parent_starts: Array  # int64 [N + 1]
    parents: Array  # uint32: places
    segment: Segment


class DistinctFilters:
    """Subscriptions by filter: the first text of each, what is known of its form, its members."""

    def __init__(
        self, attributes: Attributes | None = None, functions: Functions | None = None
    ) -> None:
        self.attributes = attributes
        self.functions = functions
        self.number: dict[bytes, int] = {}  # of a filter, by its key
        self.filters: list[Filter | str] = []
        self.hulls = HullGathering()
        self.ids: list[Id] = []
        self.filter_of = array("I")  # by id
        self._seen: set[Id] = set()

    def add(self, id_: Id, filter_: Filter | str) -> bytes:
        """Add a subscription; gives the key of its filter."""
        need_id(id_)
        if id_ in self._seen:
            raise TidingsError(f"the id {id_!r} is there twice")
        try:
            if isinstance(filter_, Filter):
                parsed = filter_
            else:
                parsed = parse(filter_, attributes=self.attributes, functions=self.functions)
            key = parsed.key
        except FilterError as problem:
            problem.add_note(f"It is the filter of the id {id_!r}.")
            raise
        number = self.number.get(key)
        if number is None:
            number = self.number[key] = len(self.filters)
            self.filters.append(filter_)
            self.hulls.add(parsed.form)
        self._seen.add(id_)
        self.ids.append(id_)
        self.filter_of.append(number)
        return key


def build_graph(
    gathered: GatheredHulls, forms: Sequence[Form], blocks: Blocks, progress: Told = lambda _: None
) -> Graph:
    """The graph of what was gathered of distinct filters, and the index over its nodes."""
    found = cover_hulls(gathered, forms, blocks, progress)
    firsts, place_of = np.unique(found.first, return_inverse=True)
    edges = _group(place_of[found.below], place_of[found.above], len(firsts))
    del found
    return Graph(firsts, place_of, *edges, segment_of_hulls(gathered, firsts, forms))


def members_of(owners: Array, ids: Any, count: int) -> tuple[Array, Any]:
    """(starts, ids) by place, given the place of each id."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=starts[1:])
    if len(owners) and (owners[1:] < owners[:-1]).any():
        ids = ids.take(pa.array(np.argsort(owners, kind="stable")))
    return starts, ids


def build_nodes(
    distinct: DistinctFilters,
    numbers: Mapping[bytes, int] | None = None,
    progress: Told = lambda _: None,
    threads: int | None = None,
) -> tuple[Nodes, Matcher]:
    """The graph of distinct filters and the index over its nodes, whose ids are their places.

    `numbers` has the number of the node of each key; without it they are counted from 1. What was
    gathered is used up.
    """
    blocks = in_threads(threads)
    ids = pa.array(distinct.ids, id_type(distinct.ids))
    filters, owners = distinct.filters, np.array(distinct.filter_of, np.int64)
    keys = list(distinct.number)
    order = np.arange(len(keys))
    if numbers is not None:
        _need_numbers(numbers, keys)
        order = np.argsort([numbers[key] for key in keys], kind="stable")
        keys, filters = [keys[at] for at in order], [filters[at] for at in order]
    forms = Forms(filters, distinct.attributes, distinct.functions)
    graph = build_graph(distinct.hulls.finish(order), forms, blocks, progress)
    firsts, count = graph.firsts.tolist(), len(graph.firsts)
    kept = [keys[at] for at in firsts]
    given = [numbers[key] for key in kept] if numbers is not None else range(1, count + 1)
    place_of = np.empty(len(order), np.int64)
    place_of[order] = graph.place_of
    nodes = Nodes(
        np.array(given, np.int64),
        pa.array(kept, pa.binary()),
        graph.parent_starts,
        graph.parents,
        *members_of(place_of[owners], ids, count),
    )
    matcher = Matcher.compiled(
        graph.segment, _hold_texts([filters[at] for at in firsts]), distinct.attributes,
        functions=distinct.functions, background=False,
    )  # fmt: skip
    return nodes, matcher


def _need_numbers(numbers: Mapping[bytes, int], keys: list[bytes]) -> None:
    """TidingsError unless each filter has a number of its own."""
    given = [numbers.get(key) for key in keys]
    if None in given:
        key = keys[given.index(None)]
        raise TidingsError(f"there is no number for the filter with the key {key.hex()}")
    if len(set(given)) < len(given):
        raise TidingsError("two filters have one number, expected a number of its own for each")


def _hold_texts(filters: list[Filter | str]) -> list[Filter | str] | pa.ChunkedArray:
    """Texts in Arrow memory. Filters that were made elsewhere stay: here it may not be known what
    their text means."""
    if all(isinstance(one, str) for one in filters):
        return pa.chunked_array([pa.array(filters, pa.large_string())])
    return filters


def id_type(ids: list[Id]) -> Any:
    """The Arrow type of ids."""
    kinds = {type(id_) for id_ in ids}
    if len(kinds) > 1:
        raise SnapshotError("the ids are texts and integers; expected all texts or all integers")
    return pa.int64() if kinds == {int} else pa.string()


def gather(
    pairs: Iterable[tuple[Id, Filter | str]] | Mapping[Any, Filter | str], into: DistinctFilters
) -> DistinctFilters:
    """Add (id, filter) pairs, or a mapping, to distinct filters."""
    for id_, filter_ in id_pairs(pairs):
        into.add(id_, filter_)
    return into


def _group(groups: Array, values: Array, count: int) -> tuple[Array, Array]:
    """(starts, values) by group."""
    order = np.lexsort((values, groups))
    starts = np.searchsorted(groups[order], np.arange(count + 1)).astype(np.int64)
    return starts, values[order].astype(np.uint32)
