"""The log of a channel, as its rendezvous point writes it: nodes and their history, notifications,
publishers, sources, counters and lives. Named subscriptions of commands and pipelines are in the
same log (store/change_log.py), and the rendezvous point keeps their nodes.

    add_node, append ...   ──> waiting, in memory
    take ──> batch ──write, in a thread──> one group of a log, one sync ──> the batch is on the disk

    00000000000000000001.log ...   groups of entries; see entries.py, store/groups, store/folder.py
    end                            how far the journal was acknowledged, and the version
    checkpoint                     the state after one of the groups

Many records share one sync, so publishing stays fast although each acknowledgment waits for a sync.
A start reads the checkpoint and the groups after it; a thread then indexes older notifications.

Corrupt data is never delivered. If an older notification is corrupt, it is reported as lost. If
anything else is missing or corrupt, even at the end, the journal records a loss: a new lineage
begins, and all subscribers receive a break. The exception is a lost bulk (bulks/): a start is
refused until the bulk is restored, or until `repair` was called, which gives up the subscriptions
of the bulk.

Old notifications are dropped with their segments, as soon as nobody needs them or a limit on their
number, age or size is exceeded.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tidings.files import hold_lock, make_durable_folder, release_lock, take_lock, write_file
from tidings.model import EnvironmentProblem
from tidings.routing.protocol import Life, Lineage, Notification, Range, work_of
from tidings.routing.root import (
    Block,
    Confirmation,
    Cursor,
    History,
    Memory,
    Placed,
    Places,
    Record,
    RemovedNode,
)
from tidings.store import folder
from tidings.store.groups import START, GroupLog
from tidings.store.journal import checkpoint, entries as t
from tidings.store.journal.block_records import encode_all
from tidings.store.journal.log_segments import LogSegment, Retention, Segments
from tidings.store.journal.losses import LossReplay, value_of, version_in
from tidings.store.journal.record_lookup import RecordLookup
from tidings.store.journal.rows import Row, Rows
from tidings.store.journal.sqlite_journal import is_before, take_over
from tidings.store.journal.state import JournalState
from tidings.store.journal.upkeep import Upkeep, walk_to
from tidings.store.layered import own_part
from tidings.store.owner import (
    CommandServer,
    Take,
    TakeDeclaration,
    TakeSnapshot,
    Welcome,
    ask_for_folder,
    close_listener,
    listen,
)

SEGMENT_BYTES = 16 << 20
ROOM = 1 << 18  # bytes that must be free before a journal on a full disk is revived

_log = logging.getLogger(__name__)


class Batch(msgspec.Struct, frozen=True):
    """Records that are written together.

    `upto` counts the records passed to the journal, from its beginning to the end of the batch.
    """

    things: list[t.JournalEntry]
    upto: int


class FileJournal:
    """A journal in a folder. Only `write` and `tend` may run in other threads."""

    def __init__(
        self,
        path: str | Path,
        retention: Retention | None = None,
        *,
        apart: bool = False,
        listens: bool = False,
        repairs: bool = False,
    ) -> None:
        """Open the journal at a path, or create it. Call `begin_life` before a rendezvous point
        uses the journal. If `apart` is set, the caller must call `tend` when `is_due` is true;
        otherwise `write` calls `tend`. If `listens` is set, the caller must call `serve`. If
        `repairs` is set, the caller must call `repair`, and the subscriptions of lost bulks are
        given up. If `repairs` is not set, a lost bulk is an error, because a backup may still have
        its files."""
        self.path = Path(path)
        self._checkpoint = self.path / checkpoint.NAME
        self._apart = apart
        self._repairs = repairs
        self._tending = threading.Lock()
        self.retention = retention or Retention()
        self.losses: list[str] = []
        """Sentences about data that was missing when the journal was opened."""
        self._lock = threading.Lock()  # for the files
        self._listener: socket.socket | None = None
        self._serving: CommandServer | None = None
        self._held = self._hold()
        try:
            if listens:
                self._listen()
            with self._lock, self._name_failures("opened"):
                folder.read_format(self.path)
                self._open()
        except BaseException:
            self.stop_serving()
            release_lock(self._held)
            raise

    def _listen(self) -> None:
        """Listen for commands at once, so that they wait while the log is read."""
        try:
            self._listener = listen(self.path)
            weakref.finalize(self, self._listener.close)  # in case the journal is never closed
        except OSError as problem:
            _log.warning("commands can't change the subscriptions in %s while the rendezvous "
                         "point runs: %s", self.path, problem)  # fmt: skip

    def serve(
        self, take: Take, adopt: TakeSnapshot, welcome: Welcome, declare: TakeDeclaration
    ) -> None:
        """Accept changes, snapshots and declarations from commands, and connections from pipelines:
        see `CommandServer`."""
        if self._listener is not None:
            self._serving = CommandServer(
                self.path, self._listener, take, "rendezvous point", adopt=adopt, welcome=welcome,
                declare=declare,
            )  # fmt: skip

    def stop_serving(self) -> None:
        """Accept no more changes from commands."""
        if self._serving is not None:
            self._serving.stop()
        elif self._listener is not None:
            close_listener(self.path, self._listener)
        self._listener = self._serving = None

    def close(self) -> None:
        with self._tending, self._lock:
            try:
                if self._held >= 0:
                    self.stop_serving()
                self._log.close()
            finally:
                if self._held >= 0:
                    release_lock(self._held)
                self._held = -1

    def _hold(self) -> int:
        """Lock out other writers, because two writers would assign the same numbers."""
        try:
            make_durable_folder(self.path.parent)
            beside = Path(f"{self.path}.lock")  # the lock that older releases used
            before = take_lock(beside) if beside.exists() or is_before(self.path) else -1
            try:
                with self._name_failures("opened"):
                    take_over(self.path)
                try:
                    return folder.own(self.path)
                except BlockingIOError:  # a pipeline that owns the folder gives it up on request
                    if not ask_for_folder(self.path):
                        raise
                    return folder.own(self.path)
            finally:
                if before >= 0:
                    release_lock(before)
        except BlockingIOError:
            raise EnvironmentProblem(
                f"another rendezvous point is using the journal {self.path}; stop it first, or use "
                "another journal"
            ) from None
        except OSError as problem:
            sentence = f"the journal {self.path} can't be opened: {problem.strerror}"
            raise EnvironmentProblem(sentence) from None

    def _open(self) -> None:
        """Read the checkpoint and the groups after it."""
        self._log = GroupLog(self.path, segment_bytes=SEGMENT_BYTES)
        self._segments = Segments()
        self._waiting: list[t.JournalEntry] = []
        self._given = 0
        losses: list[str] = []
        mark = self._log.read_mark()
        try:
            state = checkpoint.read(self.path, mark, accepts_loss=self._repairs)
        except checkpoint.Damaged as problem:
            losses.append(str(problem))
            state = JournalState(folder=self.path, lost_bulks=[] if self._repairs else None)
        size = _size(self._checkpoint)
        self._upkeep = Upkeep(self._log, self._segments, self.retention, state.at, size)
        self._lookup = RecordLookup(self._log, self._segments)
        base = state.version
        # without an end mark, it is not known whether the first segments were dropped or are
        # missing
        is_suspect = bool(losses) or mark is None
        walk, replay = self._log.walk(state.at), LossReplay(state, base_is_suspect=is_suspect)
        replay.apply(walk, lambda group: self._segment(group.end.segment).add(
            group.records, group.places
        ))  # fmt: skip
        losses += self._log.take_end(walk, self._mark_value(state.version))
        if losses and replay.unread:
            losses.append(
                f"notifications in the middle of the log that can't be read: {replay.unread:,}; "
                "the totals of their nodes do not count them"
            )
        for one, sentence in state.lost_bulks or ():
            losses.append(sentence)
            replay.lost.append((one.first, one.version))
        state.give_up_bulks()
        self._upkeep.begin_summary()
        self.losses = losses
        # if the checkpoint is newer than the mark, perhaps the mark was restored from a backup
        is_told = mark is not None and version_in(mark) >= base
        self._repaired = replay.finish(mark, is_told=is_told)
        """The entry with which the log would continue after a loss."""
        self._version = state.version
        self._named = {number for number, one in own_part(state.nodes).items() if one.named}
        """Nodes that named subscriptions created, besides those of bulks."""
        self._bulks = [*state.bulks]
        self._integer = state.integer
        self._state: JournalState | None = state
        self.lineage = tuple(Life(*one) for one in state.lives)
        self.last_node = state.last_node
        """The highest number that a node ever had."""
        self._serial = state.highest_serial() if losses else state.serial
        self._identity = _identity(self.path)
        older = threading.Thread(
            target=self._lookup.read_older, args=(self._upkeep.since,), daemon=True
        )
        older.start()

    def _segment(self, first: int) -> LogSegment:
        found = self._segments.current.get(first)
        return self._segments.of(first, self._log.path_of(first)) if found is None else found

    # -- calls by the state machine ------------------------------------------------------------

    def add_node(self, node: int, interest: bytes, owner: str = "", key: bytes = b"") -> None:
        self._give(t.Added(node, interest, owner, key, self._integer))

    def set_owners(self, node: int, owners: tuple[str, ...]) -> None:
        self._give(t.Owned(node, owners))

    def drop_node(self, node: int, gone: RemovedNode) -> None:
        self._give(t.Dropped(node, gone, self._is_named(node), self._integer))

    def _is_named(self, node: int) -> bool:
        return node in self._named or any(one.first <= node <= one.version for one in self._bulks)

    def append(self, record: Record) -> None:
        self._give(record)

    def append_block(self, block: Block) -> None:
        self._give(block)

    def set_rows(self, first: int, rows: Sequence[Row]) -> None:
        """Record changes to named subscriptions; `first` is the version of the first change."""
        for row in rows:
            if row.filter is not None:
                self._integer = type(row.id) is int
            if row.key is not None:
                self._named.add(row.node)
        self._give(Rows(first, [*rows]))

    def set_cursor(self, key: str, cursor: Cursor | None) -> None:
        self._give(t.Named(key, cursor))

    def confirm(self, key: str, one: Confirmation) -> None:
        self._give(t.Confirmed(key, one.serial, one.total, dict(one.counts), one.upto, one.gaps))

    def forget_publishers(self, names: Iterable[str]) -> None:
        """Forget publishers whose stamps are not needed any more; the next batch records this."""
        self._waiting.append(t.Forgotten(tuple(names)))

    def prune(self, upto: int) -> None:
        """Allow the notifications up to the given serial to be dropped."""
        self._upkeep.unneeded = max(self._upkeep.unneeded, upto)

    def _give(self, thing: t.JournalEntry) -> None:
        self._waiting.append(thing)
        self._given += 1

    def find(
        self, ranges: Iterable[Range], most_bytes: int = 1 << 62
    ) -> tuple[list[Notification], list[Range]]:
        """The stored notifications in these ranges, and the ranges of those that are lost. When the
        notifications found so far exceed `most_bytes`, the search ends; the remaining ranges are in
        neither of the two results. Raise EnvironmentProblem if the journal can't be read, or is
        still being read."""
        life = self.lineage[-1].life if self.lineage else 0
        with self._name_failures("read"):
            return self._lookup.find(ranges, most_bytes, life)

    # -- calls by the process that opened the journal ------------------------------------------

    def begin_life(self, life: int) -> None:
        """Record that a rendezvous point starts with this journal. The record is on the disk when
        this returns; raise EnvironmentProblem if it can't be written. After a loss, this life is
        the first of a new lineage."""
        with self._lock, self._name_failures("written"):
            for sentence in self.losses[:10]:
                _log.error("the journal %s has lost data: %s", self.path, sentence)
            broken, first = bool(self.losses), self._serial + 1
            lives = (*(() if broken else self.lineage), Life(life, first))
            things: list[t.JournalEntry] = [self._repaired] if broken else []
            last = max(self.last_node, self._repaired.version if broken else 0)
            things.append(t.Life(life, first, broken, Lineage(lives).first_node(last)))
            self._continue(things)

    def _continue(self, things: list[t.JournalEntry]) -> JournalState:
        """Append the first entries after the journal was opened. After a loss, this also writes a
        checkpoint after the damaged data, so that the data is not read again."""
        self._append(things)
        state = self._catch_up(is_told=bool(self.losses))
        if self.losses:
            self._keep(state)
            if (self.path / folder.BULKS).exists():
                from tidings.store.bulks import move_unnamed_aside  # loads pyarrow

                move_unnamed_aside(self.path, (one.name for one, _, _ in state.living_bulks()))
        folder.note_format(self.path)
        self.lineage = tuple(Life(*one) for one in state.lives)
        self.last_node, self._version = state.last_node, state.version
        return state

    def repair(self) -> tuple[list[str], tuple[tuple[int, int], ...]]:
        """Record a loss without starting a rendezvous point; return what was wrong, and the ranges
        of lost versions. Damage before the checkpoint is also reported."""
        with self._lock, self._name_failures("written"):
            walk = GroupLog(self.path).walk(START, self._upkeep.since)
            for _ in walk if self._upkeep.since.number else ():
                pass
            problems = [*self.losses, *walk.damages]
            if not problems:
                return [], ()
            self.losses = problems
            self._continue([self._repaired])
            return problems, self._repaired.lost

    @property
    def version(self) -> int:
        """The latest version on the disk."""
        return self._version

    @property
    def history(self) -> History:
        """The history of the nodes, as it is on the disk."""
        with self._lock, self._name_failures("read"):
            return self._catch_up().history

    def renew(self, version: int, hidden: Iterable[int], declaration: str) -> None:
        """Record that filters are interpreted differently from the given version on. The record is
        on the disk when this returns."""
        with self._lock, self._name_failures("written"):
            self._append([t.Renewed(version, tuple(hidden), declaration)])
            self._catch_up()

    def read_state(self) -> JournalState:
        """The state, as it is on the disk; callers must not change it."""
        with self._lock, self._name_failures("read"):
            return self._catch_up()

    def adopt(self, thing: t.Adopted) -> None:
        """Record that a bulk was adopted. The record is on the disk when this returns; the caller
        must then start a new state machine."""
        with self._lock, self._name_failures("written"):
            self._append([thing])
            state = self._catch_up()
            self._upkeep.begin_summary()  # the next checkpoint reads the bulk from the log
            self._bulks, self._integer = [*state.bulks], state.integer
            self.last_node = state.last_node

    @property
    def has_waiting(self) -> bool:
        """Whether records are waiting to be written."""
        return bool(self._waiting)

    def take(self) -> Batch | None:
        """The batch of everything that waits to be written. Writing an empty batch only drops
        segments."""
        if not self._waiting and (self._apart or not self._upkeep.droppable()):
            return None
        things, self._waiting = self._waiting, []
        return Batch(things, self._given)

    def write(self, batch: Batch) -> None:
        """Write a batch to the disk, all of it or nothing. Raise EnvironmentProblem if that fails;
        then `revive` must be called before anything else is added."""
        with self._lock, self._name_failures("written"):
            # a batch in the old folder would never be read again
            if _identity(self.path) != self._identity:
                raise OSError("the folder of the journal was removed or replaced")
            if batch.things:
                self._need_room(self._size())
                self._state, before, version = None, self._log.end, self._version
                try:
                    self._append(batch.things)
                except BaseException:  # after any error, the batch is not acknowledged
                    self._version = version
                    self._log.take_back(before, self._mark_value(version))
                    self._upkeep.begin_summary()
                    raise
        if not self._apart:
            self.tend()

    def revive(self) -> None:
        """Reopen the journal from the disk after a failed write. Raise EnvironmentProblem if the
        disk still has no room. Records that wait to be written are dropped."""
        with self._tending, self._lock, self._name_failures("written"):
            self._need_room(self._size_of_files())
            room = self.path / "room"
            try:
                make_durable_folder(self.path)
                write_file(room, bytes(ROOM))
            finally:
                room.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._log.close()
            self._lookup.is_over = True
            self._open()

    def interests(self) -> list[tuple[int, bytes]]:
        """The filters of all nodes, in the order of the nodes' numbers."""
        with self._lock, self._name_failures("read"):
            state = self._catch_up()
            state.add_texts()
            nodes = state.nodes
            found = [(node, one.interest) for node, one in nodes.items()]
            found.sort()  # fast, because the nodes are almost sorted
            return found

    def memory(self, placed: Sequence[Placed]) -> Memory:
        """The state that a rendezvous point starts from. `placed` has the nodes of the channel,
        each after its parents."""
        with self._lock, self._name_failures("read"):
            state = self._catch_up()
            state.add_texts()
        there = Places.of(placed).numbers.tolist()
        nodes = {node: state.nodes[node] for node in there}
        counters = {node: state.counters[node] for node in there if node in state.counters}
        return Memory(
            lineage=self.lineage,
            serial=state.serial,
            placed=placed,
            counts={node: one.count for node, one in counters.items() if one.count},
            totals={node: one.total for node, one in counters.items() if one.total},
            latest={node: one.latest for node, one in counters.items() if one.latest},
            publishers=dict(state.publishers),
            owners={node: one.owners for node, one in nodes.items() if one.owners},
            sizes={node: work_of(one.interest) for node, one in nodes.items()},
            history=state.history.copy(),
            sources=dict(state.sources),
            cursors=dict(state.cursors),
            term=state.term,
            written=self._given,
            held=frozenset(one.node for one in state.subscriptions.values()),
        )

    # -- internals -----------------------------------------------------------------------------

    def _append(self, things: list[t.JournalEntry]) -> None:
        version = max(self._version, *map(_version_of, things), 0)
        if self._log.begins_segment:
            things = [t.At(self._version), *things]
        records = encode_all(things)
        places = self._log.append_packed(records, self._mark_value(version))
        self._version = version
        end = self._log.end
        segment = self._segment(end.segment)
        segment.add(records, places)
        segment.size, segment.written = end.offset, time.time()
        self._serial = max(self._serial, *map(_last_serial, things), 0)
        self._upkeep.note(things)

    def _mark_value(self, version: int) -> int:
        return value_of(version, has_checkpoint=bool(self._upkeep.size))

    def _catch_up(self, *, is_told: bool = False) -> JournalState:
        """The state at the end of the log, which is read again if anything was written. Damage is
        an error, unless a break was announced to all subscribers (`is_told`)."""
        if self._state is None:
            self._state = checkpoint.read(self.path, self._log.read_mark())
        walk_to(self._state, self._log, self._log.end, is_told=is_told)
        return self._state

    def _keep(self, state: JournalState) -> None:
        """Write a checkpoint, so that the next start need not read the groups before it."""
        self._upkeep.keep(state.at, checkpoint.write(self.path, state))
        self._state = None

    @property
    def is_due(self) -> bool:
        """Whether there is work for `tend`."""
        return self._upkeep.is_due

    def tend(self) -> None:
        """Write a checkpoint if a start would have much to read, and drop the segments that nobody
        needs. If the journal was opened with `apart`, batches can be written at the same time;
        otherwise `write` calls this method. Raise EnvironmentProblem if it fails."""
        with self._tending, self._name_failures("maintained"):
            with self._lock:
                log, upkeep = self._log, self._upkeep
                gone = upkeep.droppable()
                if gone and gone[-1] == log.end.segment:
                    log.begin_segment()  # the checkpoint must be in a segment that stays
                    self._state = None
                    self._append([t.Forgotten(())])
                end, due = log.end, upkeep.needs_checkpoint(gone)
                written = upkeep.take_summary() if due else None
            if written is not None:
                state = upkeep.state_at(written, end)
                size = checkpoint.write(self.path, state)
                with self._lock:
                    upkeep.keep(end, size)
                    self._state = None
                if (self.path / folder.BULKS).exists():
                    from tidings.store.bulks import remove_unnamed  # loads pyarrow

                    # a reader that finds a bulk missing reads again under this lock
                    with hold_lock(self.path / folder.LOCK):
                        names = (one.name for one, _, _ in state.living_bulks())
                        remove_unnamed(self.path, names)
            if gone:
                # a reader that finds a file missing reads again under this lock
                with hold_lock(self.path / folder.LOCK), self._lock:
                    log.drop_before(gone[-1] + 1)
                    self._segments.keep({*log.segments()})

    def _size(self) -> int:
        """The size of all segments in bytes. While older segments are still being read, the sizes
        of the files are used."""
        known = self._segments.older is not None
        return self._segments.size() if known else self._size_of_files()

    def _size_of_files(self) -> int:
        return sum(_size(self._log.path_of(first)) for first in self._log.segments())

    def _need_room(self, size: int) -> None:
        size, most = size + _size(self._checkpoint), self.retention.disk_bytes
        if size > most:
            raise OSError(
                f"the journal takes {size:,} bytes, expected at most {most:,}, "
                "the limit `disk_bytes`"
            )

    @contextlib.contextmanager
    def _name_failures(self, what: str) -> Iterator[None]:
        try:
            yield
        except EnvironmentProblem:
            raise
        except Exception as problem:
            sentence = f"the journal {self.path} can't be {what}: {problem}"
            raise EnvironmentProblem(sentence) from problem


def _version_of(thing: t.JournalEntry) -> int:
    # fast path: nearly all entries are notifications
    return 0 if type(thing) in (Record, Block) else t.version_of(thing)


def _last_serial(thing: t.JournalEntry) -> int:
    if isinstance(thing, Block):
        return thing.last_serial
    return thing.serial if isinstance(thing, Record) else 0


def _identity(path: Path) -> tuple[int, int] | None:
    """A value that identifies the folder at a path; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
