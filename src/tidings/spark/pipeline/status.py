"""Reads the status of a pipeline from its files. Reading the status needs neither a session nor a
lock, and works while the pipeline runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidings.files import scheme_of
from tidings.model import TidingsError
from tidings.spark.channel.followed_channel import open_mirror
from tidings.spark.channel.handing_over import read_handed
from tidings.spark.channel.owner import WaitingForOwner, read_waiting
from tidings.spark.loading.log_filters import RefusedSubscription
from tidings.spark.outbox.outbox import Commit, Outbox, Pin
from tidings.spark.pipeline.settings import Feeds, Settings

ALL = 0  # the counter of all notifications, see numbering.py
LETTERS = 5  # at most this many reasons are shown
FOLDERS = 20  # at most this many folders of dead letters are searched
ROWS = 16_384  # at most this many dead letters are in memory at once


class Totals(msgspec.Struct):
    batches: int = 0
    rows: int = 0
    matched: int = 0
    told: int = 0
    refused: int = 0
    extra_rows: int = 0  # rows with undeclared fields
    extra_fields: int = 0


class NodeCounter(msgspec.Struct, frozen=True):
    node: int
    # the counter of the node: the number of notifications for which it was a lowest node
    number: int
    filter: str | None


class DeadLetter(msgspec.Struct, frozen=True):
    """Rows refused for one reason, in the batches that were searched."""

    reason: str
    rows: int
    batch: int  # the latest batch with such rows
    raw: str  # the text of one of the rows


class DamagedFile(msgspec.Struct, frozen=True):
    """A file of the outbox that can't be read."""

    file: str
    problem: str


class ChannelStatus(msgspec.Struct, frozen=True):
    """The status of a pipeline's link to its channel."""

    address: str
    handed: int | None  # the last batch that was handed over; None if there is none
    waiting: WaitingForOwner | None  # why the pipeline waits for the owner, if it does


class PipelineStatus(msgspec.Struct, frozen=True):
    name: str
    outbox: str
    totals: Totals
    last: Commit | None
    latest: int | None  # the current version of the subscriptions
    subscriptions: int | None
    snapshots: list[int]
    open_pins: list[Pin]
    notifications: int
    counters: list[NodeCounter]  # the highest counters
    nodes: int  # the number of nodes that have a counter
    dead_letters: list[DeadLetter]
    damaged: list[DamagedFile]  # files of dead letters that can't be read
    feeds: list[str] = []  # problems with feeds whose last fetch failed
    aside: list[RefusedSubscription] = []  # subscriptions that are set aside
    channel: ChannelStatus | None = None  # set if the subscriptions come from a channel


def read_status(settings: Settings, most: int | None = 10) -> PipelineStatus:
    """Read the status of a pipeline, with at most `most` nodes."""
    outbox = Outbox(settings.at(settings.outbox.path))
    if outbox.path.is_file():
        raise TidingsError(f"outbox.path: {outbox.path} is a file, expected a folder")
    totals, last = Totals(), None
    refusing: list[Commit] = []
    for last in outbox.log.each():
        totals.batches += 1
        totals.rows += last.rows
        totals.matched += last.matched
        totals.told += last.told
        totals.refused += last.refused
        totals.extra_rows += last.extra_rows
        totals.extra_fields += last.extra_fields
        if last.refused:
            refusing = [*refusing[-FOLDERS + 1 :], last]
    counters = outbox.counters()
    everything = counters.pop(ALL, 0)
    ranked = sorted(counters.items(), key=lambda item: (-item[1], item[0]))[:most]
    letters, damaged = _read_dead_letters(outbox, refusing)
    latest, subscriptions, snapshots, texts = _read_subscriptions(
        settings, outbox, [node for node, _ in ranked]
    )
    return PipelineStatus(
        name=settings.name,
        outbox=str(outbox.path),
        totals=totals,
        last=last,
        latest=latest,
        subscriptions=subscriptions,
        snapshots=snapshots,
        open_pins=_open_pins(outbox, -1 if last is None else last.batch),
        notifications=everything,
        counters=[NodeCounter(node, number, texts.get(node)) for node, number in ranked],
        nodes=len(counters),
        dead_letters=letters,
        damaged=damaged,
        feeds=_feed_problems(settings),
        aside=_list_set_aside(settings, outbox),
        channel=_channel_status(settings, outbox),
    )


def _channel_status(settings: Settings, outbox: Outbox) -> ChannelStatus | None:
    address, folder = settings.subscriptions.channel, outbox.channel_folder
    if address is None:
        return None
    handed = read_handed(folder)
    last = None if handed is None else handed.batch
    return ChannelStatus(address, last, read_waiting(folder))


