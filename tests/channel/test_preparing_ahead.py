"""Filters that a thread reads ahead are kept until they are placed, whatever their length."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from threading import Thread

import pytest

from tidings.channel.interests import ArrayInterests
from tidings.channel.interests.preparing import GROUP, GROUP_BYTES, prepare_ahead
from tidings.channel.interests.reading import MOST_KEPT, Filters
from tidings.filters import Filter


@pytest.mark.parametrize("length", [10, 3_000, 100_000])
def test_all_are_kept_until_they_are_read(
    length: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    count = min(1200, 3 * MOST_KEPT // length)
    # comments make them long
    texts = [f"n = {at} /* {'x' * rng.randrange(length)} */".encode() for at in range(count)]
    texts.insert(count // 2, b"n = 0 /* " + b"x" * 220_000 + b" */")
    interests = ArrayInterests()
    filters = interests._filters
    parse, parsed = Filters.parse, list[bytes]()

    def noted(self: Filters, interest: bytes) -> Filter:
        parsed.append(interest)
        return parse(self, interest)

    monkeypatch.setattr(Filters, "parse", noted)
    read: list[bytes] = []
    for group in prepare_ahead(interests._nodes, filters, texts):
        assert len(group) <= GROUP
        assert len(group) == 1 or sum(map(len, group)) <= GROUP_BYTES
        for one in group:
            interests.place(one)
            read.append(one)
    assert read == texts
    assert parsed == texts  # none was read twice
    assert filters._kept_bytes == 0
    assert not interests._nodes._prepared


@pytest.fixture
def _short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_short_turns")
def test_the_bytes_are_counted_while_two_threads_use_them() -> None:
    filters = ArrayInterests()._filters
    known = filters.parse(b"n = 1")
    texts = [b"n = %d" % at for at in range(20_000)]

    def keep() -> None:
        for one in texts:
            filters.keep(one, known)

    thread = Thread(target=keep)
    thread.start()
    for one in texts:
        while one not in filters._kept:
            pass
        filters.read(one)
    thread.join()
    for one in [*filters._kept]:
        filters.read(one)
    assert filters._kept_bytes == 0
    for _ in range(2):
        filters.keep(b"n = 5", known)
    filters.read(b"n = 5")
    assert filters._kept_bytes == 0
