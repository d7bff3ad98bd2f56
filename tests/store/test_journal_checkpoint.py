"""The state of a journal in a file: small and large ones, cut off and altered."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import msgspec
import pytest
from tests.store.test_journal import BEFORE, check_before

from tidings.store import ChangeLog
from tidings.store.groups import Position, layout
from tidings.store.journal import FileJournal, checkpoint
from tidings.store.journal.state import Counter, JournalState, StoredNode


def a_state(chance: random.Random, nodes: int = 40) -> JournalState:
    return JournalState(
        Position(7, 3, 900, 5), 70, nodes, [(77, 1), (78, 9)],
        {n: StoredNode(chance.randbytes(chance.randrange(200)), ("a",))
         for n in range(1, nodes + 1)},
        {n: Counter(n, 2 * n, 70) for n in range(1, nodes + 1)},
        {f"p{n}": n for n in range(30)}, term=12,
    )  # fmt: skip


def test_a_small_one_is_as_it_always_was(tmp_path: Path, seed: int) -> None:
    state = a_state(random.Random(seed))
    state.folder = tmp_path
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
    state.folder = tmp_path
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


def test_texts_are_stored_once(tmp_path: Path) -> None:
    long = "n > 1 AND place = '" + "x" * 3_000 + "'"
    log = ChangeLog(tmp_path)
    log.put("a", long)
    log.put("b", "NOT (NOT (" + long + "))")  # the same filter
    log.put("c", '{"n": [1]}', "eventbridge", owner="ana")
    log.forget_before(log.version)
    stored = (tmp_path / checkpoint.NAME).read_bytes()
    assert stored.count(b"x" * 3_000) == 2  # of two subscriptions, and not of their node
    found = checkpoint.read(tmp_path, None)
    assert [one.interest for one in found.nodes.values()] == [b"", b""]
    found.add_texts()
    assert found.nodes[1].interest == long.encode()
    assert found.nodes[3].interest == b'\0eventbridge\0{"n": [1]}'
    assert log.state().owners == {"c": "ana"}


def test_a_node_keeps_its_text_when_the_subscription_that_made_it_ends(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put("a", "n > 1")
    log.put("b", "1 < n")
    log.put("c", "n > 7")
    log.forget_before(log.version)
    log.put("c", "7 < n")  # replaced by the same filter
    log.drop("a")
    for forgets in (False, True):  # from the log, and from a checkpoint
        if forgets:
            log.forget_before(log.version)
        journal = FileJournal(tmp_path)
        assert journal.interests() == [(1, b"n > 1"), (3, b"n > 7")]
        journal.close()
        assert ChangeLog(tmp_path).subscriptions() == {"b": ("1 < n", 1), "c": ("7 < n", 3)}


def test_a_checkpoint_whose_nodes_repeat_the_texts(tmp_path: Path) -> None:
    """The bytes of content 4: a subscription has four fields, and each node has its text."""
    log = ChangeLog(tmp_path)
    log.put("a", "n > 1")
    log.put("b", "1 < n")
    log.put("c", '{"n": [1]}', "eventbridge")
    log.forget_before(log.version)
    expected, (record, *_) = log.state(), checkpoint._records(read_checkpoint(tmp_path))
    about = msgspec.msgpack.decode(record or b"")
    assert about[:1] == ["about"]
    assert about[5] == checkpoint.CONTENT
    about[5] = 4
    keys = expected.identities
    parts = [
        about,
        ["nodes", {1: [b"n > 1", [], keys[1], True],
                   3: [b'\0eventbridge\0{"n": [1]}', [], keys[3], True]}],
        ["subscriptions", {"a": ["n > 1", 1, 1, "sql"], "b": ["1 < n", 1, 2, "sql"],
                           "c": ['{"n": [1]}', 3, 3, "eventbridge"]}],
    ]  # fmt: skip
    data, _ = layout.encode_group(2, 1, 0, [msgspec.msgpack.encode(one) for one in parts])
    (tmp_path / checkpoint.NAME).write_bytes(data)
    assert ChangeLog(tmp_path).state() == expected
    log = ChangeLog(tmp_path)
    log.put("d", "n > 1", owner="ben")
    log.drop("a")
    log.forget_before(log.version)
    about = msgspec.msgpack.decode(next(checkpoint._records(read_checkpoint(tmp_path))) or b"")
    assert about[5] == checkpoint.CONTENT
    assert read_checkpoint(tmp_path).count(b"n > 1") == 2  # of the node that `a` made, and of `d`
    journal = FileJournal(tmp_path)
    assert journal.interests() == [(1, b"n > 1"), (3, b'\0eventbridge\0{"n": [1]}')]
    journal.close()


def read_checkpoint(folder: Path) -> bytes:
    return (folder / checkpoint.NAME).read_bytes()
