"""A matcher on disk: a directory of Arrow files, memory mapped when it is opened.

    manifest.json    format, version, counts, and the size and checksum of every other file
    NAME.arrow       one file per array of the segment and of its probe, one column each
    terms.arrow      text, rank space (its cuts as MessagePack) of each term
    rest.arrow       what is left to evaluate: box, tests (MessagePack) or the number of a filter
    filters.arrow    id, text of every filter

Files are written to a new directory that then takes the place of the old one; between the two
renames there is for a moment none, and a reader who comes just then tries again. Every process that
opens a snapshot maps the same pages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.filters import Attributes, Filter, parse
from tidings.filters.dialects import Context
from tidings.filters.sets import ValueSet
from tidings.filters.sql import parse_term
from tidings.matching.probe import ROW, Probe
from tidings.matching.ranks import Ranks
from tidings.matching.segment import Arrays, Rest, Segment, Term
from tidings.model import TidingsError

FORMAT, VERSION = "tidings-matcher", 2


class SnapshotError(TidingsError):
    """A snapshot that can't be read: missing, cut short, altered, or of another version."""


class Manifest(msgspec.Struct):
    format: str
    version: int
    filters: int
    slots: int
    files: dict[str, tuple[int, str]]  # bytes, checksum


class Opened(msgspec.Struct, frozen=True):
    """What a snapshot holds; ids and texts stay in Arrow memory until they are asked for."""

    segment: Segment
    probe: Probe
    ids: Any
    texts: Any


def write(
    path: Path, segment: Segment, probe: Probe, ids: Sequence[Hashable], texts: Sequence[str]
) -> None:
    """Write a snapshot in the place of whatever is at the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not (path / "manifest.json").exists():
        raise SnapshotError(f"'{path}' is there and is not a snapshot; it is left alone")
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        _write_files(folder, segment, probe, ids, texts)
        _take_place(folder, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_files(
    folder: Path, segment: Segment, probe: Probe, ids: Sequence[Hashable], texts: Sequence[str]
) -> None:
    for arrays in (segment.arrays, probe):
        for name in arrays.__struct_fields__:
            _write(folder / f"{name}.arrow", {"values": pa.array(getattr(arrays, name).ravel())})
    _write(folder / "many.arrow", {"values": pa.array(segment.many)})
    pack = msgspec.msgpack.encode
    terms = segment.terms
    _write(
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
    _write(
        folder / "rest.arrow",
        {
            "box": pa.array([box for box, _ in rest], pa.uint32()),
            "tests": pa.array(tests, pa.binary()),
            "slot": pa.array([int(box_slot[box]) for box, _ in rest], pa.uint32()),
        },
    )
    _write(folder / "filters.arrow", {"id": _id_column(ids), "text": pa.array(texts, pa.string())})
    paths = sorted(folder.iterdir())
    sums = _checksums(paths)
    files = {p.name: (p.stat().st_size, one) for p, one in zip(paths, sums, strict=True)}
    manifest = Manifest(FORMAT, VERSION, len(ids), segment.slots, files)
    with (folder / "manifest.json").open("wb") as out:
        out.write(msgspec.json.format(msgspec.json.encode(manifest)))
        out.flush()
        os.fsync(out.fileno())


def _id_column(ids: Sequence[Hashable]) -> Any:
    kinds = {type(id_) for id_ in ids}
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    try:
        if kinds <= {int} or kinds <= {str}:
            return pa.array(ids, pa.int64() if kinds == {int} else pa.string())
    except (OverflowError, UnicodeEncodeError):
        found = "int beyond 64 bits" if kinds == {int} else "str that is no valid Unicode"
    raise SnapshotError(f"ids of {found} can't be saved; expected all texts or all 64-bit integers")


def _write(path: Path, columns: Mapping[str, Any]) -> None:
    table = pa.table(dict(columns))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows))
    _sync(path)


def _checksum(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _checksums(paths: Sequence[Path]) -> list[str]:
    """Of several files at once: hashing leaves Python's lock alone."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(_checksum, paths))


