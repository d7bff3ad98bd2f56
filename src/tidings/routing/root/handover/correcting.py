"""Replaces the tag of a publication with the tag that the rendezvous point would give it now.

    tag, version ──resolving──> current nodes ────────────┐
    newer nodes ──interests──> those that match ──────────┴──> the lowest of both

Node numbers increase with versions, so a tag can lack only nodes with numbers above its version. If
there are many such nodes, or if the version is not known, the rendezvous point tags the publication
itself. Without attributes, it can't do so: newer nodes are then left out, and a tag that is too old
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.model import TidingsError
from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.forwarding.neighbours import Name
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.tags import unpack_tag
from tidings.routing.root.handover.resolving import Resolving, replace_rows
from tidings.routing.root.interests import Interests
from tidings.routing.root.nodes import Registry, SetAside
from tidings.routing.root.publishing import Outdated
from tidings.routing.root.relating import Relating

FEW = 16  # newer nodes that are matched one by one; for more nodes than this, the index is faster
FEW_OF_MANY = 3  # like FEW, for many publications, which the index matches together

Numbers = npt.NDArray[np.int64]


class TagColumns(NamedTuple):
    """The tags of some publications, all of one version: the nodes of publication i are
    nodes[starts[i] : starts[i + 1]]."""

    life: int
    version: int
    starts: Numbers
    nodes: Numbers


class Corrected(NamedTuple):
    """The lowest nodes of some publications; the `odd` publications must be processed one by
    one."""

    starts: Numbers
    nodes: Numbers
    odd: list[int]


class Correcting:
    """Corrects the tags of publications."""

    def __init__(
        self,
        graph: LabelGraph[Name],
        registry: Registry,
        interests: Interests,
        set_aside: SetAside,
        resolving: Resolving,
        limits: Limits,
        relating: Relating | None = None,
    ) -> None:
        self._graph = graph
        self._registry = registry
        self._interests = interests
        self._aside = set_aside.aside
        self._resolving = resolving
        self._limits = limits
        self._relating = relating

    def correct(self, data: bytes, content: bytes) -> Label:
        """The lowest nodes of a publication with this tag and these attributes. Raise Outdated if
        the tag can't be corrected."""
        tag = unpack_tag(data)
        if tag is None:
            raise Outdated(
                f"found a tag of {len(data):,} bytes, expected a life, a version and nodes of 8 "
                "bytes each",
                self._registry.history.version,
            )
        self._need_known(tag.life, tag.version, max(tag.nodes, default=0))
        newer: Sequence[int] = ()
        if content:
            newer = self._newer(tag.version, FEW)
        else:
            self._need_recent(tag.version)
        found = self._resolving.renew_one(tag.nodes, tag.version)
        return self._with_newer(found, content, newer)

    def correct_many(self, tags: TagColumns, contents: Sequence[bytes]) -> Corrected:
        """Like `correct`, for many publications. Shares are not checked, and filters are set aside
        only if a tag has too many nodes."""
        self._need_known(tags.life, tags.version, int(tags.nodes.max(initial=0)))
        newer = self._newer(tags.version, FEW_OF_MANY) if any(contents) else ()
        most = self._limits.content_bytes
        odd = [at for at, one in enumerate(contents) if len(one) > most]
        if not all(contents) and not self._is_recent(tags.version):
            odd += (at for at, one in enumerate(contents) if not one)
        starts, nodes = self._resolving.lowest(tags.starts, tags.nodes, tags.version)
        if newer:
            changed: dict[int, Label] = {}
            skipped = set(odd)
            for row, content in enumerate(contents):
                if content and row not in skipped:
                    label = tuple(nodes[starts[row] : starts[row + 1]].tolist())
                    try:
                        found = self._with_newer(label, content, newer)
                    except TidingsError:
                        odd.append(row)
                        continue
                    if found != label:
                        changed[row] = found
            starts, nodes = replace_rows(starts, nodes, changed)
        return Corrected(starts, nodes, sorted(odd))

    def _with_newer(self, found: Label, content: bytes, newer: Sequence[int]) -> Label:
        if not newer:
            return found
        matched = [n for n in self._interests.among(content, newer) if n not in self._aside]
        return self._graph.lowest((*found, *matched)) if matched else found

    def _need_known(self, life: int, version: int, highest: int) -> None:
        """Raise Outdated if the history does not have the version of a tag."""
        history = self._registry.history
        if life != history.life:
            raise Outdated(
                f"found a tag of life {life} of the channel, expected life {history.life}",
                history.version,
            )
        # before the version `renewed`, filters were read differently, for example with another
        # ontology
        if highest > version or version < history.renewed or not history.knows(version):
            raise Outdated(
                f"found a tag of version {version}, which is unknown or too old; tag again at "
                f"version {history.version}",
                history.version,
            )

    def _newer(self, version: int, most: int) -> Sequence[int]:
        """The nodes that were added after a version; raises Outdated if there are more than `most`.
        Related nodes are not counted, because tags never contain them."""
        hidden = () if self._relating is None else self._relating.bases
        newer = self._registry.list_begun(version, most, hidden)
        if newer is None:
            raise Outdated(
                f"found a tag of version {version}, which is too old: more than {most} nodes were "
                "added after that version; tag again at the current version",
                self._registry.history.version,
            )
        return newer

    def _is_recent(self, version: int) -> bool:
        """Whether a tag of this version may be used without attributes."""
        return self._registry.count_since(version) <= self._limits.tag_changes

    def _need_recent(self, version: int) -> None:
        if not self._is_recent(version):
            now, most = self._registry.history.version, self._limits.tag_changes
            raise Outdated(
                f"found a tag of version {version}, which is too old to correct without "
                f"attributes: the nodes changed more than {most:,} times after that "
                f"version; tag the notification again at version {now}",
                now,
            )
