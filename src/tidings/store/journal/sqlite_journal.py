"""Journals in the previous format, which was SQLite: they are read once and converted.

    journal.db            the old file        ──>  journal.db.before   kept as a backup, with its
                                                   -wal, if there is one
    journal.db.new        complete, synced    ──>  journal.db          a folder from now on

The new journal is complete before the old one is moved. If the conversion is interrupted before the
move, the next start repeats it; after the move, the next start finishes it.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidings.files import sync
from tidings.model import EnvironmentProblem
from tidings.routing.protocol import Mark
from tidings.routing.root import Record
from tidings.store.groups import GroupLog
from tidings.store.journal import checkpoint, entries as t
from tidings.store.journal.state import Counter, JournalState, StoredNode

GROUP = 1000  # a group has at most this many records
SUFFIX = ".before"  # the old file is kept under a name with this suffix
MAGIC = b"SQLite format 3\x00"


def is_before(path: Path) -> bool:
    """Whether there is a journal in the previous format, or an interrupted conversion of one."""
    return path.is_file() or (not path.exists() and path.with_name(f"{path.name}.new").is_dir())


def take_over(path: Path) -> None:
    """Convert a journal in the previous format to the current one."""
    new, old = path.with_name(f"{path.name}.new"), path.with_name(path.name + SUFFIX)
    if path.is_file():
        shutil.rmtree(new, ignore_errors=True)
        _rewrite(path, new)
        path.rename(old)
    elif path.exists() or not (new.is_dir() and old.exists()):
        return
    # SQLite leaves these files while another process reads the journal
    for suffix in ("-wal", "-shm"):
        if (part := path.with_name(path.name + suffix)).exists():
            part.rename(old.with_name(old.name + suffix))
    new.rename(path)
    sync(path.parent)


def _rewrite(path: Path, new: Path) -> None:
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
    if head and head != MAGIC:
        raise EnvironmentProblem(
            f"{path} is a file, but not a journal; expected a journal or an unused path"
        )
    try:
        connection = sqlite3.connect(path)
        try:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError(found.splitlines()[-1])
            _copy(connection, new)
        finally:
            connection.close()
    except sqlite3.Error as problem:
        raise EnvironmentProblem(
            f"the journal {path}, in the previous format, is damaged: {problem}; restore it from a "
            "backup, or move it away to start with an empty journal, which causes a break for "
            "subscribers"
        ) from None


def _copy(connection: sqlite3.Connection, new: Path) -> None:
    execute = connection.execute
    log = GroupLog(new)
    walk = log.walk()
    list(walk)
    log.take_end(walk, checkpoint.THERE)
    state = JournalState()
    if execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        about = dict(execute("SELECT key, value FROM about"))
        if about.get("format") != 1:
            found = about.get("format")
            raise EnvironmentProblem(f"found a journal in format {found}, expected format 1")
        state.lives = [(about["epoch"], 1)]
        state.last_node = about["last_node"]
        state.serial = about["counted"]
        state.publishers = dict(execute("SELECT name, stamp FROM publishers"))
        state.nodes = {node: StoredNode(bytes(interest)) for node, interest in
                       execute("SELECT node, interest FROM nodes")}  # fmt: skip
        for node, *numbers in execute("SELECT * FROM counters"):
            state.counters[node] = Counter(*numbers)
        for record in _records(execute("SELECT * FROM records WHERE serial > ? ORDER BY serial",
                                       (about["counted"],))):  # fmt: skip
            _count(state, record)
        rows = _records(execute("SELECT * FROM records ORDER BY serial"))
        for group in checkpoint.in_groups(map(t.encode, rows), GROUP):
            log.append(group, checkpoint.THERE)
    state.at = log.end
    log.close()
    checkpoint.write(new, state)


def _count(state: JournalState, record: Record) -> None:
    state.serial = record.serial
    for mark in record.marks:
        counter = state.counters.setdefault(mark.node, Counter())
        counter.count, counter.latest = mark.number, record.serial
    for node in record.matched:
        state.counters.setdefault(node, Counter()).total += 1


def _records(rows: Any) -> Iterator[Record]:
    for serial, publisher, stamp, marks, matched, payload in rows:
        yield Record(
            serial,
            publisher,
            stamp,
            tuple(Mark(node, number, (node,)) for node, number in struct.iter_unpack("<qq", marks)),
            struct.unpack(f"<{len(matched) // 8}q", matched),
            bytes(payload),
        )
