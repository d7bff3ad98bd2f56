"""A cache of frames finds what a cache of notifications finds."""

from __future__ import annotations

import random

from tidings.network.frame_cache import OF_PLACE, FrameCache
from tidings.routing.forwarding.cache import Cache
from tidings.routing.protocol import frames
from tidings.routing.protocol.messages import Mark, Notification, Range


def random_notification(chance: random.Random, counts: dict[int, int], serial: int) -> Notification:
    nodes = chance.sample(range(1, 6), chance.randrange(1, 4))
    for node in nodes:
        counts[node] = counts.get(node, 0) + 1
    marks = tuple(Mark(node, counts[node], (node,)) for node in nodes)
    return Notification(1, serial, marks, chance.randbytes(chance.randrange(400)))


def random_ranges(chance: random.Random, counts: dict[int, int]) -> list[Range]:
    found = []
    for node in chance.sample(range(1, 7), chance.randrange(1, 4)):
        first = chance.randrange(1, counts.get(node, 0) + 5)
        last = chance.choice([first, first + chance.randrange(10), 2**60])
        found.append(Range(node, first, last))
    return found


def test_against_a_cache_of_notifications(seed: int) -> None:
    chance = random.Random(seed)
    cache, expected = FrameCache(), Cache(10**9, 1 << 40)
    counts: dict[int, int] = {}
    serial = 0
    for _ in range(300):
        given = []
        for _ in range(chance.randrange(1, 30)):
            serial += 1
            given.append(random_notification(chance, counts, serial))
        for one in given:
            expected.put(one)
        if chance.random() < 0.1:  # it came by recovery
            cache.put(given.pop(0))
        if given:
            cache.put_frames(b"".join(map(frames.encode, given)))
        if chance.random() < 0.3:
            ranges = random_ranges(chance, counts)
            assert cache.find(ranges) == expected.find(ranges)


def test_bounds_and_the_oldest(seed: int) -> None:
    chance = random.Random(seed)
    cache = FrameCache(most_bytes=100_000)
    counts: dict[int, int] = {}
    kept: list[Notification] = []
    for serial in range(1, 2000):
        kept.append(random_notification(chance, counts, serial))
        cache.put_frames(frames.encode(kept[-1]))
        assert cache.chunk_bytes <= 100_000
        if serial % 300 == 0 and serial > 1000:
            found, _ = cache.find([Range(node, 1, 2**60) for node in counts])
            assert found == kept[-len(found) :]
            places = sum(map(len, cache._places.values()))
            assert places == sum(len(one.marks) for one in found) > 100
            size = sum(len(frames.encode(one)) for one in found)
            assert cache.chunk_bytes == size + OF_PLACE * places  # some go with the next
    cache.clear()
    assert cache.find([Range(1, 1, 10**6)]) == ([], [Range(1, 1, 10**6)])


def test_frames_that_can_not_be_read_are_passed_over() -> None:
    cache = FrameCache()
    good = frames.encode(Notification(1, 1, (Mark(7, 1, (7,)),), b"x"))
    bad = bytearray(frames.encode(Notification(1, 2, (Mark(7, 2, (7,)),), b"x")))
    bad[8] = 255  # the labels' size
    cache.put_frames(good + bytes(bad))
    found, rest = cache.find([Range(7, 1, 2)])
    assert [one.serial for one in found] == [1]
    assert rest == [Range(7, 2, 2)]
