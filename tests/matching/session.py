"""A random session of a matcher: filters are added, changed and removed, parts merge, snapshots are
saved and opened. At every stop, all ways to match agree with the oracle."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.filters.oracle import Judged
from tests.filters.strategies import AND, Schema, Writer, event
from tests.matching import tables

from tidings import Filter, parse
from tidings.matching import Matcher
from tidings.matching.oracle import Oracle


def text(writer: Writer) -> str:
    """A filter: any; or one that is indexed in part and evaluated in part; or one too wide."""
    rng = writer.rng
    roll = rng.random()
    if roll < 0.6:
        return writer.filter()
    writer.seen = []
    if roll < 0.93:
        ways: list[Callable[[], Any]] = [writer.pattern, writer.text_test, writer.comparison]
        items = [rng.choice(ways)(), *(writer.leaf() for _ in range(rng.choice((1, 1, 2, 3))))]
        rng.shuffle(items)
        return " AND ".join(writer.inside(item, AND) for item in items)
    sides = [[writer.leaf() for _ in range(rng.choice((2, 3, 4)))] for _ in range(8)]
    return " AND ".join(f"({' OR '.join(item.text for item in side)})" for side in sides)


def notification(rng: random.Random, of: Schema) -> dict[str, Any]:
    """One of the usual ones; every third is one that JSON can hold."""
    found = event(rng, of, null=rng.choice((0.05, 0.2, 0.5)))
    return tables.without_times(found) if rng.random() < 0.33 else found


class Session:
    """One matcher and the naive one, changed alike; what each filter matches is known."""

    def __init__(
        self, rng: random.Random, judged: Judged, folder: Path, *, background: bool
    ) -> None:
        self.rng = rng
        self.judged = judged
        self.folder = folder
        self.background = background
        self.engine = rng.choice(("auto", "bdd", "trees"))
        self.matcher = Matcher(judged.attributes, background=background, engine=self.engine)
        self.oracle = Oracle()
        self.live: dict[str | int, int] = {}  # id to the number of its text
        self.batch = pa.RecordBatch.from_pylist(
            judged.events, schema=tables.arrow_schema(judged.schema)
        )
        self.named = rng.random() < 0.5  # ids are strings, or numbers
        self._given = 0
        self._unused = list(range(len(judged.texts)))
        rng.shuffle(self._unused)

    # -- changes -------------------------------------------------------------------------------

    def run(self) -> None:
        """Until every filter was used; every few steps is a halt."""
        ways = (self.add, self.add, self.add_many, self.add_many, self.remove, self.replace,
                self.matcher_merges, self.reopen)  # fmt: skip
        step = 0
        while self._unused:
            self.rng.choice(ways)()
            step += 1
            if step % 8 == 0:
                self.halt()
        for last in (self.halt, self.matcher_merges, self.halt, self.reopen, self.remove):
            last()
        self.halt(thorough=True)

    def _next(self) -> tuple[int, Filter | str]:
        """A filter that was not there, or now and then one that was."""
        if not self._unused or self.rng.random() < 0.05:
            number = self.rng.randrange(len(self.judged.texts))
        else:
            number = self._unused.pop()
        return number, self.judged.texts[number] if self.rng.random() < 0.5 else self._parsed(
            number
        )

    def _parsed(self, number: int) -> Filter:
        return parse(self.judged.texts[number], attributes=self.judged.attributes)

    def _id(self) -> str | int:
        self._given += 1
        return f"é{self._given}" if self.named else self._given * 3

    def _some(self) -> list[str | int]:
        return self.rng.sample(list(self.live), min(len(self.live), self.rng.choice((1, 4, 15))))

    def add(self) -> None:
        for _ in range(self.rng.choice((1, 3, 8))):
            id_, (number, filter_) = self._id(), self._next()
            self.matcher.add(id_, filter_)
            self._note(id_, number)

    def add_many(self) -> None:
        found = [(self._id(), *self._next()) for _ in range(self.rng.choice((0, 4, 20, 40)))]
        self.matcher.add_many((id_, filter_) for id_, _, filter_ in found)
        for id_, number, _ in found:
            self._note(id_, number)

    def remove(self) -> None:
        for id_ in self._some():
            self.matcher.remove(id_)
            self.oracle.remove(id_)
            del self.live[id_]

    def replace(self) -> None:
        for id_ in self._some():
            number, filter_ = self._next()
            self.matcher.replace(id_, filter_)
            self._note(id_, number)

    def matcher_merges(self) -> None:
        self.matcher.merge()

    def reopen(self) -> None:
        self.matcher.save(self.folder / "snapshot")
        self.matcher = Matcher.open(
            self.folder / "snapshot",
            self.judged.attributes,
            background=self.background,
            engine=self.engine,
        )

    def _note(self, id_: str | int, number: int) -> None:
        self.live[id_] = number
        self.oracle.add(id_, self._parsed(number))

    # -- halts ---------------------------------------------------------------------------------

    def halt(self, *, thorough: bool = False) -> None:
        """Match everything in every way."""
        assert len(self.matcher) == len(self.live)
        events, count = self.judged.events, len(self.judged.events)
        everything = range(count)
        self._compare("match", everything, [self.matcher.match(one) for one in events])
        naive = everything if thorough else self.rng.sample(everything, 5)
        self._compare("oracle", naive, [self.oracle.match(events[row]) for row in naive])
        times = self.judged.attributes is not None
        texts = {row: tables.json_text(events[row], times=times) for row in everything}
        found = {row: self.matcher.match(one) for row, one in texts.items() if one is not None}
        self._compare("match of JSON", list(found), list(found.values()))
        ways = [self._as_it_is, self._in_other_types, self._table, self._arrow_frame, self._frame]
        for way in ways if thorough else self.rng.sample(ways, 2):
            way()

    def _as_it_is(self) -> None:
        self._batch("as it is", self.batch)

    def _in_other_types(self) -> None:
        self._batch("in other types", tables.disguised(self.rng, self.batch))

    def _table(self) -> None:
        self._batch("table", tables.chunked(self.rng, self.batch))

    def _arrow_frame(self) -> None:
        self._batch("DataFrame of Arrow", tables.arrow_frame(self.batch))

    def _frame(self) -> None:
        events = self.judged.events
        rows = [row for row in range(len(events)) if tables.is_faithful(events[row])]
        some = self.batch.take(pa.array(rows, pa.int64()))
        self._batch("DataFrame", tables.object_frame(some), rows)

    def _batch(self, way: str, batch: Any, rows: Sequence[int] | None = None) -> None:
        rows = range(len(self.judged.events)) if rows is None else rows
        threads = self.rng.choice((1, 2))
        lists = self.matcher.match_batch(batch, threads=threads)
        self._compare(f"match_batch, {way}", rows, lists.to_pylist())
        at, ids = self.matcher.match_pairs(batch, threads=threads)
        pairs: list[list[Any]] = [[] for _ in rows]
        for place, id_ in zip(at.tolist(), ids.tolist(), strict=True):
            pairs[place].append(id_)
        assert at.tolist() == sorted(at.tolist())
        self._compare(f"match_pairs, {way}", rows, pairs)

    def _compare(self, way: str, rows: Sequence[int], found: list[Any]) -> None:
        says = self.judged.says
        for row, ids in zip(rows, found, strict=True):
            assert len(ids) == len(set(ids)), f"{way}: {ids} repeats on row {row}"
            want = {id_ for id_, number in self.live.items() if says[number][row] is True}
            wrong = want ^ set(ids)
            if wrong:
                id_ = min(wrong, key=str)
                raise AssertionError(
                    f"{way}: {self.judged.texts[self.live[id_]]!r} is "
                    f"{'not found' if id_ in want else 'found'} on {self.judged.events[row]}, "
                    f"{len(wrong)} ids are wrong"
                    if id_ in self.live
                    else f"{way}: {id_!r} is gone and was found"
                )
