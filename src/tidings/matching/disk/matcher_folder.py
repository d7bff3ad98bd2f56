"""A matcher on disk: a directory of Arrow files, which are memory-mapped when the matcher is
opened.

The directory contains:

    manifest.json    see manifest.py; its notes are the numbers of filters and slots
    NAME.arrow       one file with one column per array of the segment and of its probe
    terms.arrow      text and rank space (its cuts as MessagePack) of each term
    rest.arrow       conditions to evaluate: box, and tests (MessagePack) or a wide filter's slot
    filters.arrow    id and text of every filter
    diagrams/        the filters that are diagrams (diagram_folder.py), if there are any; then only
                     the other filters are in the probe
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters import Attributes, Filter, parse
from tidings.filters.canonical import NEVER
from tidings.filters.dialects import Context, parse_term, rekeyed_calls
from tidings.filters.values import ValueSet, sets
from tidings.matching.diagrams.segment_trees import SAVED
from tidings.matching.disk.diagram_folder import (
    DIAGRAMS,
    SavedDiagrams,
    has_diagrams,
    need_diagram_files,
    read_diagrams,
    write_diagrams,
)
from tidings.matching.disk.index_files import (
    pack,
    read_array,
    read_arrays,
    read_terms,
    write_array,
    write_arrays,
    write_terms,
)
from tidings.matching.disk.manifest import (
    Manifest,
    SnapshotError,
    need_files,
    read_manifest,
    write_manifest,
)
from tidings.matching.disk.snapshot_folder import (
    read_table,
    read_whole,
    replacing,
    write_table,
)
from tidings.matching.segments.assembly import disassemble
from tidings.matching.segments.probe_kernels import Probe
from tidings.matching.segments.segment import REST, Arrays, Rest, Segment
from tidings.model import LimitError

FORMAT, VERSION = "tidings-matcher", 6
BEFORE = 3  # how many earlier versions can be read; versions before 6 have no diagrams
REKEYED = 5  # before this version, some filters had different identities
MOST_BYTES = 2**31 - 2**20  # if the texts have this many bytes in total, offsets get 64 bits
Ids = Any  # a sequence of ids, or an Arrow column of them
Texts = Any  # a sequence of texts, or an Arrow column of them


class OpenedMatcher(msgspec.Struct, frozen=True):
    """The contents of an opened matcher; ids and texts stay in Arrow memory until they are
    needed."""

    segment: Segment
    probe: Probe | None  # None if it must be built again
    ids: Any
    texts: Any
    aside: Mapping[int, str] = {}  # by slot, the reason why a filter is now refused
    outdated: bool = False  # whether the filters must be compiled again
    diagrams: SavedDiagrams | None = None

    def take(self, engine: str) -> tuple[SavedDiagrams | None, Probe | None]:
        """The saved diagrams, if the engine would build the same ones, and the probe for the other
        filters; None for what must be built again."""
        saved = self.diagrams
        if saved is None:
            return None, self.probe
        return (saved, self.probe) if engine in (saved.engine, SAVED) else (None, None)


def write(
    path: Path,
    segment: Segment,
    probe: Probe,
    ids: Ids,
    texts: Texts,
    diagrams: SavedDiagrams | None = None,
) -> None:
    """Write a matcher to a directory; a snapshot that is already there is replaced. The probe has
    only the filters that are not evaluated as diagrams."""
    with replacing(path) as folder:
        if diagrams is not None:
            write_diagrams(folder / DIAGRAMS, diagrams)
        _write_files(folder, segment, probe, ids, texts)


def _write_files(folder: Path, segment: Segment, probe: Probe, ids: Ids, texts: Texts) -> None:
    write_arrays(folder, segment.arrays)
    write_arrays(folder, probe)
    write_array(folder / "many.arrow", segment.many)
    write_terms(folder / "terms.arrow", segment.terms)
    rest = sorted(segment.rest.items())
    box_slot = segment.arrays.box_slot
    tests = [None if one.form else pack([(t, v.cuts) for t, v in one.tests]) for _, one in rest]
    write_table(
        folder / "rest.arrow",
        {
            "box": pa.array([box for box, _ in rest], pa.uint32()),
            "tests": pa.array(tests, pa.binary()),
            "slot": pa.array([int(box_slot[box]) for box, _ in rest], pa.uint32()),
        },
    )
    write_table(folder / "filters.arrow", {"id": _id_column(ids), "text": _text_column(texts)})
    write_manifest(folder, FORMAT, VERSION, filters=len(ids), slots=segment.slots)


def _text_column(texts: Texts) -> Any:
    """One array, with 64-bit offsets if 32 bits are not enough."""
    if isinstance(texts, pa.ChunkedArray):
        kind = pa.large_string() if texts.nbytes >= MOST_BYTES else pa.string()
        return texts.cast(kind).combine_chunks()
    kind = pa.large_string() if sum(map(len, texts)) >= MOST_BYTES // 4 else pa.string()
    return pa.array(texts, kind)


def _id_column(ids: Ids) -> Any:
    if isinstance(ids, pa.ChunkedArray):
        return ids.combine_chunks()
    kinds = {type(id_) for id_ in ids}
    found = f"the types {', '.join(sorted(kind.__name__ for kind in kinds))}"
    try:
        if kinds <= {int} or kinds <= {str}:
            return pa.array(ids, pa.int64() if kinds == {int} else pa.string())
    except (OverflowError, UnicodeEncodeError):
        found = "more than 64 bits" if kinds == {int} else "invalid Unicode"
    raise SnapshotError(
        f"found ids with {found}; expected ids that are all strings or all 64-bit integers"
    )


def read(
    path: Path,
    attributes: Attributes | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> OpenedMatcher:
    """Check the digests of a saved matcher, then open it."""
    context = Context(attributes, functions or {})
    return read_whole(path, lambda folder: _read_files(folder, context))


def _read_files(path: Path, context: Context) -> OpenedMatcher:
    manifest = need_matcher_files(path)
    arrays, probe = read_arrays(path, Arrays), read_arrays(path, Probe)
    filters = read_table(path / "filters.arrow")
    texts = filters.column("text")
    rest, opaque, aside = _read_rest(path, texts, context)
    terms, refused = read_terms(path / "terms.arrow", context)
    many = read_array(path / "many.arrow")
    manifest.need(path, slots=len(many), filters=len(texts))
    segment = Segment(terms, arrays, rest, opaque, len(many), many)
    if refused:
        aside |= _slots_that_test(segment, refused)
    if aside:
        segment = _without_slots(segment, aside)
    outdated = manifest.version < REKEYED and has_rekeyed(texts)
    diagrams = None
    if has_diagrams(manifest):
        # filters of some saved diagrams may now be refused, so the diagrams and the probe are built
        # again
        if aside:
            return OpenedMatcher(segment, None, filters.column("id"), texts, aside, outdated)
        diagrams = read_diagrams(path / DIAGRAMS, context)
    return OpenedMatcher(segment, probe, filters.column("id"), texts, aside, outdated, diagrams)


def need_matcher_files(path: Path) -> Manifest:
    """Check every byte of a folder against its digest, and return the manifest; raise SnapshotError
    on a mismatch."""
    manifest = read_manifest(path, FORMAT, VERSION, BEFORE)
    need_files(path, manifest)
    if has_diagrams(manifest):
        need_diagram_files(path / DIAGRAMS)
    return manifest


def has_rekeyed(texts: Any) -> bool:
    """Whether an Arrow column contains a filter whose identity may be different in older
    versions."""
    return any(
        pc.any(pc.match_substring(texts, call, ignore_case=True)).as_py()
        for call in rekeyed_calls()
    )


def _slots_that_test(segment: Segment, refused: Mapping[int, str]) -> dict[int, str]:
    """By slot, the reason why a filter that tests these columns is refused."""
    source = disassemble(segment)
    tests = zip(source.tests.box.tolist(), source.tests.column.tolist(), strict=True)
    elements = ((box, column) for box, column, *_ in source.elements)
    return {
        int(source.slots[box]): refused[column]
        for box, column in chain(tests, elements)
        if column in refused
    }


def _without_slots(segment: Segment, aside: Mapping[int, str]) -> Segment:
    """The segment with all boxes of these slots disabled: each gets a condition that no event
    passes."""
    arrays = segment.arrays
    flags = arrays.box_flags.copy()
    boxes = np.flatnonzero(np.isin(arrays.box_slot, list(aside)))
    flags[boxes] |= REST
    # a writable copy of a read-only array would make Numba compile the kernels again
    flags.flags.writeable = arrays.box_flags.flags.writeable
    rest = {**segment.rest, **dict.fromkeys(boxes.tolist(), Rest(form=NEVER))}
    arrays = arrays._replace(box_flags=flags)
    return msgspec.structs.replace(segment, arrays=arrays, rest=rest)


def _read_rest(
    path: Path, texts: Any, context: Context
) -> tuple[dict[int, Rest], dict[str, Any], dict[int, str]]:
    """The conditions to evaluate for each box, their terms and, by slot, the reason why a filter is
    set aside. A filter is set aside if the language has become stricter since it was compiled."""
    rest: dict[int, Rest] = {}
    opaque: dict[str, Any] = {}
    aside: dict[int, str] = {}
    for row in read_table(path / "rest.arrow").to_pylist():
        try:
            rest[row["box"]] = _one_rest(row, texts, context, opaque)
        except LimitError as problem:
            aside[row["slot"]] = problem.reason
    return rest, opaque, aside


def _one_rest(row: dict[str, Any], texts: Any, context: Context, opaque: dict[str, Any]) -> Rest:
    if row["tests"] is None:
        return Rest(form=_filter(texts[row["slot"]].as_py(), context).form)
    tests = []
    for text, cuts in msgspec.msgpack.decode(row["tests"]):
        opaque[text] = opaque.get(text) or parse_term(text, context)
        tests.append((text, ValueSet(tuple(sets.unpack_cuts([tuple(cut) for cut in cuts])))))
    return Rest(tests=tuple(tests))


def _filter(text: str, context: Context) -> Filter:
    return parse(text, attributes=context.attributes, functions=context.functions)
