"""Measures whether stored answers would speed up a rendezvous point:
`tidings bench relations --only planned`.

The rendezvous point takes publications one by one. Two sets of filters are measured: those of
`bench relations`, of which one in five also tests a price, and the same filters without prices. A
search is replaced in two ways:

    planned   stored answers by topic (merit/exact_table.py), found in a table of plans. If they
              decide all filters, the plan has the lowest nodes. Otherwise, the other filters are
              searched, and the lowest of all matching nodes are found in the graph
    perfect   the answer is already known; no table can be faster

The methods are measured in turn, a few hundred publications at a time; times are medians of
processor times. Results are checked first.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from tidings.channel.related import RelatedArrayInterests
from tidings.filters import parse
from tidings.matching import load_kernels
from tidings.preprocessing import Contents, ExtraFields, Kind
from tidings.relations import Reading, RelationSettings
from tidings.relations.merit import ExactTable, MatchedIds
from tidings.routing.protocol import Limits, messages as m
from tidings.routing.root import Rendezvous
from tidings.store.journal import FileJournal
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.relations.relations_bench import (
    CHECKED,
    PRICED,
    Event,
    draw_messages,
    draw_subscriptions,
    draw_topic_tree,
)
from tidings.studies.workloads.checking import WrongMatches

TOGETHER = 400  # publications that one method handles before the next method has its turn
Note = Callable[[str], None]
Tag = Callable[[bytes], list[int]]


class PlannedRow(msgspec.Struct, frozen=True):
    """The times for filters, of which the given share also tests a price."""

    priced: float
    nodes: int
    planned: float
    """The share of publications with a stored answer."""
    search_micros: float
    """The time to find the lowest nodes of a publication in the way a rendezvous point does."""
    search_planned_micros: float
    receive_micros: float
    """The time to handle a publication: find its nodes, number it, encode it for the journal."""
    receive_planned_micros: float
    receive_perfect_micros: float

    @property
    def speedup(self) -> float:
        return self.receive_micros / self.receive_planned_micros


class PlannedReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    seed: int
    subscriptions: int
    topics: int
    rows: list[PlannedRow]


def bench_planned(
    subscriptions: int = 100_000,
    topics: int = 10_000,
    *,
    learn: int = 100_000,
    messages: int = 8_000,
    repeats: int = 5,
    seed: int = 1,
    note: Note = lambda _: None,
) -> PlannedReport:
    """Measure a rendezvous point with and without stored answers."""
    load_kernels()
    rows = []
    for priced in (PRICED, 0.0):
        note(f"filters of which {priced:.0%} test a price")
        rng = np.random.default_rng([seed, topics])
        filters, _, _ = draw_subscriptions(rng, subscriptions, topics, 1, priced)
        with tempfile.TemporaryDirectory(prefix="tidings-planned-") as folder:
            root = _Root(Path(folder), filters, topics)
            root.learn(draw_messages(rng, learn, topics))
            events = draw_messages(rng, messages, topics)
            rows.append(root.measure(events, priced, repeats))
    return PlannedReport(describe_machine(), seed, subscriptions, topics, rows)


class _Root:
    """A rendezvous point with these filters, and a table of stored answers."""

    def __init__(self, folder: Path, filters: Sequence[str], topics: int) -> None:
        parsed = [parse(text) for text in filters]
        self._journal = FileJournal(folder / "journal")
        self._journal.begin_life(1)
        for node, (text, one) in enumerate(zip(filters, parsed, strict=True), 1):
            self._journal.add_node(node, text.encode(), "", one.key)
        self._write()
        reading, limits = Reading(tag="topic"), Limits()
        self._interests = RelatedArrayInterests(
            RelationSettings(draw_topic_tree(topics), reading), self._journal.interests(),
            len(filters), limits, None, folder / "interests", Kind(),
        )  # fmt: skip
        memory = self._journal.memory(self._interests.all_placed())
        self._root = Rendezvous(
            "root", self._interests, self._journal, memory, relating=self._interests.relating
        )
        self._contents = Contents(Kind(), limits.content_bytes, ExtraFields())
        self._table = ExactTable(reading.attributes())
        self._table.add_many((node, one, "") for node, one in enumerate(parsed, 1))
        self._table.merge()
        # for each topic: the stored answers, their nodes, and the lowest nodes; None instead of the
        # lowest nodes if other nodes can match
        self._plans: dict[str, tuple[MatchedIds, list[Hashable], list[int] | None]] = {}
        self._nodes = len(filters)
        self._stamp = 0

    def learn(self, events: Sequence[Event]) -> None:
        """Store the answer of each topic that has one."""
        for event in events:
            if not self._table.find_answers(event):
                found = self._table.search(event)
                if found.ids():
                    self._table.hold(event, found)

    def _search(self, content: bytes) -> list[int]:
        event = self._contents.read(content)
        plan = self._plans.get(event["topic"])
        if plan is None:
            answered = self._table.find_answers(event)
            is_whole = len(answered) == self._table.groups
            lowest = self._lowest(answered.ids()) if is_whole else None
            plan = self._plans[event["topic"]] = answered, answered.ids(), lowest
        answered, ids, lowest = plan
        if lowest is not None:
            return lowest
        return self._lowest([*ids, *self._table.search(event, answered).ids()])

    def _lowest(self, ids: Sequence[Hashable]) -> list[int]:
        nodes = [one for one in ids if isinstance(one, int)]
        return nodes if len(nodes) < 2 else [*self._root.graph.lowest(nodes)]

    def measure(self, events: Sequence[Event], priced: float, repeats: int) -> PlannedRow:
        packed = [msgspec.json.encode(event) for event in events]
        plain = self._interests.tag
        for content in packed[:CHECKED]:
            if sorted(plain(content)) != sorted(self._search(content)):
                raise WrongMatches(f"{content!r}: the table and the interests find different nodes")
        known = {content: plain(content) for content in packed}
        ways: dict[str, Tag] = {
            "": plain, "_planned": self._search, "_perfect": known.__getitem__
        }  # fmt: skip
        spent: dict[str, list[float]] = {}
        gc.collect()
        for turn in range(repeats + 1):  # the first turn warms up
            for at in range(0, len(packed), TOGETHER):
                some = packed[at : at + TOGETHER]
                for name, tag in ways.items():
                    searched, received = self._time(tag, some)
                    if turn:
                        spent.setdefault(f"search{name}_micros", []).append(searched)
                        spent.setdefault(f"receive{name}_micros", []).append(received)
        times = {name: statistics.median(found) for name, found in spent.items()}
        del times["search_perfect_micros"]
        hits = sum(bool(self._table.find_answers(event)) for event in events)
        return PlannedRow(priced, self._nodes, hits / max(1, len(events)), **times)

    def _time(self, tag: Tag, contents: Sequence[bytes]) -> tuple[float, float]:
        """The time per publication: that of the search alone, and that of all work at the root."""
        taken = []
        for content in contents:
            self._stamp += 1
            taken.append(m.Publish("publisher", self._stamp, 1, content, bytes(100)))
        start = time.process_time()
        for content in contents:
            tag(content)
        searched = time.process_time() - start
        setattr(self._interests, "tag", tag)  # noqa: B010 (instead of the method)
        start = time.process_time()
        for one in taken:
            self._root.receive("publisher", one, 0.0)
        received = time.process_time() - start
        del self._interests.tag
        self._write()
        self._root.mark_stored(self._root.written, 0.0)
        return searched / len(contents) * 1e6, received / len(contents) * 1e6

    def _write(self) -> None:
        batch = self._journal.take()
        if batch is not None:
            self._journal.write(batch)
