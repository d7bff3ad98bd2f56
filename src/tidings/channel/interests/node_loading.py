"""The nodes of a channel at a start: compiled nodes, and stored filters that are not compiled.

stored filters ──same numbers, same texts?──> compiled nodes, mapped
      |  many that are not compiled: all are compiled now, in a process
      `──numbers that are not compiled──> prepared in groups, then placed one by one
         compiled numbers that are not stored ──> removed
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.channel.interests.compilation import Compilation
from tidings.channel.interests.compiled import Compiled, Setting, open_compiled
from tidings.channel.interests.nodes import Nodes, plan_texts
from tidings.channel.interests.preparing import prepare_ahead
from tidings.channel.interests.reading import Filters
from tidings.matching.disk import SnapshotError
from tidings.model import TidingsError
from tidings.routing.protocol import unpack_interest

MANY = 2_000  # if more filters are stored, the node compiles them before it starts
COMPARED = 20_000  # how many texts are compared at a time
MOST_TOLD = 100  # the most log lines about filters that are set aside
Array = npt.NDArray[Any]
Stored = list[tuple[int, bytes]]
_log = logging.getLogger(__name__)


class SetAsideFilter(msgspec.Struct, frozen=True):
    """A filter that is stored but not matched, and the reason."""

    text: str
    reason: str


def load_nodes(
    setting: Setting, filters: Filters, stored: Stored, folder: Path | None, seconds: float
) -> tuple[Nodes, dict[int, SetAsideFilter]]:
    """The nodes of the stored filters, and the filters that are refused now, by number. Filters may
    be refused because rules are now stricter, or because other attributes are declared; the root
    starts nevertheless."""
    compiled = None if folder is None else _open(folder, setting, stored, filters)
    if compiled is None and folder is not None and len(stored) > MANY:
        pairs = ((number, _text(one, filters)) for number, one in stored)
        texts = ((number, text) for number, text in pairs if text is not None)
        compiled = Compilation(plan_texts(str(folder), setting, texts)).run()
    if compiled is not None:
        compiled.matcher.prepare()
    nodes = Nodes(setting, compiled, seconds)
    known = np.zeros(0, np.int64) if compiled is None else compiled.graph.numbers
    numbers = _numbers_of(stored)
    for number in known[~np.isin(known, numbers)].tolist():
        nodes.remove(number)
    refused: dict[int, SetAsideFilter] = {}
    missing = [stored[at] for at in np.flatnonzero(~np.isin(numbers, known)).tolist()]
    left = iter(missing)
    for group in prepare_ahead(nodes, filters, [interest for _, interest in missing]):
        for number, interest in islice(left, len(group)):
            try:
                nodes.add(number, filters.text(interest), filters.read(interest))
            except TidingsError as problem:
                text = unpack_interest(interest)[0].decode(errors="replace")
                refused[number] = SetAsideFilter(text, str(problem))
    return nodes, refused


def log_aside(refused: Mapping[int, SetAsideFilter]) -> None:
    """Log which filters were set aside, and why."""
    for number, one in list(refused.items())[:MOST_TOLD]:
        _log.warning(
            "the filter of node %d is now refused and was set aside: %.200r: %.300s",
            number, one.text, one.reason,
        )  # fmt: skip
    if len(refused) > MOST_TOLD:
        _log.warning("%d stored filters were set aside in total", len(refused))


def _text(interest: bytes, filters: Filters) -> str | None:
    """The filter in SQL; None if it is refused."""
    try:
        return filters.text(interest)
    except TidingsError:
        return None


def _open(folder: Path, setting: Setting, stored: Stored, filters: Filters) -> Compiled | None:
    """The compiled nodes, if their filters equal the stored ones. None if the folder lacks too many
    of the stored filters, as after a channel adopted a snapshot: then it is faster to compile all
    nodes than to place the missing ones."""
    try:
        found = open_compiled(folder, setting)
    except (SnapshotError, OSError):
        return None
    missing = int((~np.isin(_numbers_of(stored), found.graph.numbers)).sum())
    if missing > max(MANY, len(stored) // 4):
        return None
    return found if _agree(found, stored, filters) else None


def _agree(compiled: Compiled, stored: Stored, filters: Filters) -> bool:
    """Whether every number that occurs both among the compiled and the stored filters has the same
    filter in both. Nearly all filters are stored in SQL, so their bytes can be compared with the
    text."""
    numbers = _numbers_of(stored)
    places = np.searchsorted(compiled.graph.numbers, numbers)
    both = np.flatnonzero(np.append(compiled.graph.numbers, -1)[places] == numbers)
    for first in range(0, len(both), COMPARED):  # few texts are copied at a time
        some = both[first : first + COMPARED]
        given = [stored[at][1] for at in some.tolist()]
        mine = compiled.texts.take(pa.array(places[some])).combine_chunks().cast(pa.large_binary())
        same = pc.equal(pa.array(given, pa.large_binary()), mine)
        for at in np.flatnonzero(~same.to_numpy(zero_copy_only=False)).tolist():
            text = _text(given[at], filters)
            if text is None or text.encode() != mine[at].as_py():
                return False
    return True


def _numbers_of(stored: Stored) -> Array:
    return np.fromiter((number for number, _ in stored), np.int64, len(stored))
