"""All nodes of a channel: compiled nodes, nodes placed since then, and the graph of both.

    place ──> covering_neighbours.py ──> graph/          tag ──> matchers ──> graph/
                  |                                        |
    compiled.py, mapped  +  recent.py, objects  +  computing.py, charged to owners

This module takes filters as objects; reading.py creates them from texts.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.channel.interests.compilation import Compilation
from tidings.channel.interests.compile_nodes import CompileTask, PlannedEdges
from tidings.channel.interests.compiled import Compiled, Setting
from tidings.channel.interests.computing import Computing
from tidings.channel.interests.covering_neighbours import PARSING, HullFilters, Search
from tidings.channel.interests.graph.node_graph import NodeGraph
from tidings.channel.interests.graph.reach import Reach
from tidings.channel.interests.index_kinds import COMPUTING, NEVER, WIDE, kind_of
from tidings.channel.interests.recent import Recent
from tidings.filters import Filter
from tidings.matching import Matcher
from tidings.matching.placing import FoundSlots, Question, ask
from tidings.model import TidingsError
from tidings.routing.root import Placed, Places

Array = npt.NDArray[Any]
REMEMBERED = 1 << 12  # the most parsed filters that are kept, because they are often needed again
MOST_PREPARED = 10_000  # the most filters that are prepared, but not placed
LEAST = 2_000  # nodes are compiled again only after at least this many changes
MOST_UNREAD = 200  # the most filters that may be left unread; reading this many takes about 40 ms
SHARE = 32  # of many nodes, one in this many must change before all are compiled again


_log = logging.getLogger(__name__)


class Prepared(NamedTuple):
    """A filter with its neighbours among compiled nodes."""

    filter: Filter  # kept alive, so that no other object gets the same `id()`
    compiled: Compiled
    question: Question
    found: tuple[FoundSlots, FoundSlots]


class Nodes:
    """See the top of the module. Here, nodes are identified by their numbers; in the graph, by
    their places."""

    def __init__(self, setting: Setting, compiled: Compiled | None, seconds: float) -> None:
        """`seconds` is the share of an owner for computations on one notification."""
        self._setting = setting
        self.compiled = compiled
        self.graph = NodeGraph() if compiled is None else NodeGraph(compiled.graph)
        self.computing = Computing(seconds, setting.kind.decisions)
        self._recent = [Recent()]
        self._hulls = HullFilters()
        self._gone = 0  # compiled nodes that were removed
        self._prepared: dict[int, Prepared] = {}  # by the `id()` of the filter object
        self._is_waiting = False  # a compilation has begun, but its result is not adopted yet
        self._parsed = lru_cache(REMEMBERED)(self._parse)
        if compiled is not None:
            for place in np.flatnonzero((compiled.kinds != 0) & (compiled.kinds != NEVER)).tolist():
                self._keep_apart(int(compiled.graph.numbers[place]), self._parse(place))

    def __len__(self) -> int:
        return len(self.graph)

    # -- filters -------------------------------------------------------------------------------

    def filter(self, number: int) -> Filter:
        return self._filter_at(self.graph.need(number))

    def _filter_at(self, place: int) -> Filter:
        number = int(self.graph.numbers[place])
        for recent in self._recent:
            if number in recent.unread:
                self._read(recent, number)
            found = recent.filters.get(number)
            if found is not None:
                return found
        known = self._hulls.filters.get(number)
        return self._parsed(place) if known is None else known

    def _parse(self, place: int) -> Filter:
        assert self.compiled is not None
        return self._setting.parse(self.compiled.text(place))

    def text(self, number: int) -> str:
        place = self.graph.need(number)
        for recent in self._recent:
            if number in recent:
                return recent.texts[number]
        assert self.compiled is not None
        return self.compiled.text(place)

    def key(self, number: int) -> bytes:
        place = self.graph.need(number)
        for recent in self._recent:
            if number in recent:
                return recent.key(number)
        assert self.compiled is not None
        return self.compiled.key(place)

    def numbers_of(self, key: bytes) -> list[int]:
        """All nodes with an identity."""
        found = [number for recent in self._recent for number in recent.numbers_of(key)]
        if self.compiled is not None:
            numbers = self.graph.numbers_of(self.compiled.places_of(key))
            found += [number for number in numbers if self.graph.place(number) is not None]
        return found

    # -- placing and removing ------------------------------------------------------------------

    def prepare(self, filters: Sequence[Filter]) -> list[float]:
        """Find the compiled neighbours of filters that will be added soon; return the seconds that
        each filter took. This may run in another thread: it reads only compiled nodes, and keeps
        the results for `add`."""
        compiled, times = self.compiled, [0.0] * len(filters)
        simple: dict[int, Question] = {}  # filters that are looked up together, which is faster
        if compiled is None:
            return times
        for at, filter_ in enumerate(filters):
            begun = time.thread_time()
            with contextlib.suppress(TidingsError):  # `add` reports the problem
                if not filter_.never and next(compiled.places_of(filter_.key), None) is None:
                    question = self._ask(filter_)
                    if question.simple_box() is not None:
                        simple[at] = question
                    else:
                        found = compiled.index.find(question)
                        self._prepared[id(filter_)] = Prepared(filter_, compiled, question, found)
            times[at] = time.thread_time() - begun
        if simple:
            begun = time.thread_time()
            every = compiled.index.find_all([*simple.values()])
            for (at, question), found in zip(simple.items(), every, strict=True):
                filter_ = filters[at]
                self._prepared[id(filter_)] = Prepared(filter_, compiled, question, found)
            each = (time.thread_time() - begun) / len(simple)
            for at in simple:
                times[at] += each
        if len(self._prepared) > MOST_PREPARED:  # many were never placed: forget them
            self._prepared = {}
        return times

    def add(self, number: int, text: str, filter_: Filter) -> Placed:
        """Add a node. If this fails, nothing has changed."""
        ready = self._prepared.pop(id(filter_), None)
        if ready is None or ready.compiled is not self.compiled:
            question = None if filter_.never else self._ask(filter_)
            over, under = self._search(filter_, question, None)
        else:
            question = ready.question
            over, under = self._search(filter_, question, ready.found)
        recent = self._recent[-1]
        recent.add(number, text, filter_, question)
        try:
            self._keep_apart(number, filter_)
            found = self.graph.insert(number, over.reach, under.reach)
        except BaseException:  # a filter that is not in the graph must not match
            recent.remove(number)
            self._forget_apart(number)
            raise
        return self._as_placed(number, *found)

    def add_between(
        self, number: int, text: str, key: bytes, above: Sequence[int], below: Sequence[int],
        newer: Sequence[int], filter_: Filter | None,
    ) -> Placed:  # fmt: skip
        """Compare a plain filter with the `newer` nodes, and add its node between the nodes `above`
        and `below`. If there are no `newer` nodes, `filter_` may be None; then the filter is read
        only when it is needed."""
        graph, recent = self.graph, self._recent[-1]
        if filter_ is None:
            over, under = Reach(graph, is_up=True), Reach(graph, is_up=False)
            for reach, some in ((over, above), (under, below)):
                if len(some):
                    reach.add(np.array([graph.need(one) for one in some]))
            recent.add_unread(number, text, key)
        else:
            over, under = self._compare_newer(filter_, above, below, newer)
            recent.add(number, text, filter_, None)
        try:
            if filter_ is not None:
                self._keep_apart(number, filter_)
            found = graph.insert(number, over, under)
        except BaseException:  # a filter that is not in the graph must not match
            recent.remove(number)
            self._forget_apart(number)
            raise
        if len(recent.unread) > MOST_UNREAD:
            self._read(recent, next(iter(recent.unread)))
        return self._as_placed(number, *found)

    def _compare_newer(
        self, filter_: Filter, above: Sequence[int], below: Sequence[int], newer: Sequence[int]
    ) -> tuple[Reach, Reach]:
        graph, found = self.graph, list[Reach]()
        places = [place for one in newer if (place := graph.place(one)) is not None]
        for is_up, some in ((True, above), (False, below)):
            search = Search(graph, filter_.form, self._filter_at, is_up=is_up)
            if len(some):
                search.add(np.array([graph.need(one) for one in some]))
            search.compare(places)
            found.append(search.reach)
        return found[0], found[1]

    def find_place(self, filter_: Filter) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lowest nodes that cover a filter, and the highest nodes that it covers. Nothing
        changes."""
        over, under = self._search(filter_, self._ask(filter_), None)
        found = self._as_placed(0, *self.graph.find_between(over.reach, under.reach))
        return found.parents, found.children

    # -- filters that were not read yet --------------------------------------------------------

    def _read(self, recent: Recent, number: int) -> None:
        """Read a filter that was added without being read. If the filter can't be read, it matches
        nothing."""
        try:
            filter_ = self._setting.parse(recent.texts[number])
            recent.read(number, filter_)
            self._keep_apart(number, filter_)
        except TidingsError as problem:
            recent.give_up(number)
            self.set_aside(number)
            _log.error("the filter of node %d, which a preprocessor placed, matches nothing: %s",
                       number, problem)  # fmt: skip

    def read_all(self) -> None:
        """Read all filters that were added without being read."""
        for recent in self._recent:
            for number in [*recent.unread]:
                self._read(recent, number)

    def _ask(self, filter_: Filter) -> Question:
        return ask(filter_.form, self._setting.attributes)

    def make_placed(self, number: int) -> Placed:
        """A node with its parents and children."""
        place = self.graph.need(number)
        return self._as_placed(number, self.graph.parents(place), self.graph.children(place))

    def _as_placed(self, number: int, parents: Array, children: Array) -> Placed:
        numbers_of = self.graph.numbers_of
        above, below = (tuple(sorted(numbers_of(one.tolist()))) for one in (parents, children))
        return Placed(number, above, below)

    def _keep_apart(self, number: int, filter_: Filter) -> None:
        """Add a filter to the structures for filters that are not plain."""
        kind = kind_of(filter_.form)
        if kind in (WIDE, COMPUTING):
            self._hulls.add(number, filter_)
        if kind == COMPUTING:
            self.computing.add(number, filter_)

    def _forget_apart(self, number: int) -> None:
        self._hulls.discard(number)
        if number in self.computing:
            self.computing.remove(number)

    def _search(
        self,
        filter_: Filter,
        question: Question | None,
        ready: tuple[FoundSlots, FoundSlots] | None,
    ) -> tuple[Search, Search]:
        self.read_all()
        form, graph = filter_.form, self.graph
        over = Search(graph, form, self._filter_at, is_up=True)
        under = Search(graph, form, self._filter_at, is_up=False)
        if question is None:
            return over, under
        if self.compiled is not None:
            neighbours = self.compiled.index.find(question) if ready is None else ready
            for search, found in zip((over, under), neighbours, strict=True):
                if len(found.sure):
                    search.add(graph.existing(found.sure))
                if len(found.unsure):
                    search.compare(graph.existing(found.unsure).tolist(), PARSING)
        for recent in self._recent:
            for search, near in zip((over, under), recent.around(question), strict=True):
                if near:
                    search.compare(map(graph.need, near))
        if self._hulls.filters:
            over.compare(map(graph.need, self._hulls.index.may_cover(form)))
            under.compare(map(graph.need, self._hulls.index.may_be_covered(form)))
        return over, under

    def remove(self, number: int) -> None:
        place = self.graph.need(number)
        recent = next((one for one in self._recent if number in one), None)
        if recent is not None:  # this comes first, so that nothing else has changed if it fails
            recent.remove(number)
        else:
            self._gone += 1
        self._forget_apart(number)
        self.graph.remove(place)

    def set_aside(self, number: int) -> None:
        place = self.graph.place(number)
        if place is not None:
            self.graph.alive[place] = 0
            if number in self.computing:  # the filter's computation may be too slow
                self.computing.remove(number)

    def bring_back(self, number: int) -> None:
        place = self.graph.place(number)
        if place is not None and not self.graph.alive[place]:
            self.graph.alive[place] = 1
            filter_ = self._hulls.filters.get(number)
            if filter_ is not None and kind_of(filter_.form) == COMPUTING:
                self.computing.add(number, filter_)

    def matchers(self) -> Iterator[tuple[Matcher, bool]]:
        """The matchers of plain and wide filters, each with true if its ids are places of nodes, or
        false if they are numbers of nodes."""
        self.read_all()
        if self.compiled is not None:
            yield self.compiled.matcher, True
        for recent in self._recent:
            if recent.filters:
                yield recent.matcher, False

    def seal_recent(self) -> None:
        """Compile the recent filters into a part in memory."""
        for matcher, has_places in self.matchers():
            if not has_places:
                matcher.merge()

    # -- compiling -----------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether so many nodes have changed that they should be compiled again."""
        changes = self._gone + sum(map(len, self._recent))
        return changes > max(LEAST, len(self.kinds) // SHARE)

    @property
    def kinds(self) -> Array:
        return np.zeros(0, np.uint8) if self.compiled is None else self.compiled.kinds

    def begin_compilation(self, folder: str) -> Compilation:
        """Plan to compile the nodes as they are now. Changes that are made later are applied by
        `adopt`."""
        graph, base = self.graph, self.compiled
        # after a failed compilation, the folder may contain other nodes than those in use
        is_whole = base is None or self._is_waiting
        places = graph.places() if is_whole else graph.list_patched()
        starts, parents = graph.parents_of(places)
        edges = PlannedEdges(
            graph.numbers[places].tobytes(),
            starts.tobytes(),
            graph.numbers[parents].tobytes(),
        )
        texts = dict(sorted((n, t) for recent in self._recent for n, t in recent.texts.items()))
        if base is not None and is_whole:
            texts = dict(sorted((n, self.text(n)) for n in graph.numbers[places].tolist()))
        plan = plan_texts(folder, self._setting, texts.items())
        plan = msgspec.structs.replace(
            plan,
            base="" if base is None or is_whole else base.identity,
            gone=graph.list_gone().tobytes(),
            edges=edges,
        )
        measure = None if base is None else base.matcher.pack_measured
        found = Compilation(plan, graph.begin_cut(), len(self._recent), measure)
        self._recent.append(Recent())
        self._is_waiting = True
        return found

    def adopt(self, compilation: Compilation, compiled: Compiled) -> None:
        """Use compiled nodes. Cost: linear in the changes since the compilation began."""
        fresh = compilation.graph or NodeGraph(compiled.graph)
        self.graph = self.graph.move_to(fresh, compilation.cut)
        self._recent = self._recent[compilation.generations :]
        self.compiled = compiled
        self._gone = len(self.graph.list_gone())
        self._is_waiting = False
        self._parsed.cache_clear()

    def in_order(self) -> Places:
        """Every node with its parents; parents come first."""
        graph = self.graph
        order = graph.in_order()
        starts, parents = graph.parents_of(order)
        return Places(graph.numbers[order], starts, graph.numbers[parents])


def plan_texts(folder: str, setting: Setting, texts: Iterable[tuple[int, str]]) -> CompileTask:
    """A plan to compile texts whose edges are not known."""
    pairs, attributes = list(texts), setting.attributes
    declared = None if attributes is None else attributes.to_declared()
    return CompileTask(
        folder, declared, setting.most_parts, "", b"",
        np.array([number for number, _ in pairs], np.int64).tobytes(),
        [text for _, text in pairs], None, sorted(setting.kind.functions),
    )  # fmt: skip
