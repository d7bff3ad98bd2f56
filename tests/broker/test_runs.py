"""Publications that are processed many at a time, against the same publications one by one:
journal, marks, counts, stamps, answers and forwarded notifications; frames against the usual
decoder."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from tests.broker.parts import Root
from tests.broker.run_cases import CASES, EXTRAS, UNDECLARED, Content, draw_case, random_content
from tests.broker.test_backlog import FakeLink, turns_until
from tests.repeats import draws

from tidings.broker.links import Lane
from tidings.broker.queues.publications import Publications
from tidings.channel.interests import ArrayInterests, ExtraFields, computing, tagging
from tidings.channel.interests.computing import Computing
from tidings.channel.interests.tagging import Tagging
from tidings.filters import Attributes
from tidings.model import TidingsError
from tidings.preprocessing import EventColumns
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.contents.envelopes import MAGIC
from tidings.routing.protocol.limits import NONE, Limits
from tidings.routing.root import Block, Rendezvous, Run, TaggedMany, find_runs, join_runs
from tidings.routing.root.publishing import root_tagger
from tidings.routing.root.rendezvous import RETIRED
from tidings.routing.root.runs import run as run_module, run_intake
from tidings.store.journal.mark_index import MOST_RECENT


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs are matched as batches too."""
    monkeypatch.setattr(tagging, "MOST", 8)


Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class LimitedRoot(Root):
    """A rendezvous point with limits, whose client wants every node."""

    def __init__(self, folder: Path, limits: Limits, attributes: Attributes | None = None) -> None:
        self.limits = limits
        super().__init__(folder, attributes)

    def open(self) -> None:
        super().open()
        memory = self.journal.memory(self.interests.all_placed())
        stored, base = self.journal.interests(), self.journal.history.base
        interests = ArrayInterests(self.attributes, stored, base, self.limits)
        self.interests = interests
        self.machine = Rendezvous("root", interests, self.journal, memory, limits=self.limits)

    def want(self, text: str) -> list[m.Message]:
        """Subscribe to a filter; return everything that is answered. Nodes that were set aside are
        removed first: otherwise, each message removes some, and gives the next node its number."""
        found = self.sync()
        self.machine.set_aside.retire(RETIRED[1])
        found += [*self.say(m.Ask(1, text.encode(), "somebody")), *self.sync()]
        nodes = tuple(one.node for one in found if isinstance(one, m.Answer) and one.node)
        return [*found, *self.say(m.Subscribe(self.machine.epoch, nodes))]


def say_runs(root: Root, buffer: bytes) -> list[m.Message]:
    """Pass the frames of a buffer to a rendezvous point, as runs where there are some."""
    starts, end = frames.split(buffer)
    assert end == len(buffer)
    found: list[m.Message] = []
    for at, run in find_runs(buffer, starts):
        if run is None:
            found += root.say(frames.decode_from_below(buffer, starts[at]))
            continue
        while not run.is_done:
            before = run.rows.done
            found += root.say(run)
            assert run.rows.done > before
    return found


def random_frames(
    chance: random.Random,
    stamps: dict[str, int],
    count: int,
    content: Content = random_content,
) -> list[m.Message]:
    """Publications of several publishers, mostly in order; some repeated, early or odd."""
    found: list[m.Message] = []
    while len(found) < count:
        who = chance.choice([*stamps])
        for _ in range(chance.choice([1, 3, 12, 40])):
            odd = chance.random()
            step = 1 if odd < 0.97 else chance.choice([-3, 0, 2])
            stamp = max(1, stamps[who] + step)
            if step == 1:
                stamps[who] = stamp
            first = chance.randrange(max(1, stamp - 5), stamp + 1)
            if chance.random() < 0.01:
                first = stamp + 1
            payload = chance.randbytes(chance.choice([0, 5, 300, 70_000 if odd < 0.01 else 9]))
            if chance.random() < 0.1:
                payload = MAGIC + payload
            told: tuple[bool, str, int] = False, "", 0
            if chance.random() < 0.8:
                subject = chance.choice(["", "news/eu", "x" * 40, "é", "s" * 300])
                told = chance.random() < 0.5, subject, chance.choice([0, 5, 200, 10**6, 10**15])
            found.append(m.Publish(who, stamp, first, content(chance), payload, *told))
        if chance.random() < 0.1:
            found.append(m.Trace(len(found) + 1))
    return found


