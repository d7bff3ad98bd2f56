"""The interests of a channel, against filters one by one, through compilations and restarts."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections.abc import Callable, Collection
from itertools import chain, islice, pairwise, product
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.filters.strategies import event as random_event
from tests.repeats import amount, draws
from tests.snapshots.test_snapshot import many_filters

from tidings.channel.interests import (
    ArrayInterests,
    computing,
    node_loading,
    preparing,
    tagging,
)
from tidings.channel.interests.compilation import Compilation
from tidings.channel.interests.compile_nodes import CompileTask, compile_nodes
from tidings.channel.interests.index_kinds import WIDE
from tidings.channel.interests.reading import Filters
from tidings.filters import Attributes, Filter, parse
from tidings.matching.diagrams import Diagrams
from tidings.model import FilterError, TidingsError
from tidings.routing.protocol import Limits
from tidings.routing.root import Placed, TooMuchWork

pytestmark = pytest.mark.usefixtures("forked")

PATIENT = Limits(match_millis=3_600_000)  # on a starved machine, any filter may exceed a share
WORDS = ["a", "b", "ab", "c"]
Event = dict[str, object]
There = dict[int, Filter]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile in this process, which saves the start of another one."""

    def compile_here(self: Compilation, plan: Path) -> None:
        compile_nodes(msgspec.msgpack.decode(plan.read_bytes(), type=CompileTask))

    monkeypatch.setattr(Compilation, "_compile", compile_here)


def random_filter(chance: random.Random) -> str:
    tests = [
        f"n > {chance.randrange(8)}",
        f"n <= {chance.randrange(8)}",
        f"n IN ({chance.randrange(8)}, {chance.randrange(8)})",
        f"word = '{chance.choice(WORDS)}'",
        f"word LIKE '{chance.choice('ab')}%'",
        f"length(word) > {chance.randrange(3)}",
        "word IS NULL",
        f"m = {chance.randrange(3)}",
    ]
    picked = chance.sample(tests, chance.randrange(1, 4))
    return f" {chance.choice(['AND', 'AND', 'OR'])} ".join(picked)


def simple(chance: random.Random) -> tuple[Callable[[], str], Callable[[], Event]]:
    def event() -> Event:
        found: Event = {"n": chance.randrange(-1, 9), "word": chance.choice([*WORDS, None])}
        if chance.random() < 0.5:
            found["m"] = chance.randrange(3)
        return found

    return lambda: random_filter(chance), event


def plain(chance: random.Random) -> tuple[Callable[[], str], Callable[[], Event]]:
    """Nothing computes or tells null from absent, so that many are tagged as columns."""

    def text() -> str:
        while True:
            found = random_filter(chance)
            if "length" not in found and "LIKE" not in found:
                return found

    return text, simple(chance)[1]


def of_every_kind(chance: random.Random) -> tuple[Callable[[], str], Callable[[], Event]]:
    filters, of = many_filters(chance, 60)
    texts = [one.sql() for _, one in filters]

    def event() -> Event:
        found = random_event(chance, of)
        return {name: value for name, value in found.items() if is_json(value)}

    return lambda: chance.choice(texts), event


def wide(chance: random.Random) -> tuple[Callable[[], str], Callable[[], Event]]:
    """Filters with too many boxes, and a few plain ones that cover some of them."""

    def text() -> str:
        clauses = [
            f"(a{n} > {chance.randrange(3)} OR b{n} = {chance.randrange(2)})" for n in "1234567"
        ]
        return " AND ".join(clauses if chance.random() < 0.8 else clauses[:1])

    def event() -> Event:
        return {name + n: chance.choice([0, 1, 2, 3, 3, 3]) for name in "ab" for n in "1234567"}

    return text, event


def is_json(value: object) -> bool:
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except (TypeError, ValueError):
        return False


def is_above(there: There, a: int, b: int) -> bool:
    """Covers it; of two that cover each other, the later one is above."""
    if a == b or there[a].never or there[b].never or not there[a].covers(there[b]):
        return False
    return a > b or not there[b].covers(there[a])


