"""A snapshot: the subscriptions of a channel at one version, compiled and immutable.

    manifest.json          number of the version, counts, declared attributes, digests
    nodes.arrow            number, key, parents (places of nodes), first member
    subscriptions.arrow    ids, node by node
    named.arrow            ids and texts of filters with named parts, if there are any
    index/                 the matcher over the nodes, with their texts

A notification is tagged with the *lowest* nodes that match it; subscribers to such a node, or to a
node above it, receive the notification. Files are mapped into memory, so processes on one machine
share the pages. Opening a snapshot only compares digests, and only once per process. For 1,000,000
filters of the workload `mixed` (270 MB), that takes 0.5 s on two busy cores.

Memory: per node 8 bytes for its number, 16 for starts and 32 for its key; 4 bytes per edge; and the
index (100 bytes per filter of the workload `mixed`).
"""

from __future__ import annotations

import html
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.files import address_of, local_path, scheme_of
from tidings.filters import Attributes, Filter
from tidings.matching import Matcher
from tidings.matching.disk import (
    Manifest,
    as_array,
    has_rekeyed,
    need_files,
    read_manifest,
    read_table,
    read_whole,
    replacing,
    write_manifest,
    write_table,
)
from tidings.model import FilterError, GraphError, Id
from tidings.snapshots import named_members
from tidings.snapshots.building import BuiltNodes, DistinctFilters, Functions, build_nodes, gather
from tidings.snapshots.remote import fetch_snapshot, put_snapshot
from tidings.snapshots.view import View

Array = npt.NDArray[Any]
FORMAT, VERSION = "tidings-snapshot", 3
# increased when one of these changes: the meaning of filters, the files that pipelines write beside
# a snapshot, or the nodes that a compilation creates; the snapshots of a channel are then compiled
# again
LANGUAGE = 5


