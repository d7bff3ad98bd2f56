"""Finds stored notifications by their numbers at nodes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from tidings.model import EnvironmentProblem
from tidings.routing.forwarding import cost_of
from tidings.routing.protocol import Notification, Range
from tidings.routing.root import Record
from tidings.store.groups import START, GroupLog, Position
from tidings.store.journal import entries as t
from tidings.store.journal.log_segments import LogSegment, Segments

PART = 64  # how many notifications are read at once

_log = logging.getLogger(__name__)


class RecordLookup:
    """The stored notifications of a log; `segments` is their index."""

    def __init__(self, log: GroupLog, segments: Segments) -> None:
        self._log = log
        self._segments = segments
        self.is_over = False
        """Whether the log was opened again."""

    def read_older(self, upto: Position) -> None:
        """Index the notifications that are older than the checkpoint. Notifications that can't be
        read count as lost, so that subscribers do not wait for them forever."""
        found: dict[int, LogSegment] = {}
        damages: list[str] = []
        log = GroupLog(self._log.folder)
        try:
            walk = log.walk(START, upto)
            damages = walk.damages
            for group in walk if upto.number else ():
                if self.is_over:
                    return
                first = group.end.segment
                if first not in found:
                    found[first] = LogSegment(log.path_of(first))
                found[first].add(group.records, group.places)
        except Exception:
            _log.exception("can't read the older notifications of the journal %s", log.folder)
        for sentence in damages[:10]:
            _log.error("the journal %s has lost notifications: %s", log.folder, sentence)
        self._segments.older = found

    def find(
        self, ranges: Iterable[Range], most_bytes: int, life: int
    ) -> tuple[list[Notification], list[Range]]:
        """See `FileJournal.find`; `life` is the current life."""
        if self._segments.older is None:
            raise EnvironmentProblem(
                f"the journal {self._log.folder} is still being read; try again later"
            )
        found: dict[int, Notification] = {}
        lost: list[Range] = []
        size = 0
        for node, first, last in ranges:
            for number, record in self._records(node, first, last):
                size += cost_of(len(record.payload), len(record.marks))
                if size > most_bytes and found:
                    return [found[serial] for serial in sorted(found)], lost
                found[record.serial] = record.notification(life)
                if number > first:
                    lost.append(Range(node, first, number - 1))
                first = number + 1
            if first <= last:
                lost.append(Range(node, first, last))
        return [found[serial] for serial in sorted(found)], lost

    def _records(self, node: int, first: int, last: int) -> Iterator[tuple[int, Record]]:
        """The stored notifications with these numbers at a node, except corrupt ones."""
        there = self._segments.find(node, max(first, 1), min(last, 2**63 - 1))
        numbers = sorted(there)
        for at in range(0, len(numbers), PART):
            part = numbers[at : at + PART]
            for number, data in zip(part, self._log.read(map(there.__getitem__, part)),
                                    strict=True):  # fmt: skip
                record = None if data is None else t.decode(data)
                if isinstance(record, Record):
                    yield number, record
                else:
                    _log.error("the journal %s has lost number %d of node %d: its record is "
                               "corrupt", self._log.folder, number, node)  # fmt: skip
