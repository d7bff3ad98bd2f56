"""The owner's side of an adoption: prepares a bulk in a thread, and commits it on the event
loop."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from tidings.model import TidingsError
from tidings.routing.protocol import pack_interest
from tidings.snapshots import Snapshot
from tidings.store.bulks import open_bulk, write_bulk
from tidings.store.folder import BULKS
from tidings.store.groups import GroupLog
from tidings.store.journal import FileJournal, entries as t
from tidings.store.journal.rows import SQL
from tidings.store.journal.state import JournalState
from tidings.store.known_log import KeyOf, KnownLog
from tidings.store.owner import Adopt
from tidings.store.reader import Reader, state_at

GAP = 1 << 20  # numbers that stay free for other nodes while a bulk is written


class _Prepared(NamedTuple):
    """A bulk that was written, and its shared places: for each, the existing node with the same
    filter."""

    record: t.Adopted
    shared: dict[int, int]


class Adoption:
    """A snapshot that a command handed over."""

    def __init__(self, folder: Path, asked: Adopt, key_of: KeyOf) -> None:
        """Raises TidingsError if there is no such snapshot. `key_of` computes the identity of a
        text."""
        self._folder = folder
        self._asked = asked
        self._key_of = key_of
        place = folder / BULKS / asked.name
        if place.parent != folder / BULKS or not asked.mark.isalnum():
            raise TidingsError(
                f"found the name {asked.name[:80]!r}, expected a snapshot in the folder {BULKS}"
            )
        self._snapshot = Snapshot.open(place)
        self._prepared: _Prepared | None = None

    def __len__(self) -> int:
        """How many nodes the snapshot has."""
        return len(self._snapshot.numbers)

    def prepare(self) -> list[tuple[int, bytes]]:
        """Write the bulk, in a thread; return its new nodes with their filters. Raises TidingsError
        if an id is already subscribed."""
        self.discard()
        snapshot = self._snapshot
        known = self._read_known(state_at(self._folder, Reader(self._folder).end()))
        known.need_adoptable(snapshot, self._folder)
        shared = known.find_shared(snapshot.keys)
        first = known.last + 1 + GAP
        name, identity = write_bulk(self._folder, snapshot, first, shared, self._asked.mark)
        record = t.Adopted(first, first + len(self) - 1, name, identity, self._asked.owner)
        self._prepared = _Prepared(record, shared)
        bulk = open_bulk(self._folder, name, first, identity)
        return [(node, pack_interest(text.encode(), SQL)) for node, _, text in bulk.each_text()]

    def commit(self, journal: FileJournal) -> int:
        """Adopt the bulk; return the version, or 0 if the channel has changed so that the bulk must
        be prepared again. No record may be waiting to be written when this is called. Raises
        TidingsError if an id has been subscribed meanwhile."""
        assert self._prepared is not None
        record, shared = self._prepared
        known = self._read_known(journal.read_state())
        known.need_adoptable(self._snapshot, self._folder)
        if known.last >= record.first or known.find_shared(self._snapshot.keys) != shared:
            return 0
        journal.adopt(record)
        self._prepared = None
        return record.version

    def discard(self) -> None:
        """Remove a bulk that was prepared and not committed."""
        if self._prepared is not None:
            shutil.rmtree(self._folder / BULKS / self._prepared.record.name, ignore_errors=True)
            self._prepared = None

    def _read_known(self, state: JournalState) -> KnownLog:
        return KnownLog(GroupLog(self._folder), state, self._key_of)
