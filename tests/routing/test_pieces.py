"""Payloads in pieces: delivered whole or not at all, every loss is reported, and what is confirmed
around them is what a list of all notifications says."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest

from tidings.routing.clients.confirming import NEVER, Confirming
from tidings.routing.clients.delivering import pieces as module
from tidings.routing.clients.delivering.pieces import LONGEST, MOST, Dropped, Pieces
from tidings.routing.clients.subscriber import Delivery, Lost, Subscriber
from tidings.routing.protocol import About, Piece, messages as m, wrap
from tidings.routing.root.cursors import Confirmation, Cursor

# -- the pieces of a subscriber --------------------------------------------------------------------


def test_pieces_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        pieces, whole = Pieces(ordered=False), {}
        todo = []
        stamp = 1
        for number in range(chance.randrange(1, 6)):
            publisher, count = f"p{number % 2}", chance.randrange(1, 5)
            parts = [chance.randbytes(chance.randrange(4)) for _ in range(count)]
            lost = chance.random() < 0.2
            if not lost:
                whole[publisher, stamp] = b"".join(parts)
            todo += [
                (publisher, stamp + at, Piece(stamp, at, count), part)
                for at, part in enumerate(parts)
                if not (lost and at == 0)
            ]
            stamp += count
        chance.shuffle(todo)
        found = {}
        for serial, (publisher, at, piece, part) in enumerate(todo, 1):
            pieces.pass_by(publisher, at, piece)
            done = pieces.add(publisher, at, serial, piece, part)
            if done is not None:
                found[publisher, piece.first] = done[0]
                assert len(done[1]) == piece.of
        assert found == whole
        assert not pieces.dropped


def test_pieces_that_nobody_publishes_and_too_many() -> None:
    pieces = Pieces(ordered=False)
    for stamp, piece in (
        (1, Piece(1, 5, 2)), (7, Piece(1, 1, 2)), (1, Piece(1, 0, 1 << 40)), (0, Piece(0, 0, 2)),
    ):  # fmt: skip
        assert pieces.add("p", stamp, 9, piece, b"x") is None
    assert pieces.dropped == [Dropped([9], is_news=False)] * 4
    pieces.dropped.clear()
    assert not pieces
    for number in range(MOST + 1):
        pieces.add(f"p{number}", 1, number + 1, Piece(1, 0, 2), b"x")
    assert pieces.dropped == [Dropped([1], is_news=True)]  # the oldest
    assert pieces.add("p0", 2, 90, Piece(1, 1, 2), b"y") is None
    assert pieces.dropped[1:] == [Dropped([90], is_news=False)]  # it was reported before
    assert pieces.add(f"p{MOST}", 2, 91, Piece(1, 1, 2), b"y") == (b"xy", [MOST + 1, 91])


def test_too_many_bytes_and_too_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    monkeypatch.setattr(module, "MOST_PIECES", 6)
    pieces = Pieces(ordered=True)
    pieces.add("a", 1, 1, Piece(1, 0, 3), b"xxxxxx")
    pieces.add("b", 1, 2, Piece(1, 0, 3), b"xxxxx")
    assert pieces.dropped == [Dropped([1], is_news=True)]
    pieces.add("b", 2, 3, Piece(1, 1, 3), b"xxxxxx")  # it alone is too large
    assert pieces.dropped[1:] == [Dropped([2, 3], is_news=True)]
    assert not pieces
    for number in range(1, 6):
        pieces.add("c", number, 10 + number, Piece(1, number - 1, 6), b"")
    pieces.add("d", 1, 16, Piece(1, 0, 2), b"")
    pieces.add("d", 2, 17, Piece(1, 1, 2), b"")
    assert len(pieces.dropped) == 2
    pieces.add("d", 3, 18, Piece(3, 0, 2), b"")
    pieces.add("e", 1, 19, Piece(1, 0, 2), b"")
    assert pieces.dropped[2:] == [Dropped([11, 12, 13, 14, 15], is_news=True)]


def test_one_that_stays_unfinished_for_long() -> None:
    pieces = Pieces(ordered=True)
    pieces.add("a", 1, 1, Piece(1, 0, 3), b"x")
    pieces.tick(0)
    pieces.tick(LONGEST - 1)
    pieces.add("a", 2, 2, Piece(1, 1, 3), b"x")
    pieces.tick(LONGEST + 1)
    pieces.tick(2 * LONGEST)
    assert not pieces.dropped
    pieces.tick(2 * LONGEST + 2)
    assert pieces.dropped == [Dropped([1, 2], is_news=True)]
    assert pieces.add("a", 3, 3, Piece(1, 2, 3), b"x") is None
    assert not pieces


@pytest.mark.parametrize("other", [None, Piece(1, 2, 3), Piece(2, 0, 3), Piece(1, 1, 4)])
def test_in_order_the_next_of_the_publisher_shows_what_stays_unfinished(other: Piece) -> None:
    """Nobody is told: what is lost was counted by its number, and what was refused is not lost."""
    pieces = Pieces(ordered=True)
    pieces.add("a", 1, 1, Piece(1, 0, 3), b"x")
    pieces.pass_by("b", 9, None)
    assert pieces
    pieces.pass_by("a", 3 if other == Piece(1, 2, 3) else 2, other)
    assert pieces.dropped == [Dropped([1], is_news=False)]
    assert not pieces


def test_scattered_pieces_of_an_ordered_subscription(seed: int) -> None:
    """Others of the publisher come between them, and every payload arrives whole."""
    chance = random.Random(seed)
    for _ in range(20):
        pieces, stamp = Pieces(ordered=True), 1
        whole, found = dict[int, bytes](), dict[int, bytes]()
        todo: list[tuple[int, Piece | None, bytes]] = []
        for _ in range(chance.randrange(1, 5)):
            parts = [chance.randbytes(3) for _ in range(chance.randrange(1, 5))]
            whole[stamp] = b"".join(parts)
            todo += [(stamp + at, Piece(stamp, at, len(parts)), one)
                     for at, one in enumerate(parts)]  # fmt: skip
            stamp += len(parts)
        todo += [(stamp + n, None, b"") for n in range(5)]
        chance.shuffle(todo)
        for serial, (at, other, part) in enumerate(todo, 1):
            pieces.pass_by("p", at, other)
            if other is not None:
                done = pieces.add("p", at, serial, other, part, scattered=True)
                found |= {} if done is None else {other.first: done[0]}
        assert found == whole
        assert not pieces
        assert not pieces.dropped
    pieces.add("p", 1, 1, Piece(1, 0, 2), b"x", scattered=True)
    pieces.tick(0)
    pieces.tick(LONGEST + 1)
    pieces.add("p", 2, 2, Piece(1, 1, 2), b"y", scattered=True)
    assert pieces.dropped == [Dropped([1], is_news=True), Dropped([2], is_news=False)]


# -- confirmations, against a list -----------------------------------------------------------------


class Entry(msgspec.Struct):
    serial: int
    many: int
    numbers: dict[int, int]
    due: int


class Told:
    """What was handed out, and what is confirmed of it, by looking through all of it."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.upto = 0

    def cursor(self) -> tuple[int, int, dict[int, int], int, tuple[int, ...]]:
        serial, total, counts = 0, 0, dict[int, int]()
        for one in self.entries:
            if one.due > self.upto:
                break
            serial, total = one.serial, total + one.many
            counts |= {n: max(number, counts.get(n, 0)) for n, number in one.numbers.items()}
        gaps = {one.serial for one in self.entries if one.serial <= self.upto < one.due}
        return serial, total, counts, self.upto, tuple(sorted(gaps))


