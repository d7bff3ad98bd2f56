"""A checkpoint that is made from a summary, against the state that a walk through the log gives."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.store.test_journal_blocks import a_block

from tidings.model import EnvironmentProblem
from tidings.routing.protocol.messages import Mark
from tidings.routing.root import Block, Confirmation, Cursor, Progress, Record, RemovedNode
from tidings.store.groups import START, GroupLog
from tidings.store.journal import FileJournal, checkpoint, journal as module, log_segments
from tidings.store.journal.rows import Row
from tidings.store.journal.state import Counting, JournalState
from tidings.store.journal.upkeep import CounterSums, summary, upkeep


class Writer:
    """Writes entries of all kinds at random, with numbers as a rendezvous point gives them."""

    def __init__(self, journal: FileJournal, chance: random.Random) -> None:
        self.journal = journal
        self.chance = chance
        self.serial = 0
        self.node = 0
        self.living: list[int] = []
        self.counts: dict[int, int] = {}
        self.stamps: dict[str, int] = {}

    def write(self, entries: int) -> None:
        for _ in range(entries):
            self.chance.choice((self.record, self.record, self.block, self.block, self.add,
                                self.drop, self.own, self.forget, self.name,
                                self.subscribe))()  # fmt: skip
        self.flush()

    def flush(self) -> None:
        batch = self.journal.take()
        if batch is not None:
            self.journal.write(batch)

    def add(self) -> None:
        # now and then a number is used again, which journals of older releases may contain
        fresh = not self.living or self.chance.random() < 0.9
        self.node += fresh
        node = self.node if fresh else self.chance.choice(self.living)
        self.journal.add_node(node, b"n = %d" % node, self.chance.choice(("", "ann")), b"key")
        self.living.append(node)
        self.counts.pop(node, None)

    def drop(self) -> None:
        if self.living:
            node = self.living.pop(self.chance.randrange(len(self.living)))
            self.node += 1
            self.journal.drop_node(node, RemovedNode(self.node))
            self.counts.pop(node, None)

    def subscribe(self) -> None:
        """A named subscription, which may end another and its node."""
        self.node += 1
        ended = 0
        if self.living and self.chance.random() < 0.5:
            ended = self.living.pop(self.chance.randrange(len(self.living)))
            self.counts.pop(ended, None)
        row = Row(f"id{self.chance.randrange(4)}", "n > 1", self.node, b"key", ended=ended)
        self.journal.set_rows(self.node, [row])
        self.living.append(self.node)

    def own(self) -> None:
        if self.living:
            self.journal.set_owners(self.chance.choice(self.living), ("ann", "bob"))

    def forget(self) -> None:
        self.journal.forget_publishers(self.chance.sample(("p0", "p1", "s0", "never"), 2))

    def name(self) -> None:
        key = f"k{self.chance.randrange(3)}"
        if self.chance.random() < 0.3:
            cursor = Cursor(1, b"n = 1", self.serial, 0, {}) if self.chance.random() < 0.7 else None
            self.journal.set_cursor(key, cursor)
        else:
            gaps = tuple(range(self.serial + 1, self.serial + self.chance.randrange(3)))
            step = Confirmation(self.serial, 3, {1: 2}, self.serial + len(gaps), gaps)
            self.journal.confirm(key, step)

    def record(self) -> None:
        publisher = f"p{self.chance.randrange(3)}"
        stamp = self.stamps[publisher] = self.stamps.get(publisher, 0) + 1
        if self.chance.random() < 0.1:  # refused
            self.journal.append(Record(0, publisher, stamp, (), (), b""))
            return
        self.serial += 1
        marks = tuple(Mark(node, self.next(node), (node,)) for node in self.some())
        matched = tuple(sorted({*(mark.node for mark in marks), *self.some()}))
        self.journal.append(Record(self.serial, publisher, stamp, marks, matched, b"payload"))

    def block(self) -> None:
        rows = self.chance.choice((0, 1, 20))
        source = self.chance.choice(("s0", "s1", "p0"))
        stamp = self.stamps.get(source, 0)
        block = a_block(self.chance, rows, serial=self.serial + 1, stamp=stamp + 1, source=source)
        marks = block.marks
        for at, node in enumerate(marks.nodes.tolist()):
            marks.numbers[at] = marks.last[marks.which[at]] = self.next(node)
        progress = Progress(self.serial, 0, rows, True, True, stamp + rows)
        is_run = source == "p0"  # publications of one publisher have no progress
        self.journal.append_block(
            Block(source, None if is_run else progress, self.serial + 1, marks, block.matched,
                  block.payloads, stamp + 1)
        )  # fmt: skip
        self.serial += rows
        self.stamps[source] = stamp + rows

    def some(self) -> list[int]:
        there = sorted({*self.living, 1, 9})
        return sorted(self.chance.sample(there, min(len(there), self.chance.randrange(4))))

    def next(self, node: int) -> int:
        self.counts[node] = self.counts.get(node, 0) + 1
        return self.counts[node]


def state_of(folder: Path) -> JournalState:
    """The state after all groups, each record decoded again."""
    log, state = GroupLog(folder), JournalState(folder=folder)
    counting = Counting(state)
    for group in log.walk(START):
        counting.apply_all(record for record in group.records if record is not None)
        state.at = group.end
    counting.finish()
    state.log = log.id
    return state


def has_more(kept: upkeep.Upkeep, gone: object = ()) -> bool:
    """Whether anything was written after the checkpoint. Then these tests write the next one."""
    return kept._log.end.number > kept.since.number


def plain(state: JournalState) -> object:
    history = {name: getattr(state.history, name) for name in ("life", "version", "gone", "base")}
    return {**msgspec.structs.asdict(state), "history": history}


@pytest.mark.parametrize("most", [100_000, 5])
def test_a_checkpoint_is_the_state_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, most: int
) -> None:
    """Through restarts, writes and checkpoints that fail, and summaries that become too long."""
    monkeypatch.setattr(module, "SEGMENT_BYTES", 20_000)
    monkeypatch.setattr(upkeep.Upkeep, "needs_checkpoint", has_more)
    monkeypatch.setattr(summary, "MOST_THINGS", most)
    # segments that nobody needs stay, so that the whole log can be read
    monkeypatch.setattr(GroupLog, "drop_before", lambda *_: None)
    chance = random.Random(seed)
    path = tmp_path / "journal"
    journal = FileJournal(path, apart=True)
    journal.begin_life(1)
    writer = Writer(journal, chance)

    def fail(*_: object) -> None:
        raise OSError("no space left")

    for life in range(2, 30):
        for _ in range(chance.randrange(4)):
            writer.write(chance.randrange(1, 12))
        turn = chance.random()
        if turn < 0.2 and has_more(journal._upkeep):
            with monkeypatch.context() as patched:
                patched.setattr(checkpoint, "write", fail)
                with pytest.raises(EnvironmentProblem):
                    journal.tend()
        elif turn < 0.4:
            before, serial = state_of(path), writer.serial
            writer.record()
            with monkeypatch.context() as patched:
                patched.setattr(log_segments.LogSegment, "add", fail)
                with pytest.raises(EnvironmentProblem):
                    writer.flush()
            assert plain(state_of(path)) == plain(before), "it is taken back"
            writer.serial = serial
            writer.counts = {node: one.count for node, one in before.counters.items()}
        elif turn < 0.6:
            journal.close()
            journal = writer.journal = FileJournal(path, apart=True)
            if chance.random() < 0.7:
                journal.begin_life(life)
        if has_more(journal._upkeep):
            journal.tend()
            assert plain(checkpoint.read(path, None)) == plain(state_of(path))
    journal.close()


def test_a_checkpoint_reads_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(upkeep.Upkeep, "needs_checkpoint", has_more)
    journal = FileJournal(tmp_path / "journal", apart=True)
    journal.begin_life(1)
    writer = Writer(journal, random.Random(seed))
    writer.write(5)
    journal.tend()  # the first one reads what was there at the start
    writer.write(50)

    def walk(*_: object) -> None:
        raise AssertionError("the log is read again")

    with monkeypatch.context() as patched:
        patched.setattr(GroupLog, "walk", walk)
        journal.tend()
    assert plain(checkpoint.read(tmp_path / "journal", None)) == plain(
        state_of(tmp_path / "journal")
    )
    journal.close()


def test_a_tally_of_many_nodes(seed: int) -> None:
    """Against a plain count, with node numbers as large as they become after losses."""
    chance = random.Random(seed)
    tally, state, times = CounterSums(), JournalState(), dict[int, int]()
    serial = 1
    nodes = [chance.randrange(1, 1 << chance.choice((8, 40, 62))) for _ in range(5_000)]
    for _ in range(20):
        block = a_block(chance, 200, serial=serial)
        chosen = np.array(sorted(chance.sample(sorted({*nodes}), 9)), np.int64)
        marks, matched = block.marks, block.matched
        block = Block(
            block.source, None, serial,
            marks._replace(distinct=chosen[marks.distinct - 1]),
            matched._replace(distinct=chosen[matched.distinct - 1]), block.payloads,
        )  # fmt: skip
        for node, often in block.times.items():
            times[node] = times.get(node, 0) + often
        tally.add_block(block)
        if chance.random() < 0.3:
            gone = chance.choice([*times])
            tally.forget(gone)
            times[gone] = 0
        serial += 200
    tally.apply(state)
    found = {node: one.total for node, one in state.counters.items()}
    assert found == {node: often for node, often in times.items() if often}
    assert state.last_node == max(times)
