"""Live subscriptions: every version gives what a fresh compilation of it would give."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.filters.strategies import event
from tests.matching import tables
from tests.repeats import runs
from tests.snapshots.test_snapshot import ROWS, many_filters

from tidings import Filter, parse
from tidings.model import TidingsError
from tidings.snapshots import Snapshot, VersionedSnapshot
from tidings.snapshots.verifying import verify_nodes


class Change(NamedTuple):
    version: int
    id: str
    filter: str | None
    node: int


class Book:
    """The subscriptions as they change, with numbers of nodes as a log would give them."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}
        self.numbers: dict[bytes, int] = {}
        self.changes: list[Change] = []
        self.at: list[dict[str, str]] = [{}]

    def put(self, id_: str, text: str | None) -> Change:
        node = 0
        if text is None:
            del self.now[id_]
        else:
            self.now[id_] = text
            node = self.numbers.setdefault(parse(text).key, len(self.numbers) + 1)
        change = Change(len(self.changes) + 1, id_, text, node)
        self.changes.append(change)
        self.at.append(dict(self.now))
        return change

    def compiled(self, version: int) -> Snapshot:
        return Snapshot.build(self.at[version], number=version, numbers=self.numbers)


# they cover each other, and their forms differ
ALIKE = [f"za > 0 AND zb > 0 OR za > 0 AND zc > 0 AND zb <= {most}" for most in range(3)]


@pytest.mark.parametrize("run", runs(1, 4))
def test_every_version_is_like_a_fresh_compilation(seed: int, run: int) -> None:
    rng = random.Random(f"{seed} live {run}")
    filters, of = many_filters(rng, 120)
    texts = [one.sql() for _, one in filters]
    texts += [f"({text}) AND true" for text in texts[:20]]  # equal, and written differently
    texts += [*ALIKE, *ALIKE]
    rng.shuffle(texts)
    book = Book()
    for number in range(60):
        book.put(f"s{number}", rng.choice(texts))
    start = len(book.changes)
    live = VersionedSnapshot(book.compiled(start))
    for _ in range(60):
        id_ = f"s{rng.randrange(80)}"
        ends = id_ in book.now and rng.random() < 0.5
        book.put(id_, None if ends else rng.choice(texts))
    events = [
        event(rng, of) | {name: rng.randrange(4) for name in ("za", "zb", "zc")} for _ in range(40)
    ]
    columns = [pa.field(name, pa.int64()) for name in ("za", "zb", "zc")]
    batch = pa.RecordBatch.from_pylist(
        events, schema=pa.schema([*tables.arrow_schema(of), *columns])
    )
    at = start
    while at < len(book.changes):
        more = rng.randrange(1, 15)
        live.apply(book.changes[at : at + more])
        at = live.version
        version = at if rng.random() < 0.7 else rng.randrange(start, at + 1)
        fresh, view = book.compiled(version), live.view(version)
        assert view.nodes(batch).to_pylist() == fresh.nodes(batch).to_pylist()
        told = [sorted(ids) for ids in view.subscriptions(batch).to_pylist()]
        assert told == [sorted(ids) for ids in fresh.subscriptions(batch).to_pylist()]


@pytest.mark.parametrize("compiled", range(5))
def test_filters_that_cover_each_other_are_a_chain(compiled: int) -> None:
    """Whatever was compiled, and whichever of them ended: the tag has the lowest living number."""
    book = Book()
    for id_, text in zip("abc", ALIKE, strict=True):
        book.put(id_, text)
    assert len({parse(text).key for text in ALIKE}) == 3
    book.put("a", None)
    book.put("b", None)
    rows = pa.RecordBatch.from_pylist([{"za": 1, "zb": 1, "zc": 1}])
    live = VersionedSnapshot(book.compiled(compiled))
    live.apply(book.changes)
    for version in range(compiled, 6):
        expected = [[[]], [[1]], [[1]], [[1]], [[2]], [[3]]][version]
        assert live.view(version).nodes(rows).to_pylist() == expected
        assert book.compiled(version).nodes(rows).to_pylist() == expected
    whole = book.compiled(3)
    assert [whole.parents(node) for node in (1, 2, 3)] == [[2], [3], []]
    assert verify_nodes(whole).problems == []