def test_confirmations(seed: int) -> None:
    for number in range(200):
        _confirm_some(random.Random(f"{seed} {number}"))


def _confirm_some(chance: random.Random) -> None:
    confirming, told = Confirming("n"), Told()
    confirming.begin(0, 0)
    cursor = Cursor(7, b"x", 0, 0, {})
    unfinished: list[list[int]] = []
    numbers, serial = [0, 0], 0
    for _ in range(chance.randrange(1, 60)):
        what = chance.random()
        if what < 0.55:
            serial += chance.randrange(1, 3)
            node = chance.randrange(2)
            numbers[node] += 1
            is_open = chance.random() < 0.5
            confirming.hand_out(serial, 1, [(node, numbers[node])], is_open=is_open)
            due = NEVER if is_open else serial
            told.entries.append(Entry(serial, 1, {node: numbers[node]}, due))
            if is_open and unfinished and chance.random() < 0.7:
                chance.choice(unfinished).append(serial)
            elif is_open:
                unfinished.append([serial])
        elif what < 0.7 and unfinished and serial > told.upto:  # finished, or dropped
            some = unfinished.pop(chance.randrange(len(unfinished)))
            confirming.settle(some, serial)
            for one in told.entries:
                if one.serial in some:
                    one.due = serial
        elif what < 0.75 and serial > told.upto:  # a loss is confirmed with what comes after it
            confirming.hand_out(serial, 2)
            told.entries.append(Entry(serial, 2, {}, serial))
        else:
            there = [one.serial for one in told.entries if one.many == 1]
            confirmed = chance.choice(there) if there else 0
            confirming.confirm(confirmed)
            told.upto = max(told.upto, confirmed)
            cursor = send(confirming, cursor)
            found = cursor.serial, cursor.total, cursor.counts, cursor.upto, cursor.gaps
            assert found == told.cursor()
            assert confirming.stored == told.upto
    again = Confirming("n")
    again.begin(cursor.serial, cursor.total, 0, cursor.upto, cursor.gaps)
    for one in told.entries:
        if one.serial > cursor.serial and one.many == 1:
            assert again.has(one.serial) == (one.due <= told.upto)