def lowest(there: There, matched: set[int]) -> set[int]:
    return {a for a in matched if not any(is_above(there, a, b) for b in matched)}


def parents_of(there: There, node: int) -> set[int]:
    over = {one for one in there if is_above(there, one, node)}
    return lowest(there, over)


class Pair:
    """Interests, and the same filters as a mapping."""

    def __init__(self, chance: random.Random, folder: Path, limits: Limits = PATIENT) -> None:
        self.chance, self.folder, self.limits = chance, folder, limits
        self.interests = ArrayInterests(folder=folder, limits=limits)
        self.texts: dict[int, str] = {}
        self.there: There = {}
        self.aside: set[int] = set()
        self.compiling: Compilation | None = None
        self.last = 0

    def place(self, text: str) -> None:
        filter_ = parse(text)
        if self.chance.random() < 0.3:
            self.interests.prepare([text.encode()])
        same = [number for number, one in self.there.items() if one.key == filter_.key]
        placed = self.interests.place(text.encode())
        if same:
            assert placed.node == min(same)
        else:
            assert placed.node == self.last + 1
            self.last = placed.node
            self.there[placed.node], self.texts[placed.node] = filter_, text
        node = placed.node
        assert set(placed.parents) == parents_of(self.there, node)
        under = {one for one in self.there if is_above(self.there, node, one)}
        highest = {b for b in under if not any(is_above(self.there, a, b) for a in under)}
        assert set(placed.children) == highest
        assert self.interests.look_up(text.encode()) == (filter_.key, node)
        assert self.interests.identity(node) == filter_.key
        assert self.interests.text(node) == self.texts[node]

    def remove(self) -> None:
        number = self.chance.choice(sorted(self.there))
        self.last += 1
        assert self.interests.remove(number) == self.last
        key = self.there.pop(number).key
        self.aside.discard(number)
        left = [one for one, other in self.there.items() if other.key == key]
        assert self.interests.look_up(self.texts.pop(number).encode())[1] == min(left, default=None)

    def turn_aside(self) -> None:
        number = self.chance.choice(sorted(self.there))
        if number in self.aside:
            self.interests.bring_back(number)
        else:
            self.interests.set_aside([number])
        self.aside ^= {number}

    def compile(self) -> None:
        if self.compiling is None:
            self.compiling = self.interests.begin_compilation()
            return
        compilation, self.compiling = self.compiling, None
        if self.chance.random() < 0.2:
            return  # it failed; everything stays as it is
        found = compilation.run()
        assert found is not None
        self.interests.adopt(compilation, found)

    def restart(self) -> None:
        self.compiling = None
        stored = [(number, text.encode()) for number, text in sorted(self.texts.items())]
        self.interests = ArrayInterests(None, stored, self.last, self.limits, folder=self.folder)
        self.interests.set_aside(self.aside)

    def check(self, event: Callable[[], Event]) -> None:
        placed = self.interests.all_placed()
        assert sorted(one.node for one in placed) == sorted(self.there)
        seen: set[int] = set()
        for one in placed:
            assert set(one.parents) == parents_of(self.there, one.node)
            assert set(one.parents) <= seen
            seen.add(one.node)
        contents = [msgspec.json.encode(event()) for _ in range(6)]
        wanted = [*map(self.tag, contents)]
        for content, right in zip(contents, wanted, strict=True):
            assert sorted(self.interests.tag(content)) == right, content
        check_many(self.interests, contents, wanted, self.chance)

    def tag(self, content: bytes, but: Collection[int] = ()) -> list[int]:
        """The lowest nodes that match, as defined; without those that are set aside, and `but`."""
        event = msgspec.json.decode(content)
        found = {number for number, one in self.there.items() if one.matches(event)}
        return sorted(lowest(self.there, found - self.aside - {*but}))


