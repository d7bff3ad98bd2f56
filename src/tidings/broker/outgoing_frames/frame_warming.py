"""Loads the kernels for parts that are handed over and for runs of publications, before the first
part or run arrives.

Without a cache, compiling the kernels takes a few seconds, during which no client would be served.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tidings.broker.outgoing_frames.block_frames import encode_block
from tidings.matching.json_columns import JsonReader
from tidings.routing.protocol import frames, messages as m
from tidings.routing.root import Block, PayloadColumns, Progress, find_runs, number_alone
from tidings.store.journal import CounterSums, encode_block as encode_records

FEW = 8  # the number of frames in the run that loads the kernels


@cache
def load_block_kernels() -> None:
    """Compile or load the kernels for the types of arguments that they are called with. This is
    done once per process."""
    starts, nodes = np.array([0, 1, 3]), np.array([1, 1, 2])
    marks, matched = number_alone(starts, nodes)
    payloads = PayloadColumns(np.array([0, 1, 2]), b"ab")
    progress = Progress(0, 0, 2, whole=True, last=True, stamp=2)
    block = Block("", progress, 1, marks, matched, payloads)
    encode_records(block)
    tally = CounterSums()
    tally.add_block(block)
    tally.forget(1)
    frame = frames.encode(m.Publish("a", 1, 1, b"{}", b"ab"))
    for _, run in find_runs(frame * FEW, [at * len(frame) for at in range(FEW)]):
        assert run is not None
        run.write_bodies(0, FEW)
    JsonReader({"a": str, "b": int}).read([b'{"a": "b"}'])
    encode_block(block, 1, [b"\1\0" + bytes(8)] * len(marks.distinct))
