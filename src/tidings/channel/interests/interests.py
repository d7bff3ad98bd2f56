"""The preprocessor of a rendezvous point: filters as texts, notifications as JSON objects.

A tag depends only on the notification and the existing nodes: it consists of the lowest nodes that
match. Filters with equal forms share a node. Filters with different forms that cover each other
have separate nodes, the higher number above the lower. A filter whose node was removed gets a new
number if it is added again.

`folder` keeps compiled nodes from one start to the next. The journal also has all nodes of this
folder: at a start, the folder is compared with the filters in the journal, and where they differ,
nodes are placed or removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidings.channel.interests.compilation import Compilation
from tidings.channel.interests.compiled import Compiled, Setting
from tidings.channel.interests.index_kinds import PLAIN, kind_of
from tidings.channel.interests.node_loading import load_nodes, log_aside
from tidings.channel.interests.own_texts import OwnTexts
from tidings.channel.interests.preparing import prepare
from tidings.channel.interests.reading import Filters
from tidings.channel.interests.tagging import Tagging
from tidings.filters import Attributes, Filter, refuse_outside
from tidings.model import LimitError, TidingsError
from tidings.preprocessing import Contents, ExtraFields, Kind, PredicateCall
from tidings.routing.protocol import LONG, Limits
from tidings.routing.root import Fair, Placed, Places, Relating, TaggedMany

DEFAULTS = Limits()
Owners = Callable[[int], Sequence[str]]


class FoundPlace(NamedTuple):
    """The identity of a filter, the lowest nodes that cover it, and the highest that it covers."""

    key: bytes
    above: tuple[int, ...]
    below: tuple[int, ...]


class ArrayInterests:
    """The filters of a channel, by the numbers of their nodes."""

    def __init__(
        self,
        attributes: Attributes | None = None,
        interests: Iterable[tuple[int, bytes]] = (),
        last: int = 0,
        limits: Limits = DEFAULTS,
        extra: ExtraFields | None = None,
        folder: Path | None = None,
        kind: Kind | None = None,
        named: Sequence[tuple[bytes, int]] = (),
    ) -> None:
        """`interests` are the stored filters with their numbers, ascending; `last` is the highest
        number ever assigned. `extra` counts undeclared fields. Without a `folder`,
        nothing is compiled. Without a `kind`, interests are filters on the `attributes`. `named`
        are the interests of the named subscriptions, with their nodes; see `OwnTexts.share`.

        Filters with the same identity share a node. In a channel of topics, of types or of an
        application's class, a revision may make equal filters differ, so there each text has its
        own node: of two nodes with equal filters, the newer is above the older. A text contains
        names, not what they mean, so interests with the same text stay equal after a revision."""
        kind = Kind(attributes) if kind is None else kind
        attributes = self.attributes = kind.attributes
        self.extra = ExtraFields() if extra is None else extra
        contents = Contents(kind, limits.content_bytes, self.extra)
        self._limits = limits
        self._folder = folder
        self._setting = Setting(attributes, limits.filter_parts, kind)
        self._last = last
        self._long: dict[int, int] = {}  # number of a node -> bytes of its filter, if it is long
        self._long_bytes = 0
        self._filters = Filters(self._setting)
        self.relating: Relating | None = None
        """The relations of the channel; see channel/related."""
        stored = list(interests)
        seconds = limits.match_millis / 1000
        loaded = load_nodes(self._setting, self._filters, stored, folder, seconds)
        self._nodes, self.refused = loaded
        """Stored filters that are refused now, by number. A subscriber that still uses such a
        filter is refused, asks again and is told why."""
        self._tagging = Tagging(self._nodes, contents)
        name = kind.definition.kind
        self._own_texts = (
            None if name == "content" else OwnTexts(name, self._text_at, self._filters.text)
        )
        """Which nodes have which texts; None if all texts of a filter share its node."""
        for number, interest in stored:
            if number not in self.refused:
                self._note(number, interest)
        if self._own_texts is not None:
            self._own_texts.share(named)

    def log_refused(self) -> None:
        """Log the stored filters that are refused now. Logging is a separate step, because
        interests that are only read for a comparison are not logged."""
        log_aside(self.refused)

    def all_placed(self) -> Places:
        """Every node with its parents; parents come first."""
        return self._nodes.in_order()

    # -- filters -------------------------------------------------------------------------------

    def place(self, interest: bytes) -> Placed:
        filter_ = self._filters.read(interest)
        known = self._number_of(interest, filter_)
        if known is not None:
            return _annotate(self.make_placed(known), filter_)
        size = len(interest)
        if size > LONG and self._long_bytes + size > self._limits.long_filter_bytes:
            raise LimitError(
                f"there is no room for a filter of {size:,} bytes: filters of more than {LONG:,} "
                f"bytes already use {self._long_bytes:,} of "
                f"{self._limits.long_filter_bytes:,} bytes; use a shorter filter",
                self._filters.text(interest),
            )
        number = self.take_number()
        placed = self._nodes.add(number, self._filters.text(interest), filter_)
        self._note(number, interest)
        return _annotate(placed, filter_)

    def place_at(
        self, interest: bytes, key: bytes, above: Sequence[int], below: Sequence[int],
        newer: Sequence[int],
    ) -> Placed:  # fmt: skip
        """Like `place`, but the interest's identity is given, and also its place among all nodes
        except the `newer` ones. If there are no newer nodes, the interest is not even parsed."""
        if self._own_texts is not None:
            raise TidingsError("found a channel of another kind, expected a channel of filters")
        known = self._nodes.numbers_of(key)
        if known:
            return self.make_placed(min(known))
        text = self._filters.text(interest)
        filter_ = self._filters.read(interest) if newer else None
        if filter_ is not None and filter_.key != key:
            raise TidingsError("found an identity that does not belong to the filter")
        return self._nodes.add_between(self.take_number(), text, key, above, below, newer, filter_)

    # -- for preprocessors ---------------------------------------------------------------------

    def follow(self, number: int, interest: bytes) -> None:
        """Add a node that the rendezvous point created; raises TidingsError if its filter can't be
        read."""
        self._nodes.add(number, self._filters.text(interest), self._filters.read(interest))
        if self._own_texts is not None:
            self._own_texts.add(number, interest)

    def find_place(self, interest: bytes) -> FoundPlace | None:
        """The place of a filter that has no node yet. None if the rendezvous point must find the
        place, because the filter is not plain, or needs a note."""
        filter_ = self._filters.read(interest)
        if filter_.note or filter_.never or kind_of(filter_.form) != PLAIN:
            return None
        return FoundPlace(filter_.key, *self._nodes.find_place(filter_))

    def prepare(self, interests: Sequence[bytes]) -> list[float]:
        """Read filters that will be placed soon, and find their compiled neighbours; return the
        seconds that each filter took. This method changes no node, and may run in a different
        thread from the other methods. An invalid filter is refused only when it is placed."""
        return prepare(self._nodes, self._filters, interests)

    def make_placed(self, number: int) -> Placed:
        """A node with its parents and children."""
        return self._nodes.make_placed(number)

    def take_number(self) -> int:
        """The next number, for a new node or another change."""
        self._last += 1
        return self._last

    def look_up(self, interest: bytes) -> tuple[bytes, int | None]:
        filter_ = self._filters.read(interest)
        return filter_.key, self._number_of(interest, filter_)

    def _number_of(self, interest: bytes, filter_: Filter) -> int | None:
        """The node of an interest; the one with the lowest number if there are several."""
        found = self._nodes.numbers_of(filter_.key)
        if found and self._own_texts is not None:
            found = self._own_texts.select(found, interest)
        return min(found, default=None)

    def equal_to(self, number: int) -> list[int]:
        """The given node, and all other nodes with the same interest. A subscription to
        the interest gets the node with the lowest number."""
        found = self.alike(number)
        return found if self._own_texts is None else self._own_texts.select_like(found, number)

    def _text_at(self, number: int) -> str:
        """The filter of a node in SQL."""
        return self._nodes.text(number)

    def alike(self, number: int) -> list[int]:
        """The given node, and all other nodes with the same identity. Except in a
        channel of filters, nodes with equal filters may have different interests."""
        return self._nodes.numbers_of(self._nodes.key(number))

    def identity(self, number: int) -> bytes:
        return self._nodes.key(number)

    def text(self, number: int) -> str:
        """The filter in SQL, which pipelines read. A filter given in SQL is returned unchanged."""
        return self._nodes.text(number)

    def type_of(self, content: bytes) -> str:
        return self._setting.kind.type_of(content)

    def find_type(self, type_: str) -> tuple[bytes, int | None]:
        interest = self._setting.kind.type_interest(type_).encode()
        found = self._nodes.numbers_of(self._filters.read(interest).key)
        return interest, min(found, default=None)

    def type_at(self, number: int) -> str:
        return self._setting.kind.type_in(self._nodes.filter(number))

    def refuse_outside(self, interest: bytes, within: Sequence[str]) -> str:
        return refuse_outside(self._filters.read(interest), within, self.attributes)

    def lies_within(self, number: int, within: Sequence[str]) -> bool:
        return not refuse_outside(self._nodes.filter(number), within, self.attributes)

    def equal(self, number: int) -> Sequence[int]:
        """Always empty: of two nodes that cover each other, one is placed above the other."""
        return ()

    def remove(self, number: int) -> int:
        self._nodes.remove(number)
        self._long_bytes -= self._long.pop(number, 0)
        if self._own_texts is not None:
            self._own_texts.remove(number)
        return self.take_number()

    def set_aside(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._nodes.set_aside(number)

    def bring_back(self, number: int) -> None:
        self._nodes.bring_back(number)

    def _note(self, number: int, interest: bytes) -> None:
        """Note the text and the length of a node's interest."""
        size = len(interest)
        if size > LONG:
            self._long[number] = size
            self._long_bytes += size
        if self._own_texts is not None:
            self._own_texts.add(number, interest)

    # -- notifications -------------------------------------------------------------------------

    def tag(self, content: bytes) -> list[int]:
        return self._tagging.tag(content)

    def missing_calls(self, content: bytes) -> Sequence[PredicateCall]:
        """The undecided calls of predicates that a notification needs; empty if the notification
        will be refused."""
        try:
            return self._tagging.missing_calls(content)
        except TidingsError:
            return ()

    def tag_many(self, contents: Sequence[bytes]) -> TaggedMany:
        return self._tagging.tag_many(contents)

    def among(self, content: bytes, nodes: Sequence[int]) -> list[int]:
        return self._tagging.among(content, nodes)

    def tag_fairly(self, content: bytes, owners: Owners) -> Fair:
        return self._tagging.tag_fairly(content, owners)

    # -- compiling -----------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether nodes should be compiled again."""
        return self._folder is not None and self._nodes.is_due

    def begin_compilation(self) -> Compilation:
        """Plan to compile the nodes as they are now; call `run` in a thread, then `adopt`."""
        assert self._folder is not None
        return self._nodes.begin_compilation(str(self._folder))

    def seal_recent(self) -> None:
        """Compile the recent filters into a part in memory, as matchers do in the background."""
        self._nodes.seal_recent()

    def adopt(self, compilation: Compilation, compiled: Compiled) -> None:
        """Use compiled nodes, with the changes that were made during the compilation."""
        self._nodes.adopt(compilation, compiled)


