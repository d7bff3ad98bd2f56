"""The snapshots that pipelines compile from a log. The snapshots are in `snapshots/` in the log's
folder, one for each compiled version and declaration.

    snapshots/00000000000000001000-5d41402abc4b/    version 1000; a digest of the declaration
        aside.json                                  subscriptions that are set aside
    snapshots/aside/                                damaged snapshots

The meaning of a filter depends on the declared attributes, so the latest version is compiled again
when the declaration changes. Processes keep the files of a snapshot open, so the snapshot at a path
is never replaced.

A damaged snapshot is moved aside, and its version is compiled again from the log.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tidings.files import filling_folder, move_aside, remove_folder, replace_file
from tidings.filters import Attributes, parse
from tidings.matching.disk import SnapshotError, as_array, read_manifest, read_table
from tidings.model import FilterError
from tidings.snapshots import (
    FORMAT,
    LANGUAGE,
    VERSION,
    DistinctFilters,
    Snapshot,
    build_nodes,
    language_in,
    need_whole,
)
from tidings.spark.loading.log_filters import (
    PendingChanges,
    RefusedSubscription,
    Written,
    aside,
    is_related,
    numbers_of,
    unfit,
)
from tidings.store import ChangeLog, LogError

_log = logging.getLogger(__name__)
NODES = "nodes.arrow"
NUMBERING = 2
"""The version of the rules by which nodes are numbered. Before version 2 of the rules, some nodes
had numbers that did not come from the log."""
ASIDE = "aside.json"


def home_of(log: Path) -> Path:
    """The folder of a log's snapshots."""
    return log.absolute() / "snapshots"


def path_of(home: Path, version: int, attributes: Attributes | None) -> Path:
    """The path of a version's snapshot, whether or not it exists."""
    return home / f"{version:020d}-{_digest(attributes)}"


def versions_in(home: Path, attributes: Attributes | None) -> list[int]:
    """The versions compiled with these attributes, in order."""
    return sorted(map(_version, home.glob(f"[0-9]*-{_digest(attributes)}")))


def latest_attributes(home: Path) -> Attributes | None:
    """The attributes of the snapshot that a pipeline last compiled or started with."""
    found = _last_used(home)
    return None if found is None else attributes_of(found)


def _last_used(home: Path) -> Path | None:
    return max(home.glob("[0-9]*"), key=lambda path: path.stat().st_mtime_ns, default=None)


def attributes_of(snapshot: Path) -> Attributes | None:
    """The attributes with which a snapshot was compiled."""
    notes = read_manifest(snapshot, FORMAT, VERSION).notes
    declared = notes.get("attributes")
    return None if declared is None else Attributes.from_declared(declared)


def compile_version(log: ChangeLog, version: int, home: Path) -> Path:
    """Write the snapshot of a version of a log, with the attributes that the channel declares now.
    Raise Unfit if a filter does not fit these attributes, and Clash if filters of one node differ.
    An existing snapshot is kept, because tasks may be opening it; if another process compiled it
    from the same version, it is equivalent."""
    attributes = log.attributes
    path = path_of(home, version, attributes)
    if path.exists():
        return path
    bulk = log.bulk_at(version)
    with suppress(OSError, SnapshotError):  # another process may be removing the bulk
        if bulk is not None and _is_current(bulk, attributes):
            _link_snapshot(path, bulk)
            return path
    distinct = DistinctFilters(attributes, log.functions)
    state = log.state(version)
    filters: list[Written] = []
    refused: list[RefusedSubscription] = []
    for id_, (text, node) in state.subscriptions.items():
        dialect = state.dialect(id_)
        if is_related(dialect):
            continue
        try:
            found = text if dialect == "sql" else parse(text, dialect, attributes=attributes)
            is_node = id_ in state.anonymous
            filters.append(Written(id_, text, distinct.add(id_, found), node, dialect, is_node))
        except FilterError as problem:
            one = aside(id_, text, dialect)
            if one is None:
                raise unfit(id_, text, problem) from problem
            refused.append(one)
    numbers = numbers_of(filters, state.identities)
    snapshot = Snapshot(version, *build_nodes(distinct, numbers))
    save_snapshot(path, snapshot, {}, refused)
    return path


