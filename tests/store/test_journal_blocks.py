"""Blocks of notifications in the journal: the bytes against those of single ones; through restarts,
cuts at any byte and damage; and older journals, which have neither blocks nor versions."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np
import pytest
from tests.store.test_journal import check_finding, opened, ready, write

from tidings.model import EnvironmentProblem
from tidings.routing.protocol.messages import Life
from tidings.routing.root import (
    Block,
    History,
    PayloadColumns,
    Placed,
    Progress,
    Record,
    RemovedNode,
    number_alone,
)
from tidings.store.groups import layout
from tidings.store.journal import (
    FileJournal,
    block_kernels,
    checkpoint,
    encode_block,
    entries,
    journal as module,
)
from tidings.store.journal.state import JournalState
from tidings.store.journal.upkeep import upkeep

BEFORE = Path(__file__).parent / "before" / "journal-2"  # written before there were versions


def a_block(
    chance: random.Random, rows: int, *, serial: int = 1, stamp: int = 1, source: str = "out"
) -> Block:
    """Notifications with nodes from 1 to 9; some have none."""
    tags = [sorted(chance.sample(range(1, 10), chance.randrange(4))) for _ in range(rows)]
    starts = np.cumsum([0, *map(len, tags)], dtype=np.int64)
    nodes = np.array([node for tag in tags for node in tag], np.int64)
    marks, matched = number_alone(starts, nodes)
    payloads = [chance.randbytes(chance.randrange(40)) for _ in range(rows)]
    around = chance.randbytes(3)  # a piece of a part has others before and after it
    ends = len(around) + np.cumsum([0, *map(len, payloads)], dtype=np.int64)
    columns = PayloadColumns(ends, around + b"".join(payloads) + around)
    progress = Progress(4, 2, rows, whole=True, last=False, stamp=stamp + rows - 1)
    return Block(source, progress, serial, marks, matched, columns)


def test_the_checksum_is_that_of_zlib(seed: int) -> None:
    chance = random.Random(seed)
    for size in (0, 1, 7, 8, 9, 100, 1001):
        data = np.frombuffer(chance.randbytes(size + 3), np.uint8).copy()
        found = block_kernels.checksum(data, 3, size + 3, block_kernels.TABLES)
        assert found == crc32(data[3:].tobytes())


def test_a_block_has_the_bytes_of_its_notifications(seed: int) -> None:
    chance = random.Random(seed)
    for rows in (1, 2, 17, 300):
        block = a_block(chance, rows, serial=70, stamp=9, source="ä/out")
        single = [entries.encode(record) for record in block.records()]
        packed = encode_block(block)
        together = layout.encode_group(5, 1, 2, [b"first", packed, b"last"])
        assert together == layout.encode_group(5, 1, 2, [b"first", *single, b"last"])
        assert packed.count == rows


def numbered(blocks: list[Block]) -> list[Record]:
    return [record for block in blocks for record in block.records()]


def test_through_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Everything is found by its numbers; the progress of sources is where it was, checkpoints or
    not."""
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 4_000)
    monkeypatch.setattr(module, "SEGMENT_BYTES", 3_000)
    chance = random.Random(seed)
    journal = opened(tmp_path / "journal", 77)
    kept: list[Record] = []
    counts: dict[int, int] = {}
    sources: dict[str, Progress] = {}
    for step in range(60):
        source = chance.choice(("a", "b"))
        before = sources.get(source, Progress(0, 0, 0, True, True, 0))
        block = a_block(
            chance, chance.choice((0, 1, 5, 30)), serial=len(kept) + 1, stamp=before.stamp + 1,
            source=source,
        )  # fmt: skip
        for at, node in enumerate(block.marks.nodes.tolist()):
            counts[node] = counts.get(node, 0) + 1
            block.marks.numbers[at] = block.marks.last[block.marks.which[at]] = counts[node]
        assert block.progress is not None
        block.progress = sources[source] = msgspec.structs.replace(block.progress, batch=step)
        journal.append_block(block)
        kept += block.records()
        if chance.random() < 0.3:  # and one alone, between blocks
            single = Record(len(kept) + 1, "p", step + 1, (), (1,), b"")
            journal.append(single)
            kept.append(single)
        if chance.random() < 0.5:
            write(journal)
        if chance.random() < 0.2:
            write(journal)
            journal.close()
            journal = opened(tmp_path / "journal", 100 + step)
    write(journal)
    marked = [record for record in kept if record.marks]
    for _ in range(5):
        check_finding(journal, [sorted_matched(one) for one in marked], 0, chance)
    journal.close()
    journal = ready(FileJournal(tmp_path / "journal"))
    assert not journal.losses
    memory = journal.memory([])
    assert memory.sources == sources
    assert set(memory.publishers) <= {"p"}, "stamps of sources are in their progress"
    assert memory.serial == len(kept)
    state = journal._catch_up()
    assert {node: one.count for node, one in state.counters.items() if one.count} == counts
    totals: dict[int, int] = {}
    for record in kept:
        for node in record.matched:
            totals[node] = totals.get(node, 0) + 1
    assert {node: one.total for node, one in state.counters.items()} == totals


def sorted_matched(record: Record) -> Record:
    return msgspec.structs.replace(record, matched=tuple(sorted(record.matched)))


