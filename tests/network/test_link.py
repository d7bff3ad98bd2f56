"""Links: frames in pieces of any size, and ends that do not read."""

from __future__ import annotations

import asyncio
import random
import tracemalloc

import pytest
from tests.broker.fuzzing import frames_in_process

from tidings.network import Link
from tidings.network.link import HIGH_WATER, LINGER
from tidings.routing.protocol import frames, messages as m


class Wire(asyncio.Transport):
    """A transport to nowhere; the other end reads nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self.state = "open"

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    def get_write_buffer_size(self) -> int:
        return len(self.data)

    def is_closing(self) -> bool:
        return self.state != "open"

    def close(self) -> None:
        self.state = "closing"

    def abort(self) -> None:
        self.state = "aborted"


class Ends:
    """What a link tells."""

    def __init__(self, largest: int = frames.LARGEST) -> None:
        self.messages: list[m.Message] = []
        self.reasons: list[str] = []
        self.wire = Wire()
        self.link = Link(self.received, lambda _, why: self.reasons.append(why), largest=largest)
        self.link.connection_made(self.wire)

    def received(self, _: Link, buffer: bytes, starts: list[int]) -> None:
        self.messages += [frames.decode(buffer, start) for start in starts]


def test_frames_in_pieces(seed: int) -> None:
    chance = random.Random(seed)
    said: list[m.Message] = [
        m.Publish("p", n, 1, b"", chance.randbytes(chance.choice((0, 9, 3000)))) for n in range(300)
    ]
    data = b"".join(frames.encode(one) for one in said)
    ends = Ends()
    at = 0
    while at < len(data):
        size = chance.choice((1, 2, 5, 100, 5000))
        ends.link.data_received(data[at : at + size])
        at += size
    assert ends.messages == said
    assert ends.link.unfinished == 0


def test_channels_in_pieces(seed: int) -> None:
    """Every frame arrives with the number of its channel, however the bytes are cut; frames of one
    channel in a row share one switch, and channel 0 alone needs none."""
    chance = random.Random(seed)
    for _ in range(30):
        sender, found = Ends(), list[tuple[int, m.Message]]()
        said: list[tuple[int, m.Message]] = []
        switches = before = 0

        async def send(sender: Ends = sender, said: list[tuple[int, m.Message]] = said) -> None:
            for number, message in said:
                sender.link.send(message, number)
            await asyncio.sleep(0)

        for n in range(chance.randrange(40)):
            number = chance.choice((0, 0, 1, 7, 2**32 - 1))
            switches += number != before
            before = number
            message: m.Message = m.Publish("p", n, 1, b"", chance.randbytes(chance.choice((0, 9))))
            if chance.random() < 0.3:
                message = m.Notification(1, n + 1, (m.Mark(1, 1, (1,)),), b"x")
            said.append((number, message))
        asyncio.run(send())
        data = bytes(sender.wire.data)
        plain = b"".join(frames.encode(message) for _, message in said)
        assert len(data) == len(plain) + switches * frames.SWITCH_SIZE

        def received(
            link: Link, buffer: bytes, starts: list[int],
            found: list[tuple[int, m.Message]] = found,
        ) -> None:  # fmt: skip
            found += [(link.number, frames.decode(buffer, start)) for start in starts]

        receiver = Link(received, lambda *_: None)
        receiver.connection_made(Wire())
        at = 0
        while at < len(data):
            size = chance.choice((1, 2, 5, 100, 5000))
            receiver.data_received(data[at : at + size])
            at += size
        assert found == said
        assert receiver.unfinished == 0


def test_channels_are_told_of_what_they_missed() -> None:
    """A channel that missed notifications is told so before its next one; others are not."""

    async def work() -> list[tuple[int, m.Message]]:
        ends = Ends()
        one = m.Notification(1, 1, (m.Mark(1, 1, (1,)),), b"x")
        ends.link.most_waiting = 100
        for number in (1, 1, 2):
            ends.link.send(one, number)
        ends.link._flush()
        ends.link.most_waiting = 1 << 20
        for number in (2, 1):
            ends.link.send(one, number)
        ends.link._flush()
        found: list[tuple[int, m.Message]] = []

        def received(link: Link, buffer: bytes, starts: list[int]) -> None:
            found.extend((link.number, frames.decode(buffer, start)) for start in starts)

        other = Link(received, lambda *_: None)
        other.connection_made(Wire())
        other.data_received(bytes(ends.wire.data))
        return found

    found = [(number, type(message)) for number, message in asyncio.run(work())]
    assert found == [
        (1, m.Notification), (1, m.Notification), (2, m.Skipped), (2, m.Notification),
        (1, m.Notification),
    ]  # fmt: skip


def test_a_large_frame_in_small_pieces() -> None:
    """It takes its own size, not that of a Python object for each piece."""
    ends = Ends()
    frame = frames.encode(m.Publish("p", 1, 1, b"", b"x" * 200_000))
    tracemalloc.start()
    for at in range(0, len(frame) - 2, 2):
        ends.link.data_received(frame[at : at + 2])
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 2 * len(frame)
    assert not ends.messages
    ends.link.data_received(frame[ends.link.unfinished :])
    assert len(ends.messages) == 1


def test_a_stranger_is_listened_to_one_frame_at_a_time() -> None:
    ends = Ends(largest=100)
    ends.link.strange = True

    def greeted(link: Link, buffer: bytes, starts: list[int]) -> None:
        ends.received(link, buffer, starts)
        link.largest, link.strange = 10_000, False

    ends.link._received = greeted
    large = m.Publish("p", 1, 1, b"", b"x" * 5000)
    hello = frames.encode(m.Hello("somebody"))
    ends.link.data_received(hello + frames.encode(large) + hello[:3])
    assert ends.messages == [m.Hello("somebody"), large]
    assert (ends.link.unfinished, ends.reasons) == (3, [])


def test_a_stranger_that_begins_with_something_large() -> None:
    async def work() -> None:
        ends = Ends(largest=100)
        ends.link.strange = True
        frame = frames.encode(m.Publish("p", 1, 1, b"", b"x" * 5000))
        ends.link.data_received(frame[:50])
        short = Ends()
        short.link.strange = True
        short.link.data_received(b"\0\0\0\0\2\1\0")  # a frame of nothing
        assert short.link.bad
        size = len(frame) - 4  # without the size itself
        assert ends.reasons == [f"found a frame of {size:,} bytes, expected at most 100"]

    asyncio.run(work())


def test_ends_that_do_not_read() -> None:
    async def work() -> None:
        little, much = Ends(), Ends()
        little.link.send(m.Which(1))
        much.link.send(m.Ask(1, b"x" * (HIGH_WATER + 1)))
        await asyncio.sleep(0)
        little.link.close("enough")
        much.link.close("enough")
        assert (little.wire.state, much.wire.state) == ("closing", "aborted")
        loop = asyncio.get_running_loop()
        due = [one.when() for one in loop._scheduled]  # type: ignore[attr-defined]
        assert len(due) == 1
        assert abs(due[0] - loop.time() - LINGER) < 1

    asyncio.run(work())


def test_a_link_that_is_ended_before_it_is_made() -> None:
    reasons: list[str] = []
    link = Link(lambda *_: None, lambda _, why: reasons.append(why))
    link.close("too many")
    wire = Wire()
    link.connection_made(wire)
    assert (wire.state, reasons) == ("aborted", ["too many"])


def from_below(_: Link, buffer: bytes, starts: list[int]) -> None:
    for start in starts:
        frames.decode_from_below(buffer, start)


def refuse_all(seed: int, count: int) -> None:
    async def work() -> None:
        for kind, data in frames_in_process(random.Random(seed), count):
            ends = Ends()
            ends.link._received = from_below
            ends.link.data_received(data)
            assert len(ends.reasons) == 1, (kind, data)
            assert ends.link.bad
            ends.wire.data.clear()

    asyncio.run(work())


def test_bad_frames(seed: int) -> None:
    refuse_all(seed, 3000)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_million_bad_frames(seed: int) -> None:
    refuse_all(seed, 1_000_000)
