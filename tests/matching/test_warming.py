"""No kernel is compiled while single events are matched, once those that they need were loaded."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import random
from numba.core.dispatcher import Dispatcher
from tests.filters.strategies import event, schema
from tests.matching.test_matcher import random_filters
from tidings.matching import Matcher, load_kernels
from tidings.matching.diagrams import diagram_kernels
from tidings.matching.segments import join_kernels, probe_kernels

def signatures():
    found = {**vars(join_kernels), **vars(probe_kernels), **vars(diagram_kernels)}
    return {name: len(one.signatures) for name, one in found.items() if isinstance(one, Dispatcher)}

load_kernels()
before = signatures()
assert before["probe"] == before["fill_cells"] == before["match_event"] == 1, before
rng = random.Random(SEED)
for _ in range(3):
    of = schema(rng)
    matcher = Matcher(background=False)
    for at, one in enumerate(random_filters(rng, of, 300)):
        matcher.add(at, one)
        if at % 90 == 0:
            matcher.merge()
        matcher.match(event(rng, of))
assert signatures() == before, signatures()
"""


def test_no_kernel_is_compiled_after_the_start(seed: int) -> None:
    program = PROGRAM.replace("SEED", str(seed))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


RUNS = """
from numba.core.dispatcher import Dispatcher
from tidings.channel.interests import ArrayInterests, load_interest_kernels
from tidings.matching import buffer_row_kernels, load_kernels
from tidings.matching.placing import sketch_kernels
from tidings.matching.segments import join_kernels

def signatures():
    found = {**vars(join_kernels), **vars(sketch_kernels), **vars(buffer_row_kernels)}
    return {name: len(one.signatures) for name, one in found.items() if isinstance(one, Dispatcher)}

load_kernels()
load_interest_kernels()
before = signatures()
interests = ArrayInterests()
for number in range(40):
    interests.place(b"x = %d AND y > %d" % (number % 7, number % 11))
    if number % 13 == 0:
        interests.seal_recent()
    tagged = interests.tag_many([b'{"x": %d, "y": 5}' % (at % 7) for at in range(120)])
assert len(tagged.nodes)

from tidings import parse
from tidings.matching.write_buffer import WriteBuffer
import pyarrow as pa

buffer = WriteBuffer()
buffer.add(0, parse("s = 'v' AND t > 'w' AND b").form)
for values in (["v", "x"], [None, None], ["", ""]):
    for kind in (pa.string(), pa.large_string()):
        column = pa.array(values, kind)
        columns = [column, column, pa.array([True, False])]
        batch = pa.RecordBatch.from_arrays(columns, ["s", "t", "b"])
        buffer.find_rows(batch)
        # the buffers of this one are read-only
        buffer.find_rows(pa.ipc.read_record_batch(batch.serialize(), batch.schema))
assert signatures() == before, (before, signatures())
"""


def test_no_kernel_is_compiled_while_interests_are_placed_and_runs_are_tagged() -> None:
    """Compiling one would keep the event loop of a rendezvous point busy for seconds."""
    done = subprocess.run([sys.executable, "-c", RUNS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