def send(confirming: Confirming, cursor: Cursor) -> Cursor:
    """The cursor after the next message."""
    message = confirming.next_message(1, 0.0, 1.0)
    if message is None:
        return cursor
    confirming.receive(m.Confirmed(1, message.request))
    step = Confirmation(message.serial, message.total, message.counts, message.upto, message.gaps)
    if not cursor.is_before(step):  # the first message only claims the name
        assert (step.serial, step.upto) == (cursor.serial, cursor.upto)
        return cursor
    found = cursor.confirm(step)
    assert not found.is_before(step)
    return found


def test_an_older_agent_does_not_open_again_what_was_confirmed() -> None:
    cursor = Cursor(7, b"x", 2, 1, {7: 1}).confirm(Confirmation(2, 1, {}, 9, (3, 5)))
    assert (cursor.serial, cursor.upto, cursor.gaps) == (2, 9, (3, 5))
    cursor = cursor.confirm(Confirmation(4, 2, {7: 2}))
    assert (cursor.serial, cursor.upto, cursor.gaps) == (4, 9, (5,))
    cursor = cursor.confirm(Confirmation(12, 9, {7: 9}))
    assert (cursor.serial, max(cursor.serial, cursor.upto), cursor.gaps) == (12, 12, ())


def test_what_grows_while_a_payload_stays_unfinished() -> None:
    confirming = Confirming("n")
    confirming.begin(0, 0)
    confirming.hand_out(1, 1, [(7, 1)], is_open=True)
    for serial in range(2, 5000):
        confirming.hand_out(serial, 1, [(7, serial)])
        confirming.confirm(serial)
    assert len(confirming._between) == 2
    assert not confirming._handed
    confirming.settle([1], 5000)
    confirming.hand_out(5000, 1, [(7, 5000)])
    confirming.confirm(5000)
    assert not confirming._between
    message = confirming.next_message(1, 0.0, 1.0)
    assert message is not None
    assert (message.serial, message.total, message.counts) == (5000, 5000, {7: 5000})


# -- a subscriber ----------------------------------------------------------------------------------


