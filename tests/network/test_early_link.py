"""Bodies that are sent early over a link, against the same frames without them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator

import pytest
from tests.network.test_link import Wire
from tests.repeats import rounds

from tidings.network import Link, scanning
from tidings.network.link import MOST_BEFORE_EARLY
from tidings.routing.early import (
    LARGEST_BODY,
    LEAST_BODY,
    MOST_BODIES,
    MOST_BYTES,
    Early,
    KeptBodies,
    SentBodies,
    SharedBodies,
    decode_early,
    encode_early,
)
from tidings.routing.protocol import frames, messages as m

Told = tuple[int, m.Message]


class Receiver:
    """The lower end of a link: what came, in which channel."""

    def __init__(self, *, takes_early: bool = True) -> None:
        self.told: list[Told] = []
        self.early: list[Early] = []
        self.reasons: list[str] = []
        self.link = Link(
            self._receive,
            lambda _, why: self.reasons.append(why),
            early=(lambda _, one: self.early.append(one)) if takes_early else None,
        )
        self.link.connection_made(Wire())

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        self.told += [(link.number, frames.decode(buffer, start)) for start in starts]


def make_sender() -> tuple[Link, Wire]:
    link, wire = Link(lambda *_: None, lambda *_: None), Wire()
    link.connection_made(wire)
    return link, wire


def cut(data: bytes, chance: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = chance.choice((1, 7, 100, 5_000, 100_000))
        yield data[at : at + size]
        at += size


def receive(link: Link, pieces: Iterable[bytes]) -> None:
    async def feed() -> None:
        for piece in pieces:
            if not link.is_over:
                link.data_received(piece)

    asyncio.run(feed())


def draw_notification(chance: random.Random, stamp: int) -> m.Notification:
    marks = tuple(
        m.Mark(chance.randrange(1, 9), stamp, (1,) * chance.randrange(3))
        for _ in range(chance.randrange(3))
    )
    size = chance.choice((0, 30, LEAST_BODY, 3_000, 40_000))
    return m.Notification(7, stamp, marks, chance.randbytes(size), chance.choice("pqr"), stamp)


def early_of(told: m.Notification, chance: random.Random) -> Early:
    context = chance.randbytes(chance.randrange(60))
    return Early(
        chance.randrange(9), chance.random(), context, told.publisher.encode(), told.stamp,
        told.payload,
    )  # fmt: skip


def test_same_frames(seed: int) -> None:
    """Whatever was sent early, in whatever order, all frames arrive as without it, and both ends
    count the same bytes. Some bodies are never referred to, some keys come with other bodies, and
    some tables overflow."""
    chance = random.Random(seed)

    async def send(link: Link, wire: Wire) -> tuple[list[Told], list[Early]]:
        told: list[Told] = []
        early: list[Early] = []
        ready = [(chance.randrange(3), draw_notification(chance, n)) for n in range(1, 120)]
        waiting: list[Told] = []
        while ready or waiting:
            if ready and (not waiting or chance.random() < 0.5):
                number, one = ready.pop()
                if chance.random() < 0.7:
                    early.append(early_of(one, chance))
                    link.send_early(early[-1], number)
                if chance.random() < 0.5:  # what a channel with relations says before the body
                    said = chance.randbytes(20) + one.payload
                    one = m.Notification(7, 1, one.marks, said, one.publisher, one.stamp)
                elif chance.random() < 0.1:
                    one = m.Notification(7, 1, (), b"other" * 400, one.publisher, one.stamp)
                waiting.append((number, one))
                chance.shuffle(waiting)
            else:
                number = waiting[-1][0]
                run = [one for at, one in waiting[-4:] if at == number]
                del waiting[-4:]
                told += [(number, one) for one in run]
                data = b"".join(map(frames.encode, run))
                link.send_notifications(data, len(run), number)
            if chance.random() < 0.1:
                link.send(m.Skipped(), number)
                told.append((number, m.Skipped()))
            if chance.random() < 0.3:
                await asyncio.sleep(0)
                wire.data, data_ = bytearray(), bytes(wire.data)
                sent.append(data_)
        await asyncio.sleep(0)
        sent.append(bytes(wire.data))
        return told, early

    for _ in rounds(10, 100):
        link, wire = make_sender()
        sent: list[bytes] = []
        told, early = asyncio.run(send(link, wire))
        receiver = Receiver()
        receive(receiver.link, cut(b"".join(sent), chance))
        assert not receiver.reasons
        assert receiver.told == told
        assert receiver.early == early
        assert receiver.link.taken == link.sent
        assert link.early_out is not None
        assert link.early_out.used > 0
        kept = receiver.link._early_in
        assert kept is not None
        assert (len(kept), kept.size) == (len(link.early_out), link.early_out.size)


def test_references_are_short() -> None:
    async def send() -> tuple[int, int]:
        link, wire = make_sender()
        told = m.Notification(1, 1, (m.Mark(3, 1, (3,)),), bytes(50_000), "p", 1)
        link.send_early(Early(3, 1.0, b"x", b"p", 1, told.payload))
        await asyncio.sleep(0)
        first = len(wire.data)
        link.send(told)
        await asyncio.sleep(0)
        return first, len(wire.data) - first

    first, second = asyncio.run(send())
    assert first > 50_000
    assert second < 100


def test_tables_are_equal_and_bounded(seed: int) -> None:
    """Both ends drop the same bodies at the same place, and keep no more than the bounds."""
    chance = random.Random(seed)
    sent, kept = SentBodies(), KeptBodies()
    for stamp in rounds(3_000, 20_000):
        size = chance.choice((LEAST_BODY, 2_000, 20_000, LARGEST_BODY))
        early = Early(1, 1.0, b"", b"p", stamp, bytes(size))
        sent.add(0, early)
        kept.add(early)
        back = max(0, stamp - chance.randrange(2_000))
        frame = frames.encode(m.Notification(1, 1, (), bytes(size), "p", back))
        short = bytes(sent.shorten(frame, 0))
        if len(short) < len(frame):
            assert kept.restore(short, 0) == frame
        assert (len(sent), sent.size) == (len(kept), kept.size)
        assert len(kept) <= MOST_BODIES
        assert kept.size <= MOST_BYTES
    assert sent.sent == sent.used + sent.useless + sent.size


def test_a_node_forgets_the_oldest_bodies(seed: int) -> None:
    """All links of a node together keep no more than its bound. Whatever is forgotten, both ends
    of each link stay equal, and every frame arrives."""
    chance = random.Random(seed)
    node = SharedBodies(most=100_000)
    ends = [(SentBodies(), KeptBodies()) for _ in range(20)]
    late: list[tuple[bytes, list[tuple[SentBodies, KeptBodies]]]] = []
    whole = short_ones = 0
    for stamp in rounds(1_000, 10_000):
        body = chance.randbytes(chance.choice((LEAST_BODY, 2_000, 9_000)))
        early, shared = Early(1, 1.0, b"", b"p", stamp, body), node.share(body)
        chosen = chance.sample(ends, chance.randrange(4))
        for sent, kept in chosen:
            sent.add(0, early, shared)
            kept.add(early)
        del shared
        frame = frames.encode(m.Notification(1, 1, (), body, "p", stamp))
        late.append((frame, chosen))
        if len(late) < 50:
            continue
        frame, chosen = late.pop(chance.randrange(len(late)))
        for sent, kept in chosen:
            short = bytes(sent.shorten(frame, 0))
            whole += short == frame
            short_ones += short != frame
            assert short == frame or kept.restore(short, 0) == frame
        for sent, kept in ends:
            assert (len(sent), sent.size) == (len(kept), kept.size)
        alive = {id(one): one for sent, _ in ends for one in bodies_of(sent)}
        assert node.bytes == sum(map(len, alive.values())) <= node.most
    assert whole
    assert short_ones
    for sent, _ in ends:
        sent.clear()
    assert (len(node), node.bytes) == (0, 0)


def bodies_of(sent: SentBodies) -> list[bytes]:
    found = [shared.data for (_, _, shared), _ in sent._latest.items.values()]
    return [one for one in found if one is not None]


def test_an_ended_link_frees_its_bodies() -> None:
    async def send() -> None:
        node, (link, _) = SharedBodies(), make_sender()
        early = Early(1, 1.0, b"", b"p", 1, bytes(2_000))
        assert link.send_early(early, body=node.share(early.body))
        assert node.bytes == 2_000
        link.close("the test ends it")
        assert node.bytes == 0
        assert link.early_out is not None
        assert link.early_out.sent == 2_000

    asyncio.run(send())


def test_other_channels_do_not_look_at_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a channel has no unused early body on the link, its frames are not walked."""
    sent = SentBodies()
    sent.add(1, Early(1, 1.0, b"", b"p", 1, bytes(2_000)))
    whole = frames.encode(m.Notification(1, 1, (), bytes(2_000), "p", 1))
    size_at, looked = frames.size_at, list[int]()

    def look(buffer: bytes, start: int) -> int:
        looked.append(start)
        return size_at(buffer, start)

    monkeypatch.setattr(frames, "size_at", look)
    assert sent.shorten(whole * 3, 2) == whole * 3
    assert not looked
    assert len(sent.shorten(whole, 1)) < len(whole)
    assert looked
    looked.clear()
    assert sent.shorten(whole, 1) == whole
    assert not looked


