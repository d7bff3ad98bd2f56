"""How a pipeline stands, from its files alone: no session, no lock, also while it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from tidings.spark.outbox import Commit, Outbox, Pin
from tidings.spark.settings import Feeds, Settings

ALL = 0  # the counter of all notifications, see numbering.py
LETTERS = 5  # reasons that are shown
FOLDERS = 20  # of dead letters that are looked into


class Totals(msgspec.Struct):
    batches: int = 0
    rows: int = 0
    matched: int = 0
    told: int = 0
    refused: int = 0


class Counted(msgspec.Struct, frozen=True):
    node: int
    number: int  # its counter: the notifications that it was the lowest match of
    filter: str | None


class DeadLetter(msgspec.Struct, frozen=True):
    """Rows that were refused for one reason, in the batches that were looked into."""

    reason: str
    rows: int
    batch: int  # the latest
    raw: str  # of one of them


class Standing(msgspec.Struct, frozen=True):
    name: str
    outbox: str
    totals: Totals
    last: Commit | None
    latest: int | None  # version of the subscriptions now
    subscriptions: int | None
    snapshots: list[int]
    open_pins: list[Pin]
    notifications: int
    counters: list[Counted]  # the highest
    nodes: int  # that have a counter
    dead_letters: list[DeadLetter]
    feeds: list[str] = []  # what is wrong with those that could not be read at the last look


def standing(settings: Settings, most: int | None = 10) -> Standing:
    """Read the files of a pipeline; `most` nodes are named."""
    outbox = Outbox(settings.at(settings.outbox.path))
    totals, last = Totals(), None
    refusing: list[Commit] = []
    for batch in outbox.commits():
        last = outbox.committed(batch) or last
        if last is not None:
            totals.batches += 1
            totals.rows += last.rows
            totals.matched += last.matched
            totals.told += last.told
            totals.refused += last.refused
            if last.refused:
                refusing = [*refusing[-FOLDERS + 1 :], last]
    counters = outbox.counters()
    everything = counters.pop(ALL, 0)
    ranked = sorted(counters.items(), key=lambda item: (-item[1], item[0]))[:most]
    latest, subscriptions, snapshots, texts = _subscriptions(settings, [node for node, _ in ranked])
    return Standing(
        settings.name,
        str(outbox.path),
        totals,
        last,
        latest,
        subscriptions,
        snapshots,
        _open_pins(outbox, -1 if last is None else last.batch),
        everything,
        [Counted(node, number, texts.get(node)) for node, number in ranked],
        len(counters),
        _dead_letters(outbox, refusing),
        _feed_problems(settings),
    )


def _feed_problems(settings: Settings) -> list[str]:
    if not isinstance(settings.source, Feeds):
        return []
    from tidings.spark.feed_spool import problems

    found = problems(settings.at(settings.source.spool))
    return [found[address] for address in settings.source.urls if address in found]


def _open_pins(outbox: Outbox, last: int) -> list[Pin]:
    """The pins of batches that began and are not committed."""
    batches = sorted(int(path.stem) for path in (outbox.home / "pins").glob("*.json"))
    found = [outbox.pinned(batch) for batch in batches if batch > last]
    return [pin for pin in found if pin is not None]


def _subscriptions(
    settings: Settings, nodes: list[int]
) -> tuple[int | None, int | None, list[int], dict[int, str]]:
    """Version, how many, snapshots, and the filters of nodes as far as they are known."""
    given = settings.subscriptions
    if given.snapshot is not None:
        return _of_snapshot(settings.at(given.snapshot), nodes)
    path = settings.at(given.log or "")
    if not (path / "lock").exists():
        return None, None, [], {}
    from tidings.spark.compiled import home_of, versions_in
    from tidings.spark.restated import BEYOND, texts_of
    from tidings.store import ChangeLog

    log = ChangeLog(path)
    version = log.version
    state = log.state(version)
    snapshots = versions_in(home_of(path), settings.attributes)
    texts: dict[int, str] = {}
    if any(node >= BEYOND for node in nodes):
        texts = texts_of(state, settings.attributes)
    else:
        for text, node in state.subscriptions.values():
            texts.setdefault(node, text)
    return version, len(state.subscriptions), snapshots, texts


def _of_snapshot(
    path: Path, nodes: list[int]
) -> tuple[int | None, int | None, list[int], dict[int, str]]:
    if not path.is_dir():
        return None, None, [], {}
    from tidings.snapshots import Snapshot

    one = Snapshot.open(path, verify=False)
    known = set(one.numbers.tolist())
    texts = {node: one.filter(node).sql() for node in nodes if node in known}
    return one.number, len(one), [one.number], texts


def _dead_letters(outbox: Outbox, refusing: list[Commit]) -> list[DeadLetter]:
    """The latest reasons, each with one of the rows; folders that are gone are passed over."""
    rows: Counter[str] = Counter()
    found: dict[str, tuple[int, str]] = {}
    for commit in reversed(refusing):
        for reason, raw in _letters(outbox.dead_folder(commit.batch, commit.attempt)):
            rows[reason] += 1
            found.setdefault(reason, (commit.batch, raw))
        if len(found) >= LETTERS:
            break
    return [
        DeadLetter(reason, rows[reason], batch, raw)
        for reason, (batch, raw) in list(found.items())[:LETTERS]
    ]


def _letters(folder: Path) -> list[tuple[str, str]]:
    if not folder.is_dir():
        return []
    import pyarrow.parquet as pq

    table: Any = pq.read_table(folder, columns=["reason", "raw"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
