"""The writing side of a log: it numbers changes and nodes, and appends them as one group.

A writer keeps the identities of all filters and the ids of the subscriptions in memory, but not the
filter texts. A writer holds the lock while it catches up with other writers and appends its own
changes. So versions have no gaps, and all writers give equal filters the same number. The memory of
a writer changes only after the group is on the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem, Id, TidingsError
from tidings.store import checkpoint, migration
from tidings.store.groups import GroupLog, LostEnd, Mark
from tidings.store.locks import locked
from tidings.store.reader import describe_reversal, read_mark
from tidings.store.records import CHANGES, Entry, LogError, Point, encode_changes, entry_of
from tidings.store.settling import take_rest
from tidings.store.state import LiveIds, Nodes, ProjectedIds

RequestedChange = tuple[Id, str | None, bytes | None, str]
"""Id, text, identity and dialect; text and identity are None if the subscription ends."""


class PendingGroup(msgspec.Struct):
    """Changes that are acknowledged together, and their outcome."""

    changes: list[RequestedChange]
    version: int = 0
    error: BaseException | None = None
    done: bool = False


class _Known(msgspec.Struct):
    """The content of a log that a writer keeps in memory."""

    log: GroupLog
    version: int
    point: Point  # the version may lie inside the group after this point
    nodes: Nodes
    live_ids: LiveIds


class Writer:
    """Appends to a log. Several processes may write, but not several threads at once."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._folder = folder
        self.segment_bytes = segment_bytes
        self._refusal: str | None = None
        self._known: _Known | None = None
        self._latest = 0  # the latest version seen

    def commit(self, wanted: Iterable[PendingGroup]) -> None:
        """Append the changes that are possible, as one group.

        Impossible changes get an error, and all others get a version.
        """
        if self._refusal is not None:
            raise LogError(self._refusal)
        try:
            with locked(self._folder), self._closing_files():
                known = self._catch_up()
                taken = self._select_possible(known, wanted)
                if any(one.changes for one in taken):
                    self._append(known, taken)
                for one in taken:
                    one.version = one.version or known.version
        except LostEnd as problem:
            self._refusal = f"{problem}; until then it accepts no changes"
            raise LogError(self._refusal) from problem
        except EnvironmentProblem as problem:
            raise LogError(f"{problem}; none of these changes was acknowledged") from problem
        except BaseException:
            # After an interruption the memory may be inconsistent, but the files are correct.
            self._known = None
            raise

    @contextmanager
    def _closing_files(self) -> Iterator[None]:
        """Close the files afterwards, because the log may be replaced before the next call."""
        try:
            yield
        finally:
            if self._known is not None:
                self._known.log.close(sync=False)

    def _catch_up(self) -> _Known:
        """Read the changes of other writers, and prepare the log for appending."""
        known = self._known
        if known is not None and known.log.marked == known.log.acknowledged() and \
                not known.log.has_more(known.point.at):  # fmt: skip
            return known  # nobody else wrote
        mark = read_mark(self._folder, GroupLog(self._folder / CHANGES))
        if mark.value < self._latest:
            raise LogError(describe_reversal(self._folder, self._latest, mark.value))
        if known is None or known.log.id != mark.log or known.point.at.segment < mark.oldest:
            known = self._known = self._load(mark)
        start = known.version
        for point, records in take_rest(self._folder, known.log, known.point):
            for record in records:
                if record.version > start:
                    known.nodes.apply(record, self._folder)
                    known.live_ids.apply(record.id, record.filter)
            known.point = point
        self._latest = known.version = max(start, known.point.version)
        return known

    def _load(self, mark: Mark) -> _Known:
        base = checkpoint.read(self._folder, mark)
        log = GroupLog(self._folder / CHANGES, segment_bytes=self.segment_bytes)
        living = LiveIds(base.subscriptions)
        return _Known(log, base.version, base.point, Nodes(base.keys), living)

    def _select_possible(self, known: _Known, wanted: Iterable[PendingGroup]) -> list[PendingGroup]:
        """The groups whose changes are possible, applied in order; all other groups get an
        error."""
        ahead = ProjectedIds(known.live_ids, self._folder)
        taken = []
        for one in wanted:
            try:
                ahead.take([(id_, text) for id_, text, _, _ in one.changes])
                taken.append(one)
            except TidingsError as problem:
                one.error = problem
        return taken

    def _append(self, known: _Known, taken: list[PendingGroup]) -> None:
        nodes, before = known.nodes.numbers, known.version
        new: dict[bytes, int] = {}
        entries: list[Entry] = []
        for one in taken:
            for id_, text, key, dialect in one.changes:
                node, fresh = 0, None
                if key is not None:
                    node = nodes.get(key) or new.get(key) or 0
                    if not node:
                        node, fresh = len(nodes) + len(new) + 1, key
                        new[key] = node
                entries.append(entry_of(id_, text, node, fresh, dialect))
            one.version = before + len(entries)
        last = before + len(entries)
        try:
            if not known.log.segments():
                migration.note_current(known.log.folder)
            group = known.log.append(encode_changes(before + 1, entries), last)
        except ValueError as problem:
            raise LogError(f"{problem}; write fewer changes at once") from problem
        known.point = Point(last, group.end)
        known.version = self._latest = last
        nodes.update(new)
        for one in taken:
            for id_, text, _, _ in one.changes:
                known.live_ids.apply(id_, text)