def test_nothing_early_where_much_waits() -> None:
    async def send() -> None:
        link, wire = make_sender()
        wire.data += bytes(MOST_BEFORE_EARLY + 1)
        assert not link.send_early(Early(1, 1.0, b"", b"p", 1, bytes(2_000)))
        assert link.early_out is None

    asyncio.run(send())


def shorter(frame: bytes) -> bytes:
    return (len(frame) - 5).to_bytes(4, "little") + frame[4:-1]


def reference(position: int) -> bytes:
    sent = SentBodies()
    for stamp in range(position + 1):
        sent.add(0, Early(1, 1.0, b"", b"p", stamp, bytes(2_000)))
    whole = frames.encode(m.Notification(1, 1, (), bytes(2_000), "p", position))
    return bytes(sent.shorten(whole, 0))


EARLY = encode_early(Early(1, 1.0, b"abc", b"p", 0, bytes(2_000)))
BAD = {
    "no body": (reference(0), "found a reference to the early body 0, expected one of the 0"),
    "used": (EARLY + reference(0) + reference(0), "found a reference to the early body 0"),
    "later": (EARLY + reference(5), "found a reference to the early body 5, expected one of the 1"),
    "short": (EARLY + shorter(reference(0)), "too short for its position"),
    "large": (encode_early(Early(1, 1.0, b"", b"p", 0, bytes(LARGEST_BODY + 1))), "1,048,576"),
    "merit": (encode_early(Early(1, float("nan"), b"", b"p", 0, bytes(99))), "found the merit nan"),
    "name": (EARLY[:12] + b"\xff\xff" + EARLY[14:], "too short for its parts"),
    "context": (EARLY[:8] + b"\xff\xff" + EARLY[10:], "too short for its parts"),
    "tiny": (b"\5\0\0\0\4" + EARLY[5:], "found a frame of kind 4"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_frames_end_the_link(case: str) -> None:
    """One sentence ends the link, and nothing is delivered."""
    data, why = BAD[case]
    receiver = Receiver()
    receive(receiver.link, [data])
    assert len(receiver.reasons) == 1
    assert why in receiver.reasons[0]
    assert receiver.link.bad


def test_early_from_below_ends_the_link() -> None:
    for data in (EARLY, reference(0)):
        receiver = Receiver(takes_early=False)
        receive(receiver.link, [data])
        assert receiver.reasons == ["found an early body, expected early bodies only from above"]


def test_damaged_frames_end_the_link(seed: int) -> None:
    """Early bodies and references with changed bytes either still make sense or end the link."""
    chance = random.Random(seed)
    for _ in rounds(300, 3_000):
        data = bytearray(EARLY + reference(0) + EARLY + EARLY)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data)) % chance.choice((60, len(data)))] = chance.randrange(
                256
            )
        receiver = Receiver()
        receive(receiver.link, cut(bytes(data), chance))
        assert len(receiver.reasons) <= 1


def test_early_frames_are_read_as_written(seed: int) -> None:
    chance = random.Random(seed)
    for stamp in rounds(100, 1_000):
        early = early_of(draw_notification(chance, stamp), chance)
        assert decode_early(b"x" + encode_early(early), 1) == early


def test_kernels_stop_where_python_stops(seed: int) -> None:
    """Compiled kernels find the same frames before an early body, a reference or a switch."""
    scanning.loader.load()
    chance = random.Random(seed)
    told = frames.encode(m.Notification(1, 1, (), bytes(90), "p", 1))
    for _ in rounds(30, 300):
        pieces = [told] * 200 + [chance.choice((EARLY, reference(0), frames.encode_switch(3)))]
        pieces += [told] * 100
        data = b"".join(pieces)[: chance.choice((-1, -50, 100_000))]
        at = 0
        while True:
            found = scanning.scan(data, at, frames.LARGEST)
            assert found == frames.scan(data, at, frames.LARGEST)
            at = found[1]
            if frames.switch_at(data, at) is not None:
                at += frames.SWITCH_SIZE
            elif frames.early_at(data, at):
                at += frames.size_at(data, at)
            else:
                break