def check_many(
    interests: ArrayInterests, contents: list[bytes], wanted: list[list[int]], chance: random.Random
) -> None:
    """Few are tagged one by one, more of them by columns; some of them are bad."""
    picked = [chance.randrange(-1, len(contents)) for _ in range(chance.choice([1, 30, 100, 300]))]
    if chance.random() < 0.5:  # rarely, so that columns have few rows that are left out
        picked = [at if at >= 0 or chance.random() < 0.1 else 0 for at in picked]
    while picked:
        # medium numbers are tagged either way, whatever this machine's costs are
        interests._tagging._batch_cost = chance.choice([0.0, 1.0])
        tagged = interests.tag_many([b"[" if at < 0 else contents[at] for at in picked])
        assert tagged.starts.dtype == tagged.nodes.dtype == np.dtype(np.int64)
        assert (tagged.starts[0], tagged.starts[-1]) == (0, len(tagged.nodes))
        count = len(tagged.starts) - 1
        assert 0 < count <= len(picked)
        found = [one.tolist() for one in np.split(tagged.nodes, tagged.starts[1:-1])]
        assert found == [[] if at < 0 else wanted[at] for at in picked[:count]]
        assert sorted(tagged.refused) == [row for row in range(count) if picked[row] < 0]
        assert all(isinstance(one, TidingsError) for one in tagged.refused.values())
        picked = picked[count:]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("draw", "run"),
    [
        *product((simple, plain, of_every_kind, wide), [0]),
        *(
            pytest.param(draw, run, marks=pytest.mark.slow)
            for draw, run in product((simple, plain, of_every_kind), (1, 2))
        ),
    ],
)
def test_against_filters_one_by_one(
    seed: int,
    run: int,
    draw: Callable[[random.Random], tuple[Callable[[], str], Callable[[], Event]]],
    tmp_path: Path,
) -> None:
    chance = random.Random(f"{seed} {draw.__name__} {run}")
    text, event = draw(chance)
    pair = Pair(chance, tmp_path / "interests")
    # wide filters take ten times as long
    for step in range(amount(48, 120) if draw is wide else 120):
        what = chance.random()
        if what < 0.1:  # perhaps it is placed later, when other nodes are there
            pair.interests.prepare([text().encode() for _ in range(3)])
        what = chance.random()
        if pair.there and what < 0.22:
            pair.remove()
        elif pair.there and what < 0.28:
            pair.turn_aside()
        elif what < 0.36:
            pair.compile()
        elif what < 0.4:
            pair.restart()
        else:
            try:
                pair.place(text())
            except FilterError:
                continue
        if step % 6 == 5:
            pair.check(event)


class JumpyClock:
    """Processor time that passes in jumps, each longer than a share, as on a starved machine."""

    def __init__(self, chance: random.Random, jumps: float) -> None:
        self._chance, self._jumps, self._now = chance, jumps, 0.0

    def thread_time(self) -> float:
        self._now += 1.0 if self._chance.random() < self._jumps else 1e-9
        return self._now

    def monotonic(self) -> float:
        return self.thread_time()


def tag_late(pair: Pair, content: bytes) -> bool:
    """Tag a notification; return whether that took too long."""
    with contextlib.suppress(TooMuchWork):
        fair = pair.interests.tag_fairly(content, lambda node: [f"{node % 3}"])
        assert sorted(fair.nodes) == pair.tag(content, fair.over), content
    try:
        assert sorted(pair.interests.tag(content)) == pair.tag(content), content
    except TooMuchWork:
        return True
    return False


