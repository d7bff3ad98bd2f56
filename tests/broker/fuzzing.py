"""Frames that nobody should send, and a program that sends them.

    python -m tests.broker.fuzzing --port 7400 --token secret --frames 100000 --seed 1

It counts a frame when the router has to look at it: what comes behind one that must be refused is
not sent. At the end it prints, as JSON, how many there were of each kind and what the router said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tidings.routing.early import Early, encode_early
from tidings.routing.early.early_frames import refer
from tidings.routing.protocol import frames, messages as m, pack_tag

HUGE = (2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1)
FILTERS = [f"f{at % 7} > {at}".encode() for at in range(60)]
CONTENTS = [b'{"f1": 50}', b'{"f1": "a", "f2": 3}', b"", b"[]", b"{", b"[" * 500, b'{"f1": 1e999}']
PENDING = 100  # connections that are waited for at once


# -- messages that can be read, and make no sense --------------------------------------------------


class Senseless:
    """Messages of every kind that a node reads from below, with the right epoch as often as not;
    but no Goodbye, which ends the link as it should."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.epoch = 0  # that of the router, once it is known

    def message(self) -> m.Message:
        return self.chance.choice(_UP)(self)

    def number(self) -> int:
        chance = self.chance
        if chance.random() < 0.2:
            return chance.choice(HUGE)
        return chance.randrange(chance.choice((4, 80, 10_000)))

    def age(self) -> int:
        return self.epoch if self.chance.random() < 0.8 else self.number()

    def nodes(self) -> m.Label:
        most = self.chance.choices((3, 40, 3000), (90, 9, 1))[0]
        return tuple(self.number() for _ in range(self.chance.randrange(most)))

    def text(self) -> str:
        chance = self.chance
        return "".join(chr(chance.choice((0, 65, 0x20AC, 0x1F4A9))) for _ in range(5))

    def subscribe(self) -> m.Message:
        return m.Subscribe(self.age(), self.nodes(), self.chance.random() < 0.3)

    def advise(self) -> m.Message:
        return m.Advise(self.number())

    def identify(self) -> m.Message:
        return m.Identify(self.number())

    def inspect(self) -> m.Message:
        return m.Inspect(self.number())

    def locate(self) -> m.Message:
        return m.Locate(self.age(), self.nodes()[: m.MOST_LOCATED], self.number())

    def unsubscribe(self) -> m.Message:
        return m.Unsubscribe(self.age(), self.nodes())

    def resubscribe(self) -> m.Message:
        return m.Resubscribe(self.age(), m.Digest(self.number(), self.number()), self.number())

    def wanted(self) -> m.Message:
        return m.Wanted(self.age(), self.nodes())

    def redraw(self) -> m.Message:
        return m.Redraw(self.age())

    def trace(self) -> m.Message:
        return m.Trace(self.number())

    def ask(self) -> m.Message:
        chance = self.chance
        odd = chance.choices((b"f1 >", b"\xff\xfe", b"", b"(" * 5000), (10, 10, 10, 1))[0]
        interest = chance.choice((chance.choice(FILTERS), odd))
        within = tuple(chance.choices(("n > 0", "", "n >"), k=chance.choice((0, 0, 1, 3))))
        return m.Ask(self.number(), interest, within=within, was=self.number())

    def count(self) -> m.Message:
        return m.Count(self.age(), self.number(), self.number(), self.number())

    def resume(self) -> m.Message:
        name, interest = self.chance.choice(("a", "b", self.text())), self.chance.choice(FILTERS)
        return m.Resume(self.age(), self.number(), name, self.number(), interest, self.text())

    def confirm(self) -> m.Message:
        counts = {node: self.number() for node in self.nodes()[:9]}
        return m.Confirm(
            self.age(), self.number(), self.chance.choice(("a", "b", self.text())), self.number(),
            self.number(), counts, self.chance.random() < 0.2, self.text(), self.number(),
        )  # fmt: skip

    def recover(self) -> m.Message:
        ranges = self.chance.choices((2, 50, 1000), (90, 9, 1))[0]
        found = (m.Range(self.number(), self.number(), self.number()) for _ in range(ranges))
        return m.Recover(self.age(), self.number(), tuple(found))

    def publish(self) -> m.Message:
        chance = self.chance
        name = chance.choice(("fuzz", self.text()))
        payload = chance.randbytes(chance.randrange(20))
        numbers = [self.number() for _ in range(chance.randrange(4))]
        tag = chance.choice(
            (b"", chance.randbytes(19), pack_tag(1, 1, [one & (2**62 - 1) for one in numbers]))
        )
        return m.Publish(
            name, self.number(), self.number(), chance.choice(CONTENTS), payload, tag=tag
        )

    def present(self) -> m.Message:
        return m.Present(self.number(), self.chance.randbytes(self.chance.randrange(200)))

    def describe(self) -> m.Message:
        return m.Describe(self.number())

    def follow(self) -> m.Message:
        return m.Follow(self.number(), self.number(), self.age(), self.number(), self.number())

    def suggest(self) -> m.Message:
        chance = self.chance
        filters = tuple(
            m.Suggestion(chance.choice(FILTERS), chance.randbytes(chance.choice((16, 16, 3))),
                         self.nodes()[:50], self.nodes()[:50])
            for _ in range(chance.randrange(4))
        )  # fmt: skip
        return m.Suggest(self.number(), self.age(), self.number(), filters, self.nodes()[:50])

    def register(self) -> m.Message:
        status = [self.number() for _ in range(self.chance.randrange(5))]
        return m.Register(f"tidings://{self.text()}:1", self.text(), *status)

    def hand_over(self) -> m.Message:
        """A part that is nearly right, or not at all."""
        chance = self.chance
        many = chance.randrange(5)
        nodes = [self.number() for _ in range(many)]
        starts = [0, *sorted(chance.randrange(many + 1) for _ in range(2)), many]
        sizes = [0, 3, 3, chance.choice((5, 5, self.number()))]
        first, second, third = (
            chance.randbytes(chance.randrange(30)) if chance.random() < 0.1
            else struct.pack(f"<{len(one)}q", *one) for one in (starts, nodes, sizes)
        )  # fmt: skip
        return m.HandOver(
            self.text(), chance.randrange(3), chance.randrange(3), chance.random() < 0.5,
            self.age(), self.number(), first, second, third, chance.randbytes(5),
        )  # fmt: skip

    def open(self) -> m.Message:
        return m.Open(self.number() & 0xFFFFFFFF, self.text())

    def close(self) -> m.Message:
        return m.Close(self.number() & 0xFFFFFFFF)

    def pulse(self) -> m.Message:
        gone = tuple(self.number() & 0xFFFFFFFF for _ in range(self.chance.randrange(4)))
        pulse = m.Pulse(self.number(), self.number(), gone)
        credit = m.Credit({number: self.number() for number in gone})
        return self.chance.choice((pulse, m.Repeat(), m.Closed(1, self.text()), credit))

    def few(self, most: int) -> m.Label:
        return tuple(self.number() for _ in range(self.chance.randrange(1, most)))

    def within(self) -> tuple[str, ...]:
        return tuple(self.chance.choices(("n > 0", "", "n >"), k=self.chance.choice((0, 0, 1, 3))))

    def apply(self) -> m.Message:
        return m.Apply(
            self.age(), self.number(), self.chance.choice(("direct", self.text())), self.few(9),
            self.few(9), self.number(), self.text(), self.text(), self.within(),
        )  # fmt: skip

    def whose(self) -> m.Message:
        return m.Whose(self.age(), self.chance.choice(("hostile", self.text())), self.nodes())

    def fault(self) -> m.Message:
        return m.Fault(self.text(), self.text(), self.text())

    def seek(self) -> m.Message:
        return m.Seek(self.number())

    def preprocess(self) -> m.Message:
        many = self.chance.choices((3, 100), (20, 1))[0]
        return m.Preprocess(self.number(), tuple(self.chance.choices(CONTENTS, k=many)))

    def propose(self) -> m.Message:
        chance = self.chance
        interest = chance.choice((chance.choice(FILTERS), b"f1 >", b"\xff", b"(" * 3000))
        dialect = chance.choice(("sql", m.NODE, "json", self.text()))
        signs, makes = chance.random() < 0.3, chance.random() < 0.5
        return m.Propose(self.number(), interest, dialect, signs, makes)

    def watch(self) -> m.Message:
        return m.Watch()

    def report(self) -> m.Message:
        """A tree of nodes; seldom a right one."""
        chance = self.chance
        link = m.LinkStatus(self.text(), "router", self.number())
        nodes = [
            m.NodeStatus(depth, chance.choice((f"fuzz-{depth}", self.text())), "router",
                         self.text(), nodes=self.number(), links=(link,) * chance.randrange(3))
            for depth in (0, *(chance.randrange(4) for _ in range(chance.randrange(5))))
        ]  # fmt: skip
        return m.Report(tuple(nodes))

    def answer(self) -> m.Message:
        """What a node below or a preprocessor may say, but was not asked."""
        number, chance = self.number(), self.chance
        place = m.NodePlace(self.number(), self.nodes()[:9], self.nodes()[:9])
        return chance.choice((
            m.Presented(number, self.text()), m.Welcome(self.text(), self.text()),
            m.Identified(number, chance.randbytes(30), self.text()),
            m.Preprocessed(number, (chance.randbytes(20),), self.text()),
            m.Proposed(number, self.number(), self.number(), self.number(), self.text()),
            m.Located(self.age(), number, self.number(), (place,)),
            m.Inspected(number, self.text(), self.text(), self.number()),
        ))  # fmt: skip

    def hello(self) -> m.Message:
        return m.Hello(self.text(), self.text(), self.text())


