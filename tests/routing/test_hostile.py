"""Messages that are well-formed but make no sense raise no error."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.routing.test_frames import labels, numbers, others, ranges

from tidings.channel.interests import ArrayInterests
from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.router import Router
from tidings.routing.protocol import messages as m, pack_tag
from tidings.routing.root.rendezvous import Rendezvous
from tidings.store.journal import FileJournal

small = st.integers(0, 5)
tables = st.dictionaries(small, small, max_size=3)
slices = st.builds(m.Slice, small, st.integers(1, 3))
edges = st.builds(m.Edges, slices, small)
digests = st.builds(m.Digest, small, small)
nodes = st.lists(small, max_size=4).map(tuple)
lives = st.lists(st.builds(m.Life, st.integers(0, 3), small), max_size=3).map(tuple)
contents = [b'{"x": 5}', b"", b"[]", b'{"x": "a"}', b"{", b'{"x": "\xff"}']


def packed(numbers: list[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


columns = st.lists(st.integers(-1, 5), max_size=4).map(packed) | st.binary(max_size=9)
rising = st.lists(small, max_size=3).map(lambda found: packed([0, *sorted(found)]))
parts = st.builds(m.HandOver, st.sampled_from(["s", "t"]), small, small, st.booleans(), st.just(1),
                  small, rising | columns, columns, rising | columns,
                  st.binary(max_size=5))  # fmt: skip
likely = st.one_of(
    st.builds(m.Describe, small),
    st.builds(m.Follow, small, small, st.integers(0, 1), small, small),
    parts,
    parts,
    st.builds(m.Subscribe, st.just(1), nodes | labels, st.booleans()),
    st.builds(m.Locate, st.just(1), nodes, numbers),
    st.builds(m.Unsubscribe, st.just(1), nodes),
    st.builds(m.Wanted, st.just(1), nodes | labels, slices),
    st.builds(m.Resubscribe, st.just(1), digests, small),
    st.builds(m.Redraw, st.just(1)),
    st.builds(m.Ask, small, st.sampled_from([b"x > 1", b"x > 0", b"", b"\xff", b"x >"])),
    st.builds(m.Count, st.just(1), small, small, small),
    st.builds(m.Recover, st.just(1), small, ranges),
    st.builds(m.Resume, st.just(1), small, st.sampled_from(["a", "b"]), small,
              st.sampled_from([b"x > 1", b"x > 0", b"x >"])),
    st.builds(m.Confirm, st.just(1), small, st.sampled_from(["a", "b"]), small, small, tables,
              st.booleans(), term=small | numbers),
    st.builds(m.Publish, st.just("p"), small, small,
              st.sampled_from(contents), st.just(b""),
              tag=st.binary(max_size=20) | st.builds(pack_tag, small, small, nodes)),
    st.builds(m.Setup, st.just(1), small, nodes, nodes, small, small),
    st.builds(m.Gone, st.just(1), nodes),
    st.builds(m.Refuse, st.just(1), nodes),
    st.builds(m.Beat, st.just(1), small, tables, digests, small, st.none() | edges, small,
              st.booleans()),
    st.builds(m.Graph, st.just(1), small, st.dictionaries(small, nodes, max_size=3), tables),
    st.builds(m.Which, st.just(1)),
    st.builds(m.Trace, small),
    st.builds(m.Lineage, st.integers(0, 3), st.sampled_from([2**32 + 2, 2**32 + 3]), lives),
)  # fmt: skip
said = st.lists(st.tuples(st.sampled_from(["a", "b", "up"]), likely | others, numbers), max_size=30)


@given(said)
def test_routers(given_: list[tuple[str, m.Message, int]]) -> None:
    router = Router("r", "up", cache=Cache(10))
    for at, (sender, message, _) in enumerate(given_):
        router.receive(sender, message, float(at))
        router.tick(float(at))


@pytest.mark.timeout(3600)
@given(said)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rendezvous_points(tmp_path: Path, given_: list[tuple[str, m.Message, int]]) -> None:
    path = tmp_path / "journal.db"
    shutil.rmtree(path, ignore_errors=True)
    journal = FileJournal(path)
    journal.begin_life(1)
    root = Rendezvous("root", ArrayInterests(), journal, journal.memory([]), cache=Cache(3))
    for at, (sender, message, _) in enumerate(given_):
        root.receive(sender, message, float(at))
        batch = journal.take()
        if batch is not None:
            journal.write(batch)
        root.mark_stored(root.written, float(at))
        root.tick(float(at))
    journal.close()