def tag_many_late(pair: Pair, contents: list[bytes]) -> int:
    """Tag many notifications; return for how many that took too long."""
    late = 0
    while contents:
        found = pair.interests.tag_many(contents)
        for row, nodes in enumerate(np.split(found.nodes, found.starts[1:-1])):
            if row in found.refused:
                assert isinstance(found.refused[row], TooMuchWork)
                late += 1
            else:
                assert nodes.tolist() == pair.tag(contents[row]), contents[row]
        contents = contents[len(found.starts) - 1 :]
    return late


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("draw", [simple, of_every_kind])
def test_no_time_limit_drops_a_match(
    seed: int,
    draw: Callable[[random.Random], tuple[Callable[[], str], Callable[[], Event]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whenever the time is over, a notification is tagged exactly, or the caller is told that it is
    not. Only `tag_fairly` leaves filters out, and names them."""
    late = 0
    for round_ in draws(4, lambda: late > 10):
        chance = random.Random(f"{seed} {draw.__name__} {round_} late")
        text, event = draw(chance)
        pair = Pair(chance, tmp_path / f"{round_}", Limits())
        for _ in range(25):
            with contextlib.suppress(FilterError):
                pair.place(text())
        if chance.random() < 0.5:
            pair.compile()
            pair.compile()
        contents = [msgspec.json.encode(event()) for _ in range(40)]
        with monkeypatch.context() as patch:
            clock = JumpyClock(chance, chance.choice([0.01, 0.1, 0.5]))
            for module in (computing, tagging):
                patch.setattr(module, "time", clock)
            late += sum(tag_late(pair, content) for content in contents)
            late += tag_many_late(pair, contents)
    assert late


def test_what_is_refused() -> None:
    interests = ArrayInterests(Attributes({"n": "integer"}))
    assert interests.place(b"n > 3").node == 1
    assert interests.tag(b'{"n": 4}') == [1]
    for content in (b"[1]", b"{", b'{"n": 1e999}', b"\xff", b"[" * 100_000):
        with pytest.raises(TidingsError):
            interests.tag(content)
    for interest in (b"n >", b"m > 3", b"\xff"):
        with pytest.raises(TidingsError):
            interests.place(interest)
    assert interests.place(b"n  >  3").node == 1


def test_a_note_on_filters_that_can_never_match() -> None:
    interests = ArrayInterests(Attributes({"n": "integer"}, extra="open"))
    texts = [b"n > 3 AND n < 4", b"FALSE", b"x IS NULL OR x IS NOT NULL", b"TRUE", b"n > 3"]
    placed = [interests.place(text) for text in (*texts, *texts)]
    never = "the filter can never match: "
    assert [(one.note, one.never) for one in placed[:5]] == [
        (f"{never}no value of n, an integer, is both > 3 and < 4", True),
        (f"{never}it is FALSE", True),
        ("the filter matches every event, whatever the value of x is", False),
        ("", False),
        ("", False),
    ]
    assert [(one.note, one.never) for one in placed[5:]] == [
        (one.note, one.never) for one in placed[:5]
    ]


def test_equal_though_written_differently() -> None:
    """Each has a node, the higher number above; the lowest one is the tag."""
    interests = ArrayInterests()
    texts = [
        b"(x = 1 AND y < 5) OR (x IN (1, 2) AND y BETWEEN 5 AND 9)",
        b"(x = 1 AND y <= 9) OR (x = 2 AND y BETWEEN 5 AND 9)",
    ]
    assert interests.place(texts[0]).node == 1
    assert interests.place(texts[1]) == Placed(2, (), (1,))
    assert interests.tag(b'{"x": 1, "y": 3}') == [1]
    assert interests.remove(1) == 3  # a change has a number too
    assert interests.tag(b'{"x": 1, "y": 3}') == [2]
    assert interests.place(texts[0]) == Placed(4, (), (2,))
    assert interests.tag(b'{"x": 1, "y": 3}') == [2]


def test_a_start_takes_what_is_compiled(tmp_path: Path) -> None:
    """With other declared attributes, another filter under a number, or a damaged file, all are
    compiled again; the answers are the same."""
    folder = tmp_path / "interests"
    stored = [(n, b"a%d > %d AND b = %d" % (n % 7, n, n % 3)) for n in range(1, 2201)]
    first = ArrayInterests(None, stored, 2200, folder=folder)
    assert first._nodes.compiled is not None
    assert len(first._nodes.compiled) == 2200
    before = (folder / "manifest.json").stat()
    again = ArrayInterests(None, [*stored, (2201, b"a1 > 0")], 2201, folder=folder)
    assert (folder / "manifest.json").stat().st_mtime_ns == before.st_mtime_ns
    assert again.tag(b'{"a1": 5000, "b": 1}') == first.tag(b'{"a1": 5000, "b": 1}')
    assert again.make_placed(2201).children
    other = [*stored[1:], (1, b"c = 1")]
    changed = ArrayInterests(None, sorted(other), 2200, folder=folder)
    assert changed.text(1) == "c = 1"
    assert changed.tag(b'{"c": 1}') == [1]
    file = folder / "key_low.arrow"
    file.write_bytes(file.read_bytes()[:-8] + b"\0\1\2\3\4\5\6\7")
    repaired = ArrayInterests(None, stored, 2200, folder=folder)
    assert repaired.tag(b'{"a1": 5000, "b": 1}') == first.tag(b'{"a1": 5000, "b": 1}')
    declared = Attributes({f"a{n}": "integer" for n in range(6)} | {"b": "integer"})
    stricter = ArrayInterests(declared, stored, 2200, folder=folder)
    assert set(stricter.refused) == {n for n, _ in stored if n % 7 == 6}
    assert stricter.place(b"a1 > 1 AND b = 1").node == 1


def test_diagrams_of_wide_filters_come_from_the_process_that_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    def build(*_: object, **__: object) -> Diagrams:
        raise AssertionError("a diagram is built beside the event loop")

    monkeypatch.setattr(Diagrams, "build", build)
    chance = random.Random(seed)
    text, event = wide(chance)
    interests = ArrayInterests(folder=tmp_path / "interests")
    plain_text = plain(chance)[0]
    events = [msgspec.json.encode(event()) for _ in range(30)]
    for added in (40, 3):
        for _ in range(added):
            interests.place(text().encode())
            interests.place(plain_text().encode())
        before = [set(interests.tag(one)) for one in events]
        compilation = interests.begin_compilation()
        found = compilation.run()
        assert found is not None
        interests.adopt(compilation, found)
        wide_nodes = int((found.kinds == WIDE).sum())
        assert found.matcher.stats()["diagrams"] == wide_nodes > 10
        (sealed,) = found.matcher._state.parts
        assert sealed.is_linked
        assert [set(interests.tag(one)) for one in events] == before
        many = interests.tag_many(events * 4)
        spans = pairwise(many.starts.tolist())
        assert [set(many.nodes[slice(*span)].tolist()) for span in spans] == before * 4


@pytest.mark.usefixtures("here")
def test_the_process_that_compiles_gets_the_pass_rates_of_live_notifications(
    tmp_path: Path,
) -> None:
    interests = ArrayInterests(folder=tmp_path / "interests")
    clauses = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(8))
    shares: list[float] = []
    for letter in "xyz":
        interests.place(f"{clauses} AND (s = '{letter}' OR t = 1)".encode())
        compilation = interests.begin_compilation()
        for number in range(100):  # notifications that arrive before the process starts count too
            interests.tag(msgspec.json.encode({"s": "y" if number % 4 else "x"}))
        found = compilation.run()
        assert found is not None
        interests.adopt(compilation, found)
        measured = {
            test: seen_and_passed
            for sealed in found.matcher._state.parts
            if sealed.diagrams is not None
            for test, seen_and_passed in sealed.diagrams.read_measured().items()
        }
        shares += [
            passed / seen for test, (seen, passed) in measured.items()
            if test.term == "s" and "x" in str(test.values)
        ]  # fmt: skip
    assert shares == [0.25, 0.25]  # nothing was compiled, and so nothing measured, at first


@pytest.mark.usefixtures("here")
def test_a_start_after_many_new_nodes_compiles_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a snapshot was adopted; a few are placed."""
    monkeypatch.setattr(node_loading, "MANY", 20)
    stored = [(n, b"a > %d AND b = %d" % (n, n % 3)) for n in range(1, 101)]
    folder = tmp_path / "interests"
    for upto, compiled in ((40, 40), (50, 40), (70, 70), (91, 70), (100, 100)):
        now = ArrayInterests(None, stored[:upto], upto, folder=folder)
        assert now._nodes.compiled is not None
        assert len(now._nodes.compiled) == compiled
        fresh = ArrayInterests(None, stored[:upto], upto)
        for event in (b'{"a": 1000, "b": 1}', b'{"a": 45, "b": 0}'):
            assert now.tag(event) == fresh.tag(event)


@pytest.mark.usefixtures("here")
def test_a_start_prepares_what_is_not_compiled_in_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Another thread reads each of them once and looks it up, and their places are the same. One
    is invalid, and one has the place of an earlier group's."""
    monkeypatch.setattr(node_loading, "MANY", 20)
    monkeypatch.setattr(preparing, "GROUP", 7)
    text, event = simple(random.Random(seed))
    distinct = dict.fromkeys(text() for _ in range(500))  # what was read is kept by its text
    texts = dict(enumerate(islice(distinct, 79), 1))
    assert len(texts) == 79
    stored = [(number, one.encode()) for number, one in texts.items()]
    folder = tmp_path / "interests"
    assert ArrayInterests(None, stored[:60], 60, folder=folder)._nodes.compiled is not None
    stored.insert(70, (100, b"n >"))
    read: dict[str, list[bytes]] = {}
    parsed = Filters.parse

    def parse_here(self: Filters, interest: bytes) -> Filter:
        read.setdefault(threading.current_thread().name, []).append(interest)
        return parsed(self, interest)

    monkeypatch.setattr(Filters, "parse", parse_here)
    now = ArrayInterests(None, stored, 100, PATIENT, folder=folder)
    assert now._nodes.compiled is not None
    assert len(now._nodes.compiled) == 60
    assert [*now.refused] == [100]
    assert threading.current_thread().name not in read
    assert sorted(chain(*read.values())) == sorted(one for _, one in stored[60:])
    there = {number: parse(one) for number, one in texts.items()}
    for number in range(61, 80):
        assert set(now.make_placed(number).parents) == parents_of(there, number)
    for _ in range(30):
        given = event()
        matched = {number for number, one in there.items() if one.matches(given)}
        assert set(now.tag(msgspec.json.encode(given))) == lowest(there, matched)


def test_a_compilation_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    interests = ArrayInterests(folder=tmp_path / "interests")
    for number in range(10):
        interests.place(b"n > %d" % number)
    compilation = interests.begin_compilation()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert compilation.run() is None
    assert "could not be compiled" in caplog.text
    interests.place(b"n > 77")
    assert interests.tag(b'{"n": 50}') == [10]
    assert interests.tag(b'{"n": 78}') == [11]
    monkeypatch.undo()
    again = interests.begin_compilation()
    found = again.run()
    assert found is not None
    interests.adopt(again, found)
    assert len(found) == 11
    assert interests.tag(b'{"n": 78}') == [11]
    stopped = interests.begin_compilation()
    stopped.stop()
    assert stopped.run() is None
    assert [path.name for path in tmp_path.iterdir()] == ["interests"]


def test_what_is_wrong_with_a_filter_is_found_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    """To find it can take as long as to read a valid filter, and must not be done again in the
    event loop."""
    interests = ArrayInterests()
    read: list[bytes] = []
    parsed = Filters.parse

    def parse_once(self: Filters, interest: bytes) -> Filter:
        read.append(interest)
        return parsed(self, interest)

    monkeypatch.setattr(Filters, "parse", parse_once)
    for text in (b"n >", b"\xff", b"n > 1"):
        interests.prepare([text])
        if text == b"n > 1":
            assert interests.place(text).node == 1
        else:
            with pytest.raises(TidingsError):
                interests.place(text)
        assert read == [text]
        read.clear()
    with pytest.raises(TidingsError):
        interests.place(b"n >")  # without any preparation
    assert read == [b"n >"]
