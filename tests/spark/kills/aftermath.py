"""Whether an outbox is right after its files were damaged and its pipeline went on, and what
somebody who reads it gets."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.spark.kills.history import MARK, History
from tests.spark.kills.scene import ATTRIBUTES, COLUMNS

from tidings import parse
from tidings.filters import Filter
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_reading import OutboxReader

Rows = list[dict[str, Any]]


def read(out: Path) -> list[tuple[int, Rows, list[str]]] | str:
    """What somebody who reads an outbox gets: the version, the rows and the refused rows of each
    batch; a sentence where it can't be read."""
    try:
        outbox, reader = Outbox(out), OutboxReader(out)
        found = []
        for number in outbox.commits():
            commit = outbox.read_commit(number)
            if commit is None:
                return f"there is no commit {number}"
            rows, raw = list[dict[str, Any]](), list[str]()
            if commit.matched:
                for file in reader.files(commit):
                    rows += [row for one in reader.batches(file) for row in one.to_pylist()]
                rows.sort(key=lambda row: int(row["notification"]))
            if commit.refused:
                table = pq.read_table(outbox.dead_folder(number, commit.attempt))
                raw = sorted(table.column("raw").to_pylist())
            found.append((commit.version, rows, raw))
    except Exception as problem:  # whatever pyarrow and others have for damaged files
        return f"{type(problem).__name__}: {problem}"
    return found


def contents(out: Path) -> Counter[bytes]:
    """What is in the files of an outbox's rows, wherever these lie."""
    found = (path for path in out.rglob("*.parquet") if "work" not in path.relative_to(out).parts)
    return Counter(blake2b(path.read_bytes()).digest() for path in found)


class Aftermath:
    """The outbox of a pipeline that went on, against the oracle."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._parsed: dict[str, Filter] = {}

    def faults(self) -> list[str]:
        """What is wrong with it, a sentence each."""
        found = read(self.history.places("outbox"))
        if isinstance(found, str):
            return [f"the outbox can't be read: {found}"]
        faults = self._numbers(found)
        got: Counter[tuple[int, str]] = Counter()
        for version, rows, _ in found:
            if version not in self.history.states:
                faults.append(f"version {version} was never acknowledged")
            got.update((row["id"], one) for row in rows for one in row["subscriptions"])
        twice = [pair for pair, count in got.items() if count > 1]
        if twice:
            faults.append(f"{len(twice)} pairs are told twice, such as {twice[0]}")
        if not faults:
            for name in self.history.good:
                faults += self._file(name, found)
        dead = Counter(line for _, _, raw in found for line in raw)
        if dead != Counter(line for lines in self.history.bad.values() for line in lines):
            faults.append(f"{dead.total()} rows are refused, each once as often as it came")
        return faults[:6]

    def _file(self, name: str, found: list[tuple[int, Rows, list[str]]]) -> list[str]:
        """The rows of a file are all in the batch of its first one, with the subscriptions that its
        version has."""
        events = self.history.good[name]
        assert events[0]["price"] == MARK
        mark = events[0]["id"]
        where = [at for at, one in enumerate(found) if any(row["id"] == mark for row in one[1])]
        if len(where) != 1:
            return [f"the file {name} is in {len(where)} batches"]
        version, rows, _ = found[where[0]]
        state, mine = self.history.states[version], {row["id"]: row for row in rows}
        for event in events:
            wanted = sorted(id_ for id_, text in state.items() if self._filter(text).matches(event))
            row = mine.get(event["id"])
            told = sorted(row["subscriptions"]) if row is not None else []
            if told != wanted:
                return [f"{name}: {event} was told to {told}, expected {wanted}"]
            if row is not None and any(row[column] != event[column] for column in COLUMNS):
                return [f"{name}: {event} became {row}"]
        return []

    def _numbers(self, found: list[tuple[int, Rows, list[str]]]) -> list[str]:
        """Every node counts its notifications, from 1; 0 counts all."""
        counted: dict[int, list[int]] = {}
        for _, rows, _ in found:
            for row in rows:
                counted.setdefault(0, []).append(row["notification"])
                for node, number in zip(row["nodes"], row["numbers"], strict=True):
                    counted.setdefault(node, []).append(number)
        return [
            f"node {node} has the numbers {sorted(numbers)[:5]} ... of {len(numbers)}"
            for node, numbers in counted.items()
            if sorted(numbers) != list(range(1, len(numbers) + 1))
        ]

    def _filter(self, text: str) -> Filter:
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = parse(text, attributes=ATTRIBUTES)
        return found