def test_a_block_is_there_with_its_progress_or_not_at_all(tmp_path: Path, seed: int) -> None:
    """Wherever the machine dies while it is written."""
    chance = random.Random(seed)
    journal = opened(tmp_path / "journal", 77)
    journal.add_node(1, b"n > 1")
    write(journal)
    (log,) = (tmp_path / "journal").glob("*.log")
    size, mark = log.stat().st_size, (tmp_path / "journal" / "end").read_bytes()
    blocks = [a_block(chance, 5), a_block(chance, 3, serial=6, stamp=6)]
    for block in blocks:
        journal.append_block(block)
    write(journal)
    journal.close()
    data = log.read_bytes()
    cuts = {size, len(data) - 1, *chance.sample(range(size, len(data)), 25)}
    for cut in sorted(cuts):
        path = tmp_path / f"cut-{cut}"
        shutil.copytree(tmp_path / "journal", path)
        (path / log.name).write_bytes(data[:cut])
        (path / "end").write_bytes(mark)
        again = FileJournal(path)
        assert not again.losses
        memory = again.memory([])
        assert (memory.serial, memory.sources) == (0, {})
        again.close()
    again = FileJournal(tmp_path / "journal")
    assert again.memory([]).sources == {"out": blocks[-1].progress}
    assert again.memory([]).serial == 8


def test_a_loss_is_another_life_for_sources_too(tmp_path: Path, seed: int) -> None:
    journal = opened(tmp_path / "journal", 77)
    journal.append_block(a_block(random.Random(seed), 5))
    write(journal)
    life = journal.history.life
    journal.add_node(3, b"n > 3")
    write(journal)
    journal.close()
    (log,) = (tmp_path / "journal").glob("*.log")
    log.write_bytes(log.read_bytes()[:-1])
    journal = opened(tmp_path / "journal", 78)
    assert journal.losses
    assert (life, journal.history.life) == (77, 78)
    (progress,) = journal.memory([]).sources.values()
    assert progress.batch < 0
    assert progress.stamp > 5
    journal.close()
    journal = opened(tmp_path / "journal", 79)
    assert journal.history.life == 78, "only a loss begins another one"
    assert journal.memory([]).sources == {"out": progress}


# -- the history -----------------------------------------------------------------------------------


def a_state(chance: random.Random) -> JournalState:
    history = History(5, 90, 3, 4, 16, [(0, 40)], (7, 8), '{"n": "integer"}')
    for node in range(20, 40):
        around = tuple(chance.sample(range(20), 3))
        history.drop(node, RemovedNode(node + 41, around[:1], around[1:], around[:2], node, 7))
    sources = {f"s{at}": Progress(at, 1, 2, True, False, 9) for at in range(30)}
    return JournalState(serial=7, last_node=90, lives=[(5, 1)], history=history, sources=sources)


def test_the_checkpoint_has_it(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state = a_state(random.Random(seed))
    state.folder = tmp_path
    checkpoint.write(tmp_path, state)
    assert checkpoint.read(tmp_path, None) == state
    monkeypatch.setattr(checkpoint, "GROUP_BYTES", 300)
    checkpoint.write(tmp_path, state)
    assert checkpoint.read(tmp_path, None) == state


def test_a_checkpoint_of_a_later_release_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "CONTENT", 9)
    checkpoint.write(tmp_path, JournalState())
    monkeypatch.undo()
    with pytest.raises(EnvironmentProblem, match="has the format 9, expected at most 6; use the"):
        checkpoint.read(tmp_path, None)


def test_what_is_renewed(tmp_path: Path) -> None:
    journal = opened(tmp_path / "journal", 77)
    journal.add_node(1, b"n > 1")
    write(journal)
    journal.renew(2, [1], "declared")
    journal.close()
    journal = opened(tmp_path / "journal", 78)
    history = journal.history
    assert (history.version, history.renewed, history.hidden) == (2, 2, (1,))
    assert history.declaration == "declared"
    assert history.knows(1)
    assert not history.has_changes_since(1)
    assert journal.last_node == 2


# -- journals of before ----------------------------------------------------------------------------


@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_journal_of_before_there_were_versions(tmp_path: Path, checkpointed: bool) -> None:
    path = tmp_path / "journal"
    shutil.copytree(BEFORE, path)
    if not checkpointed:
        drop_checkpoint(path)
    journal = ready(FileJournal(path))
    assert not journal.losses
    assert journal.lineage == (Life(71, 1), Life(72, 2))
    assert journal.interests() == [(1, b"n > 1"), (2, b"n > 2"), (100, b"n > 100")]
    history = journal.history
    assert (history.life, history.version, history.floor) == (71, 100, 100)
    journal.begin_life(73)
    assert journal.history.life == 71
    assert journal.history.base > 100
    memory = journal.memory([Placed(node, (), ()) for node in (1, 2, 100)])
    assert memory.totals == {1: 2, 2: 2}
    assert memory.publishers == {"p": 1, "q": 5}
    assert memory.owners == {1: ("ann", "bob"), 2: ("ann",), 100: ("bob",)}
    journal.append_block(a_block(random.Random(1), 4, serial=3))
    write(journal)
    journal.close()
    assert ready(FileJournal(path)).memory([]).serial == 6


def drop_checkpoint(path: Path) -> None:
    """Everything is in its log then."""
    journal = FileJournal(path)
    mark = journal._log.marked
    assert mark is not None
    journal._log._mark.read()
    journal._log._mark.write(msgspec.structs.replace(mark, value=0), sync=True)
    journal.close()
    (path / checkpoint.NAME).unlink()
