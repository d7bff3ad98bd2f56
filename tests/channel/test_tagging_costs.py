"""Short runs are tagged one by one or as a batch, whichever was measured to cost less."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidings.channel.interests import ArrayInterests
from tidings.channel.interests.tagging import LEAST, MOST, Tagging
from tidings.routing.root import TaggedMany

Batches = list[int]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Batches:
    """The sizes of all batches."""
    found: Batches = []
    tag_batch = Tagging._tag_batch

    def noted(self: Tagging, contents: Sequence[bytes]) -> TaggedMany | None:
        found.append(len(contents))
        return tag_batch(self, contents)

    monkeypatch.setattr(Tagging, "_tag_batch", noted)
    return found


def tag(interests: ArrayInterests, count: int) -> None:
    """Tag so many notifications, and check their tags."""
    done = 0
    while done < count:
        found = interests.tag_many([b'{"n": %d}' % (at % 3) for at in range(done, count)])
        for row, first in enumerate(found.starts[:-1].tolist()):
            wanted = [1] if (done + row) % 3 == 1 else []
            assert found.nodes[first : found.starts[row + 1]].tolist() == wanted
        done += len(found.starts) - 1


def test_the_cheaper_way_is_used(batches: Batches) -> None:
    interests = ArrayInterests()
    assert interests.place(b"n = 1").node == 1
    tagging = interests._tagging
    tagging._batch_cost, tagging._each_cost = 0.001, 0.001 / (MOST // 2 - 1)
    tag(interests, MOST // 2)
    assert batches == [MOST // 2]
    tagging._batch_cost, tagging._each_cost = 0.001, 0.001 / (MOST // 2 + 1)
    tag(interests, MOST // 2)
    assert batches == [MOST // 2]


def test_a_batch_is_tried_again_later(batches: Batches) -> None:
    """A batch that was slow once, because the machine was busy, must not be avoided forever."""
    interests = ArrayInterests()
    interests.place(b"n = 1")
    interests._tagging._batch_cost = 10.0
    for _ in range(10_000):
        tag(interests, MOST - 1)
        if batches:
            break
    assert batches


def test_few_are_never_a_batch_and_many_always(batches: Batches) -> None:
    interests = ArrayInterests()
    interests.place(b"n = 1")
    interests._tagging._batch_cost = 0.0
    tag(interests, LEAST - 1)
    assert not batches
    interests._tagging._batch_cost = 10.0
    tag(interests, MOST)
    assert batches[0] == MOST
