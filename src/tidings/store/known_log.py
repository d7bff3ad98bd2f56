"""The data that a writer of a channel's log keeps in memory: ids, identities and numbers, but no
texts.

Subscriptions that were adopted as a whole stay in their files; later changes are in dictionaries
(layered.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.model import Id, TidingsError
from tidings.store.change_records import decode_interest
from tidings.store.groups import GroupLog
from tidings.store.journal import entries as t
from tidings.store.journal.rows import SQL, Entry, Rows, entry_of
from tidings.store.journal.state import JournalState
from tidings.store.layered import Layered, own_part, put_over
from tidings.store.live_ids import LiveIds, ProjectedIds

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot
    from tidings.store.bulks import Bulk


class RequestedChange(NamedTuple):
    """A change to a subscription; text and identity are None if the subscription ends."""

    id: Id
    text: str | None
    key: bytes | None = None
    dialect: str = SQL
    owner: str = ""  # if empty, the subscription keeps its owner


KeyOf = Callable[[str, str], bytes | None]
"""The identity of a text in a dialect; None if it is refused now."""


class KnownLog:
    """The content of a log that a writer keeps in memory."""

    def __init__(self, log: GroupLog, state: JournalState, key_of: KeyOf) -> None:
        self.log = log
        self.at = state.at
        self.version = state.version
        self.last = max(state.last_node, state.history.base)  # the highest number in use
        self.has_life = bool(state.history.life)
        self.declaration = state.history.declaration  # see declared/
        self.hidden = state.history.hidden
        self.is_stale = False  # set after a repair, which may have removed data that is known here
        self._key_of = key_of
        self.ids = LiveIds({})
        # how many named subscriptions each node has, without nodes that have ended
        self.uses: MutableMapping[int, int] = {}
        self.numbers: MutableMapping[bytes, int] = {}  # perhaps some of these nodes have ended
        self._anonymous: set[int] = set()  # nodes that a rendezvous point created
        self.owners: dict[Id, str] = {}  # without adopted subscriptions
        self.bulks: list[tuple[t.Adopted, Bulk]] = []  # in the order of the layers of `ids`
        self._folder = state.folder
        self._take(state)

    def _take(self, state: JournalState) -> None:
        for node, one in own_part(state.nodes).items():
            if any(bulk.first <= node <= bulk.version for bulk in state.bulks):
                continue  # the identity and the uses of this node are in the bulk
            if one.named:
                self._add(node, one.key)
            else:
                self._add_anonymous(node, one.interest, one.key)
        for at, bulk in enumerate(state.bulks):
            self._adopt(bulk)
            for id_ in state.list_ended(at)[1]:
                self._use(id_, 0)
        own = own_part(state.subscriptions)
        if not state.bulks:  # all ids at once, because there may be a million
            self.ids = LiveIds({id_: one.node for id_, one in own.items()})
        for id_, it in own.items():
            if state.bulks:
                self.ids.set(id_, it.node)
            self.uses[it.node] = self.uses.get(it.node, 0) + 1
            if it.owner:
                self.owners[id_] = it.owner
        for at in range(len(state.bulks)):
            for node in state.list_ended(at)[0] - own_part(state.nodes).keys():
                self._end(node)
            # the files of a bulk still list its shared nodes; those that have ended since then must
            # not come back
            for node in self.bulks[at][1].shared.values():
                if not self.uses.get(node, 1) and node not in state.nodes:
                    self._end(node)
        self.ids.integer, self.ids.anonymous = state.integer, len(self._anonymous)

    def _adopt(self, one: t.Adopted) -> None:
        from tidings.store.bulks import open_bulk  # loads pyarrow

        assert self._folder is not None, "a state with bulks was read from a folder"
        bulk = open_bulk(self._folder, one.name, one.first, one.identity)
        # a node that has ended must not hide a node of the bulk
        own = own_part(self.numbers)
        for key in [key for key, node in own.items() if node not in self.uses]:
            del own[key]
        self.numbers = put_over(self.numbers, bulk.nodes_by_key())
        self.uses = put_over(self.uses, bulk.uses_by_node())
        self.ids.adopt(bulk.nodes_by_id(), integer=bulk.integer)
        for place, node in bulk.shared.items():
            many = int(bulk.starts[place + 1] - bulk.starts[place])
            self.uses[node] = self.uses.get(node, 0) + many
        self.bulks.append((one, bulk))

    def _owner_of(self, id_: Id) -> str:
        """The owner of a subscription; empty if it has none."""
        layers = self.ids.nodes.layers if isinstance(self.ids.nodes, Layered) else []
        if id_ not in own_part(self.ids.nodes):
            for (one, bulk), layer in zip(reversed(self.bulks), reversed(layers), strict=True):
                if id_ not in layer.gone and bulk.find_id(id_) is not None:
                    return one.owner
        return self.owners.get(id_, "")

    def need_adoptable(self, snapshot: Snapshot, folder: Path) -> None:
        """Raise TidingsError if an id of a snapshot is already in use, or is not of the type of the
        log's ids."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(snapshot.ids):
            return
        # the ids must be new, of the right type, and not reserved
        ids, is_text = snapshot.ids, not pa.types.is_integer(snapshot.ids.type)
        ahead = ProjectedIds(self.ids, folder)
        kind = ids.type
        own = [id_ for id_ in own_part(self.ids.nodes) if (type(id_) is str) is is_text]
        both = [pa.array(own, kind), *(bulk.ids.cast(kind) for _, bulk in self.bulks
                                       if bulk.integer is not is_text)]  # fmt: skip
        for known in both:
            for id_ in ids.filter(pc.is_in(ids, known)).to_pylist():
                if id_ in self.ids.nodes:
                    raise TidingsError(
                        f"the id {id_!r:.80} has a subscription in '{folder}' already; drop "
                        "that subscription first, or leave the id out of the snapshot"
                    )
        least = pc.min(ids).as_py()
        odd = [] if not is_text else ids.filter(pc.starts_with(ids, "node ")).to_pylist()
        for id_ in (least, *odd):
            ahead.take([(id_, "")])

    def find_shared(self, keys: Sequence[bytes]) -> dict[int, int]:
        """For each place in a snapshot: the existing node with the same identity, if there is one.

        First, only the first halves of all identities are compared, as arrays. An identity is
        looked up only if its first half is known.
        """
        from tidings.store.bulks import high_halves  # loads pyarrow

        mine, may_be = high_halves(keys), np.zeros(len(keys), bool)
        for known in (high_halves([*own_part(self.numbers)]), *(b.high for _, b in self.bulks)):
            may_be |= np.isin(mine, known)
        found: dict[int, int] = {}
        for place in np.flatnonzero(may_be).tolist():
            node = self.numbers.get(keys[place])
            if node is not None and node in self.uses:
                found[place] = node
        return found

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
            elif isinstance(thing, t.Adopted):
                if thing.version > self.version:
                    self._adopt(thing)
            elif isinstance(thing, t.Life):
                self.has_life = True
                self.last = max(self.last, thing.base)
            elif isinstance(thing, t.Renewed):
                self.declaration, self.hidden = thing.declaration, thing.hidden
            elif isinstance(thing, t.Repaired):
                self.has_life, self.is_stale = False, True
            if not isinstance(thing, Rows):
                self.version = max(self.version, t.version_of(thing))
        self.last = max(self.last, self.version)

    def make(self, changes: Iterable[RequestedChange]) -> Iterator[Entry]:
        """Apply changes that were checked before, and number them."""
        for id_, text, key, dialect, owner in changes:
            self.last = self.version = self.last + 1
            node, fresh = 0, None
            if key is not None:
                node = self.numbers.get(key, 0)
                if node not in self.uses:
                    node, fresh = self.version, key
                    self._add(node, key)
            kept = self._owner_of(id_)
            before = self._use(id_, node)
            ended = 0
            if not self.has_life and self.uses.get(before) == 0 and before not in self._anonymous:
                ended = before
                self._end(before)
            owner = "" if text is None else owner or kept
            self._own(id_, owner)
            yield entry_of(id_, text, node, fresh, dialect, ended, owner)

    def _own(self, id_: Id, owner: str) -> None:
        if owner:
            self.owners[id_] = owner
        else:
            self.owners.pop(id_, None)

    def _add(self, node: int, key: bytes) -> None:
        self.uses[node] = 0
        if key:  # empty if damage to the log destroyed the identity
            self.numbers[key] = node

    def _add_anonymous(self, node: int, interest: bytes, key: bytes) -> None:
        """Add a node that a rendezvous point created; `key` is empty if an older release wrote the
        node without its identity."""
        self.uses[node] = 0
        self._anonymous.add(node)
        self.ids.anonymous = len(self._anonymous)
        known = key or self._key_of(*decode_interest(interest))
        if known is not None and self.numbers.get(known) not in self.uses:
            self.numbers[known] = node

    def _use(self, id_: Id, node: int) -> int:
        """Set the node of a subscription; return its previous node."""
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
