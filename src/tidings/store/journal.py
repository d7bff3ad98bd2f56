"""The journal of a rendezvous point, in SQLite: nodes, notifications, publishers, counters.

    add_node, append ...   ──> waiting, in memory
    take ──> batch ──write, in a thread──> one transaction, one sync ──> all of it is on the disk

Many things share a sync, so that publishing stays fast though each acknowledgment waits for one.
Counters are written down now and then, and what came after that is counted again when the journal
is opened. Write-ahead logging with full synchronisation: what was committed is on the disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import sqlite3
import struct
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem
from tidings.routing.label_graph import Label
from tidings.routing.limits import work_of
from tidings.routing.marks import Marks, columns, in_turn
from tidings.routing.messages import Mark, Notification, Range
from tidings.routing.rendezvous import Memory, Placed, Record

FORMAT = 1
CHECKPOINT = 10_000  # records after which counters are written down
KEEP = 10_000  # records that stay though nobody seems to need them
MOST_TOGETHER = 1000  # headers of which that is remembered
NEAR = 64  # records behind a mark with a row, in which others of its node have none
ROOM = 1 << 18  # bytes that must fit on a disk that was full

_SCHEMA = """
CREATE TABLE about (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE nodes (node INTEGER PRIMARY KEY, interest BLOB NOT NULL,
                    owners BLOB NOT NULL DEFAULT x'90');
CREATE TABLE records (serial INTEGER PRIMARY KEY, publisher TEXT NOT NULL, stamp INTEGER NOT NULL,
                      marks BLOB NOT NULL, matched BLOB NOT NULL, payload BLOB NOT NULL);
CREATE TABLE marks (node INTEGER NOT NULL, number INTEGER NOT NULL, serial INTEGER NOT NULL,
                    PRIMARY KEY (node, number)) WITHOUT ROWID;
CREATE TABLE publishers (name TEXT PRIMARY KEY, stamp INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE counters (node INTEGER PRIMARY KEY, count INTEGER NOT NULL, total INTEGER NOT NULL,
                       latest INTEGER NOT NULL);
"""


_OWNERS = msgspec.msgpack.Decoder(tuple[str, ...])


class Added(msgspec.Struct, frozen=True):
    node: int
    interest: bytes
    owner: str


class Owned(msgspec.Struct, frozen=True):
    node: int
    owners: tuple[str, ...]


class Dropped(msgspec.Struct, frozen=True):
    node: int


Thing = Added | Owned | Dropped | Record


class Batch(msgspec.Struct, frozen=True):
    """Things that are written together; `upto` of all that the journal was ever given."""

    things: list[Thing]
    upto: int


class SqliteJournal:
    """See the top of the module. `write` may run in another thread than all else."""

    def __init__(self, path: str | Path, epoch: int) -> None:
        """Open the journal at a path; one that is not there is made, for a new epoch."""
        self.path = Path(path)
        self._lock = threading.Lock()  # of the connection
        self._held = self._hold()
        try:
            self._connection = self._opened(epoch)
            # what is asked for must not wait until something is written
            self._reader = sqlite3.connect(self.path)
        except BaseException:
            os.close(self._held)
            raise
        self._identity = _identity(self.path)
        self.epoch = self._about("epoch")
        self.last_node = self._about("last_node")
        """The highest number that a node ever had: numbers are not used again."""
        self._counts: dict[int, int] = {}
        self._totals: dict[int, int] = {}
        self._latest: dict[int, int] = {}
        self._indexed_together: dict[Label, int] = {}  # the oldest such serial of all of a header
        self._indexed: dict[int, int] = {}  # the serial of the last mark of a node that has a row
        self._changed: set[int] = set()  # since counters were written
        self._since = 0  # records since then
        self._read_counters(self._about("counted"))
        self._waiting: list[Thing] = []
        self._given = 0
        self._unneeded = 0  # the serial up to which records may go
        self._forgotten: list[str] = []  # publishers

    def close(self) -> None:
        with self._lock:
            self._connection.close()
            self._reader.close()
            if self._held >= 0:
                os.close(self._held)
            self._held = -1

    def _hold(self) -> int:
        """Keep other rendezvous points out: two would give the same numbers."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            sentence = f"the journal {self.path} can't be opened: {problem.strerror}"
            raise EnvironmentProblem(sentence) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise EnvironmentProblem(
                f"another rendezvous point has the journal {self.path}"
            ) from None
        return lock

    # -- what a rendezvous point does ----------------------------------------------------------

    def add_node(self, node: int, interest: bytes, owner: str = "") -> None:
        self._give(Added(node, interest, owner))

    def set_owners(self, node: int, owners: tuple[str, ...]) -> None:
        self._give(Owned(node, owners))

    def drop_node(self, node: int) -> None:
        self._give(Dropped(node))

    def append(self, record: Record) -> None:
        self._give(record)

    def find(
        self, ranges: Iterable[Range], most_bytes: int = 1 << 62
    ) -> tuple[list[Notification], list[Range]]:
        """Those that are there, and the numbers of those that are not any more. Where their
        payloads are of more bytes than that, those beyond are in neither. EnvironmentProblem where
        the disk can't be read."""
        found: dict[int, Notification] = {}
        lost: list[Range] = []
        size = 0
        with self._careful("read", self._reader):
            for node, first, last in ranges:
                for number, serial in self._places(node, max(first, 1), min(last, 2**63 - 1)):
                    (row,) = self._reader.execute(
                        "SELECT * FROM records WHERE serial = ?", (serial,)
                    )
                    record = _record(*row)
                    size += len(record.payload)
                    if size > most_bytes and found:
                        return [found[serial] for serial in sorted(found)], lost
                    found[record.serial] = record.notification(self.epoch)
                    if number > first:
                        lost.append(Range(node, first, number - 1))
                    first = number + 1
                if first <= last:
                    lost.append(Range(node, first, last))
        return [found[serial] for serial in sorted(found)], lost

    def _places(self, node: int, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The numbers of a node in a range, and the serials that have them. A row says where one
        of them is; others are in the records right behind it, up to the next row. The row before
        the oldest records may be gone with those that it stood for."""
        execute = self._reader.execute
        row = execute(
            "SELECT serial FROM marks WHERE node = ? AND number <= ? ORDER BY number DESC LIMIT 1",
            (node, first),
        ).fetchone()
        row = row or execute("SELECT min(serial) FROM records").fetchone()
        more = execute(
            "SELECT serial FROM marks WHERE node = ? AND number > ? AND number <= ? "
            "ORDER BY number",
            (node, first, last),
        )
        done = 0
        for (begin,) in itertools.chain([row], more):
            if begin is None:  # there are no records
                return
            rows = execute(
                "SELECT serial, marks FROM records WHERE serial >= ? AND serial < ?",
                (max(begin, done), begin + NEAR),
            ).fetchall()
            done = begin + NEAR
            for serial, marks in rows:
                number = _number_at(node, marks)
                if number > last:
                    return
                if number >= first:
                    yield number, serial
                    first = number + 1

    def prune(self, upto: int) -> None:
        """Remove records that nobody needs, but for the last ones: some with each batch."""
        self._unneeded = max(self._unneeded, upto)

    def forget_publishers(self, names: Iterable[str]) -> None:
        """Their stamps are not needed any more; they go with the next batch."""
        self._forgotten += names

    # -- what its owner does -------------------------------------------------------------------

    def take(self) -> Batch | None:
        """What waits to be written."""
        if not self._waiting:
            return None
        things, self._waiting = self._waiting, []
        return Batch(things, self._given)

    def write(self, batch: Batch) -> None:
        """Put a batch on the disk, all of it or nothing. EnvironmentProblem where it can't be; then
        `revive` must be called before anything else is given, as counters are ahead of the disk."""
        with self._lock, self._careful("written"):
            if _identity(self.path) != self._identity:  # nobody would ever find it again
                raise OSError("it is not there any more, or another file is")
            self._put(batch.things)
            self._remove_some(2 * len(batch.things) + 100)
            self._connection.commit()

    def revive(self) -> None:
        """After something could not be written: begin anew with what is on the disk, if it has room
        again; EnvironmentProblem where it has not. Whatever waits is forgotten."""
        with self._lock:
            try:
                self._try_writing(self._connection)
            except EnvironmentProblem:
                fresh = self._opened(self.epoch)
                try:
                    self._try_writing(fresh)
                except BaseException:
                    fresh.close()
                    raise
                self._connection.close()
                self._connection = fresh
            self.last_node = self._about_locked("last_node")
            counted = self._about_locked("counted")
            for table in (self._counts, self._totals, self._latest, self._indexed):
                table.clear()
            self._indexed_together.clear()
            self._changed.clear()
            self._waiting.clear()
            self._since = self._given = 0
            self._read_counters(counted)

    def _try_writing(self, connection: sqlite3.Connection) -> None:
        """More than a page, which the next batch would use up."""
        with self._careful("written", connection):
            connection.execute("INSERT OR REPLACE INTO about VALUES ('room', zeroblob(?))", (ROOM,))
            connection.commit()
            connection.execute("DELETE FROM about WHERE key = 'room'")
            connection.commit()

    @contextlib.contextmanager
    def _careful(self, what: str, connection: sqlite3.Connection | None = None) -> Iterator[None]:
        """Whatever goes wrong, nothing that was half done may be there when others commit."""
        connection = connection or self._connection
        try:
            yield
        except BaseException as problem:
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
            if not isinstance(problem, Exception):
                raise
            sentence = f"the journal {self.path} can't be {what}: {problem}"
            raise EnvironmentProblem(sentence) from problem

    def interests(self) -> list[tuple[int, bytes]]:
        """The nodes that there are, in the order of their numbers."""
        with self._lock:
            rows = self._connection.execute("SELECT node, interest FROM nodes ORDER BY node")
            return [(node, bytes(interest)) for node, interest in rows]

    def memory(self, placed: list[Placed]) -> Memory:
        """What a rendezvous point begins with; `placed` are its nodes, each after its parents."""
        with self._lock:
            publishers = dict(self._connection.execute("SELECT name, stamp FROM publishers"))
            nodes = self._connection.execute("SELECT node, interest, owners FROM nodes").fetchall()
            (serial,) = self._connection.execute("SELECT max(serial) FROM records").fetchone()
        there = {one.node for one in placed}
        owners = {node: _OWNERS.decode(some) for node, _, some in nodes if node in there}
        return Memory(
            self.epoch,
            max(serial or 0, self._about("counted")),
            placed,
            {node: n for node, n in self._counts.items() if n and node in there},
            {node: n for node, n in self._totals.items() if n and node in there},
            {node: n for node, n in self._latest.items() if n and node in there},
            publishers,
            {node: some for node, some in owners.items() if some},
            {node: work_of(interest) for node, interest, _ in nodes if node in there},
        )

    # -- how -----------------------------------------------------------------------------------

    def _give(self, thing: Thing) -> None:
        self._waiting.append(thing)
        self._given += 1

    def _remove_some(self, most: int) -> None:
        """Remove what nobody needs, as much at a time as does not keep others waiting."""
        execute, many = self._connection.execute, self._connection.executemany
        forgotten, self._forgotten = self._forgotten, []
        many("DELETE FROM publishers WHERE name = ?", ((name,) for name in forgotten))
        (last,) = execute("SELECT max(serial) FROM records").fetchone()
        upto = min(self._unneeded, (last or 0) - KEEP, self._about_locked("counted"))
        rows = execute(
            "SELECT serial, marks FROM records WHERE serial <= ? ORDER BY serial LIMIT ?",
            (upto, most),
        ).fetchall()
        if rows:
            marks = (mark for _, marks in rows for mark in struct.iter_unpack("<qq", marks))
            many("DELETE FROM marks WHERE node = ? AND number = ?", marks)
            execute("DELETE FROM records WHERE serial <= ?", (rows[-1][0],))

    def _put(self, things: list[Thing]) -> None:
        execute, many = self._connection.execute, self._connection.executemany
        records = [one for one in things if isinstance(one, Record)]
        for one in things:
            if isinstance(one, Added):
                owners = msgspec.msgpack.encode((one.owner,) if one.owner else ())
                execute("INSERT INTO nodes VALUES (?, ?, ?)", (one.node, one.interest, owners))
                execute("UPDATE about SET value = ? WHERE key = 'last_node'", (one.node,))
            elif isinstance(one, Owned):
                owners = msgspec.msgpack.encode(one.owners)
                execute("UPDATE nodes SET owners = ? WHERE node = ?", (owners, one.node))
            elif isinstance(one, Dropped):
                execute("DELETE FROM nodes WHERE node = ?", (one.node,))
                execute("DELETE FROM counters WHERE node = ?", (one.node,))
                for table in (self._counts, self._totals, self._latest):
                    table.pop(one.node, None)
                self._changed.discard(one.node)
        many(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)",
            (_row(one) for one in records if one.serial),
        )
        many(
            "INSERT INTO marks VALUES (?, ?, ?)",
            (row for one in records for row in self._rows_of(one)),
        )
        many("INSERT OR REPLACE INTO publishers VALUES (?, ?)",
             {one.publisher: one.stamp for one in records}.items())  # fmt: skip
        self._count(records)
        self._since += len(records)
        if self._since >= CHECKPOINT:
            self._write_counters()

    def _rows_of(self, record: Record) -> list[tuple[int, int, int]]:
        """Where the numbers of its marks are found: for a node that has a row near by, no other
        one. Most marks of notifications with many have none."""
        indexed, serial = self._indexed, record.serial
        near = serial - NEAR
        together = self._indexed_together
        many = record.marks.nodes if isinstance(record.marks, Marks) else ()
        if many and together.get(many, -NEAR) > near:  # all of its nodes have rows near by
            return []
        found = [
            (node, number, serial)
            for node, number in zip(*columns(record.marks), strict=True)
            if indexed.get(node, -NEAR) <= near
        ]
        for node, _, _ in found:
            indexed[node] = serial
        if many:
            if len(together) >= MOST_TOGETHER:
                together.clear()
            together[many] = min(map(indexed.__getitem__, many))
        return found

    def _count(self, records: list[Record]) -> None:
        """Of records with the same many marks only the last one's numbers matter, and all matched
        the same nodes but for changes of the graph."""
        last: dict[Label, Record] = {}
        matched: dict[Label, int] = {}
        for record in records:
            matched[record.matched] = matched.get(record.matched, 0) + 1
            if isinstance(record.marks, Marks):
                last.pop(record.marks.nodes, None)
                last[record.marks.nodes] = record  # those of other headers may come between
            elif record.marks:
                self._count_last(last)
                for node, number, _ in record.marks:
                    self._counts[node] = number
                    self._latest[node] = record.serial
        self._count_last(last)
        totals = self._totals
        for nodes, times in matched.items():
            for node in nodes:
                totals[node] = totals.get(node, 0) + times
            self._changed.update(nodes)

    def _count_last(self, last: dict[Label, Record]) -> None:
        for record in last.values():
            nodes, numbers = columns(record.marks)
            self._counts.update(zip(nodes, numbers, strict=True))
            self._latest.update(dict.fromkeys(nodes, record.serial))
        last.clear()

    def _write_counters(self) -> None:
        (last,) = self._connection.execute("SELECT max(serial) FROM records").fetchone()
        rows = (
            (node, self._counts.get(node, 0), self._totals[node], self._latest.get(node, 0))
            for node in self._changed
        )
        self._connection.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?)", rows)
        self._connection.execute("UPDATE about SET value = ? WHERE key = 'counted'", (last or 0,))
        self._changed.clear()
        self._since = 0

    def _read_counters(self, counted: int) -> None:
        for node, *numbers in self._connection.execute("SELECT * FROM counters"):
            self._counts[node], self._totals[node], self._latest[node] = numbers
        for record in self._records_after(counted):
            self._count([record])
            self._since += 1

    def _records_after(self, serial: int) -> Iterator[Record]:
        rows = self._connection.execute(
            "SELECT * FROM records WHERE serial > ? ORDER BY serial", (serial,)
        )
        return (_record(*row) for row in rows)

    def _about(self, key: str) -> int:
        with self._lock:
            return self._about_locked(key)

    def _about_locked(self, key: str) -> int:
        row = self._connection.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return 0 if row is None else int(row[0])

    def _opened(self, epoch: int) -> sqlite3.Connection:
        try:
            connection: sqlite3.Connection = sqlite3.connect(self.path, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if not tables:
                connection.executescript(f"BEGIN;{_SCHEMA}COMMIT;")
                about = {"format": FORMAT, "epoch": epoch, "last_node": 0, "counted": 0}
                connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
                connection.commit()
            columns = {row[1] for row in connection.execute("PRAGMA table_info(nodes)")}
            if columns and "owners" not in columns:  # a journal of before
                connection.execute("ALTER TABLE nodes ADD owners BLOB NOT NULL DEFAULT x'90'")
                connection.commit()
            found = connection.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
        except (OSError, sqlite3.Error) as problem:
            raise EnvironmentProblem(
                f"the journal {self.path} can't be opened: {problem}"
            ) from None
        if found is None or found[0] != FORMAT:
            raise EnvironmentProblem(
                f"the journal {self.path} is of format {found and found[0]}, expected {FORMAT}"
            )
        return connection


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at a path."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _number_at(node: int, marks: bytes) -> int:
    """The number that a node has among packed marks; 0 where it is none of them."""
    key, at = node.to_bytes(8, "little"), -1
    while (at := marks.find(key, at + 1)) >= 0:
        if at % 16 == 0:
            return int.from_bytes(marks[at + 8 : at + 16], "little")
    return 0


def _row(record: Record) -> tuple[object, ...]:
    marks = struct.pack(f"<{2 * len(record.marks)}q", *in_turn(record.marks))
    matched = struct.pack(f"<{len(record.matched)}q", *record.matched)
    return record.serial, record.publisher, record.stamp, marks, matched, record.payload


def _record(
    serial: int, publisher: str, stamp: int, marks: bytes, matched: bytes, payload: bytes
) -> Record:
    numbers = struct.iter_unpack("<qq", marks)
    return Record(
        serial,
        publisher,
        stamp,
        tuple(Mark(node, number, (node,)) for node, number in numbers),
        struct.unpack(f"<{len(matched) // 8}q", matched),
        bytes(payload),
    )