def test_the_lowest_number_stays_also_when_it_came_later() -> None:
    book = Book()
    for id_ in "abc":
        book.put(id_, "x > 0" if id_ == "a" else "x >= 0 AND x != 0 OR x > 5")
    book.put("a", None)
    live = VersionedSnapshot(book.compiled(4))
    book.put("d", "x > 0")  # its number is lower than that of the compiled one
    book.put("e", "x > 1 OR x > 0 AND x <= 1 OR x IS NULL AND x = 1")
    book.put("d", None)
    live.apply(book.changes)
    rows = pa.RecordBatch.from_pylist([{"x": 1}, {"x": -1}])
    for version in (4, 5, 6, 7):
        fresh = book.compiled(version).nodes(rows).to_pylist()
        assert live.view(version).nodes(rows).to_pylist() == fresh


def test_new_nodes_are_tied_once_and_not_by_events(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Filter] = []
    covers = Filter.covers

    def noted(one: Filter, other: Filter) -> bool:
        asked.append(other)
        return covers(one, other)

    monkeypatch.setattr(Filter, "covers", noted)
    book = Book()
    for number in range(400):
        book.put(f"s{number}", f"a > {number % 40} AND c{number // 40} > 0")
    live = VersionedSnapshot(book.compiled(400))
    for number in range(60):
        book.put(f"n{number}", f"a > {number} AND c{number % 10} > 0")
        book.put(f"m{number}", f"a > {number}" if number % 2 else f"a > {number}.5 AND c1 = 1")
    live.apply(book.changes)
    view = live.view()
    ties = len(asked)
    assert ties < 120 * 30  # new ones that have a chance; there are 48,000 pairs with compiled ones
    rows = [{"a": at, **{f"c{one}": 1 for one in range(at % 11)}} for at in range(80)]
    batch = pa.RecordBatch.from_pylist(rows, pa.schema({"a": pa.int64(), **_COLUMNS}))
    assert view.nodes(batch).to_pylist() == book.compiled(live.version).nodes(batch).to_pylist()
    assert len(asked) == ties


_COLUMNS = {f"c{one}": pa.int64() for one in range(10)}


def test_versions_without_a_change() -> None:
    live = VersionedSnapshot(Snapshot.build({"a": "dep_delay > 1"}, number=3))
    live.apply([Change(4, "b", "dep_delay > 2", 2)])
    live.apply([Change(4, "b", "dep_delay > 2", 2)])  # known already
    assert live.version == 4
    with pytest.raises(TidingsError, match="version 5 is unknown, expected one from 3 to 4"):
        live.view(5)
    live.apply([Change(4, "b", "dep_delay > 2", 2), Change(6, "b", None, 0)], upto=9)
    with pytest.raises(TidingsError, match="version 10 is unknown, expected one from 3 to 9"):
        live.view(10)
    assert live.view(3).subscriptions(ROWS).to_pylist() == [["a"], ["a"], []]
    for version in (4, 5):
        assert live.view(version).nodes(ROWS).to_pylist() == [[2], [2], []]
    for version in range(6, 10):
        assert live.view(version).subscriptions(ROWS).to_pylist() == [["a"], ["a"], []]


def test_a_filter_that_ended_and_returns_has_another_node() -> None:
    """The node of before is dead, and strikes nothing out, whether it was compiled or not."""
    live = VersionedSnapshot(Snapshot.build({"a": "dep_delay > 1"}, number=3))
    live.apply(
        [
            Change(4, "a", None, 0),
            Change(5, "b", "dep_delay > 1", 5),
            Change(6, "b", None, 0),
            Change(7, "c", "NOT (dep_delay <= 1)", 7),
        ]
    )
    found = [live.view(version).nodes(ROWS).to_pylist()[0] for version in range(3, 8)]
    assert found == [[1], [], [5], [], [7]]


