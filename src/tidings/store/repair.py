"""Repairs a damaged log, for an operator who accepts the loss.

A state is computed from the readable changes. A new log that begins with this state replaces the
damaged one, which is moved aside. No number is used twice: the new log begins with a version higher
than any acknowledged version. Each missing version may have added a filter, so one node number is
skipped for each. Readers that ask for a lost version, such as a pipeline that repeats a batch, get
an error that says that the version was lost.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tidings.store import checkpoint, migration, settling
from tidings.store.checkpoint import Checkpoint
from tidings.store.groups import START, GroupLog
from tidings.store.locks import FORGETTING, locked
from tidings.store.records import (
    CHANGES,
    LogError,
    Point,
    Record,
    begin_log,
    decode_changes,
    encode_changes,
)
from tidings.store.state import apply

UNTOLD = 10_000  # versions to skip if the last acknowledged version is unknown


class Repair(msgspec.Struct, frozen=True):
    """What was wrong with a log, and what was done."""

    problems: list[str]
    """One sentence each; if empty, nothing was wrong and nothing was done."""
    lost: list[tuple[int, int]]
    """Ranges of lost versions (first, last)."""
    version: int
    """The latest version now."""
    aside: str = ""
    """The folder where the damaged files are."""


class _Found(msgspec.Struct):
    """The readable content of a damaged log."""

    problems: list[str]
    base: Checkpoint
    records: list[Record]
    last: int | None  # the last acknowledged version; None if unknown


def repair(folder: Path) -> Repair:
    """Make a log readable and writable again, whatever was lost."""
    with locked(folder, FORGETTING), locked(folder):
        if (folder / settling.MADE).exists():
            settling.install(folder)
        is_old = migration.files_of(folder) and not (folder / CHANGES).exists()
        found = _look_at_old(folder) if is_old else _look(folder)
        state = _state(found)
        lost = state.lost[len(found.base.lost) :]
        if not found.problems and not lost:
            return Repair([], [], state.version - 1)
        aside = settling.renew(folder, lambda beside: _write(beside, state))
        return Repair(found.problems, lost, state.version, str(aside))


def _look(folder: Path) -> _Found:
    log = GroupLog(folder / CHANGES)
    path = log.folder / checkpoint.NAME
    mark, base = log.acknowledged(), checkpoint.load(path)
    problems = [f"found {old}, which an older version of tidings wrote next to the log" for old in
                migration.files_of(folder)]  # fmt: skip
    walk, records, last = log.walk(), list[Record](), 0 if mark is None else mark.value
    for group in walk:
        for record in group.records:
            if record is not None:
                first, some = decode_changes(record)
                records += some
                last = max(last, first + len(some) - 1)  # the mark may be older than the log
    is_told = True
    if isinstance(base, str):
        problems.append(base)
        base = Checkpoint()
    elif mark is not None:
        problem = checkpoint.find_misfit(path, base, msgspec.structs.replace(mark, value=last))
        problems += [problem] if problem else []
        if base.version and base.log != mark.log:
            base = Checkpoint()
        is_told = base.version <= last  # otherwise the end of the log is missing
    problems += log.losses(walk)
    if mark is None and (log.segments() or base.version):
        problems = problems or [f"the end mark of {log.folder} is missing"]
        is_told = False
    return _Found(problems, base, records, last if is_told else None)


def _look_at_old(folder: Path) -> _Found:
    problems: list[str] = []
    try:
        base = migration.read_checkpoint(folder)
    except LogError as problem:
        base = Checkpoint()
        problems.append(str(problem))
    try:
        records = list(migration.read_changes(folder))
        last = records[-1].version if records else base.version
        if not problems:
            migration.need_fit(folder, base, len(records))
    except LogError as problem:
        problems.append(str(problem))
        records = migration.read_what_is_good(folder)
    return _Found(problems, base, records, None if problems else last)


def _state(found: _Found) -> Checkpoint:
    """The state after the readable changes, at a version that was never used."""
    base = found.base
    subscriptions, lost = dict(base.subscriptions), list(base.lost)
    dialects = dict(base.dialects)
    keys, nodes, new = dict(enumerate(base.keys, 1)), len(base.keys), 0
    version = base.version

    def lose(upto: int) -> None:
        nonlocal version, new
        if upto > version:
            lost.append((version + 1, upto))
            new += upto - version
        version = max(version, upto)

    for record in sorted(found.records, key=lambda one: one.version):
        if record.version <= version:
            continue
        lose(record.version - 1)
        version = record.version
        apply(record, subscriptions, dialects)
        nodes = max(nodes, record.node)
        if record.key is not None:
            # the number of the node accounts for the lost filters before it
            keys[record.node], new = record.key, 0
    if found.last is None:
        version, new = version + UNTOLD, new + UNTOLD
    else:
        lose(found.last)
    identities = [
        keys.get(node) or b"lost" + node.to_bytes(12, "big") for node in range(1, nodes + new + 1)
    ]
    return Checkpoint(
        version + 1, subscriptions=subscriptions, keys=identities, lost=lost, dialects=dialects
    )


def _write(beside: Path, state: Checkpoint) -> None:
    log = begin_log(beside)
    log.append(encode_changes(state.version + 1, []), state.version)
    point = Point(state.version, START)
    checkpoint.write(beside, msgspec.structs.replace(state, log=log.id, point=point))
    log.close()
