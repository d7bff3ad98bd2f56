"""The compiled nodes of a channel: a folder of mapped arrays that is replaced as a whole.

    manifest.json     counts, and the settings for reading filters
    nodes, edges ...  numbers, kinds, identities; parents and children (places)
    boxes, corners ...    the index that finds the neighbours of a new filter
    index/            the matcher over the plain and wide filters, with all texts and diagrams

The folder can be rebuilt from the journal. So a folder that does not match (another version of the
program, other declared attributes, a damaged file) is not used, and the nodes are compiled again.

Memory: 430 bytes per `mixed` filter, texts included, all of it mapped; docs/performance.md has the
details.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings import filters, matching, model
from tidings.channel.interests.graph.patched_edges import CompiledGraph
from tidings.channel.interests.index_kinds import COMPILED_ENGINE
from tidings.filters import Attributes, Filter, parse
from tidings.matching import Matcher
from tidings.matching.covering import Boxed, CompiledBoxes
from tidings.matching.disk import (
    SnapshotError,
    as_array,
    need_files,
    read_manifest,
    read_table,
    read_whole,
    replacing,
    write_manifest,
    write_table,
)
from tidings.matching.jit import sources_digest
from tidings.matching.placing import BoxIndex, Corners, IndexArrays, save_segment
from tidings.matching.segments import Segment
from tidings.preprocessing import Kind

Array = npt.NDArray[Any]
_TWO_NUMBERS = struct.Struct(">QQ")
Tuple = TypeVar("Tuple", bound=tuple[Any, ...])
FORMAT, VERSION = "tidings-interests", 1


class Setting(NamedTuple):
    """The settings for reading filters. Nodes compiled with other settings are not used."""

    attributes: Attributes | None = None
    most_parts: int | None = None
    kind: Kind = Kind()
    """Turns interests into filters. The filters of compiled nodes are in SQL, and are read without
    it."""

    def notes(self) -> dict[str, Any]:
        declared = None if self.attributes is None else self.attributes.to_declared()
        predicates = sorted(self.kind.functions)
        return {
            "attributes": declared, "parts": self.most_parts, "predicates": predicates,
            "program": _program(),
        }  # fmt: skip

    def parse(self, text: str, most_parts: int | None = None) -> Filter:
        """A filter in SQL, as nodes store it."""
        return parse(
            text, attributes=self.attributes, functions=self.kind.functions, most_parts=most_parts
        )


@cache
def _program() -> str:
    """A digest of the source code that reads and compiles filters. Another version of the source
    code may read or compile filters differently."""
    rooms = (Path(str(room.__file__)).parent for room in (model, filters, matching))
    return " ".join(map(sources_digest, rooms))


class Keys(NamedTuple):
    """The identities of nodes, 16 bytes each, as two numbers."""

    high: Array  # uint64 [N], by place
    low: Array  # uint64 [N]
    order: Array  # uint32 [N]: the places in the order of `high`
    ranked: Array  # uint64 [N]: `high` in that order


def arrange_keys(keys: list[bytes]) -> Keys:
    """The identities of nodes, given by place."""
    pairs = np.frombuffer(b"".join(keys), ">u8").reshape(-1, 2).astype(np.uint64)
    return arrange_pairs(pairs[:, 0].copy(), pairs[:, 1].copy())


def arrange_pairs(high: Array, low: Array) -> Keys:
    """Like `arrange_keys`, for identities that are already pairs of numbers."""
    order = np.argsort(high, kind="stable").astype(np.uint32)
    return Keys(high, low, order, high[order])


class Compiled:
    """The compiled nodes of an open folder."""

    def __init__(
        self, graph: CompiledGraph, keys: Keys, kinds: Array, matcher: Matcher, index: BoxIndex,
        texts: Any, identity: str,
    ) -> None:  # fmt: skip
        self.identity = identity  # a digest of the folder
        self.graph = graph
        self.keys = keys
        self.kinds = kinds  # uint8 [N]
        self.matcher = matcher  # the matcher's ids are places
        self.index = index
        self.texts = texts  # an Arrow column, by place
        self._ranked = keys.ranked.data  # single elements are read faster from a view

    def __len__(self) -> int:
        return len(self.kinds)

    def text(self, place: int) -> str:
        found: str = self.texts[place].as_py()
        return found

    def key(self, place: int) -> bytes:
        pair = np.array([self.keys.high[place], self.keys.low[place]], ">u8")
        return pair.tobytes()

    def places_of(self, key: bytes) -> Iterator[int]:
        """The places of the nodes with this identity, ascending; usually one or none."""
        high, low = _TWO_NUMBERS.unpack(key)
        ranked = self._ranked
        at = bisect_left(ranked, high)
        while at < len(self) and ranked[at] == high:
            place = int(self.keys.order[at])
            if self.keys.low[place] == low:
                yield place
            at += 1


def save(
    path: Path,
    setting: Setting,
    graph: CompiledGraph,
    keys: Keys,
    kinds: Array,
    segment: Segment,
    texts: pa.ChunkedArray,
    measured: bytes = b"",
) -> None:
    """Write the folder, and replace the existing folder. `measured` has counts of how often tests
    passed, which decide the order of tests in diagrams."""
    index = BoxIndex(segment, len(kinds)).arrays
    with replacing(path) as folder:
        save_segment(folder / "index", segment, texts, measured)
        for name, found in (*_name_arrays(graph, keys, index), ("kinds", kinds)):
            write_table(folder / f"{name}.arrow", {"values": pa.array(found)})
        write_manifest(folder, FORMAT, VERSION, nodes=len(kinds), **setting.notes())


def _name_arrays(
    graph: CompiledGraph, keys: Keys, index: IndexArrays
) -> Iterator[tuple[str, Array]]:
    """All arrays with the names of their files."""
    for prefix, found in (("graph", graph), ("key", keys), ("corner", index.corners),
                          ("box", index.boxes.boxed)):  # fmt: skip
        for name, array in zip(found._fields, found, strict=True):
            yield f"{prefix}_{name}", array
    yield "box_slots", index.boxes.slots
    yield "box_wide", index.boxes.wide
    yield "box_masks", index.masks
    yield "loose", index.loose


def open_compiled(path: Path, setting: Setting) -> Compiled:
    """Check the digests and map the folder; raise SnapshotError if it is missing or does not
    match."""
    return read_whole(path, lambda folder: _read(folder, setting))


def _read(folder: Path, setting: Setting) -> Compiled:
    manifest = read_manifest(folder, FORMAT, VERSION)
    found: Mapping[str, Any] = {name: manifest.notes.get(name) for name in setting.notes()}
    if found != setting.notes():
        raise SnapshotError(f"'{folder}' was compiled with settings other than the current ones")
    need_files(folder, manifest)
    names = [name for name in manifest.files if "/" not in name]
    arrays = {
        name.removesuffix(".arrow"): as_array(read_table(folder / name).column("values"))
        for name in names
    }
    boxed = _tuple(Boxed, "box", arrays)
    index = IndexArrays(
        CompiledBoxes(arrays["box_slots"], boxed, arrays["box_wide"]),
        _tuple(Corners, "corner", arrays),
        arrays["box_masks"],
        arrays["loose"],
    )
    graph, keys = _tuple(CompiledGraph, "graph", arrays), _tuple(Keys, "key", arrays)
    matcher = Matcher.open(
        folder / "index", setting.attributes, functions=setting.kind.functions, background=False,
        engine=COMPILED_ENGINE,
    )  # fmt: skip
    texts = read_table(folder / "index" / "filters.arrow").column("text")
    manifest.need(folder, nodes=len(graph.numbers))
    manifest.need(folder, nodes=len(matcher))
    matcher.attributes = None  # the matcher gets events that are already decoded
    return Compiled(
        graph, keys, arrays["kinds"], matcher, matcher.box_index(index), texts, manifest.digest
    )


def _tuple(kind: type[Tuple], prefix: str, arrays: Mapping[str, Array]) -> Tuple:
    return kind(*(arrays[f"{prefix}_{name}"] for name in kind._fields))  # type: ignore[attr-defined]
