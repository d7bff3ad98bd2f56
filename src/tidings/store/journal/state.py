"""The state that results from a channel's log: nodes, their owners and history, named
subscriptions, counters, publishers' stamps, the progress of sources, lives.

    checkpoint ──> state ──entries after the checkpoint──> state ──> the next checkpoint

Notifications are counted in batches. The marks and matched nodes of notifications are gathered,
and each node is updated only once: before the next record that is not a notification, or at the
end.

Any record that mentions a node shows that its number was used, even if the record that added the
node is lost. So `last_node` is the highest number that any record mentions.

A node with named subscriptions does not end. If the channel never had a rendezvous point, a node
ends with its last subscription, and the change that ends the subscription says so. Otherwise agents
may use the node too, so only the rendezvous point ends it.

A node that a named subscription created has the text of that subscription. As long as the
subscription exists, only the subscription stores the text, because there may be a million long
texts.

Subscriptions that were adopted as a whole, and their nodes, stay in files: see bulks/. Changes
after the bulks are in dictionaries.

A checkpoint can be in the middle of a group, at one of its versions. A reader of such a checkpoint
reads the whole group again, and skips the changes to subscriptions up to that version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tidings.model import Id
from tidings.routing.protocol import pack_interest
from tidings.routing.root import Confirmation, Cursor, History, Progress, Record
from tidings.store.groups import Position
from tidings.store.journal import entries as t
from tidings.store.journal.rows import SQL, Rows
from tidings.store.layered import Layer, Layered, own_part, put_over

if TYPE_CHECKING:
    from tidings.store.bulks import Bulk

MANY = 1 << 16  # at most this many numbers are gathered
MOST_LIVES = 256


class StoredNode(msgspec.Struct, array_like=True, gc=False):
    """A node. `interest` is empty while the subscription that created the node still stores the
    text; see `JournalState.add_texts`."""

    interest: bytes
    owners: tuple[str, ...] = ()
    key: bytes = b""  # the identity of the filter, if known
    named: bool = False  # whether a named subscription created the node


class StoredSubscription(msgspec.Struct, array_like=True, gc=False):
    """A named subscription; `began` is the version of the change that set its filter."""

    filter: str
    node: int
    began: int
    dialect: str = SQL
    owner: str = ""  # the owner, if one was given

    @property
    def interest(self) -> bytes:
        """The filter in the form in which nodes store it."""
        return pack_interest(self.filter.encode(), self.dialect)


class Counter(msgspec.Struct, array_like=True, gc=False):
    """The counters of a node: how many notifications it marked, how many matched it, and the serial
    of the last notification that it marked."""

    count: int = 0
    total: int = 0
    latest: int = 0


class JournalState(msgspec.Struct):
    """The state at one position of a log."""

    at: Position = Position()
    serial: int = 0
    last_node: int = 0
    lives: list[tuple[int, int]] = []
    nodes: MutableMapping[int, StoredNode] = {}
    counters: dict[int, Counter] = {}
    publishers: dict[str, int] = {}
    history: History = msgspec.field(default_factory=History)
    sources: dict[str, Progress] = {}
    cursors: dict[str, Cursor] = {}
    term: int = 0
    """The highest term of any cursor, including dropped cursors."""
    subscriptions: MutableMapping[Id, StoredSubscription] = {}
    integer: bool = False
    """Whether the last id was an integer; see `entries.anonymous_id`."""
    lost: list[tuple[int, int]] = []
    """Ranges of versions (first, last) that were lost when the log was repaired."""
    log: int = 0
    """The id of the log of groups; 0 if unknown."""
    bulks: list[t.Adopted] = []
    """The adopted bulks; the layers of `nodes` and `subscriptions` are in the same order."""
    folder: Path | None = None
    """The folder of the channel, which has the bulks."""
    lost_bulks: list[tuple[t.Adopted, str]] | None = None
    """The lost bulks, each with the reason; None if a lost bulk is an error."""

    @property
    def version(self) -> int:
        return self.history.version

    def set_cursor(self, key: str, cursor: Cursor | None) -> None:
        """Set the cursor of a named subscription; None removes it."""
        self.cursors.pop(key, None)
        if cursor is not None:
            self.cursors[key] = cursor
            self.term = max(self.term, cursor.term)

    def add_texts(self) -> None:
        """Copy to each node the text that only its subscription stores."""
        for one in own_part(self.subscriptions).values():
            self.keep_text(one)

    def drop_texts(self) -> None:
        """Remove the text of each node whose subscription stores the same text. Checkpoints of
        older releases contain both copies."""
        for one in own_part(self.subscriptions).values():
            if one.began == one.node and (node := self.nodes.get(one.node)) and \
                    node.named and node.interest == one.interest:  # fmt: skip
                node.interest = b""

    def keep_text(self, one: StoredSubscription) -> None:
        """Copy the text of a subscription to the node that it created, because the subscription
        ends."""
        if one.began == one.node and (node := self.nodes.get(one.node)) and not node.interest:
            node.interest = one.interest

    def adopt(self, one: t.Adopted) -> None:
        """Add the nodes and the subscriptions of a bulk. Raises EnvironmentProblem if the bulk
        can't be read; if `lost_bulks` is a list, a lost bulk is added to it instead."""
        from tidings.store.bulks import LostBulk  # loads pyarrow

        try:
            bulk = self._bulk(one)
        except LostBulk as problem:
            if self.lost_bulks is None:
                raise
            self.lost_bulks.append((one, str(problem)))
            return

        def node_of(text: str, key: bytes) -> StoredNode:
            return StoredNode(pack_interest(text.encode(), SQL), (), key, named=True)

        def find_node(node: int) -> StoredNode | None:
            place = node - one.first
            return node_of(bulk.text_at(place), bulk.key_at(place)) if node in bulk else None

        def each_node() -> Iterator[tuple[int, StoredNode]]:
            for node, key, text in bulk.each_text():
                yield node, node_of(text, key)

        def find(id_: Id) -> StoredSubscription | None:
            found = bulk.find_id(id_)
            if found is None:
                return None
            text = bulk.text_at(found.place)
            return StoredSubscription(text, found.node, one.version, SQL, one.owner)

        def each() -> Iterator[tuple[Id, StoredSubscription]]:
            for id_, node, text in bulk.each_id():
                yield id_, StoredSubscription(text, node, one.version, SQL, one.owner)

        self.nodes = put_over(self.nodes, Layer(find_node, each_node, len(bulk), set()))
        self.subscriptions = put_over(self.subscriptions, Layer(find, each, len(bulk.ids), set()))
        self.bulks = [*self.bulks, one]
        self.integer = bulk.integer

    def give_up_bulks(self) -> None:
        """Continue without the lost bulks. Other subscriptions may use nodes of a lost bulk: these
        nodes get the texts of those subscriptions, but the identities are lost."""
        if self.lost_bulks:
            for one in self.subscriptions.values():
                if one.node not in self.nodes:
                    self.nodes[one.node] = StoredNode(one.interest, named=True)
        self.lost_bulks = None

    def highest_serial(self) -> int:
        """The highest serial in any notification or cursor."""
        return max(self.serial, *(one.last for one in self.cursors.values()), 0)

    def begin_anew(self) -> None:
        """Continue after a loss: serials continue after the highest one that a notification or a
        cursor has, and the numbers of nodes stay as they are. Sources begin again."""
        self.serial = self.highest_serial()
        counters = {node: self.counters.get(node, Counter()) for one in self.cursors.values()
                    for node in one.nodes if node in self.nodes}  # fmt: skip
        counts = {node: one.count for node, one in counters.items()}
        totals = {node: one.total for node, one in counters.items()}
        self.cursors = {k: one.after_loss(counts, totals) for k, one in self.cursors.items()}
        self.sources = {name: one.anew() for name, one in self.sources.items()}

    def _bulk(self, one: t.Adopted) -> Bulk:
        from tidings.store.bulks import open_bulk  # loads pyarrow

        assert self.folder is not None, "a state with bulks was read from a folder"
        return open_bulk(self.folder, one.name, one.first, one.identity)

    def identities(self) -> dict[int, bytes]:
        """The identities of all nodes whose identity is known."""
        found = {node: one.key for node, one in own_part(self.nodes).items() if one.key}
        for at, bulk in enumerate(self.bulks):
            gone = self.list_ended(at)[0]
            found |= {n: key for n, key in self._bulk(bulk).each_key() if n not in gone}
        return found

    def living_bulks(self) -> list[tuple[t.Adopted, set[int], set[Id]]]:
        """The bulks of which a node or a subscription still exists, each with those of its nodes
        and ids that have ended."""
        found = []
        for at, one in enumerate(self.bulks):
            nodes, ids = self.list_ended(at)
            assert isinstance(self.nodes, Layered)
            assert isinstance(self.subscriptions, Layered)
            left = self.nodes.layers[at].size + self.subscriptions.layers[at].size
            if len(nodes) + len(ids) < left:
                found.append((one, nodes, ids))
        return found

    def list_ended(self, at: int) -> tuple[set[int], set[Id]]:
        """The nodes and the ids of a bulk that have ended."""
        assert isinstance(self.nodes, Layered)
        assert isinstance(self.subscriptions, Layered)
        return self.nodes.layers[at].gone, self.subscriptions.layers[at].gone


