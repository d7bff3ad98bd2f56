"""The snapshots that pipelines compile of a log: `snapshots/` beside it, one for each version that
was compiled and for each set of columns that it was compiled with.

    snapshots/00000000000000001000-5d41402abc4b/    version 1000; the columns, as a digest
        identities.arrow                            those that the log had, by number
        aside.json                                  subscriptions that are refused now
    snapshots/aside/                                those that were found damaged

Filters mean what the columns make of them, so a snapshot is good only for pipelines that have the
same columns. Under other columns a version is compiled anew, and both stay: a path never comes to
mean something else, for processes keep open what they opened.

A snapshot that is damaged is moved aside, and its version is compiled anew from the log.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import uuid
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from tidings.files import replace_file, sync
from tidings.filters import Attributes
from tidings.matching.disk import SnapshotError, as_array, read_manifest, read_table
from tidings.model import FilterError
from tidings.snapshots import FORMAT, VERSION, DistinctFilters, Snapshot, build_nodes, need_whole
from tidings.spark.loading.restated import Aside, PendingChanges, aside, numbers_of, unfit
from tidings.store import ChangeLog, LogError

_log = logging.getLogger(__name__)
IDENTITIES = "identities.arrow"
ASIDE = "aside.json"
LANGUAGE = 2  # one more when a rule becomes stricter: what was compiled before is compiled anew


def home_of(log: Path) -> Path:
    """Where the snapshots of a log are."""
    return log.absolute() / "snapshots"


def path_of(home: Path, version: int, attributes: Attributes | None) -> Path:
    """Where the snapshot of a version is, or would be."""
    return home / f"{version:020d}-{_digest(attributes)}"


def versions_in(home: Path, attributes: Attributes | None) -> list[int]:
    """The versions that were compiled with these columns, in order."""
    return sorted(map(_version, home.glob(f"[0-9]*-{_digest(attributes)}")))


def latest_attributes(home: Path) -> Attributes | None:
    """The columns of the snapshot that a pipeline made or began with last."""
    found = _last_used(home)
    return None if found is None else attributes_of(found)


def _last_used(home: Path) -> Path | None:
    return max(home.glob("[0-9]*"), key=lambda path: path.stat().st_mtime_ns, default=None)


def attributes_of(snapshot: Path) -> Attributes | None:
    """The columns that a snapshot was compiled with."""
    notes = read_manifest(snapshot, FORMAT, VERSION).notes
    declared = notes.get("attributes")
    return None if declared is None else Attributes.from_declared(declared)


def compile_version(log: ChangeLog, version: int, home: Path) -> Path:
    """Write the snapshot of a version of a log, with the log's attributes; Unfit when a filter does
    not go with them. One that is there stays: tasks may be opening it, and what another process
    made of the same version is as good."""
    path = path_of(home, version, log.attributes)
    if path.exists():
        return path
    distinct = DistinctFilters(log.attributes, log.functions)
    state = log.state(version)
    filters: list[tuple[str, bytes, int]] = []
    refused: list[Aside] = []
    for id_, (text, node) in state.subscriptions.items():
        try:
            filters.append((text, distinct.add(id_, text), node))
        except FilterError as problem:
            one = aside(id_, text)
            if one is None:
                raise unfit(id_, text, problem) from problem
            refused.append(one)
    beside = home / f".{path.name}.{uuid.uuid4().hex}"
    numbers = numbers_of(filters, state.identities)
    keys = {"key": pa.array(state.identities, pa.binary(16))}
    Snapshot(version, *build_nodes(distinct, numbers)).save(beside, {IDENTITIES: keys})
    replace_file(beside / ASIDE, msgspec.json.encode(refused))
    try:
        beside.rename(path)  # fails when there is one
        sync(home)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        if not path.exists():
            raise
    return path


def list_set_aside(log: ChangeLog) -> list[Aside]:
    """The subscriptions of a log that pipelines leave out, as far as one has looked at them: those
    of the snapshot that was used last, and of what changed since. Where the log has forgotten or
    lost what changed, or the snapshot does not tell, all are looked at."""
    home = home_of(log.path)
    found = _last_used(home)
    if found is None:
        return []
    try:
        before = msgspec.json.decode((found / ASIDE).read_bytes(), type=list[Aside])
        changes = log.changes(_version(found))
    except (FileNotFoundError, ValueError, LogError):  # ValueError: it was altered
        every = (aside(id_, text) for id_, (text, _) in log.subscriptions().items())
        return [one for one in every if one is not None]
    by_id = {one.id: one for one in before}
    for change in changes:
        by_id.pop(change.id, None)
        one = None if change.filter is None else aside(change.id, change.filter)
        if one is not None:
            by_id[change.id] = one
    return list(by_id.values())


def is_whole(log: ChangeLog, version: int, home: Path) -> bool:
    """Whether the snapshot of a version is as it was written. A damaged one is moved aside, and one
    that does not speak for all of its files."""
    path = path_of(home, version, log.attributes)
    try:
        manifest = need_whole(path)
        if manifest.notes.get("number") != version:
            found = manifest.notes.get("number")
            raise SnapshotError(f"snapshot '{path}' is of version {found}, expected {version}")
        if _digest(attributes_of(path)) != _digest(log.attributes):
            raise SnapshotError(f"snapshot '{path}' was compiled with other columns")
        if IDENTITIES not in manifest.files:
            raise SnapshotError(f"snapshot '{path}' does not speak for {IDENTITIES}")
    except SnapshotError as problem:
        if path.exists():
            _log.warning("%s; it is moved to %s", problem, move_aside(path))
        return False
    return True


def move_aside(path: Path) -> Path:
    """Move a snapshot out of the way; nobody opens it there, and nobody removes it."""
    place = path.parent / "aside" / f"{path.name}.{uuid.uuid4().hex[:8]}"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    path.rename(place)
    sync(path.parent)
    return place


def open_pending_changes(snapshot: Path, attributes: Attributes | None) -> PendingChanges:
    """What reads the changes since a snapshot."""
    nodes, identities = (read_table(snapshot / name) for name in ("nodes.arrow", IDENTITIES))
    numbers, keys = as_array(nodes.column("number")), nodes.column("key")
    known = identities.column("key")

    def logged(node: int) -> bytes | None:
        return known[node - 1].as_py() if node <= len(known) else None

    def compiled(number: int) -> bytes | None:
        place = int(np.searchsorted(numbers, number))
        there = place < len(numbers) and numbers[place] == number
        return keys[place].as_py() if there else None

    return PendingChanges(attributes, logged, compiled)


def remove(snapshot: Path) -> None:
    """Remove a snapshot at one stroke: half of one would be taken for a whole."""
    hidden = snapshot.with_name(f".{snapshot.name}.{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        snapshot.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def _version(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _digest(attributes: Attributes | None) -> str:
    declared = None if attributes is None else attributes.declared()
    told = msgspec.json.encode([LANGUAGE, declared], order="deterministic")
    return hashlib.sha256(told).hexdigest()[:12]