_UP: list[Callable[[Senseless], m.Message]] = [
    Senseless.subscribe, Senseless.unsubscribe, Senseless.resubscribe, Senseless.wanted,
    Senseless.redraw, Senseless.ask, Senseless.count, Senseless.recover, Senseless.publish,
    Senseless.hello, Senseless.trace, Senseless.describe, Senseless.follow, Senseless.hand_over,
    Senseless.open, Senseless.close, Senseless.pulse,
    Senseless.present, Senseless.locate, Senseless.identify, Senseless.advise,
    Senseless.inspect,
    Senseless.resume, Senseless.confirm, Senseless.register,
    Senseless.suggest,
    Senseless.apply, Senseless.whose, Senseless.fault, Senseless.seek, Senseless.preprocess,
    Senseless.propose, Senseless.watch, Senseless.report, Senseless.answer,
]  # fmt: skip


# -- bytes that must be refused --------------------------------------------------------------------


def framed(body: bytes, kind: int = frames.OTHER, version: int = frames.VERSION) -> bytes:
    return struct.pack("<IBB", len(body) + 2, kind, version) + body


def random_bytes(chance: random.Random) -> bytes:
    return framed(chance.randbytes(chance.randrange(200)))


def mutated(chance: random.Random, message: m.Message) -> bytes:
    """A frame with a few bytes changed, taken out, put in or twice there; it is still a frame."""
    data = bytearray(frames.encode(message)[6:])
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(6)
        if what >= 3 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            del data[at : at + chance.randrange(4)]
        elif what == 2:
            data[at:at] = chance.randbytes(chance.randrange(1, 5))
        elif what == 0:
            data[at:at] = data[at : at + 20]
    return framed(bytes(data))


