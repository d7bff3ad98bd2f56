"""Frames: decoding reverses encoding; all other bytes are refused, and nothing crashes."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, strategies as st
from tests.decoding import decode_all
from tests.repeats import draws

from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.frames import FrameError

numbers = st.integers(0, 2**63 - 1)
labels = st.lists(numbers, max_size=4).map(tuple)
marks = st.builds(m.Mark, numbers, numbers, labels)
some_marks = st.lists(marks, max_size=4).map(tuple)
notifications = st.builds(
    m.Notification,
    numbers,
    numbers,
    some_marks,
    st.binary(max_size=40),
    st.text(max_size=8),
    numbers,
)
slices = st.builds(m.Slice, numbers, st.integers(1, 2**63 - 1))
edges = st.builds(m.Edges, slices, numbers)
digests = st.builds(m.Digest, numbers, numbers)
ranges = st.lists(st.builds(m.Range, numbers, numbers, numbers), max_size=3).map(tuple)
tables = st.dictionaries(numbers, numbers, max_size=3)
steps = st.lists(
    st.builds(m.Step, numbers, numbers, numbers, numbers, tables, tables, tables), max_size=2
).map(tuple)
others = st.one_of(
    st.builds(m.Subscribe, numbers, labels),
    st.builds(m.Resubscribe, numbers, digests, numbers),
    st.builds(m.Redraw, numbers),
    st.builds(m.Ask, numbers, st.binary(max_size=9), was=numbers),
    st.builds(m.Recover, numbers, numbers, ranges),
    st.builds(m.Publish, st.text(max_size=5), numbers, numbers, st.binary(), st.binary(),
              tag=st.binary(max_size=40)),
    st.builds(m.Setup, numbers, numbers, labels, labels, numbers, numbers),
    st.builds(m.Beat, numbers, numbers, tables, digests, numbers, st.none() | edges, numbers,
              st.booleans()),
    st.builds(m.Graph, numbers, numbers, st.dictionaries(numbers, labels, max_size=3), tables),
    st.builds(m.Answer, numbers, numbers, numbers, numbers, numbers, tables, st.text(max_size=5)),
    st.builds(m.Answer, numbers, numbers, steps=steps),
    st.builds(m.Resumption, numbers, numbers, numbers, numbers, tables, steps=steps, term=numbers,
              upto=numbers, gaps=labels),
    st.builds(m.Resume, numbers, numbers, st.text(max_size=5), numbers, st.binary(max_size=9)),
    st.builds(m.Confirm, numbers, numbers, st.text(max_size=5), numbers, numbers, tables,
              st.booleans(), term=numbers, upto=numbers, gaps=labels),
    st.builds(m.Confirmed, numbers, numbers, st.text(max_size=5), st.booleans()),
    st.builds(m.Recovered, numbers, numbers, st.lists(notifications, max_size=2).map(tuple)),
    st.builds(m.Settled, numbers, numbers, ranges),
    st.builds(m.Published, numbers, st.text(max_size=5), numbers, st.text(max_size=5), numbers,
              numbers, numbers, numbers),
    st.builds(m.Trace, numbers),
    st.builds(m.Present, numbers, st.binary(max_size=90)),
    st.builds(m.Presented, numbers, st.text(max_size=5)),
    st.builds(m.Propose, numbers, st.binary(max_size=9), st.text(max_size=5), st.booleans()),
    st.builds(m.Proposed, numbers, numbers, numbers, numbers, st.text(max_size=5), st.binary()),
    st.builds(m.Describe, numbers),
    st.builds(m.Subscribe, numbers, labels, st.booleans()),
    st.builds(m.Locate, numbers, labels, numbers),
    st.builds(m.Identify, numbers),
    st.builds(m.Inspect, numbers),
    st.builds(m.Inspected, numbers, st.text(max_size=5), st.text(max_size=5), numbers, numbers,
              numbers, numbers, numbers,
              st.lists(st.builds(m.LearntNode, st.binary(max_size=9), st.text(max_size=5), numbers,
                                 numbers), max_size=2).map(tuple), st.just(""),
              st.none() | st.builds(
                  m.LearntBy, *[st.floats(0, 9)] * 2,
                  st.dictionaries(st.text(max_size=5), st.floats(0, 1), max_size=2),
                  *[st.floats(0, 9)] * 3, numbers, numbers, *[st.floats(0, 9)] * 2,
                  st.binary(max_size=16)),
              st.lists(st.builds(m.LearntTopic, st.binary(max_size=9), st.text(max_size=5),
                                 st.floats(0, 9), numbers), max_size=2).map(tuple)),
    st.builds(m.Advise, numbers),
    st.builds(m.Advised, numbers, numbers,
              st.lists(st.builds(m.RouterLoad, st.text(max_size=5), numbers, numbers, numbers,
                                 numbers, st.text(max_size=5)), max_size=3).map(tuple)),
    st.builds(m.Identified, numbers, st.binary(max_size=90), st.text(max_size=5)),
    st.builds(m.Located, numbers, numbers, numbers,
              st.lists(st.builds(m.NodePlace, numbers, labels, labels), max_size=3).map(tuple)),
    st.builds(m.Follow, numbers, numbers, numbers, numbers, numbers),
    st.builds(m.HandOver, st.text(max_size=5), numbers, numbers, st.booleans(), numbers, numbers,
              st.binary(), st.binary(), st.binary(), st.binary()),
    st.builds(m.Described, numbers, numbers, st.text(max_size=5), numbers,
              st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
              st.text(max_size=5), st.text(max_size=5)),
    st.builds(m.Changed, numbers, numbers, numbers, numbers, st.booleans(),
              st.lists(st.builds(m.NodeChange, numbers, numbers, st.none() | st.text(max_size=5)),
                       max_size=3).map(tuple), st.booleans(), st.text(max_size=5)),
    st.builds(m.Taken, numbers, st.text(max_size=5), numbers, numbers, st.text(max_size=5),
              st.booleans(), numbers),
    st.builds(m.Lineage, numbers, numbers,
              st.lists(st.builds(m.Life, numbers, numbers), max_size=3).map(tuple)),
)  # fmt: skip


@given(st.lists(notifications | others, max_size=5), st.binary(max_size=5))
def test_what_is_written_is_read(given_: list[m.Message], rest: bytes) -> None:
    whole = b"".join(map(frames.encode, given_))
    assert list(decode_all(whole)) == given_
    starts, end = frames.split(whole + (frames.encode(m.Redraw(1)) + rest)[:5])
    assert (len(starts), end) == (len(given_), len(whole))


@given(notifications, st.data())
def test_other_labels(given_: m.Notification, data: st.DataObject) -> None:
    whole = frames.encode(given_)
    front = frames.front_of(whole, 0)
    kept = [at for at in range(len(given_.marks)) if data.draw(st.booleans())]
    new = [data.draw(labels) for _ in kept]
    changed = frames.relabel(whole, front, kept, frames.encode_labels(new))
    expected = tuple(
        given_.marks[at]._replace(label=label) for at, label in zip(kept, new, strict=True)
    )
    assert frames.decode(changed) == m.Notification(
        given_.epoch, given_.serial, expected, given_.payload, given_.publisher, given_.stamp
    )


def test_what_is_refused() -> None:
    good = frames.encode(m.Redraw(1))
    with pytest.raises(FrameError, match=f"kind 9 and version {frames.VERSION}"):
        frames.split(good[:4] + b"\x09" + good[5:])
    with pytest.raises(FrameError, match="of kind 2 and version 200"):
        frames.split(good[:5] + b"\xc8" + good[6:])
    with pytest.raises(
        FrameError, match=f"version 2 of the protocol, expected version {frames.VERSION}; "
    ):
        frames.split(good[:5] + b"\x02" + good[6:])
    with pytest.raises(FrameError, match="found a frame of 1,000 bytes, expected at most 999"):
        frames.split(struct.pack("<IBB", 1000, 2, frames.VERSION), largest=999)
    with pytest.raises(FrameError, match="can't be read"):
        frames.decode(struct.pack("<IBB", 3, 2, frames.VERSION) + b"x")
    assert frames.split(good[:5]) == ([], 0)


def test_random_and_mutated_bytes(seed: int) -> None:
    """Any bytes are messages or refused, and take no more than they are long."""
    chance = random.Random(seed)
    mark = m.Mark(3, 4, (3, 5))
    seeds = [
        frames.encode(m.Notification(1, 2, (mark, mark), b"payload", "me", 9)),
        frames.encode(m.Beat(1, 2, {3: 4}, m.Digest(1, 2), 4)),
        frames.encode(m.Publish("p", 1, 1, b"{}", b"x")),
        frames.encode(m.HandOver("s", 1, 0, True, 1, 2, bytes(16), b"", bytes(16), b"")),
        frames.encode(m.Changed(1, 2, 3, 4, True, (m.NodeChange(4, 4, "x > 1"),))),
    ]
    refused = 0
    for _ in draws(60_000, lambda: refused > 1000):
        if chance.random() < 0.2:
            data = chance.randbytes(chance.randrange(60))
        else:
            mutated = bytearray(chance.choice(seeds))
            for _ in range(chance.randrange(1, 4)):
                mutated[chance.randrange(len(mutated))] = chance.randrange(256)
            data = bytes(mutated[: chance.choice((len(mutated), chance.randrange(len(mutated))))])
        try:
            list(decode_all(data))
        except FrameError:
            refused += 1
    assert refused > 1000


def test_switches() -> None:
    """A scan stops before a switch; a split refuses it, as it does frames of other versions."""
    first, rest = frames.encode(m.Redraw(1)), frames.encode(m.Redraw(2))
    data = first + frames.encode_switch(7) + rest
    assert frames.scan(data, 0) == ([0], len(first))
    assert frames.switch_at(data, len(first)) == 7
    after = len(first) + frames.SWITCH_SIZE
    assert frames.scan(data, after) == ([after], len(data))
    assert frames.switch_at(data[: after - 1], len(first)) is None
    assert frames.switch_at(data, 0) is None
    with pytest.raises(FrameError, match="a switch to another channel, expected frames"):
        frames.split(data)
    old = first[:5] + b"\x07" + first[6:]
    with pytest.raises(
        FrameError, match=f"version 7 of the protocol, expected version {frames.VERSION}; use the"
    ):
        frames.scan(old, 0)
    wrong = struct.pack("<IBB", 8, frames.SWITCH, frames.VERSION) + bytes(6)
    with pytest.raises(FrameError, match=f"kind 3 and version {frames.VERSION}, expected kinds"):
        frames.scan(wrong, 0)