def body(first: int, at: int, of: int, data: bytes) -> bytes:
    return wrap(About(piece=Piece(first, at, of)), data)


def subscriber(resumption: m.Resumption, **options: object) -> Subscriber:
    one = Subscriber("s", "r", b"x", durable="n", **options)  # type: ignore[arg-type]
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    (_, resume), *_ = one.receive(m.Setup(1, 7, (), (), 0, 0), 0)
    assert isinstance(resume, m.Resume)
    sent = one.receive(msgspec.structs.replace(resumption, request=resume.request), 0)
    sent += one.receive(m.Counted(1, resume.request + 1, 7, 0, 0, {}), 0)
    answer(one, sent)
    return one


def answer(one: Subscriber, sent: Iterable[tuple[object, object]]) -> None:
    """Answer the message that claims the name."""
    (claim,) = [message for _, message in sent if isinstance(message, m.Confirm)]
    one.receive(m.Confirmed(1, claim.request), 0)


def tell(one: Subscriber, serial: int, publisher: str, stamp: int, payload: bytes) -> None:
    mark = m.Mark(7, serial, (7,))
    one.receive(m.Notification(1, serial, (mark,), payload, publisher, stamp), 0)


def confirm(one: Subscriber, serial: int) -> m.Confirm:
    (found,) = [message for _, message in one.confirm(serial, 0) if isinstance(message, m.Confirm)]
    one.receive(m.Confirmed(1, found.request), 0)
    return found


def test_a_reader_that_ends_between_two_pieces() -> None:
    one = subscriber(m.Resumption(1, 0))
    tell(one, 1, "a", 1, body(1, 0, 2, b"x"))
    tell(one, 2, "b", 1, b"between")
    assert payloads(one.inbox) == [b"between"]
    sent = confirm(one, 2)
    assert (sent.serial, sent.total, sent.counts, sent.upto, sent.gaps) == (0, 0, {}, 2, (1,))
    again = subscriber(m.Resumption(1, 0, 0, 0, {}, upto=sent.upto, gaps=sent.gaps))
    for serial, publisher, stamp, payload in (
        (1, "a", 1, body(1, 0, 2, b"x")), (2, "b", 1, b"between"),
        (3, "a", 2, body(1, 1, 2, b"y")), (4, "b", 2, b"after"),
    ):  # fmt: skip
        tell(again, serial, publisher, stamp, payload)
    assert payloads(again.inbox) == [b"xy", b"after"]
    sent = confirm(again, 3)
    assert (sent.serial, sent.total, sent.counts, sent.upto, sent.gaps) == (3, 3, {7: 3}, 3, ())


def test_a_subscription_that_begins_between_two_pieces() -> None:
    one = subscriber(m.Resumption(1, 0))
    tell(one, 1, "a", 2, body(1, 1, 2, b"y"))
    tell(one, 2, "a", 3, b"after")
    assert payloads(one.inbox) == [b"after"]
    sent = confirm(one, 2)
    assert (sent.serial, sent.upto, sent.gaps) == (2, 2, ())


def test_a_loss_of_pieces_is_reported_once_and_can_be_confirmed() -> None:
    one = subscriber(m.Resumption(1, 0))
    tell(one, 1, "a", 1, body(1, 0, 2, b"x"))
    tell(one, 2, "b", 1, b"between")
    one.tick(1)
    answer(one, one.tick(LONGEST + 2))
    assert [what for what in one.inbox if isinstance(what, Lost)] == [Lost(1)]
    tell(one, 3, "a", 2, body(1, 1, 2, b"y"))
    tell(one, 4, "b", 2, b"after")
    assert payloads(one.inbox) == [b"between", b"after"]
    sent = confirm(one, 4)
    assert (sent.serial, sent.total, sent.upto, sent.gaps) == (4, 4, 4, ())


def payloads(inbox: Iterable[object]) -> list[bytes]:
    return [one.payload for one in inbox if isinstance(one, Delivery)]
