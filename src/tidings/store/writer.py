"""The writing side of a channel's log, for commands and pipelines: it numbers changes and nodes,
and appends them as one group.

A writer keeps the identities of filters, and the ids of the subscriptions with their nodes, in
memory (known_log.py). A writer holds the lock while it catches up with other writers and
appends its own changes. So all writers give equal filters the same number.

Each change takes the next version, and a new node gets the version of its change as its number.
If a filter is added again after its last subscription has ended, the filter gets a new number. If
the channel ever had a rendezvous point, agents may use the node too, so only the rendezvous point
ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.store import folder as f
from tidings.store.change_records import LogError
from tidings.store.declared import StoredDeclaration
from tidings.store.groups import EndMark, GroupLog, LostEnd
from tidings.store.journal import entries as t
from tidings.store.journal.losses import version_in
from tidings.store.journal.rows import Entry, encode_rows
from tidings.store.known_log import KeyOf, KnownLog, RequestedChange
from tidings.store.live_ids import ProjectedIds
from tidings.store.log_opening import end_value, take_rest
from tidings.store.reader import describe_reversal, read_checkpoint, read_mark

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot


class PendingGroup(msgspec.Struct):
    """Changes that are acknowledged together, and their outcome."""

    changes: list[RequestedChange]
    declaration: str | None = None
    """The declaration with which the identities were computed; None if there are no identities."""
    version: int = 0
    error: BaseException | None = None
    done: bool = False


class Redeclared(Exception):
    """Identities were computed with a declaration that has been replaced."""


class Writer:
    """Appends to a log. Several processes may write, but not several threads at once."""

    def __init__(self, folder: Path, segment_bytes: int, key_of: KeyOf) -> None:
        self._folder = folder
        self._key_of = key_of
        self.segment_bytes = segment_bytes
        self._refusal: str | None = None
        self._known: KnownLog | None = None
        self._latest = 0  # the latest version seen
        self.begun = 0  # how many segments this writer has begun
        self.is_owner = False
        """Whether this process owns the folder; an owner also commits the changes of other
        processes."""

    def commit(self, wanted: Iterable[PendingGroup]) -> None:
        """Append the changes that are possible, as one group, after the complete groups that a dead
        writer left.

        Impossible changes get an error, and all others get a version. Raises Owned if another
        process owns the folder.
        """
        with self._changing() as known:
            taken = self._select_possible(known, wanted)
            if any(one.changes for one in taken):
                self._append(known, taken)
            for one in taken:
                one.version = one.version or known.version

    @contextmanager
    def _changing(self) -> Iterator[KnownLog]:
        """Hold the lock, and catch up with other writers; raises Owned if another process owns the
        folder."""
        if self._refusal is not None:
            raise LogError(self._refusal)
        try:
            with f.writing(self._folder, is_owner=self.is_owner), self._closing_files():
                f.note_format(self._folder)
                yield self._catch_up()
        except LostEnd as problem:
            self._refusal = f"{problem}; until then it accepts no changes"
            raise LogError(self._refusal) from problem
        except f.Owned:
            self._known = None  # outdated as soon as the owner changes the log
            raise
        except EnvironmentProblem as problem:
            self._known = None
            raise LogError(f"{problem}; none of these changes was acknowledged") from problem
        except BaseException:
            # After an interruption the memory may be inconsistent, but the files are correct.
            self._known = None
            raise

    @contextmanager
    def _closing_files(self) -> Iterator[None]:
        """Close the files after the block, because somebody could replace the log before the next
        call."""
        known = self._known
        try:
            yield
        finally:
            for one in {known, self._known} - {None}:
                assert one is not None
                one.log.close(sync=False)

    def adopt(self, snapshot: Snapshot, owner: str) -> int:
        """Adopt a snapshot as one version, which is also the number of its last node."""
        from tidings.store.bulks import remove_unnamed, write_bulk  # loads pyarrow

        with self._changing() as known:
            # removes the bulk of a process that was killed during an adoption
            remove_unnamed(self._folder, (one.name for one, _ in known.bulks))
            known.need_adoptable(snapshot, self._folder)
            if not len(snapshot.numbers):
                return known.version
            named, before = [one.name for one, _ in known.bulks], known.version
            first = known.last + 1
            last = first + len(snapshot.numbers) - 1
            shared = known.find_shared(snapshot.keys)
            try:
                name, identity = write_bulk(self._folder, snapshot, first, shared)
                record = t.encode(t.Adopted(first, last, name, identity, owner, len(snapshot.ids)))
                known.apply([record])
                self._append_records(known, [record], before)
            except LostEnd:
                raise  # it is possible that the entry is in the log, so its bulk must stay
            except (OSError, EnvironmentProblem, LogError):
                with suppress(OSError):
                    remove_unnamed(self._folder, named)
                raise
            return last

    def declare(self, text: str, check: Callable[[str], None]) -> int:
        """Replace the declaration of the attributes; return the version. `check` gets the previous
        declaration, and raises an error if it can't be replaced. If nothing else is in the log yet,
        the declaration is part of version 0: the channel begins with it."""
        with self._changing() as known:
            wanted = StoredDeclaration.decode(text)
            if wanted.says_the_same(StoredDeclaration.decode(known.declaration)):
                return known.version
            check(known.declaration)
            before = known.version
            version = known.last + 1 if known.last or known.has_life else 0
            record = t.encode(t.Renewed(version, known.hidden, text))
            known.apply([record])
            self._append_records(known, [record], before)
            return version

    def _catch_up(self) -> KnownLog:
        """Read the changes of other writers, and prepare the log for appending."""
        known = self._known
        if known is not None and known.log.marked == known.log.read_mark() and \
                not known.log.has_more(known.at):  # fmt: skip
            return known  # nobody else wrote
        mark = read_mark(self._folder, GroupLog(self._folder))
        if version_in(mark) < self._latest:
            raise LogError(describe_reversal(self._folder, self._latest, version_in(mark)))
        if known is not None and known.log.id == mark.log and known.at.segment >= mark.oldest:
            try:
                if not self._read_rest(known).is_stale:
                    return known
            except LogError:
                pass  # a repair may have cut off data that was read before
        known = self._known = self._load(mark)
        return self._read_rest(known)

    def _read_rest(self, known: KnownLog) -> KnownLog:
        for at, records in take_rest(self._folder, known.log, known.at, known.version):
            known.apply(records)
            known.at = at
        self._latest = known.version
        return known

    def _load(self, mark: EndMark) -> KnownLog:
        log = GroupLog(self._folder, segment_bytes=self.segment_bytes)
        return KnownLog(log, read_checkpoint(self._folder, mark), self._key_of)

    def _select_possible(
        self, known: KnownLog, wanted: Iterable[PendingGroup]
    ) -> list[PendingGroup]:
        """The groups whose changes are possible, applied in order; all other groups get an
        error."""
        ahead = ProjectedIds(known.ids, self._folder)
        taken = []
        for one in wanted:
            if one.declaration not in (None, known.declaration):
                one.error = Redeclared()
                continue
            try:
                ahead.take([(change.id, change.text) for change in one.changes])
                taken.append(one)
            except TidingsError as problem:
                one.error = problem
        return taken

    def _append(self, known: KnownLog, taken: list[PendingGroup]) -> None:
        before, first = known.version, known.last + 1
        entries: list[Entry] = []
        for one in taken:
            entries += known.make(one.changes)
            one.version = known.version
        self._append_records(known, encode_rows(first, entries), before)

    def _append_records(self, known: KnownLog, records: list[bytes], before: int) -> None:
        """Append the records of a group, which were already applied to `known`; `before` is the
        version before them."""
        mark = known.log.marked
        assert mark is not None, "`take_end` has read or written the mark"
        try:
            begun = [t.encode(t.At(before))] if known.log.begins_segment else []
            value = end_value(self._folder, mark, known.version)
            known.at = known.log.append([*begun, *records], value).end
        except ValueError as problem:
            raise LogError(f"{problem}; write fewer changes at once") from problem
        self.begun += bool(begun)
        self._latest = known.version
