"""The nodes of a channel in this process, at a version, ready to tag notifications.

    Changed, whole ──compile──> snapshot ──┐
    Changed, since its last version ───────┴──> view ──> tags of this version

This module uses the same snapshots and views as pipelines on Spark, but in memory. A filter that
can't be read is left out, as at the rendezvous point.

Cost: a change takes a few milliseconds, and after REBUILD_AFTER changes all nodes are compiled
again (a second for 10,000 filters). `put` may run in another thread; until it has ended, tags are
of the previous version.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from tidings.filters import Filter, parse
from tidings.matching import load_kernels
from tidings.model import Event, FilterError, TidingsError, need_extra
from tidings.preprocessing.contents import Contents, EventColumns, ExtraFields
from tidings.preprocessing.kinds import Kind, KindDefinition, make_kind, restore_attributes
from tidings.preprocessing.node_change import NodeAsChange
from tidings.preprocessing.predicates import CallIndex, PredicateCall
from tidings.preprocessing.surroundings import Surroundings
from tidings.routing.protocol import DEFAULT_DIALECT, messages as m, pack_tag
from tidings.snapshots import DistinctFilters, Snapshot, VersionedSnapshot, View, build_nodes

LARGEST = 1 << 30  # the most bytes of attributes; the rendezvous point has a limit of its own
FEW = 50  # fewer are tagged one at a time, because each batch costs a millisecond
REBUILD_AFTER = 2_000  # changes
MOST_AROUND = 500_000  # the most nodes that the places in one answer may list


class NodeAtVersion(msgspec.Struct, frozen=True):
    """The number of a filter's node at a version; 0 if the filter has no node. Only the rendezvous
    point knows whether this is still the node of the filter."""

    node: int
    life: int
    version: int


class Closed(TidingsError):
    """The view was closed while changes were applied to it."""


class _State(NamedTuple):
    """The data for computing tags. It is replaced as a whole, because `put` runs in another
    thread."""

    life: int
    version: int
    view: View
    tells_null: bool
    epoch: int
    is_whole: bool  # False if some nodes of the channel are missing from the view


class ChannelView:
    """The nodes of a channel at one version. One thread may call `put` while other threads tag."""

    def __init__(self, told: m.Described) -> None:
        """Raises TidingsError if this process can't use the channel's kind of interest."""
        self._kind = _kind_of(told)
        self.attributes = self._kind.attributes
        self._nodes: dict[int, str] = {}
        self._keys: dict[bytes, list[int]] = {}  # identity of a filter -> the numbers of its nodes
        self._live: VersionedSnapshot | None = None
        self._changes = 0
        self._state: _State | None = None
        self._columns = EventColumns(self.attributes)
        self._surroundings: tuple[View, Surroundings] | None = None
        self._contents = Contents(self._kind, LARGEST, ExtraFields())
        self.decisions = self._kind.decisions
        """The results of predicates. A notification that needs other results than these is not
        tagged."""
        self._calls = CallIndex(self.decisions)
        self._putting = threading.Lock()
        self._is_closed = False

    @property
    def life(self) -> int:
        return 0 if self._state is None else self._state.life

    @property
    def version(self) -> int:
        """The version of the view's tags; 0 if no nodes are known yet."""
        return 0 if self._state is None else self._state.version

    @property
    def epoch(self) -> int:
        """The life of the root that sent this version; 0 if no nodes are known yet."""
        return 0 if self._state is None else self._state.epoch

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def definition(self) -> KindDefinition:
        return self._kind.definition

    def missing_calls(self, contents: Iterable[bytes]) -> list[PredicateCall]:
        """The calls to predicates that must be decided before these notifications are tagged."""
        found: dict[bytes, PredicateCall] = {}
        for content in contents if len(self._calls) else ():
            with contextlib.suppress(TidingsError):  # unreadable notifications need no calls
                event = self._contents.read(content)
                found.update((call.key, call) for call in self._calls.missing(event))
        return [*found.values()]

    # -- changes -------------------------------------------------------------------------------

    def put(self, told: m.Changed) -> None:
        """Apply an answer from the rendezvous point: all nodes, or the changes since this
        version. Raises Closed if the view is closed."""
        with self._putting:
            self._put(told)

    def close(self) -> None:
        """Accept no more changes. A `put` that is running in another thread stops before its next
        change; otherwise the process would have to wait for that thread when it ends. The version
        of tags no longer changes."""
        self._is_closed = True

    def _go_on(self) -> None:
        if self._is_closed:
            raise Closed("the view of the channel is closed")

    def copy_nodes(self) -> tuple[int, dict[int, str]]:
        """The version, and the nodes with their filters. This waits until a `put` in another thread
        has ended."""
        with self._putting:
            return self.version, dict(self._nodes)

    def _put(self, told: m.Changed) -> None:
        if told.whole or self._live is None or told.life != self.life:
            self._nodes = {}
            self._replay(told.changes)
            self._compile(told.version)
        elif told.changes:
            known = [one for one in told.changes if one.filter is None or self._is_new(one)]
            self._replay(told.changes)
            self._changes += len(known)
            if self._changes > REBUILD_AFTER:
                self._compile(told.version)
            else:
                first = self._live.version + 1
                self._live.apply(
                    self._change(number, one) for number, one in enumerate(known, first)
                )
        view = self._live.view() if self._live is not None else None
        assert view is not None
        if self._state is None or view is not self._state.view:
            tells_null = bool(view.matcher.null_paths())
        else:
            tells_null = self._state.tells_null
        is_whole = len(view.ids) == len(self._nodes)
        state = _State(told.life, told.version, view, tells_null, told.epoch, is_whole)
        if self._state is None:
            self._warm(state)
        self._state = state

    def _warm(self, state: _State) -> None:
        """Load the kernels before the first tag, because loading without a cache takes seconds."""
        load_kernels()
        probe = pa.RecordBatch.from_pydict({"probe": pa.array([1.0, 2.0])})
        state.view.lowest_members(*state.view.match_places(probe))
        many = Snapshot.build({1: "n > 1", 2: "n > 2"}).view
        many.lowest_members(*many.match_places(pa.RecordBatch.from_pydict({"n": pa.array([2, 3])})))

    def _is_new(self, one: m.NodeChange) -> bool:
        """Whether the filter of a new node can be read; if so, note its identity."""
        assert one.filter is not None
        self._go_on()
        try:
            filter_ = self._parse(one.filter)
        except FilterError:
            return False
        self._keys.setdefault(filter_.key, []).append(one.node)
        self._calls.add(one.node, filter_.form)
        return True

    def _parse(self, text: str) -> Filter:
        return parse(text, attributes=self.attributes, functions=self._kind.functions)

    def _replay(self, changes: Iterable[m.NodeChange]) -> None:
        for _, node, text in changes:
            if text is None:
                self._nodes.pop(node, None)
                self._calls.discard(node)
            else:
                self._nodes[node] = text

    def _compile(self, version: int) -> None:
        distinct = DistinctFilters(self.attributes, self._kind.functions)
        numbers: dict[bytes, int] = {}
        keys: dict[bytes, list[int]] = {}
        calls = CallIndex(self.decisions)
        for node, text in sorted(self._nodes.items()):
            self._go_on()
            try:
                key = distinct.add(node, text)
                numbers.setdefault(key, node)
                keys.setdefault(key, []).append(node)
                if any(name in text for name in self._kind.functions):
                    calls.add(node, self._parse(text).form)
            except FilterError:
                continue
        self._calls = calls
        compiled = Snapshot(version, *build_nodes(distinct, numbers))
        self._live = VersionedSnapshot(compiled, self._go_on)
        self._keys = keys
        self._changes = 0

    def _change(self, number: int, one: m.NodeChange) -> NodeAsChange:
        return NodeAsChange(number, one.node, one.filter, 0 if one.filter is None else one.node)

    # -- tags ----------------------------------------------------------------------------------

    def tag(self, content: bytes) -> bytes:
        """The tag of a notification. Raises TidingsError if the notification can't be read, or if
        no nodes are known. Raises Undecided if the notification needs calls to predicates that are
        not decided."""
        state = self._need_state()
        nodes = self._lowest(state.view, self._contents.read(content))
        return pack_tag(state.life, state.version, nodes)

    def tag_many(self, contents: Sequence[bytes]) -> list[bytes]:
        """The tags of many notifications. A tag is empty if the notification can't be read, or
        needs predicates that are not decided."""
        state = self._need_state()
        tags = self._tag_batch(state, contents)
        if tags is None:
            return [self._tag_or_leave(state, content) for content in contents]
        return tags

    def _tag_batch(self, state: _State, contents: Sequence[bytes]) -> list[bytes] | None:
        """The tags of notifications that are matched together; None if they must be tagged one by
        one."""
        read = None
        is_simple = self._contents.are_unchanged and not state.tells_null and not len(self._calls)
        if is_simple and len(contents) >= FEW and self._contents.are_short(contents):
            read = self._columns.read(contents)
        if read is None or (read.mixed and state.view.matcher.computes()):
            return None
        view = state.view
        try:
            places_of_rows = view.match_places(read.batch)
        except (TidingsError, pa.ArrowException, OverflowError):
            return None  # for instance, the values of a term have no common type in Arrow
        found = view.lowest_members(*places_of_rows)
        starts = found.offsets.to_numpy().astype(np.int64)
        front = np.array([state.life, state.version], "<i8").tobytes()
        data, places = found.values.to_numpy().astype("<i8").tobytes(), (8 * starts).tolist()
        tags = [front + data[first:end] for first, end in pairwise(places)]
        for at in read.odd:
            tags[at] = self._tag_or_leave(state, contents[at])
        return tags

    def place(self, interest: str, dialect: str = DEFAULT_DIALECT) -> NodeAtVersion:
        """The node of a filter; raises TidingsError if the filter is refused."""
        state = self._need_state()
        same = self._keys.get(self.read_interest(interest, dialect).key, ())
        node = min((one for one in same if one in self._nodes), default=0)
        return NodeAtVersion(node, state.life, state.version)

    def read_interest(self, interest: str, dialect: str = DEFAULT_DIALECT) -> Filter:
        """The filter that an interest becomes; raises TidingsError if the interest is refused."""
        return self._kind.parse(interest, dialect)

    def locate(self, asked: m.Locate) -> m.Located:
        """The places that nodes have in the graph of this version. The answer has no places if any
        node of the channel is not in this view because its filter can't be read here: places would
        then be incomplete."""
        state = self._need_state()
        known = self._surroundings
        if known is None or known[0] is not state.view:
            known = self._surroundings = state.view, Surroundings(state.view)
        around = known[1]
        left, places = MOST_AROUND, list[m.NodePlace]()
        for node in asked.nodes if state.is_whole else ():
            found = around.around(node) if left > 0 else None
            if found is not None:
                left -= len(found[0]) + len(found[1])
                places.append(m.NodePlace(node, tuple(found[0]), tuple(found[1])))
        return m.Located(state.epoch, asked.request, state.version, tuple(places))

    def _need_state(self) -> _State:
        if self._state is None:
            raise TidingsError("the nodes of the channel are not known yet")
        return self._state

    def _tag_or_leave(self, state: _State, content: bytes) -> bytes:
        try:
            nodes = self._lowest(state.view, self._contents.read(content))
        except TidingsError:
            return b""
        return pack_tag(state.life, state.version, nodes)

    def _lowest(self, view: View, event: Event) -> list[int]:
        """The numbers of the lowest nodes that match: matching nodes that are not above another
        matching node."""
        self._calls.need_decided(event)
        count = len(view.numbers)
        matched: list[Any] = view.matcher.match(event)
        matched = [place for place in matched if place < count]
        starts, ids = view.member_starts, view.least_ids
        alive = [place for place in matched if starts[place + 1] > starts[place]]
        above = _reach_up(view, alive) if len(alive) > 1 else set()
        return sorted(int(ids[place]) for place in alive if place not in above)


def _reach_up(view: View, places: Sequence[Any]) -> set[int]:
    """All places above the given places."""
    found: set[int] = set()
    todo = [*places]
    while todo:
        place = todo.pop()
        for one in view.parents[view.parent_starts[place] : view.parent_starts[place + 1]].tolist():
            if one not in found:
                found.add(one)
                todo.append(one)
    return found


def _kind_of(told: m.Described) -> Kind:
    definition = KindDefinition.decode(told.preprocessor)
    extra = None if told.attributes is None else need_extra(told.extra)
    return make_kind(restore_attributes(told.attributes, extra, definition), definition)