@cache
def load_interest_kernels() -> None:
    """Compile or load the kernels that placing and tagging need, once per process."""
    with tempfile.TemporaryDirectory() as home:
        stored = [(number, b"a > %d AND b = 'x'" % number) for number in range(1, 4)]
        stored += [(4, b"a = 5 OR b = 'y'"), (5, b"a IS NULL OR c = 1"), (6, b"length(b) > 3")]
        first = ArrayInterests(None, stored, 6, folder=Path(home, "interests"))
        compilation = first.begin_compilation()
        compilation.run_here()
        interests = ArrayInterests(None, stored, 6, folder=Path(home, "interests"))
        for text in (b"a > 1", b"a > 7 AND b = 'x' AND c = 1", b"a IN (1, 5) OR b = 'x'"):
            interests.place(text)
            interests.tag(b'{"a": 8, "b": "x", "c": 1}')
        interests.tag_many([b'{"a": 8, "b": "x"}'] * 100)
        # a part in memory and a mapped part need different kernels
        interests.seal_recent()
        interests.tag_many([b'{"a": 8, "b": "x"}'] * 100)
        interests.remove(3)


def _annotate(placed: Placed, filter_: Filter) -> Placed:
    """A placed node, with the note on its filter if there is a note."""
    if not filter_.note:
        return placed
    return msgspec.structs.replace(placed, note=filter_.note, never=filter_.never)
