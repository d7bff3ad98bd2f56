"""The state after changes: the subscriptions, and the node of each filter.

Nodes are numbered from 1 in the order in which their filters were first added. A filter keeps its
number even when nobody subscribes to it any more, so identities are never dropped.

The ids of all subscriptions are texts, or all are integers, because a snapshot can hold only one
kind. Logs from before this rule may have both kinds of ids. The subscriptions in such a log can be
changed and dropped, but new ids are refused until only one kind is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidings.model import Id, TidingsError
from tidings.store.records import SQL, LogError, Record

Subscriptions = dict[Id, tuple[str, int]]
Dialects = dict[Id, str]  # the dialects of subscriptions whose filters are not in SQL


class Nodes:
    """The identities of filters, in the order of their numbers."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self.numbers: dict[bytes, int] = {key: number for number, key in enumerate(keys, 1)}

    def apply(self, record: Record, folder: Path) -> None:
        """Add the node of a change; raise LogError if its number is impossible."""
        known = len(self.numbers)
        if record.key is None:
            possible = record.node <= known
        else:
            possible = record.node == known + 1 and record.key not in self.numbers
        if not possible:
            raise LogError(
                f"the log in '{folder}' is damaged: found node {record.node} at version "
                f"{record.version}, expected at most {known + 1}"
            )
        if record.key is not None:
            self.numbers[record.key] = record.node


def apply(record: Record, subscriptions: Subscriptions, dialects: Dialects) -> None:
    """Apply a change to subscriptions and their dialects."""
    if record.filter is None:
        subscriptions.pop(record.id, None)
    else:
        subscriptions[record.id] = (record.filter, record.node)
    if record.filter is None or record.dialect == SQL:
        dialects.pop(record.id, None)
    else:
        dialects[record.id] = record.dialect


class LiveIds:
    """The ids with subscriptions, and how many of them are texts."""

    def __init__(self, ids: Iterable[Id] = ()) -> None:
        self._ids = set(ids)
        self._texts = sum(type(id_) is str for id_ in self._ids)

    def __contains__(self, id_: Id) -> bool:
        return id_ in self._ids

    def counts(self) -> dict[type, int]:
        """How many ids there are of each kind."""
        return {str: self._texts, int: len(self._ids) - self._texts}

    def apply(self, id_: Id, filter_: str | None) -> None:
        """Apply a change."""
        if (id_ in self._ids) == (filter_ is not None):
            return
        (self._ids.discard if filter_ is None else self._ids.add)(id_)
        if type(id_) is str:
            self._texts += -1 if filter_ is None else 1


class ProjectedIds:
    """The ids that will have subscriptions once pending changes are on the disk."""

    def __init__(self, living: LiveIds, folder: Path) -> None:
        self._living = living
        self._folder = folder
        self._changed: dict[Id, bool] = {}
        self._counts = living.counts()

    def take(self, changes: Iterable[tuple[Id, str | None]]) -> None:
        """Add all of these changes; if one is impossible, add none and raise TidingsError."""
        changed, counts = dict[Id, bool](), self._counts.copy()
        for id_, text in changes:
            there = changed.get(id_, self._changed.get(id_, id_ in self._living))
            stays = text is not None
            if not stays and not there:
                raise TidingsError(f"there is no subscription with the id {id_!r}")
            if stays and not there and counts[int if type(id_) is str else str]:
                raise TidingsError(self._other_kind(id_, counts))
            counts[type(id_)] += stays - there
            changed[id_] = stays
        self._changed |= changed
        self._counts = counts

    def _other_kind(self, id_: Id, counts: dict[type, int]) -> str:
        if all(counts.values()):
            return (
                f"the ids of the subscriptions in '{self._folder}' are texts and integers; drop "
                "those of one kind before you add new ones"
            )
        found, others = ("text", "integers") if type(id_) is str else ("integer", "texts")
        return (
            f"found the {found} {id_!r:.80} as an id, but the ids of the subscriptions in "
            f"'{self._folder}' are {others}"
        )
