"""The state of a journal at one position, stored in a file, so that a process that starts need not
read all groups.

    about, the bulks, then parts of the nodes, of the counters, of the publishers, of the removed
    nodes, of the sources, of the cursors, of the named subscriptions

The file is a group as in a log (store/groups/layout.py), with its checksums. A large state takes
several groups, numbered down to 1, so that a reader recognizes the last one. A part takes a few
milliseconds to read or write; other threads can run between two parts.

The end mark of the log says whether there is a checkpoint, so a missing checkpoint is noticed even
before any segment was dropped. Noticing a missing checkpoint matters for a journal converted from
the previous format, because part of its state is only in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from tidings.files import replace_file
from tidings.model import EnvironmentProblem, Id
from tidings.routing.root import Cursor, History, Progress, RemovedNode
from tidings.store.groups import EndMark, Position, layout
from tidings.store.journal.entries import Adopted
from tidings.store.journal.state import Counter, JournalState, StoredNode, StoredSubscription
from tidings.store.layered import own_part

NAME = "checkpoint"
FORMAT = 2
# the format of a checkpoint with several groups: older readers refuse it, instead of reading only
# the first group
FORMAT_OF_SEVERAL = 3
PART = 5_000  # entries
GROUP_BYTES = 8 << 20
CONTENT = 6
"""The format of the parts: 1 before journals knew versions, sources and removed nodes; 2 before
they had cursors; 3 before they had named subscriptions; 4 while nodes repeated the texts of
subscriptions; 5 before there were bulks."""
THERE = 1  # the lowest bit of the end mark's value: set if there is a checkpoint


class Damaged(EnvironmentProblem):
    """A checkpoint is corrupt or missing."""


class StoredHistory(msgspec.Struct, frozen=True, array_like=True):
    """A history without the removed nodes."""

    life: int
    version: int
    floor: int
    renewed: int
    base: int
    spans: list[tuple[int, int]]
    hidden: tuple[int, ...]
    declaration: str


class CheckpointSummary(msgspec.Struct, frozen=True, array_like=True, tag="about"):
    at: Position
    serial: int
    last_node: int
    lives: list[tuple[int, int]]
    content: int = 1
    history: StoredHistory | None = None
    integer: bool = False
    lost: list[tuple[int, int]] = []
    log: int = 0
    term: int = 0


class AdoptedPart(msgspec.Struct, frozen=True, array_like=True):
    """A bulk, and those of its nodes and ids that have ended."""

    bulk: Adopted
    nodes: list[int]
    ids: list[Id]


class CheckpointBulks(msgspec.Struct, frozen=True, array_like=True, tag="bulks"):
    part: dict[int, AdoptedPart]  # the adopted parts, by the first node number of each bulk


class CheckpointNodes(msgspec.Struct, frozen=True, array_like=True, tag="nodes"):
    part: dict[int, StoredNode]


class CheckpointCounters(msgspec.Struct, frozen=True, array_like=True, tag="counters"):
    part: dict[int, Counter]


class CheckpointPublishers(msgspec.Struct, frozen=True, array_like=True, tag="publishers"):
    part: dict[str, int]


class CheckpointRemoved(msgspec.Struct, frozen=True, array_like=True, tag="removed"):
    part: dict[int, RemovedNode]


class CheckpointSources(msgspec.Struct, frozen=True, array_like=True, tag="sources"):
    part: dict[str, Progress]


class CheckpointCursors(msgspec.Struct, frozen=True, array_like=True, tag="cursors"):
    part: dict[str, Cursor]


class CheckpointSubscriptions(msgspec.Struct, frozen=True, array_like=True, tag="subscriptions"):
    part: dict[Id, StoredSubscription]


Part = (
    CheckpointSummary
    | CheckpointBulks
    | CheckpointNodes
    | CheckpointCounters
    | CheckpointPublishers
    | CheckpointRemoved
    | CheckpointSources
    | CheckpointCursors
    | CheckpointSubscriptions
)
_decoder: msgspec.msgpack.Decoder[Part] = msgspec.msgpack.Decoder(Part)


def read(folder: Path, mark: EndMark | None, *, accepts_loss: bool = False) -> JournalState:
    """The state in the checkpoint of a log with this end mark; an empty state if no checkpoint was
    written yet. With `accepts_loss`, bulks that are lost are left out."""
    lost = list[tuple[Adopted, str]]() if accepts_loss else None
    path = folder / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if mark is not None and (mark.value & THERE or mark.oldest > 1):
            raise Damaged(f"the checkpoint {path} is missing") from None
        return JournalState(folder=folder, lost_bulks=lost)
    state, is_doubled = JournalState(folder=folder, lost_bulks=lost), False
    for record in _records(data):
        if record is None:
            raise Damaged(f"the checkpoint {path} is corrupt or has an unknown format")
        part = _decoder.decode(record)
        if isinstance(part, CheckpointSummary) and part.content > CONTENT:
            raise EnvironmentProblem(
                f"the checkpoint {path} has the format {part.content}, expected at most {CONTENT}; "
                "use the release of tidings that wrote it, or a later one"
            )
        is_doubled |= isinstance(part, CheckpointSummary) and part.content < 5
        _take(state, part)
    if is_doubled:
        state.drop_texts()
    if state.log and mark is not None and state.log != mark.log:
        raise Damaged(f"the checkpoint {path} belongs to another log")
    return state


def read_about(folder: Path, mark: EndMark | None) -> CheckpointSummary | None:
    """The first part of the checkpoint of a log with this end mark; None if no checkpoint was
    written yet."""
    path = folder / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if mark is not None and (mark.value & THERE or mark.oldest > 1):
            raise Damaged(f"the checkpoint {path} is missing") from None
        return None
    record = next(_records(data))
    about = None if record is None else _decoder.decode(record)
    if not isinstance(about, CheckpointSummary):
        raise Damaged(f"the checkpoint {path} is corrupt or has an unknown format")
    return about


def _records(data: bytes) -> Iterator[bytes | None]:
    """The records of all groups; None for data that is corrupt or missing."""
    format_ = FORMAT if layout.decode_group_head(FORMAT, data, 0) else FORMAT_OF_SEVERAL
    at, left, chain = 0, 0, 0
    while not at or left:
        head = layout.decode_group_head(format_, data, at)
        spans = None if head is None else layout.split_records(data, at, head)
        if head is None or not spans or head.before != chain or (at and head.number != left):
            yield None
            return
        yield from (layout.record_at(data, *span) for span in spans)
        at, left, chain = at + layout.GROUP_HEAD + head.size, head.number - 1, head.chain
    if at != len(data):
        yield None


def write(folder: Path, state: JournalState) -> int:
    """Write a state as the new checkpoint; return its size. `state.log` is the id of its log."""
    records = (one for part in _parts(state) for one in _encode_part(part))
    groups = list(in_groups(records, PART))
    format_ = FORMAT if len(groups) == 1 else FORMAT_OF_SEVERAL
    found, chain = list[bytes](), 0
    for at, group in enumerate(groups):
        data, chain = layout.encode_group(format_, len(groups) - at, chain, group)
        found.append(data)
    replace_file(folder / NAME, b"".join(found))
    return sum(map(len, found))


def in_groups(records: Iterable[bytes], most: int) -> Iterator[list[bytes]]:
    """Split records into groups of at most `most` records and GROUP_BYTES bytes. A larger record
    gets a group of its own."""
    group, size = list[bytes](), 0
    for record in records:
        if group and (len(group) == most or size + len(record) > GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(record)
        size += len(record)
    if group:
        yield group


def _take(state: JournalState, part: Part) -> None:
    if isinstance(part, CheckpointBulks):
        for one in part.part.values():
            integer, many = state.integer, len(state.bulks)
            state.adopt(one.bulk)
            state.integer = integer  # perhaps a change after the adoption set it
            if len(state.bulks) > many:  # a lost bulk was not added
                nodes, ids = state.list_ended(many)
                nodes.update(one.nodes)
                ids.update(one.ids)
    elif isinstance(part, CheckpointNodes):
        state.nodes.update(part.part)
    elif isinstance(part, CheckpointCounters):
        state.counters.update(part.part)
    elif isinstance(part, CheckpointPublishers):
        state.publishers.update(part.part)
    elif isinstance(part, CheckpointRemoved):
        state.history.gone.update(part.part)
        state.history.around += sum(one.size for one in part.part.values())
    elif isinstance(part, CheckpointSources):
        state.sources.update(part.part)
    elif isinstance(part, CheckpointCursors):
        for key, cursor in part.part.items():
            state.set_cursor(key, cursor)
    elif isinstance(part, CheckpointSubscriptions):
        state.subscriptions.update(part.part)
    else:
        state.at, state.serial, state.last_node = part.at, part.serial, part.last_node
        state.lives = part.lives
        state.history = _history(part)
        state.integer, state.lost, state.log = part.integer, part.lost, part.log
        state.term = part.term


def _history(about: CheckpointSummary) -> History:
    """The history, without the removed nodes. A checkpoint of an older release has no history, so
    the history begins with the present state."""
    past = about.history
    if past is None:
        life, last = (about.lives[0][0] if about.lives else 0), about.last_node
        return History(life, last, last, last)
    return History(*msgspec.structs.astuple(past))


def _encode_part(part: Part) -> Iterator[bytes]:
    """Encode a part; as long as the result is too large, the part is split into halves."""
    data = msgspec.msgpack.encode(part)
    if len(data) <= GROUP_BYTES or isinstance(part, CheckpointSummary) or len(part.part) == 1:
        yield data
        return
    items = list(part.part.items())
    for half in (items[: len(items) // 2], items[len(items) // 2 :]):
        yield from _encode_part(type(part)(dict(half)))  # type: ignore[arg-type]


def _parts(state: JournalState) -> Iterator[Part]:
    history = state.history
    past = StoredHistory(*(getattr(history, name) for name in StoredHistory.__struct_fields__))
    yield CheckpointSummary(
        state.at, state.serial, state.last_node, state.lives, CONTENT, past, state.integer,
        state.lost, state.log, state.term,
    )  # fmt: skip
    if living := state.living_bulks():
        yield CheckpointBulks(
            {one.first: AdoptedPart(one, [*nodes], [*ids]) for one, nodes, ids in living}
        )
    for kind, table in (
        (CheckpointNodes, own_part(state.nodes)),
        (CheckpointCounters, state.counters),
        (CheckpointPublishers, state.publishers),
        (CheckpointRemoved, history.gone),
        (CheckpointSources, state.sources),
        (CheckpointCursors, state.cursors),
        (CheckpointSubscriptions, own_part(state.subscriptions)),
    ):
        items = iter(table.items())
        while part := dict(islice(items, PART)):
            yield kind(part)  # type: ignore[arg-type]
