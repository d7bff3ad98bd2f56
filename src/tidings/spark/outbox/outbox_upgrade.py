"""Upgrades outboxes of the old format: a JSON file for each commit, pins and counters without
digests.

An outbox in the old format is rewritten before anything else is written to it. The new files are
written to the folder `new`. Then the old files are moved aside, and the new files replace them:

    new/{commits,pins,counters}, whole ──> _tidings/{commits,pins,counters} ──> aside/before/

If the process dies in between, the next start continues the moves if `new/whole` exists; otherwise
it starts over. Pins of batches that were committed long ago stay in the folder `aside`. The old
format has no digests of data files; instead, their rows are counted.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidings.files import move_aside
from tidings.spark.outbox.batches.numbering import ALL
from tidings.spark.outbox.commits import Commit, Commits, DataFile
from tidings.spark.outbox.outbox import KeptCounters, Outbox, Pin
from tidings.spark.outbox.sealed_files import make_folder, sync, write_sealed, write_whole

PINS = 100  # how many recent batches keep their pins, because Spark may still repeat them
KINDS = ("commits", "pins", "counters")
Record = TypeVar("Record", Commit, Pin)


def upgrade_outbox(outbox: Outbox) -> None:
    """Rewrite an outbox of the old format; raise DamagedOutbox if it is incomplete."""
    new = outbox.home / "new"
    if not (new / "whole").exists():
        if not _has_old_format(outbox):
            return
        shutil.rmtree(new, ignore_errors=True)
        _write(outbox, new)
        write_whole(new / "whole", b"")
    for kind in KINDS:
        if (new / kind).exists():
            if (outbox.home / kind).exists():
                move_aside(outbox.home / kind, outbox.home / "aside" / "before")
            (new / kind).rename(outbox.home / kind)
            sync(outbox.home)
    shutil.rmtree(new)
    outbox.log = Commits(outbox.home / "commits")


def _has_old_format(outbox: Outbox) -> bool:
    if any((outbox.home / "commits").glob("*.log")):
        return False
    pins = (outbox.pin_path(number).read_bytes()[:1] for number in outbox.numbers("pins"))
    return outbox.log.has_old_format() or b"{" in pins


def _write(outbox: Outbox, new: Path) -> None:
    for kind in KINDS:
        make_folder(new / kind)
    numbers, log, counters = outbox.numbers("commits"), Commits(new / "commits"), dict[int, int]()
    if numbers != list(range(len(numbers))):
        gap = next(at for at, number in enumerate(numbers) if at != number)
        raise outbox.log.damage_error(
            f"commit {gap} is missing, but {len(numbers)} other commits exist"
        )
    for number in numbers:
        path = outbox.home / "commits" / f"{number:08d}.json"
        commit = _decode_file(outbox, path, Commit)
        _need_counters(outbox, path, commit, counters)
        counters.update(commit.counters)
        ended = path.stat().st_mtime_ns // 1000
        files = _files(outbox, commit)
        log.append(msgspec.structs.replace(commit, files=files, ended=ended))
    for number in outbox.numbers("pins"):
        if number >= len(numbers) - PINS:
            pin = _decode_file(outbox, outbox.pin_path(number), Pin)
            write_sealed(new / "pins" / f"{number:08d}.json", msgspec.json.encode(pin))
    if numbers:
        kept = KeptCounters(numbers[-1], log.end, counters)
        write_sealed(new / "counters" / f"{kept.batch:08d}.json", msgspec.json.encode(kept))
    log.close()


def _need_counters(outbox: Outbox, path: Path, commit: Commit, before: dict[int, int]) -> None:
    """Check that counters never decrease, and that the counter of all notifications grows by the
    number of matched rows."""
    rises = all(number > before.get(node, 0) for node, number in commit.counters.items())
    expected = before.get(ALL, 0) + commit.matched
    if not rises or commit.counters.get(ALL, before.get(ALL, 0)) != expected:
        raise outbox.log.damage_error(
            f"the counters in {path} do not continue those of the previous commit"
        )


def _files(outbox: Outbox, commit: Commit) -> list[DataFile]:
    found: list[DataFile] = []
    for home, rows in ((outbox.folder, commit.matched), (outbox.dead_folder, commit.refused)):
        folder, there = home(commit.batch, commit.attempt), 0
        for path in sorted(folder.rglob("*.parquet")):
            try:
                count = pq.read_metadata(path).num_rows
            except (pa.ArrowException, OSError) as problem:
                raise outbox.log.damage_error(f"{path} can't be read: {problem}") from None
            name = str(path.relative_to(outbox.path))
            found.append(DataFile(name, count, path.stat().st_size, ""))
            there += count
        if there != rows:
            raise outbox.log.damage_error(f"{folder} has {there} rows, expected {rows}")
    return found


def _decode_file(outbox: Outbox, path: Path, kind: type[Record]) -> Record:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise outbox.log.damage_error(f"the file {path} can't be read: {problem}") from None
    if found.batch != int(path.stem):
        raise outbox.log.damage_error(
            f"the file {path} has batch {found.batch}, expected the batch in its name"
        )
    return found
