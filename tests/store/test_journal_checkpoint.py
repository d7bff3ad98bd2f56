"""The state of a journal in a file: small and large ones, cut off and altered."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import msgspec
import pytest
from tests.store.test_journal import BEFORE, check_before

from tidings.store.groups import Position, layout
from tidings.store.journal import FileJournal, checkpoint
from tidings.store.journal.state import Counter, Node, State


def a_state(chance: random.Random, nodes: int = 40) -> State:
    return State(
        Position(7, 3, 900, 5), 70, nodes, [(77, 1), (78, 9)],
        {n: Node(chance.randbytes(chance.randrange(200)), ("a",)) for n in range(1, nodes + 1)},
        {n: Counter(n, 2 * n, 70) for n in range(1, nodes + 1)},
        {f"p{n}": n for n in range(30)},
    )  # fmt: skip


def test_a_small_one_is_as_it_always_was(tmp_path: Path, seed: int) -> None:
    state = a_state(random.Random(seed))
    checkpoint.write(tmp_path, state)
    records = [msgspec.msgpack.encode(part) for part in checkpoint._parts(state)]
    data, _ = layout.encode_group(2, 1, 0, records)
    assert (tmp_path / checkpoint.NAME).read_bytes() == data
    assert checkpoint.read(tmp_path, None) == state


@pytest.fixture
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_BYTES", 1_000)
    monkeypatch.setattr(checkpoint, "GROUP_BYTES", 600)


@pytest.mark.usefixtures("_small_groups")
def test_a_large_one_is_several_groups(tmp_path: Path, seed: int) -> None:
    state = a_state(random.Random(seed))
    size = checkpoint.write(tmp_path, state)
    data = (tmp_path / checkpoint.NAME).read_bytes()
    assert size == len(data) > 3_000
    assert layout.decode_group_head(2, data, 0) is None, "an older tidings knows of one group"
    assert checkpoint.read(tmp_path, None) == state


@pytest.mark.usefixtures("_small_groups")
def test_whatever_is_missing_or_altered_is_noticed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    checkpoint.write(tmp_path, a_state(chance))
    path = tmp_path / checkpoint.NAME
    data = path.read_bytes()
    starts, at = [0], 0
    while (head := layout.decode_group_head(3, data, at)) is not None:
        at += layout.GROUP_HEAD + head.size
        starts.append(at)
    assert len(starts) > 5
    one, two, three = starts[1:4]
    altered = [data[:cut] for cut in (*starts[:-1], *chance.sample(range(len(data)), 30))]
    altered += [data[cut:] for cut in starts[1:]]
    altered += [
        data + data,
        data + b"x",
        data[:one] + data[two:three] + data[one:two] + data[three:],
    ]
    for place in chance.sample(range(len(data)), 60):
        altered.append(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    for one_altered in altered:
        path.write_bytes(one_altered)
        with pytest.raises(checkpoint.Damaged, match="is corrupt"):
            checkpoint.read(tmp_path, None)


@pytest.mark.usefixtures("_small_groups")
def test_large_notifications_of_the_format_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    shutil.copy(BEFORE, path)
    check_before(FileJournal(path))