def _take_place(folder: Path, path: Path) -> None:
    folder.chmod(0o755)
    if path.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
        path.rename(old / "snapshot")
        try:
            folder.rename(path)
        except OSError:
            (old / "snapshot").rename(path)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
    else:
        folder.rename(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(
    path: Path,
    attributes: Attributes | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    *,
    verify: bool = True,
) -> Opened:
    """Open a snapshot. `verify` reads every byte once to compare checksums."""
    manifest = _manifest(path)
    for name, (size, _) in manifest.files.items():
        file = path / name
        if not file.is_file():
            raise SnapshotError(f"snapshot '{path}': the file {name} is missing")
        have = file.stat().st_size
        if have != size:
            raise SnapshotError(
                f"snapshot '{path}': {name} has {have:,} bytes, expected {size:,}; "
                f"it was cut short or altered"
            )
    if verify:
        sums = _checksums([path / name for name in manifest.files])
        for (name, (_, expected)), found in zip(manifest.files.items(), sums, strict=True):
            if found != expected:
                raise SnapshotError(f"snapshot '{path}': {name} was altered, its checksum differs")
    context = Context(attributes, functions or {})
    arrays = Arrays(**{n: _array(path / f"{n}.arrow") for n in Arrays.__struct_fields__})
    rows = {n: _array(path / f"{n}.arrow") for n in Probe.__struct_fields__}
    probe = Probe(**{n: a.reshape(-1, ROW[n]) if n in ROW else a for n, a in rows.items()})
    filters = _read(path / "filters.arrow")
    texts = filters.column("text")
    rest, opaque = _read_rest(path, texts, context)
    segment = Segment(
        _read_terms(path, context), arrays, rest, opaque, manifest.slots,
        _array(path / "many.arrow"),
    )  # fmt: skip
    return Opened(segment, probe, filters.column("id"), texts)


def _manifest(path: Path) -> Manifest:
    try:
        raw = (path / "manifest.json").read_bytes()
    except OSError:
        raise SnapshotError(f"'{path}' is not a snapshot: it has no manifest.json") from None
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except msgspec.DecodeError as problem:
        raise SnapshotError(f"snapshot '{path}': the manifest can't be read: {problem}") from None
    if manifest.format != FORMAT or manifest.version != VERSION:
        raise SnapshotError(
            f"snapshot '{path}' is of {manifest.format} version {manifest.version}, expected "
            f"{FORMAT} version {VERSION}"
        )
    return manifest


def _read(path: Path) -> Any:
    try:
        batches = pa.ipc.open_file(pa.memory_map(str(path))).read_all().combine_chunks()
    except (pa.ArrowInvalid, OSError) as problem:
        raise SnapshotError(f"snapshot file '{path}' can't be read: {problem}") from None
    return batches


def _array(path: Path) -> Any:
    column = _read(path).column("values")
    return column.chunk(0).to_numpy() if column.num_chunks else np.asarray(column)


def _read_terms(path: Path, context: Context) -> tuple[Term, ...]:
    found = []
    for row in _read(path / "terms.arrow").to_pylist():
        cuts = msgspec.msgpack.decode(row["cuts"], type=list[tuple[Any, ...]])
        node = parse_term(row["text"], context)
        found.append(Term(row["text"], node, Ranks(cuts, row["ordered"]), row["elements"]))
    return tuple(found)


def _read_rest(path: Path, texts: Any, context: Context) -> tuple[dict[int, Rest], dict[str, Any]]:
    rest: dict[int, Rest] = {}
    opaque: dict[str, Any] = {}
    for row in _read(path / "rest.arrow").to_pylist():
        if row["tests"] is None:
            rest[row["box"]] = Rest(form=_filter(texts[row["slot"]].as_py(), context).form)
            continue
        tests = []
        for text, cuts in msgspec.msgpack.decode(row["tests"]):
            opaque[text] = opaque.get(text) or parse_term(text, context)
            tests.append((text, ValueSet(tuple(tuple(cut) for cut in cuts))))
        rest[row["box"]] = Rest(tests=tuple(tests))
    return rest, opaque


def _filter(text: str, context: Context) -> Filter:
    return parse(text, attributes=context.attributes, functions=context.functions)
