"""A matcher on disk: a directory of Arrow files, memory-mapped when it is opened.

The directory contains:

    manifest.json    see manifest.py; its notes are the numbers of filters and slots
    NAME.arrow       one file with one column per array of the segment and of its probe
    terms.arrow      text and rank space (its cuts as MessagePack) of each term
    rest.arrow       conditions to evaluate: box, and tests (MessagePack) or a wide filter's slot
    filters.arrow    id and text of every filter
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
from tidings.filters.language import Literal
from tidings.filters.values import ValueSet, sets
from tidings.matching.array_fields import fields_of
from tidings.matching.disk.manifest import SnapshotError, need_files, read_manifest, write_manifest
from tidings.matching.disk.snapshot_folder import (
    as_array,
    read_table,
    read_whole,
    replacing,
    write_table,
)
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments.assembly import disassemble
from tidings.matching.segments.probe_kernels import Probe
from tidings.matching.segments.segment import REST, Arrays, Rest, Segment, Term
from tidings.model import LimitError

FORMAT, VERSION = "tidings-matcher", 5
MOST_BYTES = 2**31 - 2**20  # the most bytes of text that 32-bit offsets can address
Ids = Any  # a sequence of ids, or an Arrow column of them
Texts = Any  # a sequence of texts, or an Arrow column of them


class OpenedMatcher(msgspec.Struct, frozen=True):
    """The contents of an opened matcher; ids and texts stay in Arrow memory until needed."""

    segment: Segment
    probe: Probe
    ids: Any
    texts: Any
    aside: Mapping[int, str] = {}  # by slot, the reason why a filter is now refused
    outdated: bool = False  # whether the filters must be compiled again


def write(path: Path, segment: Segment, probe: Probe, ids: Ids, texts: Texts) -> None:
    """Write a matcher to a directory; a snapshot that is already there is replaced."""
    with replacing(path) as folder:
        _write_files(folder, segment, probe, ids, texts)


def _write_files(folder: Path, segment: Segment, probe: Probe, ids: Ids, texts: Texts) -> None:
    for arrays in (segment.arrays, probe):
        for name in arrays._fields:
            write_table(
                folder / f"{name}.arrow", {"values": pa.array(getattr(arrays, name).ravel())}
            )
    write_table(folder / "many.arrow", {"values": pa.array(segment.many)})
    pack = msgspec.msgpack.Encoder(enc_hook=sets.pack_number).encode
    terms = segment.terms
    write_table(
        folder / "terms.arrow",
        {
            "text": pa.array([term.text for term in terms], pa.string()),
            "elements": pa.array([term.elements for term in terms], pa.bool_()),
            "ordered": pa.array([term.ranks.ordered for term in terms], pa.bool_()),
            "cuts": pa.array([pack(term.ranks.cuts) for term in terms], pa.binary()),
        },
    )
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
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    try:
        if kinds <= {int} or kinds <= {str}:
            return pa.array(ids, pa.int64() if kinds == {int} else pa.string())
    except (OverflowError, UnicodeEncodeError):
        found = "more than 64 bits" if kinds == {int} else "invalid Unicode"
    raise SnapshotError(f"found ids of {found}, expected all strings or all 64-bit integers")


def read(
    path: Path,
    attributes: Attributes | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> OpenedMatcher:
    """Compare the digests of a saved matcher, then open it."""
    context = Context(attributes, functions or {})
    return read_whole(path, lambda folder: _read_files(folder, context))


def _read_files(path: Path, context: Context) -> OpenedMatcher:
    manifest = read_manifest(path, FORMAT, VERSION)
    need_files(path, manifest)
    arrays = Arrays(**_read_arrays(path, Arrays))
    probe = Probe(**_read_arrays(path, Probe))
    filters = read_table(path / "filters.arrow")
    texts = filters.column("text")
    rest, opaque, aside = _read_rest(path, texts, context)
    terms, refused = _read_terms(path, context)
    many = _array(path / "many.arrow")
    manifest.need(path, slots=len(many), filters=len(texts))
    segment = Segment(terms, arrays, rest, opaque, len(many), many)
    if refused:
        aside |= _slots_that_test(segment, refused)
    if aside:
        segment = _without_slots(segment, aside)
    outdated = manifest.version < VERSION and has_rekeyed(texts)
    return OpenedMatcher(segment, probe, filters.column("id"), texts, aside, outdated)


def need_matcher_files(path: Path) -> None:
    """Check every byte of a folder against its digest; raise SnapshotError on a mismatch."""
    need_files(path, read_manifest(path, FORMAT, VERSION))


def has_rekeyed(texts: Any) -> bool:
    """Whether an Arrow column has a filter that may have had another identity in an older
    version."""
    return any(
        pc.any(pc.match_substring(texts, call, ignore_case=True)).as_py()
        for call in rekeyed_calls()
    )


def _read_arrays(path: Path, kind: type[Arrays | Probe]) -> dict[str, Any]:
    """The arrays of a named tuple class, each from the file with its name."""
    found = {}
    for name, field in fields_of(kind).items():
        array = _array(path / f"{name}.arrow")
        found[name] = array.reshape(-1, field.width) if field.width else array
    return found


def _array(path: Path) -> Any:
    return as_array(read_table(path).column("values"))


def _read_terms(path: Path, context: Context) -> tuple[tuple[Term, ...], dict[int, str]]:
    """The terms and, by column, the reasons why terms are now refused; null replaces such a
    term."""
    found: list[Term] = []
    refused: dict[int, str] = {}
    for row in read_table(path / "terms.arrow").to_pylist():
        cuts = sets.unpack_cuts(msgspec.msgpack.decode(row["cuts"], type=list[tuple[Any, ...]]))
        try:
            node = parse_term(row["text"], context)
        except LimitError as problem:
            node = Literal(None)
            refused[len(found) + 1] = problem.reason
        found.append(Term(row["text"], node, Ranks(cuts, row["ordered"]), row["elements"]))
    return tuple(found), refused


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
    """The segment with all boxes of these slots disabled: each box gets a condition that no event
    passes."""
    arrays = segment.arrays
    flags = arrays.box_flags.copy()
    boxes = np.flatnonzero(np.isin(arrays.box_slot, list(aside)))
    flags[boxes] |= REST
    # with another flag, Numba would compile the kernels again
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