class Snapshot:
    """The subscriptions of a channel at one version. Safe to use from several threads."""

    def __init__(
        self,
        number: int,
        nodes: BuiltNodes,
        matcher: Matcher,
        texts_with_names: Mapping[Id, str] | None = None,
    ) -> None:
        self.number = number
        self.matcher = matcher
        self.refused: dict[Id, FilterError] = {}
        """Subscriptions that `build` left out with `errors="collect"`, with the reason. A saved
        snapshot does not have them."""
        self.path: Path | None = None
        """The directory that the snapshot was opened from; None if it was built in this process."""
        self.address: str | None = None
        """The address that this directory was copied from; None if it is not a copy."""
        self.language = LANGUAGE
        """The LANGUAGE with which the snapshot was compiled; 0 if that is not known."""
        self._nodes = nodes
        self._ids = nodes.ids
        self.view = View(
            matcher,
            nodes.numbers,
            (nodes.parent_starts, nodes.parents),
            (nodes.member_starts, self._ids),
        )
        self.view.texts_with_names = dict(texts_with_names or {})

    # -- build, save, open ---------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        subscriptions: Iterable[tuple[Id, Filter | str]] | Mapping[Any, Filter | str],
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
        number: int = 1,
        numbers: Mapping[bytes, int] | None = None,
        progress: Callable[[int], None] = lambda _: None,
        threads: int | None = None,
        errors: str = "raise",
    ) -> Snapshot:
        """Compile (id, filter) pairs, or a mapping. Ids are all strings, or all integers.

        `number` is the version. `numbers` maps keys of filters to node numbers that were assigned
        earlier. If filters are refused, RefusedFilters lists them with their ids; with
        `errors="collect"` they are left out, and `refused` contains them. Filters that can never
        match are kept; `never()` lists them.
        """
        distinct = gather(subscriptions, DistinctFilters(attributes, functions), errors)
        nodes, matcher = build_nodes(distinct, numbers, progress, threads)
        snapshot = cls(number, nodes, matcher, distinct.named)
        snapshot.refused = distinct.refused
        return snapshot

    def save(self, path: str | Path, beside: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Write the snapshot to a directory; a snapshot that is already there is replaced. `beside`
        maps the names of additional files to their columns. The directory may be at an address that
        pyarrow.fs supports, such as s3://bucket/snapshot."""
        if scheme_of(path):
            with tempfile.TemporaryDirectory(prefix="tidings-snapshot-") as home:
                self.save(Path(home, "snapshot"), beside)
                put_snapshot(Path(home, "snapshot"), path)
            return
        nodes = self._nodes
        attributes = self.matcher.attributes
        with replacing(local_path(path, "a snapshot")) as folder:
            self.matcher.save(folder / "index")
            parents = pa.ListArray.from_arrays(
                pa.array(nodes.parent_starts.astype(np.int32)), pa.array(nodes.parents)
            )
            write_table(
                folder / "nodes.arrow",
                {
                    "number": pa.array(nodes.numbers),
                    "key": nodes.keys,
                    "parents": parents,
                    "members": pa.array(nodes.member_starts[:-1]),
                },
            )
            write_table(folder / "subscriptions.arrow", {"id": self._ids})
            named = self.view.texts_with_names
            if named:
                ids = pa.array(list(named), self._ids.type)
                texts = pa.array(list(named.values()), pa.string())
                write_table(folder / named_members.FILE, {"id": ids, "text": texts})
            for name, columns in (beside or {}).items():
                write_table(folder / name, columns)
            write_manifest(
                folder, FORMAT, VERSION, number=self.number, nodes=len(nodes.numbers),
                edges=len(nodes.parents), subscriptions=len(self._ids),
                attributes=None if attributes is None else attributes.to_declared(),
                language=self.language,
            )  # fmt: skip

    @classmethod
    def open(
        cls,
        path: str | Path,
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
    ) -> Snapshot:
        """Open a snapshot from a directory: check its digests and map it into memory.

        Declared attributes are read from the snapshot; functions must be passed again. A directory
        at an address that pyarrow.fs supports, such as s3://bucket/snapshot, is first copied to the
        user's cache.
        """
        here = fetch_snapshot(path) if scheme_of(path) else local_path(path, "a snapshot")
        snapshot = read_whole(here, lambda folder: cls._read(folder, attributes, functions))
        snapshot.path = here.absolute()
        snapshot.address = address_of(path) if scheme_of(path) else None
        return snapshot

    @classmethod
    def _read(
        cls, folder: Path, attributes: Attributes | None, functions: Functions | None
    ) -> Snapshot:
        manifest = read_manifest(folder, FORMAT, VERSION)
        need_files(folder, manifest)
        if attributes is None and manifest.notes.get("attributes") is not None:
            attributes = Attributes.from_declared(manifest.notes["attributes"])
        matcher = Matcher.open(folder / "index", attributes, functions=functions, background=False)
        table = read_table(folder / "nodes.arrow")
        ids = read_table(folder / "subscriptions.arrow").column("id").combine_chunks()
        parents = table.column("parents").combine_chunks()
        nodes = BuiltNodes(
            as_array(table.column("number")),
            table.column("key").combine_chunks(),
            parents.offsets.to_numpy().astype(np.int64),
            parents.values.to_numpy(),
            np.append(as_array(table.column("members")), len(ids)),
            ids,
        )
        manifest.need(folder, nodes=len(matcher), edges=len(nodes.parents), subscriptions=len(ids))
        manifest.need(folder, nodes=len(nodes.numbers))
        named: dict[Id, str] = {}
        if (folder / named_members.FILE).exists():
            named_table = read_table(folder / named_members.FILE)
            pairs = (named_table.column(name).to_pylist() for name in ("id", "text"))
            named = dict(zip(*pairs, strict=True))
        found = cls(manifest.count("number"), nodes, matcher, named)
        if manifest.version < VERSION:
            texts = read_table(folder / "index" / "filters.arrow").column("text")
            if has_rekeyed(texts):
                return found._compile_again(texts.to_pylist())
        found.language = language_in(manifest)
        return found

    def _compile_again(self, texts: list[str]) -> Snapshot:
        """The same subscriptions, compiled by this version of tidings; the nodes keep their
        numbers. If two nodes have the same filter now, the first one gets the subscriptions of
        both."""
        distinct = DistinctFilters(self.matcher.attributes, self.matcher.functions)
        numbers: dict[bytes, int] = {}
        for node, text in zip(self.numbers.tolist(), texts, strict=True):
            for id_ in self.members(node):
                numbers.setdefault(distinct.add(id_, text), node)
        nodes, matcher = build_nodes(distinct, numbers)
        return Snapshot(self.number, nodes, matcher, self.view.texts_with_names)

    def renumber(self, first: int, number: int) -> Snapshot:
        """The same subscriptions under the version `number`, with nodes numbered from `first`
        on."""
        numbers = np.arange(first, first + len(self.numbers), dtype=np.int64)
        nodes = msgspec.structs.replace(self._nodes, numbers=numbers)
        found = Snapshot(number, nodes, self.matcher, self.view.texts_with_names)
        found.language = self.language
        return found

    # -- contents ------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of subscriptions."""
        return len(self._ids)

    def __repr__(self) -> str:
        where = "" if self.path is None else f" in {str(self.path)!r}"
        counts = f"{len(self):,} subscriptions, {len(self._nodes.numbers):,} nodes"
        never = len(self.never())
        counts += f"; {never:,} can never match" if never else ""
        return f"<Snapshot{where}: version {self.number:,}, {counts}>"

    def _repr_html_(self) -> str:
        """A table of the counts, for notebooks."""
        rows = {"directory": "-" if self.path is None else str(self.path)}
        rows |= {name.replace("_", " "): f"{count:,}" for name, count in self.stats().items()}
        return "<table>{}</table>".format(
            "".join(
                f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>"
                for name, text in rows.items()
            )
        )

    @property
    def attributes(self) -> Attributes | None:
        return self.matcher.attributes

    @property
    def numbers(self) -> Array:
        """The numbers of all nodes, ascending."""
        return self._nodes.numbers

    @property
    def keys(self) -> list[bytes]:
        """The identities of the filters of the nodes, by position."""
        return list(self._nodes.keys.to_pylist())

    def filter(self, node: int) -> Filter:
        """The filter of a node."""
        return self.matcher.filter(self._place(node))

    def parents(self, node: int) -> list[int]:
        """The lowest nodes that cover this one."""
        nodes, place = self._nodes, self._place(node)
        found = nodes.parents[nodes.parent_starts[place] : nodes.parent_starts[place + 1]]
        return list(nodes.numbers[found].tolist())

    def members(self, node: int) -> list[Id]:
        """The ids of the subscriptions of a node."""
        starts, place = self._nodes.member_starts, self._place(node)
        found = self._ids.slice(starts[place], starts[place + 1] - starts[place])
        return list(found.to_pylist())

    def nodes_by_id(self) -> dict[Id, int]:
        """The node of every subscription."""
        sizes = np.diff(self._nodes.member_starts)
        nodes = np.repeat(self._nodes.numbers, sizes)
        return dict(zip(self._ids.to_pylist(), nodes.tolist(), strict=True))

    @property
    def ids(self) -> Any:
        """The ids of all subscriptions as an Arrow array, node by node."""
        return self._ids

    def never(self) -> list[Id]:
        """The ids of subscriptions whose filters can never match."""
        return self.view.never()

    def stats(self) -> dict[str, int]:
        """Counts of subscriptions (`never` counts those that can never match), nodes and edges, and
        the size of the index."""
        nodes = self._nodes
        return {
            "version": self.number,
            "subscriptions": len(self._ids),
            "never": len(self.never()),
            "nodes": len(nodes.numbers),
            "edges": len(nodes.parents),
            "roots": int((np.diff(nodes.parent_starts) == 0).sum()),
            "index_bytes": self.matcher.stats()["index_bytes"],
        }

    def _place(self, node: int) -> int:
        place = int(np.searchsorted(self._nodes.numbers, node))
        if place == len(self._nodes.numbers) or self._nodes.numbers[place] != node:
            raise GraphError(f"there is no node {node} in this snapshot")
        return place

    # -- match ---------------------------------------------------------------------------------

    def nodes(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray with the numbers of the lowest nodes that match each event of a batch."""
        return self.view.nodes(events, threads=threads)

    def subscriptions(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray with the ids of the subscriptions that match each event of a batch."""
        return self.view.subscriptions(events, threads=threads)


def language_in(manifest: Manifest) -> int:
    """The LANGUAGE with which a snapshot was compiled; 0 if that is not known."""
    return manifest.count("language") if "language" in manifest.notes else 0
