"""The preprocessor of a rendezvous point: filters as texts, notifications as JSON objects.

A new filter can reveal that two existing nodes cover each other. The content graph then merges
them, but both have subscribers in the network. So both numbers stay, between the same parents and
children, and notifications are marked with both.

Each filter is kept twice: in the graph, which knows its position, and in a matcher, whose time per
event hardly grows with the number of filters. Filters that compute something have matchers of their
own (computing.py), because only they can take long.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.broker.computing import Computing, Owners, computes
from tidings.broker.event_columns import EventColumns
from tidings.filters import Attributes, Filter, parse, refuse_outside
from tidings.graph import ContentGraph, Node
from tidings.matching import Matcher
from tidings.model import Event, LimitError, NotificationError, TidingsError
from tidings.routing.protocol import LONG, Limits, unpack_interest
from tidings.routing.root import Fair, NodeTable, Placed, TaggedMany

FEW = 100  # notifications; fewer are tagged one by one, because a batch costs a millisecond
MANY = 1000  # filters from which the graph is built in bulk
SLICE = 0.002  # seconds after which no more of many notifications are tagged one by one
MOST_TOLD = 100  # log lines about filters that are set aside, at most
DEFAULTS = Limits()
_decode = msgspec.json.Decoder(dict[str, object]).decode
_log = logging.getLogger(__name__)

Numbers = npt.NDArray[np.int64]


class Aside(msgspec.Struct, frozen=True):
    """A filter that is stored but not matched, and the reason."""

    text: str
    reason: str


class ExtraFields(msgspec.Struct):
    """How many fields of notifications are not declared, and how many notifications have some."""

    notifications: int = 0
    fields: int = 0


class GraphInterests:
    """The filters of a channel, by the numbers of their nodes."""

    def __init__(
        self,
        attributes: Attributes | None = None,
        interests: Iterable[tuple[int, bytes]] = (),
        last: int = 0,
        limits: Limits = DEFAULTS,
        extra: ExtraFields | None = None,
    ) -> None:
        """`interests` are the stored filters with their numbers; `last` is the highest number ever
        assigned. `extra` counts what the attributes do not declare."""
        self.attributes = attributes
        self.extra = ExtraFields() if extra is None else extra
        self._most_parts = limits.filter_parts
        self._most_content = limits.content_bytes
        self._most_long = limits.long_filter_bytes
        self._texts: dict[int, bytes] = {}  # the filters as they were given, by number
        self._long: dict[int, int] = {}  # bytes of long filters, by number
        self._long_bytes = 0
        self._last_parsed: tuple[bytes, Filter] | None = None
        self.refused: dict[int, Aside] = {}
        """Stored filters that are refused now, by number. A subscriber that still wants one is
        refused, asks again and is told why."""
        self._filters = self._stored(interests)
        many = len(self._filters) > MANY
        build = ContentGraph.build if many else ContentGraph
        self._graph = build(self._filters.values())
        self._computing = Computing(limits.match_millis / 1000)
        self._matcher = Matcher()
        plain = {n: one for n, one in self._filters.items() if not computes(one)}
        self._matcher.add_many(plain.items())
        for number in self._filters.keys() - plain.keys():
            self._computing.add(number, self._filters[number])
        self._same: dict[int, list[int]] = {}  # the graph's node number -> our numbers, ascending
        self._last = last
        self._below: dict[int, frozenset[int]] = {}  # cache: the children of nodes that have any
        self._leaves: set[int] = set()  # cache: nodes without children
        self._aside: set[int] = set()  # nodes set aside, which notifications are not tagged with
        self._columns = EventColumns()
        self._parents = NodeTable(lambda number: (True, self.placed(number).parents))
        self._tells_null: bool | None = None  # does a filter tell null from absent? None: not known
        self._number_all()

    def place(self, interest: bytes) -> Placed:
        filter_ = self._parsed(interest)
        known = self._graph.node(filter_)
        if known is not None:
            return _annotate(self.placed(self._same[known.id][0]), filter_)
        size = len(interest)
        if size > LONG and self._long_bytes + size > self._most_long:
            raise LimitError(
                f"there is no room for a filter of {size:,} bytes: filters of more than {LONG:,} "
                f"bytes use {self._long_bytes:,} bytes in all, expected at most "
                f"{self._most_long:,}; use a shorter filter",
                unpack_interest(interest)[0].decode(),
            )
        self._last += 1
        self._insert(self._last, filter_)
        self._texts[self._last] = interest
        self._count_long(self._last, size)
        others = (number for number in self._same[self._node(self._last).id])
        also = tuple(self.placed(number) for number in others if number != self._last)
        return _annotate(msgspec.structs.replace(self.placed(self._last), also=also), filter_)

    def all_placed(self) -> list[Placed]:
        """Every node with its parents, in an order in which parents come first."""
        done: set[int] = set()
        out: list[Placed] = []
        todo = list(self._graph)
        while todo:
            node = todo[-1]
            above = [one for one in self._graph.parents(node) if one.id not in done]
            if above:
                todo += above
                continue
            todo.pop()
            if node.id not in done:
                done.add(node.id)
                out += [self.placed(number) for number in self._same[node.id]]
        return [msgspec.structs.replace(one, children=()) for one in out]

    def placed(self, number: int) -> Placed:
        """A node with its parents and children."""
        node = self._node(number)
        return Placed(
            number,
            tuple(n for one in self._graph.parents(node) for n in self._same[one.id]),
            tuple(n for one in self._graph.children(node) for n in self._same[one.id]),
        )

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        filter_ = self._parsed(interest)
        known = self._graph.node(filter_)
        return filter_.key, None if known is None else self._same[known.id][0]

    def identity(self, number: int) -> bytes:
        return self._filters[number].key

    def text(self, number: int) -> str:
        """The filter in SQL, which pipelines read; as it was given, if it was given in SQL."""
        text, dialect = unpack_interest(self._texts[number])
        return text.decode() if dialect == "sql" else self._filters[number].sql()

    def refuse_outside(self, interest: bytes, within: Sequence[str]) -> str:
        return refuse_outside(self._parsed(interest), within, self.attributes)

    def lies_within(self, number: int, within: Sequence[str]) -> bool:
        return not refuse_outside(self._filters[number], within, self.attributes)

    def equal(self, number: int) -> list[int]:
        same = self._same[self._node(number).id]
        return [one for one in same if one != number] if len(same) > 1 else []

    def take_number(self) -> int:
        """The next number, for a change that is not a new node."""
        self._last += 1
        return self._last

    def set_aside(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._computing:  # its computation may be what takes too long
                self._computing.remove(number)
            self._aside.add(number)

    def bring_back(self, number: int) -> None:
        if number in self._aside and computes(self._filters[number]):
            self._computing.add(number, self._filters[number])
        self._aside.discard(number)

    def tag(self, content: bytes) -> list[int]:
        event = self._read(content)
        found = self._plain(event) + self._computing.match(event, len(content))
        self._count_extra(event)
        return self._lowest(found)

    def tag_fairly(self, content: bytes, owners: Owners) -> Fair:
        event = self._read(content)
        found = self._computing.match_each(event, len(content), owners)
        self._count_extra(event)
        return Fair(self._lowest(self._plain(event) + found.matched), found.over)

    def tag_many(self, contents: Sequence[bytes]) -> TaggedMany:
        """The same for many. Notifications whose attributes fit into columns are matched together,
        others one by one."""
        plain = self.attributes is None and not len(self._computing)
        read = None
        short = len(contents) >= FEW and max(map(len, contents)) <= self._most_content
        if plain and short and not self._must_tell_null():
            read = self._columns.read(contents)
        if read is None:
            return self._tag_each(contents)
        found = self._matcher.match_batch(read.batch)
        starts, nodes = found.offsets.to_numpy().astype(np.int64), found.values.to_numpy()
        starts, nodes = self._lowest_of_all(starts, nodes)
        if not read.odd:
            return TaggedMany(starts, nodes, {})
        refused: dict[int, TidingsError] = {}
        tags: dict[int, list[int]] = {}
        for at in read.odd:
            try:
                tags[at] = sorted(self.tag(contents[at]))
            except TidingsError as problem:
                refused[at], tags[at] = problem, []
        return TaggedMany(*_replaced(starts, nodes, tags), refused)

    def _tag_each(self, contents: Sequence[bytes]) -> TaggedMany:
        """Tag one by one, and stop when that takes long."""
        until = time.monotonic() + SLICE
        found: list[list[int]] = []
        refused: dict[int, TidingsError] = {}
        for at, content in enumerate(contents):
            try:
                found.append(sorted(self.tag(content)))
            except TidingsError as problem:
                refused[at] = problem
                found.append([])
            if time.monotonic() >= until:
                break
        starts = np.zeros(len(found) + 1, np.int64)
        np.cumsum([len(one) for one in found], out=starts[1:])
        nodes = np.array([node for one in found for node in one], np.int64)
        return TaggedMany(starts, nodes, refused)

    def _lowest_of_all(self, starts: Numbers, matched: Numbers) -> tuple[Numbers, Numbers]:
        """The lowest of the nodes that match each notification, ascending. While nodes are set
        aside, one by one."""
        if not self._aside:
            return self._parents.lowest(starts, matched)
        places = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        lists = (self._lowest(matched[first:end].tolist()) for first, end in places)
        return _replaced(starts, matched, dict(enumerate(lists)))

    def _must_tell_null(self) -> bool:
        if self._tells_null is None:
            self._tells_null = bool(self._matcher.null_paths())
        return self._tells_null

    def _read(self, content: bytes) -> Event:
        if len(content) > self._most_content:
            raise NotificationError(
                f"found {len(content):,} bytes of attributes, expected at most "
                f"{self._most_content:,}; move attributes that no filter reads to the payload"
            )
        try:
            decode = _decode if self.attributes is None else self.attributes.decode
            event = decode(content)
            if not isinstance(event, dict):
                raise ValueError("Expected `object`")
        except (ValueError, RecursionError) as problem:  # from msgspec, or for invalid UTF-8
            raise NotificationError(f"the notification is not a JSON object: {problem}") from None
        return event if self.attributes is None else self.attributes.read(event)

    def _count_extra(self, event: Event) -> None:
        count = 0 if self.attributes is None else len(self.attributes.extra_fields(event))
        if count:
            self.extra.notifications += 1
            self.extra.fields += count

    def _plain(self, event: Event) -> list[int]:
        found: list[int] = self._matcher.match(event)  # type: ignore[assignment]
        return found

    def _lowest(self, matched: list[int]) -> list[int]:
        """The nodes that match and cover no other matching node. Nodes without children, which most
        are, cost next to nothing."""
        if len(matched) < 2 and not self._aside:
            return matched
        given = set(matched) - self._aside
        if len(given) < 2:
            return [*given]
        inner, below = given - self._leaves, self._below
        upper = {n for n in inner if n in below and not below[n].isdisjoint(given)}
        upper |= {n for n in inner - upper if self._covers_any(n, given)}
        return [*(given - upper)]

    def _covers_any(self, number: int, given: set[int]) -> bool:
        """Is one of the matching nodes `given` below this node? Nodes between the two match as
        well, so each of them is in `given` or set aside."""
        todo, seen = [number], {number}
        while todo:
            children = self._children(todo.pop())
            if not children.isdisjoint(given):
                return True
            new = (children & self._aside) - seen if self._aside else ()
            seen.update(new)
            todo += new
        return False

    def _children(self, number: int) -> frozenset[int]:
        found = self._below.get(number)
        if found is None:
            children = self._graph.children(self._node(number))
            found = frozenset(n for one in children for n in self._same[one.id])
            if found:
                self._below[number] = found
            else:
                self._leaves.add(number)
        return found

    def _forget_columns(self) -> None:
        """Forget what is known about all nodes, for many notifications at a time."""
        self._parents.clear()
        self._tells_null = None

    def _forget_children(self, of: Iterable[Node]) -> None:
        for node in of:
            for number in self._same[node.id]:
                self._below.pop(number, None)
                self._leaves.discard(number)

    def remove(self, number: int) -> int:
        node = self._node(number)
        # do this first: if it fails, nothing else has changed
        if number in self._computing:
            self._computing.remove(number)
        elif not computes(self._filters[number]):
            self._matcher.remove(number)
        self._aside.discard(number)
        self._same[node.id].remove(number)
        self._long_bytes -= self._long.pop(number, 0)
        del self._filters[number]
        self._texts.pop(number, None)
        self._below.pop(number, None)
        self._leaves.discard(number)
        self._forget_children(self._graph.parents(node))
        self._forget_columns()
        if not self._same[node.id]:
            del self._same[node.id]
            self._graph.remove(node)
        return self.take_number()

    def _count_long(self, number: int, size: int) -> None:
        if size > LONG:
            self._long[number] = size
            self._long_bytes += size

    def _parsed(self, interest: bytes) -> Filter:
        """Parse a filter. The last result is kept, because a filter is looked up just before it is
        placed."""
        if self._last_parsed is not None and self._last_parsed[0] == interest:
            return self._last_parsed[1]
        try:
            text, dialect = unpack_interest(interest)
            given = text.decode()
        except UnicodeDecodeError:
            raise NotificationError("the filter is not valid UTF-8") from None
        found = parse(given, dialect, attributes=self.attributes, most_parts=self._most_parts)
        if len(interest) > LONG:
            found.slim()
        self._last_parsed = interest, found
        return found

    def _stored(self, interests: Iterable[tuple[int, bytes]]) -> dict[int, Filter]:
        """Parse the stored filters. Filters that stricter rules or other columns now refuse are set
        aside, so that the root still starts."""
        found: dict[int, Filter] = {}
        for number, interest in interests:
            try:
                found[number] = self._parsed(interest)
                self._texts[number] = interest
                self._count_long(number, len(interest))
            except TidingsError as problem:
                self.refused[number] = Aside(
                    unpack_interest(interest)[0].decode(errors="replace"), str(problem)
                )
        for number, one in list(self.refused.items())[:MOST_TOLD]:
            _log.warning(
                "the filter of node %d is now refused and was set aside: %.200r: %.300s",
                number, one.text, one.reason,
            )  # fmt: skip
        if len(self.refused) > MOST_TOLD:
            _log.warning("%d stored filters were set aside in all", len(self.refused))
        return found

    def _insert(self, number: int, filter_: Filter) -> None:
        before = len(self._graph)
        self._forget_columns()
        kept = self._computing if computes(filter_) else self._matcher
        kept.add(number, filter_)
        try:
            node = self._graph.insert(filter_)
        except BaseException:  # a filter that is not in the graph must not match
            kept.remove(number)
            raise
        self._filters[number] = filter_
        self._same.setdefault(node.id, []).append(number)
        if len(self._graph) <= before:  # the graph merged nodes
            self._number_all()
        else:
            self._forget_children([node, *self._graph.parents(node)])

    def _number_all(self) -> None:
        self._same = {}
        self._below.clear()
        self._leaves.clear()
        for number, filter_ in sorted(self._filters.items()):
            self._same.setdefault(self._node_of(filter_).id, []).append(number)

    def _node(self, number: int) -> Node:
        return self._node_of(self._filters[number])

    def _node_of(self, filter_: Filter) -> Node:
        node = self._graph.node(filter_)
        assert node is not None
        return node


def _replaced(
    starts: Numbers, nodes: Numbers, lists: Mapping[int, Iterable[int]]
) -> tuple[Numbers, Numbers]:
    """Lists of nodes with others in some rows, which are given in ascending order."""
    sizes, pieces, at = np.diff(starts), list[Numbers](), 0
    for row, given in lists.items():
        new = np.array(sorted(given), np.int64)
        pieces += nodes[at : starts[row]], new
        sizes[row], at = len(new), starts[row + 1]
    pieces.append(nodes[at:])
    changed = np.zeros(len(starts), np.int64)
    np.cumsum(sizes, out=changed[1:])
    return changed, np.concatenate(pieces)


def _annotate(placed: Placed, filter_: Filter) -> Placed:
    """The place with the note on its filter, if there is one."""
    if not filter_.note:
        return placed
    return msgspec.structs.replace(placed, note=filter_.note, never=filter_.never)
