"""The nodes of a channel by version, in a folder of the pipeline.

    LIFE/00000000000000001000-5d41402abc4b/   version 1000, compiled with the channel's attributes
        channel.arrow                         the number and the filter of every node
        aside.json                            nodes whose filters are refused here
    LIFE/changes/00000000000000001001-00000000000000001007.json     the changes since, as they came

A batch uses one version. The owner knows its latest version, and perhaps no other; it may be down
when a batch is repeated. So everything that it told is on disk here before a batch is pinned to it.

Each node is a subscription whose id is its number: the subscriptions that match a row are the nodes
that match it. A filter that the language refuses now, or that does not fit the attributes, is left
out, as the owner leaves it out.

Numbers of nodes mean something only within one life of the channel, so each life has a folder.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from tidings.channel import Changes, NodeChange
from tidings.filters import Attributes, parse
from tidings.matching.disk import SnapshotError, read_table
from tidings.model import FilterError, TidingsError
from tidings.snapshots import DistinctFilters, Snapshot, build_nodes, identity_of, need_whole
from tidings.spark.loading.background import Background, remove_left_overs
from tidings.spark.loading.log_snapshots import (
    ASIDE,
    attributes_of,
    is_whole,
    path_of,
    remove,
    save_snapshot,
    versions_in,
)
from tidings.spark.loading.restated import Aside, log_set_aside
from tidings.spark.outbox.sealed_files import make_folder, read_sealed, write_sealed
from tidings.spark.tagging.worker import Change, Pinned

KEPT = 3  # snapshots that are kept
NODES = "channel.arrow"
_log = logging.getLogger(__name__)
_SPAN = re.compile(r"([0-9]{20})-([0-9]{20})\.json")
_SNAPSHOT = re.compile(r"([0-9]{20})-[0-9a-f]{12}")


class Unknown(TidingsError):
    """The mirror does not have this version."""


class Mirror:
    """The nodes of one life of a channel. One process at a time writes; others may read."""

    def __init__(
        self, home: Path, attributes: Attributes | None, rebuild_after: int = 1_000
    ) -> None:
        self.home = home
        self.attributes = attributes
        self.rebuild_after = rebuild_after
        self._compiler = Background()
        self._changes = {one.version: one for one in self._read_changes()}
        self._parsed: dict[int, Change] = {}  # by version
        self.aside: list[Aside] = []
        """Nodes that are left out because their filters are refused, as far as they were read."""

    @property
    def version(self) -> int | None:
        """The latest version; None if there is none yet."""
        return max((*self.snapshots(), *self._changes), default=None)

    # -- writing -------------------------------------------------------------------------------

    def put(self, told: Changes) -> None:
        """Keep what the owner told; it is on disk when this returns."""
        known = self.version
        if told.whole or known is None:
            # the changes since nothing are all there are, too
            self._compile(told.version, _replay({}, told.changes))
            return
        new = [one for one in told.changes if one.version > known]
        if [one.version for one in new] != list(range(known + 1, told.version + 1)):
            raise TidingsError(
                f"the channel named {len(new):,} changes from version {known} to {told.version}, "
                f"expected one for each version"
            )
        if new:
            name = f"{new[0].version:020d}-{new[-1].version:020d}.json"
            write_sealed(self.home / "changes" / name, msgspec.json.encode(new))
            self._changes.update((one.version, one) for one in new)

    def compile(self, version: int) -> None:
        """Write the snapshot of a version, if there is none."""
        self._compile(version, self.nodes(version))

    def _compile(self, version: int, nodes: Mapping[int, str]) -> None:
        path = path_of(self.home, version, self.attributes)
        if path.exists():
            return
        make_folder(self.home)
        distinct, numbers = DistinctFilters(self.attributes), dict[bytes, int]()
        refused: list[Aside] = []
        for node, text in sorted(nodes.items()):
            try:
                numbers.setdefault(distinct.add(node, text), node)
            except FilterError as problem:
                refused.append(Aside(node, text, problem.reason))
        self._set_aside(refused)
        columns = {"node": pa.array(nodes.keys(), pa.int64()),
                   "filter": pa.array(nodes.values(), pa.large_string())}  # fmt: skip
        snapshot = Snapshot(version, *build_nodes(distinct, numbers))
        save_snapshot(path, snapshot, {NODES: columns}, refused)

    # -- reading -------------------------------------------------------------------------------

    def pin(self, version: int) -> Pinned:
        """A version to send to tasks: a snapshot, and the changes since. Raise Unknown if it is not
        here."""
        base = self._base(version)
        if base is None:
            self.compile(version)
            base = version
        changes = tuple(self._change(at) for at in range(base + 1, version + 1))
        if len(changes) >= self.rebuild_after:
            self._compile_soon(version, base)
        path = path_of(self.home, base, self.attributes)
        return Pinned(str(path), version, changes, identity_of(path))

    def nodes(self, version: int) -> dict[int, str]:
        """The number and the filter of every node at a version; Unknown if it is not here."""
        for number, path in sorted(self._all_snapshots(), reverse=True):
            if self._reaches(number, version):
                try:
                    need_whole(path)
                    table = read_table(path / NODES)
                except (SnapshotError, OSError):
                    continue  # `pin` moves it aside
                pairs = zip(*(column.to_pylist() for column in table.columns), strict=True)
                changes = (self._changes[at] for at in range(number + 1, version + 1))
                return _replay(dict(pairs), changes)
        raise Unknown(f"version {version} of the channel is not in {self.home}")

    def list_set_aside(self) -> list[Aside]:
        """The nodes that are left out at the latest version."""
        version = self.version
        base = None if version is None else self._base(version)
        if version is None or base is None:
            return []
        data = (path_of(self.home, base, self.attributes) / ASIDE).read_bytes()
        self.aside = msgspec.json.decode(data, type=list[Aside])
        for at in range(base + 1, version + 1):
            self._change(at)
        ended = {one.node for at, one in self._changes.items() if at > base and one.filter is None}
        return [one for one in self.aside if one.id not in ended]

    def close(self) -> None:
        """Wait for a running compilation, but not long."""
        self._compiler.close()

    def _base(self, version: int) -> int | None:
        """The version of the latest intact snapshot from which the changes lead to this version."""
        near = [number for number in self.snapshots() if self._reaches(number, version)]
        whole = (one for one in reversed(near) if self._is_whole(one))
        return next(whole, None)

    def _is_whole(self, version: int) -> bool:
        return is_whole(self.home, version, self.attributes, NODES)

    def _reaches(self, base: int, version: int) -> bool:
        return base <= version and all(at in self._changes for at in range(base + 1, version + 1))

    def _change(self, version: int) -> Change:
        """A change as tasks get it. A filter that is refused is sent as ended."""
        found = self._parsed.get(version)
        if found is None:
            one = self._changes[version]
            text = one.filter
            if text is not None:
                try:
                    parse(text, attributes=self.attributes)
                except FilterError as problem:
                    self._set_aside([Aside(one.node, text, problem.reason)])
                    text = None
            found = Change(version, one.node, text, 0 if text is None else one.node)
            self._parsed[version] = found
        return found

    def _set_aside(self, found: list[Aside]) -> None:
        known = {one.id for one in self.aside}
        new = [one for one in found if one.id not in known]
        log_set_aside(new)
        self.aside += new

    # -- files ---------------------------------------------------------------------------------

    def snapshots(self) -> list[int]:
        """The versions that are compiled with these attributes, in order."""
        return versions_in(self.home, self.attributes)

    def _all_snapshots(self) -> list[tuple[int, Path]]:
        """Those that were compiled with other attributes, too: they have the same nodes."""
        named = ((_SNAPSHOT.fullmatch(path.name), path) for path in self.home.glob("[0-9]*"))
        return [(int(name[1]), path) for name, path in named if name is not None]

    def _read_changes(self) -> Iterable[NodeChange]:
        for path in sorted((self.home / "changes").glob("[0-9]*.json")):
            try:
                data = read_sealed(path) or b"[]"
                yield from msgspec.json.decode(data, type=list[NodeChange])
            except (TidingsError, msgspec.DecodeError) as problem:
                _log.warning("%s; it is not used, and the owner is asked again", problem)

    def _compile_soon(self, version: int, base: int) -> None:
        if self._compiler.is_running:
            return
        kept = [number for number in self.snapshots() if number <= base][-KEPT:]
        for number, path in self._all_snapshots():
            if number < kept[0]:
                remove(path)
        for path in (self.home / "changes").glob("[0-9]*.json"):
            span = _SPAN.fullmatch(path.name)
            if span is not None and int(span[2]) <= kept[0]:
                path.unlink()
        for at in [at for at in self._changes if at <= kept[0]]:
            del self._changes[at]
            self._parsed.pop(at, None)
        remove_left_overs(self.home)
        told = str(self.home), str(version), str(path_of(self.home, base, self.attributes))
        self._compiler.start("tidings.spark.channel.mirror", *told)


def _replay(nodes: dict[int, str], changes: Iterable[NodeChange]) -> dict[int, str]:
    """The nodes after some changes."""
    for one in changes:
        if one.filter is None:
            nodes.pop(one.node, None)
        else:
            nodes[one.node] = one.filter
    return nodes


def main() -> int:
    """Compile a version. The arguments are the folder of a life, the version, and a snapshot that
    was compiled with the attributes of the channel."""
    home, version, base = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    Mirror(home, attributes_of(base)).compile(version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