class Counting:
    """Applies entries to a state, in order. Call `finish` at the end."""

    def __init__(self, state: JournalState) -> None:
        self.state = state
        self._marks: list[bytes] = []
        self._serials: list[tuple[int, int]] = []  # serial and number of marks
        self._matched: list[bytes] = []
        self._size = 0

    def apply_all(self, records: Iterable[bytes]) -> None:
        state = self.state
        unpack, size = t.HEAD.unpack_from, t.HEAD.size
        for data in records:
            if data[:1] != t.NOTIFICATION:
                self.apply(t.decode(data))
                continue
            _, serial, stamp, name, marks, matched = unpack(data)
            start = size + name
            state.publishers[data[size:start].decode()] = stamp
            if not serial:
                continue  # a notification without a serial was refused
            state.serial = serial
            behind = start + 16 * marks
            self._marks.append(data[start:behind])
            self._serials.append((serial, marks))
            self._matched.append(data[behind : behind + 8 * matched])
            self._size += marks + matched
            if self._size > MANY:
                self.finish()

    def apply(self, thing: t.Small | Record | Rows) -> None:
        """Apply an entry that is not a notification."""
        assert not isinstance(thing, Record)
        self.finish()
        state, history = self.state, self.state.history
        if isinstance(thing, Rows):
            self.apply_rows(thing)
        elif isinstance(thing, t.Life):
            if thing.broken:
                state.lives.clear()
            state.lives = [*state.lives, (thing.life, thing.first)][-MOST_LIVES:]
            if thing.broken:  # after a loss, no number may be used again
                history.version = max(history.version, state.last_node)
                state.begin_anew()
            history.begin_life(thing.life, thing.base, broken=thing.broken)
        elif isinstance(thing, t.Added):
            state.nodes[thing.node] = StoredNode(
                thing.interest, (thing.owner,) if thing.owner else (), thing.key
            )
            # after a loss, the counters may belong to another node
            state.counters.pop(thing.node, None)
            state.last_node = max(state.last_node, thing.node)
            history.add(thing.node)
        elif isinstance(thing, t.Owned):
            state.last_node = max(state.last_node, thing.node)
            if (known := state.nodes.get(thing.node)) is not None:
                state.nodes[thing.node] = msgspec.structs.replace(known, owners=thing.owners)
        elif isinstance(thing, t.Adopted):
            if thing.version > history.version:  # an older adoption is in the checkpoint
                state.adopt(thing)
                history.version = thing.version
                state.last_node = max(state.last_node, thing.version)
        elif isinstance(thing, t.Dropped):
            state.last_node = max(state.last_node, thing.node, thing.gone.version)
            state.nodes.pop(thing.node, None)
            state.counters.pop(thing.node, None)
            history.drop(thing.node, thing.gone)
        elif isinstance(thing, t.Taken):
            state.sources[thing.source] = thing.progress
            state.publishers.pop(thing.source, None)  # the progress contains the stamp
        elif isinstance(thing, t.Named):
            state.set_cursor(thing.key, thing.cursor)
        elif isinstance(thing, t.Confirmed):
            cursor = state.cursors.get(thing.key)
            if cursor is not None:
                state.cursors[thing.key] = cursor.confirm(
                    Confirmation(thing.serial, thing.total, thing.counts, thing.upto, thing.gaps)
                )
        elif isinstance(thing, t.Renewed):
            state.last_node = max(state.last_node, thing.version)
            history.renew(thing.version, thing.hidden, thing.declaration)
        elif isinstance(thing, t.At):
            history.version = max(history.version, thing.version)
            state.last_node = max(state.last_node, thing.version)
        elif isinstance(thing, t.Repaired):
            state.last_node = max(state.last_node, thing.version)
            history.version = max(history.version, thing.version)
            history.life = 0  # the next life begins a new lineage
            state.lives = []
            state.lost += thing.lost
            state.begin_anew()
        elif isinstance(thing, t.Forgotten):
            for name in thing.publishers:
                state.publishers.pop(name, None)

    def apply_rows(self, rows: Rows, upto: int | None = None) -> None:
        """Apply changes to named subscriptions, up to a version if one is given."""
        state, version = self.state, rows.first - 1
        known, nodes, applied = state.subscriptions, state.nodes, state.history.version
        for row in rows.rows:
            version += 1
            if version <= applied:
                continue
            if upto is not None and version > upto:
                version -= 1
                break
            text = row.filter
            if row.id in known:
                state.keep_text(known[row.id])
            if text is None:
                known.pop(row.id, None)
            else:
                one = StoredSubscription(text, row.node, version, row.dialect, row.owner)
                # if the row has no key and the node is not known, the change that added the node is
                # lost
                if row.key is not None or row.node not in nodes:
                    interest = b"" if row.node == version else one.interest
                    nodes[row.node] = StoredNode(interest, (), row.key or b"", named=True)
                known[row.id] = one
                state.integer = type(row.id) is int
            if row.ended:
                nodes.pop(row.ended, None)
                state.counters.pop(row.ended, None)
        state.history.version = max(applied, version)
        state.last_node = max(state.last_node, version)

    def apply_upto(self, thing: t.Small | Rows, version: int) -> None:
        """Apply the changes to nodes and subscriptions up to a version, and nothing else."""
        if isinstance(thing, Rows):
            self.apply_rows(thing, version)
        elif 0 < t.version_of(thing) <= version and not isinstance(thing, t.Repaired):
            self.apply(thing)

    def finish(self) -> None:
        """Count the gathered notifications."""
        if not self._serials:
            return
        state, counters = self.state, self.state.counters
        matched = np.frombuffer(b"".join(self._matched), "<i8")
        for node, many in zip(*map(np.ndarray.tolist, np.unique(matched, return_counts=True)),
                              strict=True):  # fmt: skip
            counters.setdefault(node, Counter()).total += many
        pairs = np.frombuffer(b"".join(self._marks), "<i8").reshape(-1, 2)
        serials = np.repeat(*np.array(self._serials, dtype=np.int64).T)
        # the numbers of a node increase, so its last mark contains its count
        nodes, last = np.unique(pairs[::-1, 0], return_index=True)
        last = len(pairs) - 1 - last
        for node, number, serial in zip(nodes.tolist(), pairs[last, 1].tolist(),
                                        serials[last].tolist(), strict=True):  # fmt: skip
            counter = counters.setdefault(node, Counter())
            counter.count, counter.latest = number, serial
        for seen in (matched, nodes):
            state.last_node = max(state.last_node, int(seen.max(initial=0)))
        self._marks, self._serials, self._matched, self._size = [], [], [], 0
