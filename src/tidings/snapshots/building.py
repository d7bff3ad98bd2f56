"""Turn subscriptions into the arrays of a snapshot: nodes, edges and members.

    (id, text) ──parse──> form ──key──> distinct filters ──cover──> nodes and edges
                                              |
                                         index over them

Filters with equal forms share a node, whose text is the text of its first filter. If filters with
different forms cover each other, each has its own node; the node with the higher number lies above
the other, as at a rendezvous point. Nodes are sorted by number, and a node's place is its position
in that order. Only a filter's text and the hull gathered from its form are kept; if the form is
needed again, the text is parsed again.
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
from tidings.model import FilterError, Id, RefusedFilters, TidingsError, id_pairs, need_id

Array = npt.NDArray[Any]
Functions = Mapping[str, Callable[..., Any]]
OnProgress = Callable[[int], None]
REMEMBERED = 1 << 14  # forms kept in memory; all others are parsed from their texts again


class BuiltNodes(msgspec.Struct, frozen=True):
    """The nodes of a graph by position, and their members (subscriptions) node by node."""

    numbers: Array  # int64 [N], ascending
    keys: Any  # Arrow: the keys of the filters
    parent_starts: Array  # int64 [N + 1]
    parents: Array  # uint32: positions
    member_starts: Array  # int64 [N + 1]
    ids: Any  # Arrow: the ids of the members


class Forms(Sequence[Form]):
    """The forms of filters, computed on demand."""

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


class BuiltGraph(msgspec.Struct, frozen=True):
    """The edges between the nodes of N distinct filters, and the index over them."""

    parent_starts: Array  # int64 [N + 1]
    parents: Array  # uint32: positions
    segment: Segment


class DistinctFilters:
    """Subscriptions grouped by filter: the first text of each filter, its hull, its members."""

    def __init__(
        self, attributes: Attributes | None = None, functions: Functions | None = None
    ) -> None:
        self.attributes = attributes
        self.functions = functions
        self.number: dict[bytes, int] = {}  # the number of each filter, by its key
        self.filters: list[Filter | str] = []
        self.hulls = HullGathering()
        self.ids: list[Id] = []
        self.filter_of = array("I")  # by id
        self.refused: dict[Id, FilterError] = {}
        """Subscriptions that `try_add` left out, with the reason."""
        self.named: dict[Id, str] = {}
        """The filters that have named parts, as SQL."""
        self._seen: set[Id] = set()

    def try_add(self, id_: Id, filter_: Filter | str) -> None:
        """Add a subscription, or put it into `refused` if its filter is bad."""
        try:
            self.add(id_, filter_)
        except FilterError as problem:
            self._seen.add(id_)
            self.refused[id_] = problem

    def add(self, id_: Id, filter_: Filter | str) -> bytes:
        """Add a subscription and return the key of its filter."""
        need_id(id_)
        if id_ in self._seen:
            raise TidingsError(f"the id {id_!r} occurs twice, expected once")
        if isinstance(filter_, Filter):
            parsed = filter_
        else:
            parsed = parse(filter_, attributes=self.attributes, functions=self.functions)
        key = parsed.key
        number = self.number.get(key)
        if number is None:
            number = self.number[key] = len(self.filters)
            self.filters.append(filter_)
            self.hulls.add(parsed.form)
        if parsed.parts:
            self.named[id_] = parsed.sql()
        self._seen.add(id_)
        self.ids.append(id_)
        self.filter_of.append(number)
        return key


def build_graph(
    gathered: GatheredHulls,
    forms: Sequence[Form],
    blocks: Blocks,
    progress: OnProgress = lambda _: None,
) -> BuiltGraph:
    """The graph of distinct filters in the order of their numbers, built from their hulls, and the
    index over its nodes."""
    places = np.arange(len(forms))
    edges = cover_hulls(gathered, forms, blocks, progress).chain_equals()
    parents = _group(*edges, len(places))
    del edges
    return BuiltGraph(*parents, segment_of_hulls(gathered, places, forms))


def members_of(owners: Array, ids: Any, count: int) -> tuple[Array, Any]:
    """(starts, ids) by position, given the position of each id's node."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=starts[1:])
    if len(owners) and (owners[1:] < owners[:-1]).any():
        ids = ids.take(pa.array(np.argsort(owners, kind="stable")))
    return starts, ids


def build_nodes(
    distinct: DistinctFilters,
    numbers: Mapping[bytes, int] | None = None,
    progress: OnProgress = lambda _: None,
    threads: int | None = None,
) -> tuple[BuiltNodes, Matcher]:
    """The graph of distinct filters, and a matcher whose ids are the positions of the nodes.

    `numbers` maps the keys of filters to numbers of nodes; without it, nodes are numbered from 1.
    This consumes `distinct.hulls`.
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
    given = [numbers[key] for key in keys] if numbers is not None else range(1, len(keys) + 1)
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    nodes = BuiltNodes(
        np.array(given, np.int64),
        pa.array(keys, pa.binary()),
        graph.parent_starts,
        graph.parents,
        *members_of(place_of[owners], ids, len(keys)),
    )
    matcher = Matcher.from_segment(
        graph.segment, _hold_texts(filters), distinct.attributes, functions=distinct.functions,
        background=False,
    )  # fmt: skip
    return nodes, matcher


def _need_numbers(numbers: Mapping[bytes, int], keys: list[bytes]) -> None:
    """Raise TidingsError unless each filter has its own number."""
    given = [numbers.get(key) for key in keys]
    if None in given:
        key = keys[given.index(None)]
        raise TidingsError(
            f"found no number for the filter with the key {key.hex()}, expected one for each filter"
        )
    if len(set(given)) < len(given):
        raise TidingsError("two filters have the same number, expected a different number for each")


def _hold_texts(filters: list[Filter | str]) -> list[Filter | str] | pa.ChunkedArray:
    """Keep texts in Arrow memory. Parsed filters stay objects, because their text may need
    attributes or functions that are not known here."""
    if all(isinstance(one, str) for one in filters):
        return pa.chunked_array([pa.array(filters, pa.large_string())])
    return filters


def id_type(ids: list[Id]) -> Any:
    """The Arrow type of ids."""
    kinds = {type(id_) for id_ in ids}
    if len(kinds) > 1:
        raise SnapshotError(
            "found strings and integers as ids, expected all strings or all integers"
        )
    return pa.int64() if kinds == {int} else pa.string()


def gather(
    pairs: Iterable[tuple[Id, Filter | str]] | Mapping[Any, Filter | str],
    into: DistinctFilters,
    errors: str = "raise",
) -> DistinctFilters:
    """Add (id, filter) pairs, or a mapping, to distinct filters. If some filters are bad, raise
    RefusedFilters, which lists them; with `errors="collect"`, put them into `refused` instead."""
    if errors not in ("raise", "collect"):
        raise TidingsError(f"found errors={errors!r}, expected 'raise' or 'collect'")
    for id_, filter_ in id_pairs(pairs):
        into.try_add(id_, filter_)
    if into.refused and errors == "raise":
        raise RefusedFilters(into.refused, len(into.ids) + len(into.refused))
    return into


def _group(groups: Array, values: Array, count: int) -> tuple[Array, Array]:
    """Sort values by group; return (starts, values): where each group begins, and all values."""
    order = np.lexsort((values, groups))
    starts = np.searchsorted(groups[order], np.arange(count + 1)).astype(np.int64)
    return starts, values[order].astype(np.uint32)
