"""Frames of many notifications, against those of each alone; what a running root sends of them."""

from __future__ import annotations

import random

from tests.store.test_journal_blocks import a_block

from tidings.broker.outgoing_frames.block_frames import FrameRun, encode_block, join_frames
from tidings.routing.protocol import frames


def test_the_same_as_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    for rows in (1, 3, 200):
        block = a_block(chance, rows, serial=70, stamp=9, source="ä/out")
        known = {
            node: frames.encode_labels([tuple(chance.sample(range(99), chance.randrange(1, 4)))])
            for node in range(1, 10)
        }
        expected = []
        for record in block.records():
            if record.marks:
                labels = b"".join(known[mark.node] for mark in record.marks)
                front = record.notification(5, ())
                expected.append(frames.encode_marked(front, record.marks, labels))
        if not expected:
            continue
        run = encode_block(block, 5, [known[node] for node in block.marks.distinct.tolist()])
        assert run.data == b"".join(expected)
        assert [run.data[a:b] for a, b in zip(run.starts, run.ends, strict=True)] == expected
        assert frames.split(run.data)[0] == run.starts


def test_single_frames_are_joined_and_stay_in_order() -> None:
    run = FrameRun(b"xyz", [0, 1], [1, 3])
    assert list(join_frames([])) == []
    assert list(join_frames([b"a", b"bc", run, b"d"])) == [
        FrameRun(b"abc", [0, 1], [1, 3]), run, FrameRun(b"d", [0], [1]),
    ]  # fmt: skip
