"""The writing side of a channel's log, for commands and pipelines: it numbers changes and nodes,
and appends them as one group.

A writer keeps the identities of filters, and the ids of the subscriptions with their nodes, in
memory, but not the filter texts. A writer holds the lock while it catches up with other writers and
appends its own changes. So all writers give equal filters the same number.

Each change takes the next version, and a new node gets the version of its change as its number.
After its last subscription has ended, a filter that returns gets a new number. If the channel ever
had a rendezvous point, though, agents may use the node, so only the rendezvous point ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidings.model import EnvironmentProblem, Id, TidingsError
from tidings.store import folder as f
from tidings.store.change_records import LogError, decode_interest
from tidings.store.groups import GroupLog, LostEnd, Mark, Position
from tidings.store.journal import entries as t
from tidings.store.journal.losses import version_in
from tidings.store.journal.rows import SQL, Entry, Rows, encode_rows, entry_of
from tidings.store.journal.state import JournalState
from tidings.store.live_ids import LiveIds, ProjectedIds
from tidings.store.log_opening import end_value, take_rest
from tidings.store.reader import describe_reversal, read_checkpoint, read_mark


class RequestedChange(NamedTuple):
    """A change of a subscription; text and identity are None if the subscription ends."""

    id: Id
    text: str | None
    key: bytes | None = None
    dialect: str = SQL
    owner: str = ""  # who makes it; if empty, who made the subscription before


KeyOf = Callable[[str, str], bytes | None]
"""The identity of a text in a dialect; None if it is refused now."""


class PendingGroup(msgspec.Struct):
    """Changes that are acknowledged together, and their outcome."""

    changes: list[RequestedChange]
    version: int = 0
    error: BaseException | None = None
    done: bool = False


class _Known:
    """The content of a log that a writer keeps in memory."""

    def __init__(self, log: GroupLog, state: JournalState, key_of: KeyOf) -> None:
        self.log = log
        self.at = state.at
        self.version = state.version
        self.last = max(state.last_node, state.history.base)  # no number up to this is free
        self.has_life = bool(state.history.life)
        self.is_stale = False  # was the log repaired? Then some of this may be lost
        self._key_of = key_of
        self.ids = LiveIds({id_: one.node for id_, one in state.subscriptions.items()})
        self.ids.integer = state.integer
        # how many named subscriptions each node has; a node that ended is not here
        self.uses: dict[int, int] = {}
        self.numbers: dict[bytes, int] = {}  # some of these nodes may have ended
        self._anonymous: set[int] = set()  # nodes that a rendezvous point made
        for node, one in state.nodes.items():
            if one.named:
                self._add(node, one.key)
            else:
                self._add_anonymous(node, one.interest, one.key)
        self.owners: dict[Id, str] = {}  # who made the subscriptions, if told
        for id_, it in state.subscriptions.items():
            self.uses[it.node] = self.uses.get(it.node, 0) + 1
            if it.owner:
                self.owners[id_] = it.owner

    def apply(self, records: Iterable[bytes]) -> None:
        """Apply the entries of another writer."""
        for data in records:
            if data[:1] == t.NOTIFICATION:
                continue
            thing = t.decode_small(data)
            if isinstance(thing, Rows):
                for version, row in enumerate(thing.rows, thing.first):
                    if version > self.version:
                        self.version = version
                        if row.key is not None:
                            self._add(row.node, row.key)
                        self._use(row.id, row.node)
                        self._own(row.id, row.owner)
                        self._end(row.ended)
            elif isinstance(thing, t.Added):
                self._add_anonymous(thing.node, thing.interest, thing.key)
            elif isinstance(thing, t.Dropped):
                self._end(thing.node)
            elif isinstance(thing, t.Life):
                self.has_life = True
                self.last = max(self.last, thing.base)
            elif isinstance(thing, t.Repaired):
                self.has_life, self.is_stale = False, True
            if not isinstance(thing, Rows):
                self.version = max(self.version, t.version_of(thing))
        self.last = max(self.last, self.version)

    def make(self, changes: Iterable[RequestedChange]) -> Iterator[Entry]:
        """Apply changes that are known to be possible, and number them."""
        for id_, text, key, dialect, owner in changes:
            self.last = self.version = self.last + 1
            node, fresh = 0, None
            if key is not None:
                node = self.numbers.get(key, 0)
                if node not in self.uses:
                    node, fresh = self.version, key
                    self._add(node, key)
            before = self._use(id_, node)
            ended = 0
            if not self.has_life and self.uses.get(before) == 0 and before not in self._anonymous:
                ended = before
                self._end(before)
            owner = "" if text is None else owner or self.owners.get(id_, "")
            self._own(id_, owner)
            yield entry_of(id_, text, node, fresh, dialect, ended, owner)

    def _own(self, id_: Id, owner: str) -> None:
        if owner:
            self.owners[id_] = owner
        else:
            self.owners.pop(id_, None)

    def _add(self, node: int, key: bytes) -> None:
        self.uses[node] = 0
        if key:  # the identity is lost if the log was damaged
            self.numbers[key] = node

    def _add_anonymous(self, node: int, interest: bytes, key: bytes) -> None:
        """Add a node that a rendezvous point made. Older releases did not store its identity."""
        self.uses[node] = 0
        self._anonymous.add(node)
        self.ids.anonymous = len(self._anonymous)
        known = key or self._key_of(*decode_interest(interest))
        if known is not None and self.numbers.get(known) not in self.uses:
            self.numbers[known] = node

    def _use(self, id_: Id, node: int) -> int:
        """Set the node of a subscription; return its node before."""
        before = self.ids.set(id_, node)
        if node:
            self.uses[node] = self.uses.get(node, 0) + 1
        if before and before in self.uses:
            self.uses[before] -= 1
        return before

    def _end(self, node: int) -> None:
        self.uses.pop(node, None)
        self._anonymous.discard(node)
        self.ids.anonymous = len(self._anonymous)


class Writer:
    """Appends to a log. Several processes may write, but not several threads at once."""

    def __init__(self, folder: Path, segment_bytes: int, key_of: KeyOf) -> None:
        self._folder = folder
        self._key_of = key_of
        self.segment_bytes = segment_bytes
        self._refusal: str | None = None
        self._known: _Known | None = None
        self._latest = 0  # the latest version seen
        self.begun = 0  # how many segments this writer has begun
        self.is_owner = False
        """Does this process own the folder, and commit for others too?"""

    def commit(self, wanted: Iterable[PendingGroup]) -> None:
        """Append the changes that are possible, as one group, after what a writer that died left.

        Impossible changes get an error, and all others get a version. Raises Owned if another
        process owns the folder.
        """
        if self._refusal is not None:
            raise LogError(self._refusal)
        try:
            with f.writing(self._folder, is_owner=self.is_owner), self._closing_files():
                f.note_format(self._folder)
                known = self._catch_up()
                taken = self._select_possible(known, wanted)
                if any(one.changes for one in taken):
                    self._append(known, taken)
                for one in taken:
                    one.version = one.version or known.version
        except LostEnd as problem:
            self._refusal = f"{problem}; until then it accepts no changes"
            raise LogError(self._refusal) from problem
        except f.Owned:
            self._known = None  # the owner changes it, so it need not be kept
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
        """Close the files afterwards, because the log may be replaced before the next call."""
        known = self._known
        try:
            yield
        finally:
            for one in {known, self._known} - {None}:
                assert one is not None
                one.log.close(sync=False)

    def _catch_up(self) -> _Known:
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
                pass  # a repair may have cut off what was known
        known = self._known = self._load(mark)
        return self._read_rest(known)

    def _read_rest(self, known: _Known) -> _Known:
        for at, records in take_rest(self._folder, known.log, known.at, known.version):
            known.apply(records)
            known.at = at
        self._latest = known.version
        return known

    def _load(self, mark: Mark) -> _Known:
        log = GroupLog(self._folder, segment_bytes=self.segment_bytes)
        return _Known(log, read_checkpoint(self._folder, mark), self._key_of)

    def _select_possible(self, known: _Known, wanted: Iterable[PendingGroup]) -> list[PendingGroup]:
        """The groups whose changes are possible, applied in order; all other groups get an
        error."""
        ahead = ProjectedIds(known.ids, self._folder)
        taken = []
        for one in wanted:
            try:
                ahead.take([(change.id, change.text) for change in one.changes])
                taken.append(one)
            except TidingsError as problem:
                one.error = problem
        return taken

    def _append(self, known: _Known, taken: list[PendingGroup]) -> None:
        before, first = known.version, known.last + 1
        entries: list[Entry] = []
        for one in taken:
            entries += known.make(one.changes)
            one.version = known.version
        mark = known.log.marked
        assert mark is not None, "`take_end` has read or written the mark"
        try:
            begun = [t.encode(t.At(before))] if known.log.begins_segment else []
            records = [*begun, *encode_rows(first, entries)]
            group = known.log.append(records, end_value(self._folder, mark, known.version))
        except ValueError as problem:
            raise LogError(f"{problem}; write fewer changes at once") from problem
        self._at(known, group.end)
        self.begun += bool(begun)

    def _at(self, known: _Known, end: Position) -> None:
        known.at = end
        self._latest = known.version