def _list_set_aside(settings: Settings, outbox: Outbox) -> list[RefusedSubscription]:
    if settings.subscriptions.channel is not None:
        mirror = open_mirror(outbox.channel_folder)
        return [] if mirror is None else mirror.list_set_aside()
    path = settings.at(settings.subscriptions.log or "")
    if settings.subscriptions.log is None or not (path / "lock").exists():
        return []
    from tidings.spark.loading.log_snapshots import list_set_aside
    from tidings.store import ChangeLog

    return list_set_aside(ChangeLog(path))


def _feed_problems(settings: Settings) -> list[str]:
    if not isinstance(settings.source, Feeds):
        return []
    from tidings.spark.feeds.feed_spool import feed_problems

    found = feed_problems(settings.at(settings.source.spool))
    return [found[address] for address in settings.source.urls if address in found]


def _open_pins(outbox: Outbox, last: int) -> list[Pin]:
    """The pins of batches that were started but not committed."""
    found = [outbox.read_pin(batch) for batch in outbox.numbers("pins") if batch > last]
    return [pin for pin in found if pin is not None]


def _read_subscriptions(
    settings: Settings, outbox: Outbox, nodes: list[int]
) -> tuple[int | None, int | None, list[int], dict[int, str]]:
    """The version, the number of subscriptions, the snapshots, and the known filters of nodes."""
    given = settings.subscriptions
    if given.snapshot is not None:
        return _read_snapshot(settings.place(given.snapshot), nodes)
    if given.channel is not None:
        return _read_mirror(outbox.channel_folder, nodes)
    path = settings.at(given.log or "")
    if not (path / "lock").exists():
        return None, None, [], {}
    from tidings.spark.loading.log_snapshots import home_of, versions_in
    from tidings.store import ChangeLog
    from tidings.store.declared import DeclarationError

    log = ChangeLog(path, settings.attributes)
    version = log.version
    state = log.state(version)
    try:
        snapshots = versions_in(home_of(path), log.attributes)
    except DeclarationError:  # reported when the pipeline starts
        snapshots = []
    texts: dict[int, str] = {}
    for text, node in state.subscriptions.values():
        texts.setdefault(node, text)
    return version, len(state.subscriptions), snapshots, texts


def _read_mirror(
    folder: Path, nodes: list[int]
) -> tuple[int | None, int | None, list[int], dict[int, str]]:
    mirror = open_mirror(folder)
    version = None if mirror is None else mirror.version
    if mirror is None or version is None:
        return None, None, [], {}
    texts = mirror.nodes(version)
    known = {node: texts[node] for node in nodes if node in texts}
    return version, len(texts), mirror.snapshots(), known


def _read_snapshot(
    path: str, nodes: list[int]
) -> tuple[int | None, int | None, list[int], dict[int, str]]:
    if not scheme_of(path) and not Path(path).is_dir():
        return None, None, [], {}
    from tidings.snapshots import Snapshot

    one = Snapshot.open(path)
    known = set(one.numbers.tolist())
    texts = {node: one.filter(node).sql() for node in nodes if node in known}
    return one.number, len(one), [one.number], texts


def _read_dead_letters(
    outbox: Outbox, refusing: list[Commit]
) -> tuple[list[DeadLetter], list[DamagedFile]]:
    """The latest reasons for refusals, each with one of the refused rows, and the files that can't
    be read. Missing folders are skipped. At most ROWS rows are in memory at once."""
    rows: Counter[str] = Counter()
    found: dict[str, tuple[int, str]] = {}
    damaged: list[DamagedFile] = []
    for commit in reversed(refusing):
        folder = outbox.dead_folder(commit.batch, commit.attempt)
        for file in sorted(folder.glob("*.parquet")):
            try:
                for reasons, raw in _read_letters(file):
                    _count_reasons(reasons, raw, commit.batch, found, rows)
            except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
                first = str(problem).partition("\n")[0]
                damaged.append(DamagedFile(str(file), first or type(problem).__name__))
        if len(found) >= LETTERS:
            break
    letters = [DeadLetter(reason, rows[reason], *one) for reason, one in found.items()]
    return letters, damaged


def _read_letters(file: Path) -> Iterator[tuple[Any, Any]]:
    """The reasons and texts of a file, batch by batch."""
    with pq.ParquetFile(file, buffer_size=1 << 20) as opened:
        for batch in opened.iter_batches(ROWS, columns=["reason", "raw"]):
            yield batch.column("reason"), batch.column("raw")


def _count_reasons(
    reasons: Any, raw: Any, batch: int, found: dict[str, tuple[int, str]], rows: Counter[str]
) -> None:
    """Add new reasons while there is room, and count the rows of all known reasons."""
    counted = reasons.value_counts()
    names, counts = counted.field("values"), counted.field("counts")
    # the reasons are in the order of the rows
    for reason in names[: LETTERS + len(found)].to_pylist():
        if reason is not None and reason not in found and len(found) < LETTERS:
            found[reason] = batch, raw[pc.index(reasons, reason).as_py()].as_py() or ""
    for reason in found:
        at = pc.index(names, reason).as_py()
        rows[reason] += counts[at].as_py() if at >= 0 else 0