def downward(chance: random.Random) -> bytes:
    """What only routers above say."""
    number = chance.randrange(100)
    mark = m.Mark(number, number, tuple(range(chance.choice((1, 20_000)))))
    notification = m.Notification(1, number, (mark,), b"x", "p", 1)
    return frames.encode(chance.choice((
        notification, m.Setup(1, number, (1,), (2,), 3, 4), m.Gone(1, (number,)),
        m.Refuse(1, (number,)), m.Beat(1, 2, {3: 4}, m.Digest(), 5), m.Which(1),
        m.Graph(1, 2, {3: (4,)}, {5: 6}), m.Answer(1, number), m.Counted(1, 2, 3, 4, 5, {}),
        m.Recovered(1, number, (notification,)), m.Settled(1, number),
        m.Published(1, "p", number), m.Described(1, number), m.Changed(1, number),
        m.Taken(1, "s", number, 0), m.Resumption(1, number, 2, 3, {4: 5}, term=number),
        m.Confirmed(1, number, "no", displaced=True),
    )))  # fmt: skip


def early(chance: random.Random) -> bytes:
    """A body that is sent early, or a reference to one, right or wrong: only nodes above send
    them."""
    body = Early(chance.randrange(9), 1.5, b"{}", b"p", chance.randrange(99), b"x" * 30)
    data = bytearray(encode_early(body))
    if chance.random() < 0.5:
        whole = frames.encode(m.Notification(1, 2, (m.Mark(3, 4, (3,)),), b"x" * 30, "p", 5))
        data = bytearray(refer(whole, 0, len(whole) - 30, chance.choice((0, 1, HUGE[-1]))))
    if chance.random() < 0.5:
        at = chance.randrange(6, len(data))
        data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def unopened(chance: random.Random) -> bytes:
    """A frame of a channel that is not open on the link."""
    number = chance.choice((2**32 - 1, 2**32 - 2))
    return frames.encode_switch(number) + frames.encode(m.Redraw(0))