IDS: dict[str, tuple[str | int, str | int]] = {"texts": ("a", "b"), "integers": (1, 2)}


@pytest.mark.parametrize(("before", "now"), [("texts", "integers"), ("integers", "texts")])
def test_ids_of_the_other_kind_when_all_before_are_gone(before: str, now: str) -> None:
    """As a fresh compilation takes them: the kind is that of the ids that are left."""
    (old, older), (new, _) = IDS[before], IDS[now]
    live = VersionedSnapshot(Snapshot.build({old: "x > 1", older: "x > 2"}, number=1))
    batch = pa.record_batch({"x": [5]})
    live.apply([Change(2, old, None, 0), Change(3, new, "x > 3", 3), Change(4, older, None, 0)])  # type: ignore[arg-type]
    with pytest.raises(TidingsError, match=r"^found strings and integers as ids, expected all"):
        live.view(3)
    assert live.view(2).subscriptions(batch).to_pylist() == [[older]]
    assert live.view(4).subscriptions(batch).to_pylist() == [[new]]
    live.apply([Change(5, new, None, 0)])  # type: ignore[arg-type]
    assert live.view(5).subscriptions(batch).to_pylist() == [[]]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({2**70: "x > 1"}, "found an integer of more than 64 bits as an id, expected a string or"),
        (
            {"\ud800": "x > 1"},
            "found a string that is not valid Unicode as an id, expected a string or",
        ),
        (["abc"], r"found 'abc', expected an \(id, filter\) pair"),
        ([("a", "x > 1", 3)], r"found .*, expected an \(id, filter\) pair"),
        ({"a": "x > 1", 1: "x > 1"}, "found strings and integers as ids, expected all"),
    ],
)
def test_a_snapshot_refuses_in_one_sentence(bad: Any, sentence: str) -> None:
    with pytest.raises(TidingsError, match=f"^{sentence}"):
        Snapshot.build(bad)


HEAVY_PAIRS = {
    "a tree, and a long list below": (
        " AND ".join(f"(a{k} = 1 OR b{k} = 1)" for k in range(8)),
        " AND ".join(f"a{k} = 1" for k in range(8))
        + f" AND (x IN ({', '.join(map(str, range(2_100)))}) OR y = 1)",
    ),
    "long lists in boxes": (
        f"x IN ({', '.join(map(str, range(2_200)))}) OR y = 1",
        f"x IN ({', '.join(map(str, range(2_100)))}) AND z = 1 OR y = 1 AND z = 2",
    ),
    "a box around a tree": (
        f"x IN ({', '.join(map(str, range(2_200)))}) OR a0 > 0",
        "a0 = 1 AND " + " AND ".join(f"(a{k} = 1 OR b{k} = 1)" for k in range(1, 9)),
    ),
    "more boxes than are compared": (
        " OR ".join(f"x{k} = 1" for k in range(500)),
        " OR ".join(f"x{k} = 1 AND y = 1" for k in range(500)),
    ),
}


@pytest.mark.parametrize("texts", HEAVY_PAIRS.values(), ids=HEAVY_PAIRS)
@pytest.mark.parametrize("compiled", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_heavy_filters_are_tied_as_in_a_fresh_compilation(
    texts: tuple[str, str], compiled: int
) -> None:
    event = {f"{c}{k}": 1 for k in range(9) for c in "abx"} | {"x": 7, "y": 1, "z": 1}
    batch = pa.RecordBatch.from_pylist([event])
    for order in (texts, texts[::-1]):
        book = Book()
        for number, text in enumerate(order):
            book.put(f"s{number}", text)
        fresh = book.compiled(2)
        assert verify_nodes(fresh).problems == []
        live = VersionedSnapshot(book.compiled(compiled))
        live.apply(book.changes)
        assert live.view().nodes(batch).to_pylist() == fresh.nodes(batch).to_pylist()