def _is_current(bulk: Path, attributes: Attributes | None) -> bool:
    """Whether a compilation with these attributes would give the same snapshot as the one that the
    channel adopted."""
    language = language_in(read_manifest(bulk, FORMAT, VERSION))
    return language == LANGUAGE and _digest(attributes_of(bulk)) == _digest(attributes)


def save_snapshot(
    path: Path,
    snapshot: Snapshot,
    tables: Mapping[str, Mapping[str, Any]],
    refused: Sequence[RefusedSubscription],
) -> None:
    """Write a snapshot, with further tables and the list of subscriptions that are set aside. A
    snapshot that already exists is kept."""
    with filling_folder(path) as folder:
        snapshot.save(folder, tables)
        replace_file(folder / ASIDE, msgspec.json.encode(refused))


def _link_snapshot(path: Path, bulk: Path) -> None:
    """Link to the snapshot that a channel adopted, whose files never change; copy nothing."""
    with filling_folder(path) as folder:
        shutil.copytree(bulk, folder, copy_function=_link)
        replace_file(folder / ASIDE, msgspec.json.encode([]))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # hard links are not supported, or the file has too many
        shutil.copy2(source, target)


def list_set_aside(log: ChangeLog) -> list[RefusedSubscription]:
    """The subscriptions of a log that pipelines set aside: those listed in the snapshot used last,
    updated with the changes since then. If the log no longer has the changes since then, or if the
    snapshot has no such list, every subscription is parsed."""
    home = home_of(log.path)
    found = _last_used(home)
    if found is None:
        return []
    try:
        before = msgspec.json.decode((found / ASIDE).read_bytes(), type=list[RefusedSubscription])
        changes = log.changes(_version(found))
    except (FileNotFoundError, ValueError, LogError):  # ValueError: the file is damaged
        state = log.state()
        every = (
            aside(id_, text, state.dialect(id_)) for id_, (text, _) in state.subscriptions.items()
        )
        return [one for one in every if one is not None]
    by_id = {one.id: one for one in before}
    for change in changes:
        by_id.pop(change.id, None)
        one = None
        if change.filter is not None:
            one = aside(change.id, change.filter, change.dialect)
        if one is not None:
            by_id[change.id] = one
    return list(by_id.values())


def is_whole(home: Path, version: int, attributes: Attributes | None, table: str) -> bool:
    """Whether the snapshot of a version is intact. A snapshot is moved aside if it is damaged, or
    if its manifest does not list all its files, among them `table`."""
    path = path_of(home, version, attributes)
    try:
        manifest = need_whole(path)
        if manifest.notes.get("number") != version:
            found = manifest.notes.get("number")
            raise SnapshotError(f"snapshot '{path}' has version {found}, expected {version}")
        if _digest(attributes_of(path)) != _digest(attributes):
            raise SnapshotError(f"snapshot '{path}' was compiled for another declaration")
        if table not in manifest.files:
            raise SnapshotError(f"the manifest of snapshot '{path}' lacks {table}")
    except SnapshotError as problem:
        if path.exists():
            # no process opens or removes snapshots in `aside`
            place = move_aside(path, path.parent / "aside")
            _log.warning("%s; the snapshot was moved to %s", problem, place)
        return False
    return True


def open_pending_changes(snapshot: Path, attributes: Attributes | None) -> PendingChanges:
    """Open the reader of the changes since a snapshot."""
    return PendingChanges(attributes, _finder(read_table(snapshot / NODES)))


def _finder(table: Any) -> Callable[[int], bytes | None]:
    """A function that returns the key of a node by its number; None if the table lacks the node."""
    numbers, keys = as_array(table.column("number")), table.column("key")

    def find(number: int) -> bytes | None:
        place = int(np.searchsorted(numbers, number))
        there = place < len(numbers) and numbers[place] == number
        return keys[place].as_py() if there else None

    return find


def remove(snapshot: Path) -> None:
    """Remove a snapshot atomically, because a half-removed one would look complete."""
    remove_folder(snapshot)


def _version(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _digest(attributes: Attributes | None) -> str:
    declared = None if attributes is None else attributes.to_declared()
    told = msgspec.json.encode([LANGUAGE, NUMBERING, declared], order="deterministic")
    return hashlib.sha256(told).hexdigest()[:12]
