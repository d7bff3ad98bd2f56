"""Whether an outbox holds what it should: by the oracle, by fresh snapshots, and by counting."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.kills.scene import ATTRIBUTES, COLUMNS, Changer, Feeder

from tidings import parse
from tidings.filters import Filter
from tidings.snapshots import Snapshot
from tidings.spark.outbox.outbox import Commit, Outbox, Pin
from tidings.spark.outbox.outbox_check import OutboxCheck
from tidings.spark.outbox.outbox_reading import OutboxReader


class Judge:
    """Reads an outbox as anyone would, and the checkpoint for what each batch was made of."""

    def __init__(self, folder: Path, feeder: Feeder, changer: Changer) -> None:
        self.folder, self.feeder, self.changer = folder, feeder, changer
        self.outbox = Outbox(folder / "out")
        self.reader = OutboxReader(folder / "out")
        self.pins: list[Pin] = []
        self.commits: list[Commit] = []
        self._parsed: dict[str, Filter] = {}

    def judge(self) -> str:
        """Check everything; a line on how much there was."""
        self._batches()
        files = files_of_batches(self.folder, len(self.commits))
        expected = [name for names in files for name in names]
        assert sorted(expected) == sorted(self.feeder.good), "every file is in one batch"
        rows, dead = list[dict[str, Any]](), Counter[str]()
        for pin, commit, names in zip(self.pins, self.commits, files, strict=True):
            rows += self._told(pin, commit, names)
            dead += self._dead(commit, names)
        assert dead == Counter(line for lines in self.feeder.bad.values() for line in lines)
        pairs = [(row["id"], one) for row in rows for one in row["subscriptions"]]
        assert len(pairs) == len(set(pairs)), "a pair is told once"
        counters = self._numbers(rows)
        assert self.outbox.counters() == counters
        check = OutboxCheck(Outbox(self.outbox.path))
        assert len([*check.batches()]) == len(self.commits)
        assert not check.found.problems
        versions = len({pin.version for pin in self.pins})
        return (
            f"{len(self.commits)} batches with {versions} of {self.pins[-1].version} versions, "
            f"{self.feeder.rows} rows, {len(rows)} of them told in "
            f"{len(pairs)} pairs, {sum(dead.values())} refused, {len(counters)} nodes"
        )

    def _batches(self) -> None:
        numbers = self.outbox.commits()
        assert numbers == list(range(len(numbers))), "commits have no gap"
        for number in numbers:
            pin, commit = self.outbox.read_pin(number), self.outbox.read_commit(number)
            assert pin is not None
            assert commit is not None
            assert (pin.batch, pin.version, pin.micros) == (number, commit.version, commit.micros)
            self.pins.append(pin)
            self.commits.append(commit)
        versions = [pin.version for pin in self.pins]
        assert versions == sorted(versions), "versions never go back"
        for pin in self.pins:
            before = [v for v, at in self.changer.acknowledged if at // 1000 < pin.micros]
            assert pin.version >= max(before, default=0), "an acknowledged change is seen"
            assert pin.version in self.changer.states
        for version in sorted(set(versions)):
            log = {i: text for i, (text, _) in self.changer.log.subscriptions(version).items()}
            assert log == self.changer.states[version]

    def _told(self, pin: Pin, commit: Commit, names: list[str]) -> list[dict[str, Any]]:
        events = [event for name in names for event in self.feeder.good[name]]
        state = self.changer.states[pin.version]
        expected = {}
        for event in events:
            told = {id_ for id_, text in state.items() if self._filter(text).matches(event)}
            if told:
                expected[event["id"]] = event | {"subscriptions": told}
        rows = list[dict[str, Any]]()
        if commit.matched:
            for file in self.reader.files(commit):
                rows += [row for one in self.reader.batches(file) for row in one.to_pylist()]
        assert len(rows) == len(expected) == commit.matched
        assert commit.rows == len(events)
        fresh = self._nodes(pin.version, events)
        for row in rows:
            assert row["version"] == pin.version
            told = expected[row["id"]]["subscriptions"]
            assert sorted(row["subscriptions"]) == sorted(told), (row, told)
            assert {name: row[name] for name in COLUMNS} == {
                name: expected[row["id"]][name] for name in COLUMNS
            }
            assert row["nodes"] == fresh[row["id"]], (pin, row)
        assert commit.told == sum(len(row["subscriptions"]) for row in rows)
        return rows

    def _nodes(self, version: int, events: list[dict[str, Any]]) -> dict[int, list[int]]:
        """The lowest nodes of each notification, by a snapshot compiled for this."""
        log = self.changer.log.subscriptions(version)
        numbers = {self._filter(text).key: node for text, node in log.values()}
        texts = {id_: text for id_, (text, _) in log.items()}
        snapshot = Snapshot.build(texts, ATTRIBUTES, number=version, numbers=numbers)
        columns = {name: [event[name] for event in events] for name in COLUMNS}
        if not events:
            return {}
        lists = snapshot.nodes(pa.RecordBatch.from_pydict(columns)).to_pylist()
        return {event["id"]: nodes for event, nodes in zip(events, lists, strict=True)}

    def _dead(self, commit: Commit, names: list[str]) -> Counter[str]:
        raw = list[str]()
        if commit.refused:
            table = pq.read_table(self.outbox.dead_folder(commit.batch, commit.attempt))
            raw = table.column("raw").to_pylist()
        assert sorted(raw) == sorted(line for name in names for line in self.feeder.bad[name])
        assert commit.refused == len(raw)
        return Counter(raw)

    def _numbers(self, rows: list[dict[str, Any]]) -> dict[int, int]:
        """Every node counts its notifications, from 1, in the order of batches; 0 counts all."""
        counted: dict[int, list[int]] = {0: []}
        for row in rows:
            counted[0].append(row["notification"])
            for node, number in zip(row["nodes"], row["numbers"], strict=True):
                counted.setdefault(node, []).append(number)
        for node, numbers in counted.items():
            assert sorted(numbers) == list(range(1, len(numbers) + 1)), node
        return {node: len(numbers) for node, numbers in counted.items() if numbers}

    def _filter(self, text: str) -> Filter:
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = parse(text, attributes=ATTRIBUTES)
        return found


def files_of_batches(folder: Path, count: int) -> list[list[str]]:
    """The files of each batch, from what Spark noted."""
    by_log: dict[int, set[str]] = {}
    for path in (folder / "checkpoint" / "sources" / "0").glob("[0-9]*"):
        for line in path.read_text().splitlines()[1:]:
            entry = json.loads(line)
            by_log.setdefault(entry["batchId"], set()).add(Path(entry["path"]).name)
    found, before = list[list[str]](), -1
    for number in range(count):
        noted = (folder / "checkpoint" / "offsets" / str(number)).read_text()
        upto = json.loads(noted.splitlines()[-1])["logOffset"]
        logs = range(before + 1, upto + 1)
        found.append(sorted(name for log in logs for name in by_log.get(log, ())))
        before = upto
    return found
