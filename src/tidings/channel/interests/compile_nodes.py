"""Compile the nodes of a channel into a folder, in a separate process.

    python -m tidings.channel.interests.compile_nodes PLAN

    compiled nodes, without those that are gone ─┐
    nodes added since, as texts ──parse──────────┴─merge─> numbers, identities, index
    edges of the nodes whose parents changed ────merge─> edges

If the edges are not known, as after a start without a compiled folder, all filters are joined with
each other once, to find the coverings. Cost: compiling 1,000,000 `mixed` filters from their texts
takes 45 s and 2 GB; a merge parses only the filters that were added. The diagrams of wide filters,
with their implications, are built here too, within fixed budgets (matching/diagrams/planning). The
tests in diagrams are ordered by the pass rates that the rendezvous point has measured.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.channel.interests.compiled import (
    Compiled,
    Keys,
    Setting,
    arrange_keys,
    arrange_pairs,
    open_compiled,
    save,
)
from tidings.channel.interests.graph.patched_edges import CompiledGraph, compile_graph
from tidings.channel.interests.index_kinds import NEVER, WIDE, kind_of
from tidings.filters import Attributes
from tidings.matching.covering import HullGathering, bounds, cover_hulls, in_threads
from tidings.matching.placing import merge_filters, segment_at_places
from tidings.model import TidingsError, block_pandas
from tidings.preprocessing import Kind, KindDefinition
from tidings.snapshots import Forms

Array = npt.NDArray[Any]
NICE = 5  # lower priority than processes that match and place filters


class PlannedEdges(msgspec.Struct, frozen=True):
    """The new parents of the nodes whose parents have changed, by number: int64 arrays as bytes."""

    numbers: bytes
    starts: bytes
    parents: bytes


class CompileTask(msgspec.Struct, frozen=True):
    """What to compile."""

    folder: str
    attributes: dict[str, Any] | None
    most_parts: int | None
    base: str  # the identity of the compiled nodes to merge with; empty if there are none
    gone: bytes  # int64: numbers of compiled nodes that were removed
    numbers: bytes  # int64, ascending: numbers of nodes that were added
    texts: list[str]
    edges: PlannedEdges | None  # None: not known
    predicates: list[str] = []  # the names of predicates that filters may call
    measured: bytes = b""  # how often the tests of diagrams have passed so far

    @property
    def setting(self) -> Setting:
        declared = self.attributes
        attributes = None if declared is None else Attributes.from_declared(declared)
        definition = KindDefinition(predicates=dict.fromkeys(self.predicates, ""))
        return Setting(attributes, self.most_parts, Kind(attributes, definition))


def compile_nodes(plan: CompileTask) -> None:
    """Write the folder of a plan."""
    setting = plan.setting
    numbers = np.frombuffer(plan.numbers, np.int64)
    if plan.edges is None:
        _compile_texts(plan, setting, numbers)
        return
    base = open_compiled(Path(plan.folder), setting) if plan.base else None
    if base is not None and base.identity != plan.base:
        raise TidingsError(f"the nodes in '{plan.folder}' are not those that the plan names")
    _merge(plan, setting, numbers, base)


# -- from texts alone ------------------------------------------------------------------------------


def _compile_texts(plan: CompileTask, setting: Setting, numbers: Array) -> None:
    texts: list[str] = []
    keys: list[bytes] = []
    found_kinds = array("B")
    distinct: dict[bytes, int] = {}
    firsts: list[str] = []
    hulls = HullGathering()
    taken = np.zeros(len(numbers), bool)
    for at, text in enumerate(plan.texts):
        try:
            filter_ = setting.parse(text, setting.most_parts)
            key, kind = filter_.key, kind_of(filter_.form)
        except TidingsError:
            continue  # `load_nodes` parses each missing filter again, and reports why
        taken[at] = True
        texts.append(text)
        keys.append(key)
        found_kinds.append(kind)
        if distinct.setdefault(key, len(distinct)) == len(firsts):
            hulls.add(filter_.form)
            firsts.append(text)
    numbers, kinds = numbers[taken], np.array(found_kinds, np.uint8)
    form_of = np.array([distinct[key] for key in keys], np.int64)
    forms = Forms(firsts, setting.attributes, setting.kind.functions)
    gathered = hulls.finish()
    found = cover_hulls(gathered, forms, in_threads(1))
    lower, upper = found.chain_equals(form_of)
    kept = (kinds[lower] != NEVER) & (kinds[upper] != NEVER)
    matched = np.flatnonzero(kinds <= WIDE)
    segment = segment_at_places(gathered, form_of[matched], matched, forms, len(numbers))
    graph = _graph(numbers, lower[kept], upper[kept])
    column = pa.chunked_array([pa.array(texts, pa.large_string())])
    save(Path(plan.folder), setting, graph, arrange_keys(keys), kinds, segment, column)


def _graph(numbers: Array, lower: Array, upper: Array) -> CompiledGraph:
    order = np.lexsort((upper, lower))
    starts = bounds(np.bincount(lower, minlength=len(numbers)))
    return compile_graph(numbers.copy(), starts, upper[order].astype(np.uint32))


# -- a merge ---------------------------------------------------------------------------------------


def _merge(plan: CompileTask, setting: Setting, added: Array, base: Compiled | None) -> None:
    filters = [setting.parse(text) for text in plan.texts]
    old = np.zeros(0, np.int64) if base is None else base.graph.numbers
    stays = ~np.isin(old, np.frombuffer(plan.gone, np.int64))
    numbers = np.concatenate([old[stays], added])
    order = np.argsort(numbers, kind="stable")
    place_of = np.full(len(old) + len(added), -1, np.int64)
    place_of[np.concatenate([np.flatnonzero(stays), len(old) + np.arange(len(added))])[order]] = (
        np.arange(len(order))
    )
    numbers = numbers[order]
    kinds = np.array([kind_of(one.form) for one in filters], np.uint8)
    keys = arrange_keys([one.key for one in filters])
    texts = pa.array(plan.texts, pa.large_string())
    if base is not None:
        kinds = np.concatenate([base.kinds[stays], kinds])
        keys = _join_keys(base.keys, stays, keys)
        left = base.texts.cast(pa.large_string()).combine_chunks().filter(pa.array(stays))
        texts = pa.concat_arrays([left, texts])
    forms = (
        (len(old) + at, one.form) for at, one in enumerate(filters) if kind_of(one.form) <= WIDE
    )
    segment = merge_filters(
        None if base is None else base.index.segment, forms, place_of, len(numbers)
    )
    save(
        Path(plan.folder),
        setting,
        _merge_edges(plan, numbers, base, place_of),
        arrange_pairs(keys.high[order], keys.low[order]),
        kinds[order],
        segment,
        pa.chunked_array([texts.take(pa.array(order))]),
        plan.measured,
    )


def _join_keys(base: Keys, stays: Array, added: Keys) -> Keys:
    return arrange_pairs(
        np.concatenate([base.high[stays], added.high]),
        np.concatenate([base.low[stays], added.low]),
    )


def _merge_edges(
    plan: CompileTask, numbers: Array, base: Compiled | None, place_of: Array
) -> CompiledGraph:
    assert plan.edges is not None
    changed, starts, parents = (
        np.frombuffer(one, np.int64)
        for one in (plan.edges.numbers, plan.edges.starts, plan.edges.parents)
    )
    lower = np.repeat(np.searchsorted(numbers, changed), np.diff(starts))
    upper = np.searchsorted(numbers, parents)
    if base is not None:
        graph = base.graph
        stays = (place_of[: len(base)] >= 0) & ~np.isin(graph.numbers, changed)
        kept = np.repeat(stays, np.diff(graph.parent_starts))
        owner = np.repeat(place_of[: len(base)], np.diff(graph.parent_starts))
        lower = np.concatenate([owner[kept], lower])
        upper = np.concatenate([place_of[graph.parents[kept]], upper])
    return _graph(numbers, lower, upper)


def main(arguments: Sequence[str]) -> None:
    os.nice(NICE)
    block_pandas()
    compile_nodes(msgspec.msgpack.decode(Path(arguments[0]).read_bytes(), type=CompileTask))


if __name__ == "__main__":
    main(sys.argv[1:])
