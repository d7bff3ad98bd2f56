"""Caches: the latest notifications are found by any of their marks, within bounds."""

from __future__ import annotations

from tidings.routing.forwarding.cache import Cache
from tidings.routing.protocol.messages import Mark, Notification, Range


def notification(serial: int, *marks: tuple[int, int], size: int = 10) -> Notification:
    return Notification(1, serial, tuple(Mark(n, at, (n,)) for n, at in marks), b"x" * size)


def test_what_is_here_and_what_is_not() -> None:
    cache = Cache()
    for serial in (1, 2, 4):
        cache.put(notification(serial, (7, serial), (8, serial + 10)))
    found, rest = cache.find([Range(7, 1, 5), Range(8, 11, 11), Range(9, 1, 2)])
    assert [one.serial for one in found] == [1, 2, 4]
    assert rest == [Range(7, 3, 3), Range(7, 5, 5), Range(9, 1, 2)]


def test_the_oldest_goes_first() -> None:
    own = 2 * Cache.overhead  # of a notification with one mark
    cache = Cache(most=3, most_bytes=100 + 3 * own)
    for serial in range(1, 6):
        cache.put(notification(serial, (1, serial)))
    assert cache.find([Range(1, 1, 5)])[1] == [Range(1, 1, 2)]
    cache.put(notification(6, (1, 6), size=85))
    assert (len(cache), cache.bytes) == (2, 95 + 2 * own)
    cache.put(notification(7, (1, 7), size=5000))
    assert (len(cache), cache.bytes) == (0, 0)


def test_marks_take_room_too() -> None:
    """Ten thousand notifications with five hundred marks each took a gigabyte."""
    cache = Cache(most_bytes=1 << 20)
    for serial in range(100):
        cache.put(notification(serial, *((node, serial) for node in range(500))))
    assert len(cache) == (1 << 20) // (10 + 501 * Cache.overhead) == 8


def test_one_that_is_here_stays() -> None:
    cache = Cache()
    cache.put(notification(1, (1, 1)))
    cache.put(notification(1, (1, 1), (2, 1)))
    assert len(cache) == 1
    assert cache.find([Range(2, 1, 1)])[1] == [Range(2, 1, 1)]
    cache.clear()
    assert (len(cache), cache.bytes, cache.find([Range(1, 1, 1)])[0]) == (0, 0, [])


def test_a_range_without_end_costs_nothing() -> None:
    cache = Cache()
    cache.put(notification(1, (1, 500)))
    found, rest = cache.find([Range(1, 1, 2**60)])
    assert [one.serial for one in found] == [1]
    assert rest == [Range(1, 1, 499), Range(1, 501, 2**60)]
