"""The state of a journal at one position, in a file, so that a start need not read all of it.

    about, then parts of the nodes, of the counters, of the publishers

It is a group as in a log (store/groups/layout.py), with its checksums. A part takes some
milliseconds to be read or written: between two of them other threads have their turn.

The end mark of the log says that there is one. So one that is missing is noticed, also where no
segment was dropped yet: a journal of the format before begins with what only the checkpoint has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from tidings.files.durable import replace_file
from tidings.model import EnvironmentProblem
from tidings.store.groups import Mark, Position, layout
from tidings.store.journal.state import Counter, Node, State

NAME = "checkpoint"
FORMAT = 2
PART = 5_000  # entries
THERE = 1  # the value of an end mark where there is a checkpoint


class Damaged(EnvironmentProblem):
    """A checkpoint that was altered or is missing."""


class About(msgspec.Struct, frozen=True, array_like=True, tag="about"):
    at: Position
    serial: int
    last_node: int
    lives: list[tuple[int, int]]


class Nodes(msgspec.Struct, frozen=True, array_like=True, tag="nodes"):
    part: dict[int, Node]


class Counters(msgspec.Struct, frozen=True, array_like=True, tag="counters"):
    part: dict[int, Counter]


class Publishers(msgspec.Struct, frozen=True, array_like=True, tag="publishers"):
    part: dict[str, int]


Part = About | Nodes | Counters | Publishers
_decoder: msgspec.msgpack.Decoder[Part] = msgspec.msgpack.Decoder(Part)


def read(folder: Path, mark: Mark | None) -> State:
    """That of a log with an end mark; an empty one where none was written yet."""
    path = folder / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if mark is not None and (mark.value == THERE or mark.oldest > 1):
            raise Damaged(f"the checkpoint {path} is missing") from None
        return State()
    head = layout.decode_group_head(FORMAT, data, 0)
    spans = None if head is None else layout.split_records(data, 0, head)
    state = State()
    for span in spans or ():
        record = layout.record_at(data, *span)
        if record is None:
            break
        _take(state, _decoder.decode(record))
    else:
        if spans:
            return state
    raise Damaged(f"the checkpoint {path} was altered or is of another format")


def write(folder: Path, state: State) -> int:
    """Replace the one that is there; gives its size."""
    data, _ = layout.encode_group(
        FORMAT, 1, 0, [msgspec.msgpack.encode(one) for one in _parts(state)]
    )
    replace_file(folder / NAME, data)
    return len(data)


def _take(state: State, part: Part) -> None:
    if isinstance(part, Nodes):
        state.nodes.update(part.part)
    elif isinstance(part, Counters):
        state.counters.update(part.part)
    elif isinstance(part, Publishers):
        state.publishers.update(part.part)
    else:
        state.at, state.serial, state.last_node = part.at, part.serial, part.last_node
        state.lives = part.lives


def _parts(state: State) -> Iterator[Part]:
    yield About(state.at, state.serial, state.last_node, state.lives)
    for kind, table in ((Nodes, state.nodes), (Counters, state.counters),
                        (Publishers, state.publishers)):  # fmt: skip
        items = iter(table.items())
        while part := dict(islice(items, PART)):
            yield kind(part)  # type: ignore[arg-type]
