"""The preprocessor of a rendezvous point: filters as texts, notifications as JSON objects.

A tag is a function of the nodes that exist and of the notification: the lowest nodes that match it.
Filters that are equal share a node. Filters that are written differently and cover each other have a
node each, the higher number above the lower. A filter that ended and returns gets a new number.

`folder` keeps compiled nodes from one start to the next. It holds nothing that is not in the journal
too: at a start, the stored filters are compared with it, and what differs is placed or removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.channel.interests.compilation import Compilation
from tidings.channel.interests.compiled import Compiled, Setting, open_compiled
from tidings.channel.interests.nodes import Nodes
from tidings.filters import Attributes, Filter, parse
from tidings.matching.disk import SnapshotError
from tidings.model import Event, LimitError, NotificationError, TidingsError
from tidings.routing.protocol import LONG, Limits
from tidings.routing.root import Fair, Placed

MANY = 2_000  # stored filters from which on they are compiled before the start
MOST_TOLD = 100  # log lines about filters that are set aside, at most
DEFAULTS = Limits()
Owners = Callable[[int], Sequence[str]]
_decode = msgspec.json.Decoder(dict[str, object]).decode
_log = logging.getLogger(__name__)


class Aside(msgspec.Struct, frozen=True):
    """A filter that is stored but not matched, and the reason."""

    text: str
    reason: str


class ArrayInterests:
    """The filters of a channel, by the numbers of their nodes."""

    def __init__(
        self,
        attributes: Attributes | None = None,
        interests: Iterable[tuple[int, bytes]] = (),
        last: int = 0,
        limits: Limits = DEFAULTS,
        folder: Path | None = None,
    ) -> None:
        """`interests` are the stored filters with their numbers, ascending; `last` is the highest
        number ever assigned. Without a `folder`, nothing is compiled."""
        self.attributes = attributes
        self._limits = limits
        self._folder = folder
        self._setting = Setting(attributes, limits.filter_parts)
        self._last = last
        self._long: dict[int, int] = {}  # bytes of long filters, by number
        self._long_bytes = 0
        self._last_parsed: tuple[bytes, Filter] | None = None
        self.refused: dict[int, Aside] = {}
        """Stored filters that are refused now, by number. A subscriber that still wants one is
        refused, asks again and is told why."""
        self._nodes = self._load(list(interests))

    # -- start ---------------------------------------------------------------------------------

    def _load(self, stored: list[tuple[int, bytes]]) -> Nodes:
        compiled = self._open(stored)
        if compiled is None and self._folder is not None and len(stored) > MANY:
            texts = ((number, text) for number, one in stored if (text := _text(one)) is not None)
            plan = self._make_nodes(None).plan_texts(str(self._folder), texts)
            compiled = Compilation(plan).run()
        nodes = self._make_nodes(compiled)
        known = set() if compiled is None else set(compiled.graph.numbers.tolist())
        there = {number for number, _ in stored}
        for number in sorted(known - there):
            nodes.remove(number)
        for number, interest in stored:
            if number not in known:
                self._restore(nodes, number, interest)
            self._count_long(number, len(interest))
        self._tell_refused()
        return nodes

    def _make_nodes(self, compiled: Compiled | None) -> Nodes:
        return Nodes(self._setting, compiled, self._limits.match_millis / 1000)

    def _open(self, stored: list[tuple[int, bytes]]) -> Compiled | None:
        """The compiled nodes, if their filters are those that are stored."""
        if self._folder is None:
            return None
        try:
            found = open_compiled(self._folder, self._setting)
        except (SnapshotError, OSError):
            return None
        return found if _agree(found, stored) else None

    def _restore(self, nodes: Nodes, number: int, interest: bytes) -> None:
        """Place a stored filter. One that stricter rules or other columns now refuse is set aside,
        so that the root still starts."""
        try:
            filter_ = self._parsed(interest)
            nodes.add(number, interest.decode(), filter_)
        except TidingsError as problem:
            self.refused[number] = Aside(interest.decode(errors="replace"), str(problem))

    def _tell_refused(self) -> None:
        for number, one in list(self.refused.items())[:MOST_TOLD]:
            _log.warning(
                "the filter of node %d is now refused and was set aside: %.200r: %.300s",
                number, one.text, one.reason,
            )  # fmt: skip
        if len(self.refused) > MOST_TOLD:
            _log.warning("%d stored filters were set aside in all", len(self.refused))

    def all_placed(self) -> list[Placed]:
        """Every node with its parents, in an order in which parents come first."""
        return [Placed(number, tuple(above), ()) for number, above in self._nodes.in_order()]

    # -- filters -------------------------------------------------------------------------------

    def place(self, interest: bytes) -> Placed:
        filter_ = self._parsed(interest)
        known = self._nodes.number_of(filter_.key)
        if known is not None:
            return self.placed(known)
        size = len(interest)
        if size > LONG and self._long_bytes + size > self._limits.long_filter_bytes:
            raise LimitError(
                f"there is no room for a filter of {size:,} bytes: filters of more than {LONG:,} "
                f"bytes use {self._long_bytes:,} bytes in all, expected at most "
                f"{self._limits.long_filter_bytes:,}; use a shorter filter",
                interest.decode(),
            )
        number = self.take_number()
        self._nodes.add(number, interest.decode(), filter_)
        self._count_long(number, size)
        return self.placed(number)

    def placed(self, number: int) -> Placed:
        """A node with its parents and children."""
        graph = self._nodes.graph
        place = graph.need(number)
        parents, children = (
            tuple(sorted(graph.numbers_of(found.tolist())))
            for found in (graph.parents(place), graph.children(place))
        )
        return Placed(number, parents, children)

    def take_number(self) -> int:
        """The next number, for a new node or another change."""
        self._last += 1
        return self._last

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        key = self._parsed(interest).key
        return key, self._nodes.number_of(key)

    def identity(self, number: int) -> bytes:
        return self._nodes.key(number)

    def text(self, number: int) -> str:
        return self._nodes.text(number)

    def remove(self, number: int) -> None:
        self._nodes.remove(number)
        self._long_bytes -= self._long.pop(number, 0)

    def set_aside(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._nodes.set_aside(number)

    def bring_back(self, number: int) -> None:
        self._nodes.bring_back(number)

    def _count_long(self, number: int, size: int) -> None:
        if size > LONG and number not in self.refused:
            self._long[number] = size
            self._long_bytes += size

    def _parsed(self, interest: bytes) -> Filter:
        """Parse a filter. The last result is kept, because a filter is looked up just before it is
        placed."""
        if self._last_parsed is not None and self._last_parsed[0] == interest:
            return self._last_parsed[1]
        text = _text(interest)
        if text is None:
            raise NotificationError("the filter is not valid UTF-8")
        found = parse(text, attributes=self.attributes, most_parts=self._limits.filter_parts)
        if len(interest) > LONG:
            found.slim()
        self._last_parsed = interest, found
        return found

    # -- notifications -------------------------------------------------------------------------

    def tag(self, content: bytes) -> list[int]:
        event = self._read(content)
        nodes = self._nodes
        found = nodes.match(event)
        computed = nodes.computing.match(event, len(content))
        if computed:
            found += map(nodes.graph.need, computed)
        return nodes.graph.lowest(found)

    def tag_fairly(self, content: bytes, owners: Owners) -> Fair:
        event = self._read(content)
        nodes = self._nodes
        computed = nodes.computing.match_each(event, len(content), owners)
        found = nodes.match(event) + [nodes.graph.need(number) for number in computed.matched]
        return Fair(nodes.graph.lowest(found), computed.over)

    def _read(self, content: bytes) -> Event:
        if len(content) > self._limits.content_bytes:
            raise NotificationError(
                f"found {len(content):,} bytes of attributes, expected at most "
                f"{self._limits.content_bytes:,}; move attributes that no filter reads to the "
                f"payload"
            )
        try:
            event = _decode(content)
        except (ValueError, RecursionError) as problem:  # from msgspec, or for invalid UTF-8
            raise NotificationError(f"the notification is not a JSON object: {problem}") from None
        return event if self.attributes is None else self.attributes.read(event)

    # -- compiling -----------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Should nodes be compiled again?"""
        return self._folder is not None and self._nodes.is_due

    def begin_compilation(self) -> Compilation:
        """Plan to compile the nodes as they are now; call `run` in a thread, then `adopt`."""
        assert self._folder is not None
        return self._nodes.begin_compilation(str(self._folder))

    def adopt(self, compilation: Compilation, compiled: Compiled) -> None:
        """Use compiled nodes, which others may have changed meanwhile."""
        self._nodes.adopt(compilation, compiled)


def _text(interest: bytes) -> str | None:
    try:
        return interest.decode()
    except UnicodeDecodeError:
        return None


def _agree(compiled: Compiled, stored: list[tuple[int, bytes]]) -> bool:
    """Whether every number that occurs in both has the same filter in both."""
    numbers = np.fromiter((number for number, _ in stored), np.int64, len(stored))
    places = np.searchsorted(compiled.graph.numbers, numbers)
    both = np.append(compiled.graph.numbers, -1)[places] == numbers
    texts = pa.array([one for _, one in stored], pa.large_binary()).filter(pa.array(both))
    mine = compiled.texts.combine_chunks().take(pa.array(places[both]))
    return bool(pc.all(pc.equal(texts, mine.cast(pa.large_binary()))).as_py() is not False)
