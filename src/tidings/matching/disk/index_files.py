"""The arrays and terms of an index as files. A matcher has an index of boxes, and may have
diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy.typing as npt
import pyarrow as pa

from tidings.filters.dialects import Context, parse_term
from tidings.filters.language import Literal
from tidings.filters.values import sets
from tidings.matching.array_fields import fields_of
from tidings.matching.disk.snapshot_folder import as_array, read_table, write_table
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments.segment import TermColumn
from tidings.model import LimitError

Array = npt.NDArray[Any]
Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
pack = msgspec.msgpack.Encoder(enc_hook=sets.pack_number).encode


def write_array(path: Path, array: Array) -> None:
    write_table(path, {"values": pa.array(array.ravel())})


def read_array(path: Path) -> Array:
    found: Array = as_array(read_table(path).column("values"))
    return found


def write_arrays(folder: Path, arrays: Any) -> None:
    """Write each array of a named tuple to a file that is named after the field."""
    for name in arrays._fields:
        write_array(folder / f"{name}.arrow", getattr(arrays, name))


def read_arrays(folder: Path, kind: type[Arrays]) -> Arrays:
    """Map the arrays of a named tuple class."""
    found = {}
    for name, field in fields_of(kind).items():
        array = read_array(folder / f"{name}.arrow")
        found[name] = array.reshape(-1, field.width) if field.width else array
    return kind(**found)


def write_terms(path: Path, terms: Sequence[TermColumn]) -> None:
    write_table(
        path,
        {
            "text": pa.array([term.text for term in terms], pa.string()),
            "elements": pa.array([term.elements for term in terms], pa.bool_()),
            "ordered": pa.array([term.ranks.ordered for term in terms], pa.bool_()),
            "cuts": pa.array([pack(term.ranks.cuts) for term in terms], pa.binary()),
        },
    )


def read_terms(path: Path, context: Context) -> tuple[tuple[TermColumn, ...], dict[int, str]]:
    """The terms, with null in place of each refused term, and, by column, the reasons why terms are
    now refused."""
    found: list[TermColumn] = []
    refused: dict[int, str] = {}
    for row in read_table(path).to_pylist():
        cuts = sets.unpack_cuts(msgspec.msgpack.decode(row["cuts"], type=list[tuple[Any, ...]]))
        try:
            node = parse_term(row["text"], context)
        except LimitError as problem:
            node = Literal(None)
            refused[len(found) + 1] = problem.reason
        found.append(TermColumn(row["text"], node, Ranks(cuts, row["ordered"]), row["elements"]))
    return tuple(found), refused
