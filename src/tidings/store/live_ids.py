"""The ids of the subscriptions of a channel, and their type.

The ids of all subscriptions are strings, or all are integers, because a snapshot can hold only one
kind. Nodes that a rendezvous point created have ids of that kind too. Logs that were written before
this rule existed can have both kinds of ids. The subscriptions in a log with both kinds can be
changed and dropped, but new ids are refused until only one kind is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

from tidings.model import Id, TidingsError
from tidings.store.layered import Layer, put_over

RESERVED = re.compile(r"node [0-9]+")  # see `anonymous_id` in journal/entries.py


class LiveIds:
    """The node of each subscription, by id, and how many of the ids are strings."""

    def __init__(self, nodes: Mapping[Id, int]) -> None:
        self.nodes: MutableMapping[Id, int] = dict(nodes)
        self.texts = sum(type(id_) is str for id_ in self.nodes)
        self.anonymous = 0
        """How many nodes a rendezvous point created; each of them counts as a subscription."""
        self.integer = False  # whether the ids of nodes of a rendezvous point are integers

    def adopt(self, nodes: Layer[Id, int], *, integer: bool) -> None:
        """Add the ids of a bulk."""
        self.nodes = put_over(self.nodes, nodes)
        self.texts += 0 if integer else nodes.size
        self.integer = integer

    def counts(self) -> dict[type, int]:
        """How many ids there are of each kind."""
        found = {str: self.texts, int: len(self.nodes) - self.texts}
        found[int if self.integer else str] += self.anonymous
        return found

    def set(self, id_: Id, node: int) -> int:
        """Set the node of a subscription; with 0, remove it. Return the previous node of the
        subscription, or 0."""
        before = self.nodes.get(id_, 0)
        if node:
            self.nodes[id_] = node
            self.integer = type(id_) is int
        elif before:
            del self.nodes[id_]
        if type(id_) is str:
            self.texts += bool(node) - bool(before)
        return before


class ProjectedIds:
    """The ids that will have subscriptions when pending changes are on the disk."""

    def __init__(self, living: LiveIds, folder: Path) -> None:
        self._living = living
        self._folder = folder
        self._changed: dict[Id, bool] = {}
        self._counts = living.counts()

    def take(self, changes: Iterable[tuple[Id, str | None]]) -> None:
        """Add all of these changes; if one is impossible, add none and raise TidingsError."""
        changed, counts = dict[Id, bool](), self._counts.copy()
        for id_, text in changes:
            there = changed.get(id_, self._changed.get(id_, id_ in self._living.nodes))
            stays = text is not None
            if not stays and not there:
                raise TidingsError(f"there is no subscription with the id {id_!r}")
            if stays and not there and counts[int if type(id_) is str else str]:
                raise TidingsError(self._other_kind(id_, counts))
            if stays and not there and type(id_) is str and RESERVED.fullmatch(id_):
                raise TidingsError(
                    f"found the id {id_!r}, expected another: ids such as 'node 17' are reserved "
                    "for nodes of a rendezvous point"
                )
            if stays and not there and type(id_) is int and id_ < 0 and self._living.anonymous:
                raise TidingsError(
                    f"found the id {id_}, expected at least 0: negative ids are reserved for nodes "
                    "of a rendezvous point"
                )
            counts[type(id_)] += stays - there
            changed[id_] = stays
        self._changed |= changed
        self._counts = counts

    def _other_kind(self, id_: Id, counts: dict[type, int]) -> str:
        if all(counts.values()):
            return (
                f"the ids of the subscriptions in '{self._folder}' are strings and integers; drop "
                "those of one kind before you add new ones"
            )
        found, others = ("string", "integers") if type(id_) is str else ("integer", "strings")
        return (
            f"found the {found} {id_!r:.80} as an id, but the ids of the subscriptions in "
            f"'{self._folder}' are {others}"
        )