@pytest.mark.parametrize("kind", ["limits", *CASES])
def test_the_same_as_one_by_one(
    kind: str, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    for module in (root_tagger, run_intake):
        monkeypatch.setattr(module, "LARGEST", 60_000)
    problems: list[Exception] = []
    tag_many = ArrayInterests.tag_many

    def noted(self: ArrayInterests, contents: Sequence[bytes]) -> TaggedMany:
        try:
            return tag_many(self, contents)
        except Exception as problem:  # the publications would then be tagged one by one
            problems.append(problem)
            raise

    monkeypatch.setattr(ArrayInterests, "tag_many", noted)
    limits = Limits(marks=2, matches=3) if kind == "limits" else NONE
    limits = msgspec.structs.replace(limits, content_bytes=300)
    case = draw_case("plain" if kind == "limits" else kind, chance)
    one, many = (LimitedRoot(tmp_path / name, limits, case.attributes) for name in ("one", "many"))
    stamps = {"ann/1": 0, "bob/1": 0, "cy": 0}
    blocks = 0
    for step in draws(12, lambda: blocks or kind == "one by one"):
        for text in chance.sample(case.texts, 4) if step < 6 else ():
            assert one.want(text) == many.want(text)
        if chance.random() < 0.3:
            many.interests.seal_recent()  # so that some filters are matched with columns
        if chance.random() < 0.3:  # publishers repeat what was not acknowledged
            stamps |= one.machine.stamps.known
        messages = random_frames(chance, stamps, chance.choice([5, 50, 400]), case.content)
        expected = [answer for message in messages for answer in one.say(message)]
        found = say_runs(many, b"".join(map(frames.encode, messages)))
        blocks += sum(isinstance(waiting, Block) for waiting in many.machine.queue.records)
        assert [*_apart(found)] == [*_apart(expected)]
        if chance.random() < 0.7:
            assert many.sync() == one.sync()
    assert many.sync() == one.sync()
    assert blocks or kind == "one by one", "nothing was taken many at a time"
    assert not problems
    _are_alike(one, many)
    one.restart()
    many.restart()
    _are_alike(one, many)


def _apart(sent: list[m.Message]) -> Iterator[m.Message]:
    """Refusals of nodes one by one: those of one turn are sent together."""
    for one in sent:
        if isinstance(one, m.Refuse):
            yield from (m.Refuse(one.epoch, (node,)) for node in one.nodes)
        else:
            yield one


def _are_alike(one: Root, many: Root) -> None:
    records = [
        [msgspec.structs.replace(row, matched=tuple(sorted(row.matched))) for row in root.records()]
        for root in (one, many)
    ]
    assert records[0] == records[1]
    for name in ("counts", "totals", "latest", "given_counts", "given"):
        assert getattr(one.machine.counts, name) == getattr(many.machine.counts, name), name
    assert one.machine.stamps.__dict__ == many.machine.stamps.__dict__
    states = [root.journal._catch_up() for root in (one, many)]
    for name in ("serial", "last_node", "nodes", "counters", "publishers"):
        assert getattr(states[0], name) == getattr(states[1], name), name


def test_what_is_not_written_is_refused(tmp_path: Path) -> None:
    one, many = (LimitedRoot(tmp_path / name, NONE) for name in ("one", "many"))
    messages = [m.Publish("p", stamp, 1, b'{"n": 3}', b"x") for stamp in range(1, 40)]
    for root in (one, many):
        root.want("n > 2")
    for message in messages:
        one.say(message)
    say_runs(many, b"".join(map(frames.encode, messages)))
    answers = [[sent for _, sent in root.machine.fail("the disk is full")] for root in (one, many)]
    assert answers[0] == answers[1]
    assert len(answers[0]) == 39
    assert one.machine.stamps.__dict__ == many.machine.stamps.__dict__
    again = [m.Publish("p", stamp, 1, b'{"n": 3}', b"x") for stamp in range(1, 40)]
    expected = [answer for message in again for answer in one.say(message)]
    assert say_runs(many, b"".join(map(frames.encode, again))) == expected


def test_frames_as_the_usual_decoder_reads_them(seed: int) -> None:
    """Also damaged ones: every frame comes once, in order, and runs have what the decoder finds."""
    chance = random.Random(seed)
    runs = damaged = 0
    for _ in draws(150, lambda: runs > 1000 and damaged > 50):
        stamps = {"ann/1": chance.choice([0, 100, 2**20, 2**40, 2**62]), "é" * 40: 0, "x" * 300: 0}
        data = bytearray(b"".join(map(frames.encode, random_frames(chance, stamps, 60))))
        starts, _ = frames.split(bytes(data))
        for _ in range(chance.choice([0, 0, 3])):
            start = chance.choice(starts)
            at = start + 6 + chance.randrange(min(40, frames.size_at(data, start) - 6))
            data[at] = chance.randrange(256)
            damaged += 1
        buffer, seen = bytes(data), 0
        for at, run in find_runs(buffer, starts):
            assert at == seen
            seen += 1 if run is None else len(run)
            for row in range(0 if run is None else len(run)):
                assert run is not None
                assert run.message(row) == frames.decode_from_below(buffer, starts[at + row])
                runs += 1
        assert seen == len(starts)
    assert runs > 1000
    assert damaged > 50


def test_runs_are_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MOST_ROWS", 50)
    monkeypatch.setattr(run_module, "BYTES", 10_000)
    sizes = [10] * 120 + [900] * 30 + [40_000] * 3
    given = [m.Publish("p", 1 + at, 1, b"{}", bytes(size)) for at, size in enumerate(sizes)]
    buffer = b"".join(map(frames.encode, given))
    found = [run for _, run in find_runs(buffer, frames.split(buffer)[0]) if run is not None]
    assert [one.message(row) for one in found for row in range(len(one))] == given
    assert max(map(len, found)) == 50
    assert all(one.size <= 10_000 or len(one) == 1 for one in found)


def test_joined_runs(seed: int) -> None:
    """What is left of runs, in order, also of several buffers."""
    chance = random.Random(seed)
    for _ in range(20):
        runs, expected = list[Run](), list[m.Publish]()
        for _ in range(chance.randrange(1, 5)):
            given = [m.Publish("p", chance.randrange(1, 2**40), 1, random_content(chance),
                               chance.randbytes(chance.randrange(300)))
                     for _ in range(chance.randrange(8, 30))]  # fmt: skip
            noise = [m.Trace(1)] * chance.randrange(3)
            buffer = b"".join(map(frames.encode, [*noise, *given, *noise]))
            starts, _ = frames.split(buffer)
            (run,) = (run for _, run in find_runs(buffer, starts) if run is not None)
            run.rows.done = chance.randrange(len(run) + 1) if runs else chance.randrange(len(run))
            runs.append(run)
            expected += given[run.rows.done :]
        joined = join_runs(runs)
        first = joined.rows.done
        assert [joined.message(at) for at in range(first, len(joined))] == expected
        contents = [one.content for one in expected]
        assert joined.contents(first, len(joined)) == contents


@pytest.mark.parametrize("name", CASES)
def test_tags_of_many_against_tags_of_each(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through changes, with nodes set aside; tags, refusals and the counts of undeclared fields."""
    chance = random.Random(seed)
    computed = 0
    match_batch = Computing.match_batch

    def noted(self: Computing, batch: pa.RecordBatch, seconds: float) -> Pairs | None:
        nonlocal computed
        found = match_batch(self, batch, seconds)
        computed += found is not None and len(found[0]) > 0
        return found

    monkeypatch.setattr(Computing, "match_batch", noted)
    # otherwise, what is computed together depends on how busy the machine is
    monkeypatch.setattr(tagging, "COMPUTED", 10.0)
    monkeypatch.setattr(computing, "PAUSE", 0.0)
    for together in (-1.0, 1000.0):
        monkeypatch.setattr(tagging, "TOGETHER", together)
        case = draw_case(name, chance)
        counts = ExtraFields(), ExtraFields()
        limits = Limits(content_bytes=300, match_millis=3_600_000)
        many, one = (ArrayInterests(case.attributes, limits=limits, extra=one) for one in counts)
        there: list[int] = []
        for step in range(60):
            text = chance.choice(case.texts).encode()
            there.append(many.place(text).node)
            assert one.place(text).node == there[-1]
            if chance.random() < 0.1:
                many.seal_recent()  # so that some filters are matched with columns
            if step % 7 == 3:
                aside = [chance.choice(there)]
                many.set_aside(aside)
                one.set_aside(aside)
            contents = [case.content(chance) for _ in range(chance.choice([1, 20, 100]))]
            done = 0
            while done < len(contents):
                found = many.tag_many(contents[done:])
                rows = len(found.starts) - 1
                assert rows > 0
                for at, expected in enumerate(_each(one, contents[done : done + rows])):
                    tag = found.nodes[found.starts[at] : found.starts[at + 1]].tolist()
                    refused = str(found.refused[at]) if at in found.refused else ""
                    assert (tag, refused) == expected, contents[done + at]
                done += rows
            assert counts[0] == counts[1]
    assert computed > 5 or name not in ("computing", "declared, computing")


NOT_TOGETHER = ("nested", "changing", "one by one")


@pytest.mark.parametrize("name", [one for one in CASES if one not in NOT_TOGETHER])
def test_what_is_tagged_together(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One filter that computes, or declared attributes, must not turn batches off."""
    chance, batches = random.Random(seed), 0
    tag_batch = Tagging._tag_batch

    def noted(self: Tagging, contents: list[bytes]) -> TaggedMany | None:
        nonlocal batches
        found = tag_batch(self, contents)
        batches += found is not None
        return found

    monkeypatch.setattr(Tagging, "_tag_batch", noted)
    for extra in EXTRAS:
        case = draw_case(name, chance)._replace(extra=extra)
        if name == "undeclared fields" and extra == "refuse":
            continue  # most of the notifications are refused
        interests = ArrayInterests(case.attributes)
        for text in case.texts if extra == "open" else set(case.texts) - {*UNDECLARED}:
            interests.place(text.encode())
        before = batches
        for _ in range(20):
            interests.tag_many([case.content(chance) for _ in range(200)])
        assert batches - before > 10, extra  # by chance, too many of a batch can be odd


def test_an_odd_notification_comes_first() -> None:
    """It must not determine the columns for ever."""
    columns = EventColumns()
    contents = [b'{"word": "a", "n": 1}'] * 100
    assert columns.read([b'{"word": 3, "n": "x"}'] * 100) is not None
    assert any(columns.read(contents) is not None for _ in range(5))
    found = columns.read(contents)
    assert found is not None
    assert not found.odd


def test_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher whose notifications each have other attributes does not make the columns be built
    again and again, and others are still read."""
    built: list[int] = []
    learn = EventColumns._learn

    def noted(self: EventColumns, kinds: dict[str, type]) -> None:
        built.append(len(kinds))
        learn(self, kinds)

    monkeypatch.setattr(EventColumns, "_learn", noted)
    columns, good = EventColumns(), [b'{"n": 1}'] * 100
    assert columns.read(good) is not None
    built.clear()
    for at in range(60):
        assert columns.read([b'{"name%d": 1}' % (1000 * at + one) for one in range(1000)]) is None
    assert built == [0] * 4  # after 4, 12, 28 and 60 failures
    assert columns.read(good) is not None
    # the names of a whole batch are learned at once, and the wait is short again
    assert columns.read([b'{"name%d": null, "n": 2}' % (at % 200) for at in range(1000)])
    assert built[4:] == [1, 201]
    for _ in range(4):
        assert columns.read([b'{"n": "x"}'] * 100) is None
    assert built[6:] == [0]


def test_filters_that_compute_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are matched notification by notification, and the batch ends when that takes too
    long."""
    interests = ArrayInterests()
    interests.place(b"length(word) > 1")
    interests.place(b"n = 1")
    contents = [b'{"n": 0}'] * 50 + [b'{"n": 1, "word": "ab"}'] * 50
    monkeypatch.setattr(tagging, "TOGETHER", -1.0)
    monkeypatch.setattr(tagging, "COMPUTED", 1e-6)
    found = interests.tag_many(contents)
    assert len(found.starts) - 1 == 51  # only the last of these was computed
    assert found.nodes.tolist() == [1, 2]
    assert found.starts.tolist() == [0] * 51 + [2]
    monkeypatch.setattr(tagging, "TOGETHER", 1000.0)
    assert len(interests.tag_many(contents).starts) - 1 < 100  # not tried again so soon
    monkeypatch.setattr(interests._nodes.computing, "_next_try", 0.0)
    interests.tag_many(contents)  # only a few, because they took so long before
    assert interests.tag_many(contents).nodes.tolist() == [1, 2] * 50


def _each(interests: ArrayInterests, contents: list[bytes]) -> Iterator[tuple[list[int], str]]:
    for content in contents:
        try:
            yield sorted(interests.tag(content)), ""
        except TidingsError as problem:
            yield [], str(problem)


def test_the_rest_of_a_slow_run_waits_for_others() -> None:
    """A run that is not done goes to the back, before what its publisher sent after it."""

    async def work() -> None:
        taken: list[tuple[str, int]] = []

        def take(_: Lane, message: m.Publish | Run) -> None:
            if isinstance(message, Run):
                taken.append((message.publisher, int(message.rows.columns[message.rows.done, 2])))
                message.rows.done += 10
            else:
                taken.append((message.publisher, message.stamp))

        publications = Publications(take, lambda: None)
        slow, other = cast(Lane, FakeLink()), cast(Lane, FakeLink())
        given = [m.Publish("slow", 1 + at, 1, b"{}", b"") for at in range(40)]
        buffer = b"".join(map(frames.encode, given))
        for _, run in find_runs(buffer, frames.split(buffer)[0]):
            assert run is not None
            publications.put(slow, run)
        publications.put(slow, m.Publish("slow", 41, 1, b"{}", b""))
        publications.put(other, m.Publish("other", 1, 1, b"{}", b""))
        await turns_until(lambda: not len(publications))
        assert [stamp for name, stamp in taken if name == "slow"] == [1, 11, 21, 31, 41]
        assert taken.index(("other", 1)) <= 2
        assert publications.count == 42

    asyncio.run(work())


def test_many_runs_that_match_nothing(tmp_path: Path) -> None:
    """They are acknowledged, and what matches later is found in the journal."""
    root = LimitedRoot(tmp_path, NONE)
    root.want("n > 2")
    stamp = 0
    for turn in range(MOST_RECENT + 2):
        value = 3 if turn > MOST_RECENT else 1
        given = [m.Publish("p", stamp + at, 1, b'{"n": %d}' % value, b"x") for at in range(1, 13)]
        stamp += len(given)
        found = [*say_runs(root, b"".join(map(frames.encode, given))), *root.sync()]
        stamps = [one.stamp for one in found if isinstance(one, m.Published)]
        assert max(stamps) == stamp
    assert len(root.journal.find([m.Range(1, 1, 100)])[0]) == 12


def test_interests_that_fail_or_stop_early(tmp_path: Path) -> None:
    one, many = (LimitedRoot(tmp_path / name, NONE) for name in ("one", "many"))
    for root in (one, many):
        root.want("n > 2")
    tag_many = many.interests.tag_many
    calls = 0

    def stop(contents: list[bytes]) -> TaggedMany:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise ValueError("a bug")
        return tag_many(contents[:11])

    many.interests.tag_many = stop  # type: ignore[method-assign, assignment]
    given = [m.Publish("p", at, 1, b'{"n": %d}' % (at % 5), b"x") for at in range(1, 200)]
    for message in given:
        one.say(message)
    say_runs(many, b"".join(map(frames.encode, given)))
    assert many.sync() == one.sync()
    _are_alike(one, many)
    assert calls > 5
