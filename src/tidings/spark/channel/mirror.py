"""The nodes of a channel by version, in a folder of the pipeline.

    LIFE/00000000000000001000-5d41402abc4b/   version 1000, compiled with the channel's attributes
        channel.arrow                         the number and the filter of every node
        aside.json                            nodes whose filters are refused here
    LIFE/with-9f86d081884c/                   the same, compiled with predicates; their digest
    LIFE/changes/00000000000000001000-00000000000000001007.json    a step, from version to version

A batch uses one version. The owner knows its latest version, and perhaps no other; the owner may be
down when a batch is repeated. So before a batch is pinned to a version, the changes that lead to
the version are stored here, as the owner sent them. Only versions that the owner has sent are
known: a step contains all changes between two such versions, and may skip versions.

Each node is a subscription whose id is the number of the node: the subscriptions that match a row
are the nodes that match it. A filter that the language now refuses, or that does not fit the
attributes, is left out; the owner leaves it out too.

Node numbers are valid only within one life of the channel, so each life has its own folder.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from tidings.channel import Changes, NodeChange
from tidings.filters import Attributes, parse
from tidings.matching.disk import SnapshotError, read_table
from tidings.model import FilterError, TidingsError
from tidings.preprocessing import Decisions
from tidings.snapshots import DistinctFilters, Snapshot, build_nodes, identity_of, need_whole
from tidings.spark.loading.background import Background, remove_left_overs
from tidings.spark.loading.log_filters import RefusedSubscription, log_set_aside
from tidings.spark.loading.log_snapshots import (
    ASIDE,
    attributes_of,
    is_whole,
    path_of,
    remove,
    save_snapshot,
    versions_in,
)
from tidings.spark.outbox.sealed_files import make_folder, read_sealed, write_sealed
from tidings.spark.tagging.channel_kinds import ChannelKind
from tidings.spark.tagging.worker import NODE_TEXTS, Change, Pinned

KEPT = 3  # snapshots that are kept
_log = logging.getLogger(__name__)


class Unknown(TidingsError):
    """The mirror does not have this version."""


class Step(msgspec.Struct, frozen=True):
    """The changes from one version to another."""

    since: int
    version: int
    changes: tuple[NodeChange, ...]


class Mirror:
    """The nodes of one life of a channel. One process at a time may write; others may read."""

    def __init__(
        self,
        home: Path,
        attributes: Attributes | None,
        rebuild_after: int = 1_000,
        kind: ChannelKind | None = None,
    ) -> None:
        """`kind` is set if interests are more than filters of plain attributes."""
        self.home = home
        self.attributes = attributes
        self.rebuild_after = rebuild_after
        # tasks need the kind only if filters may call predicates
        self._kind = kind if kind is not None and kind.predicates else None
        self._predicates = () if self._kind is None else self._kind.predicates
        self._functions = Decisions().functions(self._predicates)
        # a snapshot can only be opened with the predicates that it was compiled with
        name = f"with-{hashlib.sha256(repr(self._predicates).encode()).hexdigest()[:12]}"
        self._compiled = home / name if self._predicates else home
        self._compiler = Background()
        self._steps = {one.since: one for one in self._read_steps()}
        # by node number: set-aside nodes, or None for accepted filters, as found in this process
        self._aside: dict[int, RefusedSubscription | None] = {}

    @property
    def version(self) -> int | None:
        """The latest version; None if there is none yet."""
        told = (one.version for one in self._steps.values())
        return max((*self.snapshots(), *told), default=None)

    def snapshots(self) -> list[int]:
        """The versions that are compiled with these attributes, in order."""
        return versions_in(self._compiled, self.attributes)

    # -- writing -------------------------------------------------------------------------------

    def put(self, told: Changes) -> None:
        """Store what the owner sent; it is on disk when this returns."""
        known = self.version
        if told.whole or known is None:  # without a known version, the changes add all nodes
            self._compile(told.version, _replay({}, told.changes))
        elif told.version > known:
            step = Step(known, told.version, told.changes)
            write_sealed(self._step_path(step), msgspec.json.encode(step))
            self._steps[known] = step

    def compile(self, version: int) -> None:
        """Write the snapshot of a version, if there is none."""
        self._compile(version, self.nodes(version))

    def _compile(self, version: int, nodes: Mapping[int, str]) -> None:
        path = path_of(self._compiled, version, self.attributes)
        if path.exists():
            return
        make_folder(self._compiled)
        distinct, numbers = DistinctFilters(self.attributes, self._functions), dict[bytes, int]()
        refused: list[RefusedSubscription] = []
        for node, text in sorted(nodes.items()):
            try:
                numbers.setdefault(distinct.add(node, text), node)
            except FilterError as problem:
                refused.append(RefusedSubscription(node, text, problem.reason))
        columns = {"node": pa.array(nodes.keys(), pa.int64()),
                   "filter": pa.array(nodes.values(), pa.large_string())}  # fmt: skip
        snapshot = Snapshot(version, *build_nodes(distinct, numbers))
        save_snapshot(path, snapshot, {NODE_TEXTS: columns}, refused)

    # -- reading -------------------------------------------------------------------------------

    def pin(self, version: int) -> Pinned:
        """A version to send to tasks: a snapshot, and the numbered changes since the snapshot.
        Raise Unknown if the mirror does not have the version."""
        base = self._base(version)
        if base is None:
            self.compile(version)
            base = version
        told = self._changes(base, version) or ()
        changes = tuple(
            self._change(number, one) for number, one in enumerate(told, start=base + 1)
        )
        if len(changes) >= self.rebuild_after:
            self._compile_soon(version, base)
        path = path_of(self._compiled, base, self.attributes)
        return Pinned(str(path), base + len(changes), changes, identity_of(path), self._kind)

    def nodes(self, version: int) -> dict[int, str]:
        """The number and the filter of every node at a version; raises Unknown if the mirror does
        not have the version."""
        for number, path in sorted(self._all_snapshots(), reverse=True):
            changes = self._changes(number, version)
            if changes is not None:
                try:
                    need_whole(path)
                    table = read_table(path / NODE_TEXTS)
                except (SnapshotError, OSError):
                    continue  # `pin` moves a damaged snapshot aside
                pairs = zip(*(column.to_pylist() for column in table.columns), strict=True)
                return _replay(dict(pairs), changes)
        raise Unknown(f"version {version} of the channel is not in {self.home}")

    def list_set_aside(self) -> list[RefusedSubscription]:
        """The nodes that are left out at the latest version, because their filters are refused."""
        version = self.version
        base = None if version is None else self._base(version)
        if version is None or base is None:
            return []
        data = (path_of(self._compiled, base, self.attributes) / ASIDE).read_bytes()
        found = {one.id: one for one in msgspec.json.decode(data, type=list[RefusedSubscription])}
        for one in self._changes(base, version) or ():
            if one.filter is None:
                found.pop(one.node, None)
            elif (refused := self._check_filter(one.node, one.filter)) is not None:
                found[one.node] = refused
        return list(found.values())

    def close(self) -> None:
        """Wait for a running compilation, but not long."""
        self._compiler.close()

    def _base(self, version: int) -> int | None:
        """The version of the latest intact snapshot from which the stored steps lead to this
        version."""
        near = [one for one in self.snapshots() if self._changes(one, version) is not None]
        return next((one for one in reversed(near) if self._is_whole(one)), None)

    def _is_whole(self, version: int) -> bool:
        return is_whole(self._compiled, version, self.attributes, NODE_TEXTS)

    def _changes(self, base: int, version: int) -> list[NodeChange] | None:
        """The changes from one version to another; None if no stored steps lead there."""
        found: list[NodeChange] = []
        while base < version and base in self._steps:
            found += self._steps[base].changes
            base = self._steps[base].version
        return found if base == version else None

    def _change(self, number: int, one: NodeChange) -> Change:
        """A change in the form that is sent to tasks. A node whose filter is refused is sent as
        ended."""
        text = one.filter
        if text is not None:
            is_new = one.node not in self._aside
            refused = self._check_filter(one.node, text)
            if refused is not None:
                text = None
                log_set_aside([refused] if is_new else [])
        return Change(number, one.node, text, 0 if text is None else one.node)

    def _check_filter(self, node: int, text: str) -> RefusedSubscription | None:
        """The node as a set-aside subscription; None if its filter is accepted."""
        if node not in self._aside:
            try:
                parse(text, attributes=self.attributes, functions=self._functions)
                self._aside[node] = None
            except FilterError as problem:
                self._aside[node] = RefusedSubscription(node, text, problem.reason)
        return self._aside[node]

    # -- files ---------------------------------------------------------------------------------

    def _step_path(self, step: Step) -> Path:
        return self.home / "changes" / f"{step.since:020d}-{step.version:020d}.json"

    def _read_steps(self) -> Iterable[Step]:
        for path in sorted((self.home / "changes").glob("[0-9]*.json")):
            try:
                yield msgspec.json.decode(read_sealed(path) or b"", type=Step)
            except (TidingsError, msgspec.DecodeError) as problem:
                _log.warning("%s: %s; it is not used, and the owner is asked again", path, problem)

    def _all_snapshots(self) -> list[tuple[int, Path]]:
        """All snapshots, including those compiled with other attributes or predicates, because they
        have the same nodes."""
        paths = [*self.home.glob("[0-9]*-*"), *self.home.glob("with-*/[0-9]*-*")]
        return [(int(path.name.partition("-")[0]), path) for path in paths]

    def _compile_soon(self, version: int, base: int) -> None:
        """Compile a version in a separate process, and remove files that are too old to be
        needed."""
        if self._compiler.is_running:
            return
        oldest = [number for number in self.snapshots() if number <= base][-KEPT:][0]
        for number, path in self._all_snapshots():
            if number < oldest:
                remove(path)
        for step in [one for one in self._steps.values() if one.version <= oldest]:
            self._step_path(step).unlink(missing_ok=True)
            del self._steps[step.since]
        remove_left_overs(self._compiled)
        told = str(self.home), str(version), str(path_of(self._compiled, base, self.attributes))
        kind = () if self._kind is None else (msgspec.json.encode(self._kind).decode(),)
        self._compiler.start("tidings.spark.channel.mirror", *told, *kind)


def _replay(nodes: dict[int, str], changes: Iterable[NodeChange]) -> dict[int, str]:
    """Apply changes to `nodes`, and return them."""
    for one in changes:
        if one.filter is None:
            nodes.pop(one.node, None)
        else:
            nodes[one.node] = one.filter
    return nodes


def main() -> int:
    """Compile a version. The arguments are the folder of a life, the version, a snapshot that was
    compiled with the attributes of the channel, and, if filters may call predicates, the kind of
    the channel."""
    home, version, base = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    kind = None if len(sys.argv) < 5 else msgspec.json.decode(sys.argv[4], type=ChannelKind)
    Mirror(home, attributes_of(base), kind=kind).compile(version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
