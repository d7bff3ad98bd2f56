"""The judge of the time machine finds each kind of error."""

from __future__ import annotations

from tests.broker.kills.accounts import INTERESTS, Account, Book, payload_of, read_payload

from tidings.routing.clients.subscriber import Delivery, Lost
from tidings.routing.protocol.lineage import Break


def said(count: int = 10) -> tuple[Book, Account]:
    book = Book()
    account = Account("s", INTERESTS[0][1], book)
    book.begin_round()
    account.begin_round()
    for number in range(1, count + 1):
        book.said = number
        book.acknowledged[number] = number
    return book, account


def told(number: int) -> Delivery:
    return Delivery(1, number, payload_of(number, 20))


def test_all_that_came_is_right() -> None:
    _, account = said()
    for number in range(1, 11):
        account.put(told(number))
    assert account.is_settled()
    assert account.judge(untouched=True) == []


def test_what_did_not_come_is_missed() -> None:
    _, account = said()
    for number in (1, 2, 3, 5, 6, 7, 8, 9, 10):
        account.put(told(number))
    assert not account.is_settled()
    assert "never got 1 that were acknowledged" in account.judge(untouched=False)[0]


def test_a_loss_that_was_named_is_none_but_where_nobody_touched_the_files() -> None:
    _, account = said()
    for number in (1, 2, 3, 5, 6, 7, 8, 9, 10):
        account.put(told(number))
    account.put(Lost(1))
    assert account.judge(untouched=False) == []
    assert "1 lost ones" in account.judge(untouched=True)[0]


def test_a_loss_is_as_large_as_it_says() -> None:
    _, account = said()
    account.put(Lost(9))
    assert "never got 10" in account.judge(untouched=False)[0]


def test_a_break_excuses_up_to_the_first_that_was_said_after_it() -> None:
    book, account = said()
    account.put(told(1))
    account.put(Break("it went back"))
    assert not account.is_settled()
    for number in (11, 12, 13, 14):
        book.said = number
        book.acknowledged[number] = number
    account.put(told(12))
    account.put(told(14))
    assert account.missing() == [13]
    assert "never got 1 " in account.judge(untouched=False)[0]


def test_stamps_that_the_publisher_was_told_of_are_no_loss() -> None:
    book, account = said()
    for number in range(1, 8):
        account.put(told(number))
    book.put_break([(8, 9)])
    assert account.missing() == [10]


def test_twice_is_a_fault_without_a_break_between() -> None:
    _, account = said(1)
    account.put(told(1))
    account.put(Break("it went back"))
    account.put(told(1))
    assert account.faults == []
    account.put(told(1))
    assert account.faults == ["s got 1 twice"]


def test_other_payloads_are_faults() -> None:
    _, account = said(2)
    right = payload_of(1, 20)
    assert read_payload(right) == 1
    for at in range(len(right)):
        wrong = right[:at] + bytes([right[at] ^ 4]) + right[at + 1 :]
        assert read_payload(wrong) is None
    account.put(Delivery(1, 1, right[:-1]))
    account.put(told(3))
    assert account.faults == ["s got a payload that nobody published"] * 2


def test_what_one_does_not_want_is_a_fault() -> None:
    book = Book()
    book.said = 70
    account = Account("s", INTERESTS[1][1], book)
    account.put(told(70))
    assert account.faults == ["s got 70, which it does not want"]