def malformed(chance: random.Random) -> bytes:
    """Everything else that is wrong with a frame."""
    pack = msgspec.msgpack.encode
    return chance.choice((
        lambda: struct.pack("<IBB", chance.choice((2**32 - 1, (16 << 20) + 1)), 2, 1),  # too large
        lambda: struct.pack("<IBB", chance.randrange(2), 2, 1),  # too short
        lambda: framed(b"\x91\xa6redraw", version=chance.choice((0, frames.VERSION - 1, 255))),
        lambda: framed(b"", kind=chance.choice((0, 3, 4, 255))),
        lambda: framed(b"\x91" * chance.choice((10, 1000, 100_000))),  # deeply nested
        lambda: framed(b"\x81\xa1a" * 5000),
        lambda: framed(b"\xdd\xff\xff\xff\xff"),  # four billion elements
        lambda: framed(b"\x92\xa9subscribe\xdd\xff\xff\xff\xff"),
        lambda: framed(pack(["subscribe", 1, [2**64 - 1]])),
        lambda: framed(pack(["subscribe", 1, [-1]])),
        lambda: framed(pack(["recover", 1, 1, [[0, 0, 0]] * 5000])),
        lambda: framed(b"\x92\xa5hello\xa3\xff\xfe\xfd"),  # not UTF-8
        lambda: framed(pack(["publish", "p" * 300, 1, 1, b"", b""])),
        lambda: framed(b"\x00" * 40, kind=frames.NOTIFICATION),
        lambda: chance.randbytes(50),
    ))()  # fmt: skip


def is_refused(data: bytes) -> bool:
    """Must a neighbour that sends this be sent away?"""
    try:
        starts, end = frames.scan(data, 0)
        for start in starts:
            frames.decode_from_below(data, start)
    except frames.FrameError:
        return True
    return end != len(data)  # it is not complete, is early, or belongs to another channel


def whole(data: bytes) -> bool:
    """Is something wrong with it before another byte comes?"""
    try:
        starts, end = frames.scan(data, 0)
    except frames.FrameError:
        return True
    return bool(starts) or bool(frames.early_at(data, end))


