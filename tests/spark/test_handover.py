"""The handover protocol over a network that loses, repeats and delays, with crashes all round."""

from __future__ import annotations

import random

import pytest

from tidings.spark.handover.handover import Numbers, Point, Sender
from tidings.spark.handover.handover_messages import (
    Abort,
    Ask,
    Commit,
    Committed,
    Frames,
    Kept,
    Missing,
    Part,
    Pending,
    Reply,
    Request,
    Rows,
    frame,
)

S = "stream"


class World:
    """A point with a log, and a network between it and the clients that does what it likes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.log: list[Request] = []
        self.delivered: list[bytes] = []
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.point = Point()

    def crash(self) -> None:
        """The point starts again with what is in its log."""
        self.point, self.delivered = Point(), []
        for record in self.log:
            self.delivered += self.point.receive(record).delivered

    def tick(self) -> Reply | None:
        """Something happens; perhaps a reply reaches the client."""
        rng = self.rng
        if self.requests:
            place = rng.randrange(len(self.requests)) if rng.random() < 0.2 else 0
            request = self.requests[place]
            if rng.random() < 0.85:  # else it comes again later
                del self.requests[place]
            if rng.random() < 0.85:  # else it is lost
                outcome = self.point.receive(request)
                if rng.random() < 0.05:  # before the log was written
                    self.crash()
                else:
                    if outcome.record is not None:
                        self.log.append(outcome.record)
                    self.delivered += outcome.delivered
                    if rng.random() < 0.05:  # after that, before the reply
                        self.crash()
                    else:
                        self.replies.append(outcome.reply)
        if not self.replies or rng.random() < 0.2:
            return None
        place = rng.randrange(len(self.replies)) if rng.random() < 0.2 else 0
        return self.replies[place] if rng.random() < 0.1 else self.replies.pop(place)


def run_task(world: World, batch: int, partition: int, rows: list[bytes]) -> Part | None:
    """One try at a partition. None: the task crashed."""
    rng = world.rng
    sender = Sender(S, batch, partition, rng.getrandbits(63), window=3)
    while rows or not sender.done:
        if rng.random() < 0.02:
            return None
        if rows and not sender.full:
            size = rng.randint(1, 4)
            sender.offer(rows[:size])
            rows = rows[size:]
        if rng.random() < 0.2:
            sender.rewind()
        while (message := sender.pull()) is not None:
            world.requests.append(message)
        if (reply := world.tick()) is not None:
            sender.receive(reply)
    return sender.part


def run_batch(world: World, batch: int, partitions: list[list[bytes]]) -> bool:
    """One try at a batch by one driver. False: it crashed, or was told to begin again."""
    rng = world.rng
    parts: list[Part] = []
    for number, rows in enumerate(partitions):
        part = None
        while part is None:
            part = run_task(world, batch, number, rows)
        parts.append(part)
    while True:
        if rng.random() < 0.05:
            if rng.random() < 0.5:
                world.requests.append(Abort(S, batch))
            return False
        world.requests.append(Commit(S, batch, parts))
        reply = world.tick()
        if reply == Committed(S, batch):
            return True
        if isinstance(reply, Missing) and reply.batch == batch and reply.parts[0] in parts:
            return False


@pytest.mark.parametrize("run", range(30))
def test_each_batch_is_delivered_once(seed: int, run: int) -> None:
    rng = random.Random(f"{seed} {run}")
    world = World(rng)
    expected: list[bytes] = []
    for batch in range(5):
        partitions = [
            [b"%d %d %d" % (batch, number, row) for row in range(rng.randint(0, 12))]
            for number in range(rng.randint(1, 3))
        ]
        while not run_batch(world, batch, partitions):
            pass
        expected += [row for rows in partitions for row in rows]
        if rng.random() < 0.3:  # the driver died before it could note the batch as done
            assert run_batch(world, batch, partitions) in {True, False}
        assert world.delivered == expected
    for request in world.requests:  # what is still under way changes nothing
        world.point.receive(request)
    world.crash()

    assert world.delivered == expected


def test_rows_beyond_a_gap_are_not_taken() -> None:
    point = Point()
    assert point.receive(Rows(S, 0, 0, 7, 2, [b"c"])).reply == Kept(S, 0, 0, 7, 0)
    assert point.receive(Rows(S, 0, 0, 7, 0, [b"a", b"b"])).reply == Kept(S, 0, 0, 7, 2)

    outcome = point.receive(Rows(S, 0, 0, 7, 1, [b"b", b"c"]))

    assert outcome.reply == Kept(S, 0, 0, 7, 3)
    assert outcome.record == Rows(S, 0, 0, 7, 2, [b"c"])


def test_what_is_not_committed_is_dropped() -> None:
    point = Point()
    point.receive(Rows(S, 0, 0, 1, 0, [b"failed"]))
    point.receive(Rows(S, 0, 0, 2, 0, [b"succeeded"]))
    outcome = point.receive(Commit(S, 0, [Part(0, 2, 1)]))

    assert outcome.delivered == [b"succeeded"]
    assert point.receive(Rows(S, 0, 0, 1, 1, [b"late"])).reply == Committed(S, 0)
    assert point.receive(Commit(S, 0, [Part(0, 1, 1)])) == (None, [], Committed(S, 0))


def test_a_commit_of_rows_that_are_not_there_is_refused() -> None:
    point = Point()
    point.receive(Rows(S, 0, 0, 1, 0, [b"a"]))
    parts = [Part(0, 1, 2), Part(1, 5, 0)]

    assert point.receive(Commit(S, 0, parts)).reply == Missing(S, 0, [Part(0, 1, 2)])
    assert point.receive(Ask(S, 0)).reply == Pending(S, 0)
    assert point.receive(Abort(S, 0)).record == Abort(S, 0)
    assert point.receive(Abort(S, 0)).record is None


def test_streams_do_not_share_batch_numbers() -> None:
    point = Point()
    point.receive(Commit("one", 0, []))

    assert point.receive(Ask("one", 0)).reply == Committed("one", 0)
    assert point.receive(Ask("two", 0)).reply == Pending("two", 0)


def test_frames_come_in_pieces() -> None:
    messages: list[Request] = [Rows(S, 0, 0, 1, 0, [b"x" * 300]), Commit(S, 0, [Part(0, 1, 1)])]
    data = b"".join(map(frame, messages))
    frames: Frames[Request] = Frames(Request)

    assert [m for i in range(len(data)) for m in frames.feed(data[i : i + 1])] == messages


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x02\x91\xc0"])
def test_what_is_not_ours_is_refused(data: bytes) -> None:
    frames: Frames[Request] = Frames(Request)

    with pytest.raises(ValueError, match="a message"):
        list(frames.feed(data))


def test_numbers(seed: int) -> None:
    rng = random.Random(seed)
    numbers, expected = Numbers(), set[int]()
    for _ in range(200):
        number = rng.randint(-20, 60)
        numbers.add(number)
        expected.add(number)
        assert [n in numbers for n in range(-25, 65)] == [n in expected for n in range(-25, 65)]

    assert len(numbers._starts) == 1 + sum(
        n + 1 not in expected for n in expected - {max(expected)}
    )