def bad_frame(chance: random.Random, senseless: Senseless) -> tuple[str, bytes]:
    """Something that must be refused, and what it is."""
    while True:
        kind, data = chance.choice((
            lambda: ("random", random_bytes(chance)),
            lambda: ("mutated", mutated(chance, senseless.message())),
            lambda: ("downward", downward(chance)),
            lambda: ("malformed", malformed(chance)),
            lambda: ("early", early(chance)),
        ))()  # fmt: skip
        if is_refused(data) and whole(data):
            return kind, data


# -- the program -----------------------------------------------------------------------------------


class Attacker:
    """Connections to one router, one after the other; some stay open."""

    def __init__(
        self, port: int, token: str, seed: int, channels: Sequence[str] = ("",),
        *, has_channels: bool = True,
    ) -> None:  # fmt: skip
        """`channels` are served there. A preprocessor serves one, and ignores the numbers of
        channels: for it, `has_channels` is false."""
        self.port = port
        self.channels, self.has_channels = channels, has_channels
        self.token = token
        self.chance = random.Random(seed)
        self.senseless = Senseless(self.chance)
        self.sent: Counter[str] = Counter()
        self.said: Counter[str] = Counter()
        self.left: deque[socket.socket] = deque()  # to be waited for
        self.idle: deque[socket.socket] = deque()  # to be left alone
        self.number = seed << 20

    def attack(self, most: int, idle: int) -> None:
        while self.sent.total() < most:
            what = self.chance.random()
            if what < 0.15:
                self.before_greeting()
            elif what < 0.2:
                self.keep_open(idle)
            elif what < 0.25 and self.has_channels:
                self.use_unopened()
            else:
                self.as_neighbour()
        while self.left:
            self.wait_for_end(self.left.popleft())
        for one in self.idle:
            one.close()

    def before_greeting(self) -> None:
        """Somebody without a token, or without a word of greeting."""
        kind, data = bad_frame(self.chance, self.senseless)
        if self.chance.random() < 0.5:
            kind, data = "no token", frames.encode(m.Hello(f"stranger-{self.number}", "", "guess"))
            data += b"".join(frames.encode(self.senseless.message()) for _ in range(3))
        elif self.chance.random() < 0.5:
            kind, data = "no greeting", frames.encode(self.senseless.redraw())
        one = self.connected()
        if self.send(one, data):
            self.sent[f"stranger: {kind}"] += 1
        self.leave(one)

    def as_neighbour(self) -> None:
        """A neighbour with a token that talks nonsense, and ends with something worse."""
        one = self.greeted()
        numbers = self.open_some(one) if self.chance.random() < 0.5 else []
        for _ in range(self.chance.randrange(1, 4)):
            self.read_some(one)
            batch = [self.senseless.message() for _ in range(self.chance.randrange(30))]
            data = [frames.encode(message) for message in batch]
            also = (mutated(self.chance, message) for message in batch)
            kept = [frame for frame in also if not is_refused(frame)]
            if not self.send(one, b"".join(self.in_channels((*data, *kept), numbers))):
                break
            self.sent["senseless"] += len(data)
            self.sent["mutated, and can be read"] += len(kept)
        kind, data_ = bad_frame(self.chance, self.senseless)
        if self.chance.random() < 0.1:
            kind, data_ = "truncated", frames.encode(self.senseless.publish())[:-1]
            self.send(one, data_)
            one.close()
        elif self.send(one, data_):
            self.leave(one)
        self.sent[kind] += 1

    def use_unopened(self) -> None:
        """A neighbour that sends a frame of a channel it has not opened."""
        one = self.greeted()
        if self.send(one, unopened(self.chance)):
            self.leave(one)
            self.sent["not open"] += 1

    def open_some(self, one: socket.socket) -> list[int]:
        """Open channels that the node serves, and others; give the numbers."""
        numbers = sorted(self.chance.sample(range(1, 40), self.chance.randrange(1, 5)))
        for number in numbers:
            name = self.chance.choice((*self.channels, *self.channels, self.senseless.text()))
            self.send(one, frames.encode(m.Open(number, name)))
        return numbers

    def in_channels(self, data: Iterable[bytes], numbers: list[int]) -> Iterator[bytes]:
        """The frames, some of them in other channels; now and then, a channel is closed, and gets
        more frames all the same."""
        for frame in data:
            if numbers and self.chance.random() < 0.2:
                yield frames.encode_switch(self.chance.choice((0, *numbers)))
                self.sent["switch"] += 1
            if numbers and self.chance.random() < 0.01:
                yield frames.encode(m.Close(self.chance.choice(numbers)))
            yield frame

    def keep_open(self, idle: int) -> None:
        """Connections that say nothing, or half of something, or a byte now and then."""
        if not idle:
            return
        chance = self.chance
        one = self.greeted() if chance.random() < 0.3 else self.connected()
        half = frames.encode(m.Publish("fuzz", 1, 1, b"", b"x" * 2000))
        self.send(one, half[: chance.choice((0, 1, 5, 100, 1900))])
        self.idle.append(one)
        for slow in list(self.idle)[:20]:
            self.send(slow, chance.randbytes(1))
        while len(self.idle) > idle:
            self.idle.popleft().close()

    # -- sockets -------------------------------------------------------------------------------

    def connected(self) -> socket.socket:
        for pause in (0.1, 0.5, 2.0):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", self.port), timeout=30)
            time.sleep(pause)
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def greeted(self) -> socket.socket:
        self.number += 1
        one = self.connected()
        name = f"fuzz-{self.number % 300}"
        channel = self.chance.choice(self.channels)
        self.send(one, frames.encode(m.Hello(name, channel, self.token)))
        self.send(one, frames.encode(m.Resubscribe(0, m.Digest())))
        return one

    def send(self, one: socket.socket, data: bytes) -> bool:
        """Send something, in pieces of any length; False where the other end is gone."""
        try:
            while data:
                size = self.chance.choice((1, 7, 1000, 30_000, 1 << 20))
                one.sendall(data[:size])
                data = data[size:]
                if len(data) > 50_000:
                    self.read_some(one)
        except OSError:
            return False
        return True

    def read_some(self, one: socket.socket) -> None:
        """What the router says now; its epoch is remembered."""
        one.setblocking(False)
        try:
            self.note(one.recv(1 << 20))
        except OSError:
            pass
        finally:
            one.settimeout(30)

    def leave(self, one: socket.socket) -> None:
        self.left.append(one)
        if len(self.left) > PENDING:
            self.wait_for_end(self.left.popleft())

    def wait_for_end(self, one: socket.socket) -> None:
        """Until the router has ended the connection, which it must."""
        data = b""
        try:
            while more := one.recv(1 << 16):
                data = data[-1000:] + more
        except TimeoutError:
            self.said["nothing"] += 1
        except ConnectionError:
            self.said["(reset)"] += 1
        one.close()
        at = data.rfind(b"\x92\xa7goodbye") - frames.SHORTEST
        if at >= 0:
            with contextlib.suppress(frames.FrameError):
                end = frames.decode(data, at)
                assert isinstance(end, m.Goodbye)
                self.said[re.sub(r"\d[\d,]*", "N", end.reason).split(":")[0][:70]] += 1
        self.note(data)

    def note(self, data: bytes) -> None:
        with contextlib.suppress(frames.FrameError):
            for start in frames.split(data)[0]:
                message = frames.decode(data, start)
                if isinstance(message, m.Down) and message.epoch:
                    self.senseless.epoch = message.epoch


def frames_in_process(chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    senseless = Senseless(chance)
    return (bad_frame(chance, senseless) for _ in range(count))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--channels", default="", help="separated by commas")
    parser.add_argument("--preprocessor", action="store_true")
    found = parser.parse_args()
    attacker = Attacker(
        found.port, found.token, found.seed, found.channels.split(","),
        has_channels=not found.preprocessor,
    )  # fmt: skip
    attacker.attack(found.frames, found.idle)
    print(json.dumps({"sent": attacker.sent, "said": attacker.said}))  # noqa: T201


if __name__ == "__main__":
    main()
