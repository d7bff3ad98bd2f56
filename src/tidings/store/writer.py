"""The writing side of a log: numbers changes and nodes, and appends them as one group.

A writer keeps in memory the identities of all filters and the ids of the subscriptions, no texts.
It has the lock while it catches up with what others wrote and appends its own, so versions have no
gaps and equal filters get one number, whoever writes. Nothing in its memory is changed before the
disk has the group.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidings.model import Id, TidingsError
from tidings.store import checkpoint
from tidings.store.disk import Unrepaired, append, cut, sync_end
from tidings.store.locks import locked
from tidings.store.records import LogError, Record, encode, line_of
from tidings.store.segments import Position, firsts, records, start_of
from tidings.store.state import Ahead, Living, Nodes
from tidings.store.tail import look

Wish = tuple[Id, str | None, bytes | None]  # id, text, identity; None: the subscription ends


class Wanted(msgspec.Struct):
    """Changes that are acknowledged together, and what became of them."""

    changes: list[Wish]
    version: int = 0
    error: BaseException | None = None
    done: bool = False


class Writer:
    """Appends to a log. Not for several threads at once; for several processes."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._refusal: str | None = None
        self._forget()

    def _forget(self) -> None:
        self._nodes: Nodes | None = None
        self._living = Living()
        self._version = 0
        self._end: Position | None = None

    def commit(self, wanted: Iterable[Wanted]) -> Position:
        """Append all that can be taken as one group; gives the end of the log.

        What can't be taken has its error set, everything else its version.
        """
        if self._refusal is not None:
            raise LogError(self._refusal)
        try:
            with locked(self._folder):
                nodes, end = self._catch_up()
                taken = self._possible(wanted)
                if any(one.changes for one in taken):
                    end = self._append(nodes, end, taken)
                for one in taken:
                    one.version = one.version or end.version
                return end
        except Unrepaired as problem:
            self._refusal = str(problem)
            raise
        except LogError:
            raise  # as before, or as after the last change that could be read
        except BaseException:
            # Interrupted anywhere, the memory may be half changed; the files are right.
            self._forget()
            raise

    def _catch_up(self) -> tuple[Nodes, Position]:
        """Read what was added since; cut off what is unfinished, so that it can be added to."""
        there, known = firsts(self._folder), self._version
        if self._nodes is None or not there or there[0] > self._version + 1:
            base = checkpoint.read(self._folder, ids_only=True)
            self._nodes, self._living = base.nodes, Living(base.subscriptions)
            self._version, self._end = base.version, None
        sight = look(self._folder, self._end)
        end = sight.complete
        if end.version < max(known, self._version) or (there and there[-1] != end.first):
            before = max(known, self._version, there[-1] - 1 if there else 0)
            raise LogError(
                f"the log is damaged: a segment is missing from '{self._folder}', which ends with "
                f"version {end.version} and was at {before} before"
            )
        if sight.unfinished:
            cut(self._folder, end)
        if sight.unfinished or end != self._end:
            sync_end(self._folder, end)
        for record in records(self._folder, self._version, end):
            self._nodes.apply(record, self._folder)
            self._living.apply(record.id, record.filter)
            self._version = record.version
        self._end = end
        return self._nodes, end

    def _possible(self, wanted: Iterable[Wanted]) -> list[Wanted]:
        """Those that the subscriptions can take, one after the other."""
        ahead = Ahead(self._living, self._folder)
        taken = []
        for one in wanted:
            try:
                ahead.take([(id_, text) for id_, text, _ in one.changes])
                taken.append(one)
            except TidingsError as problem:
                one.error = problem
        return taken

    def _append(self, nodes: Nodes, end: Position, taken: list[Wanted]) -> Position:
        total = sum(len(one.changes) for one in taken)
        known, new = nodes.numbers, dict[bytes, int]()
        lines: list[bytes] = []
        for one in taken:
            for id_, text, key in one.changes:
                node, fresh = 0, None
                if key is not None:
                    node = known.get(key) or new.get(key) or 0
                    if not node:
                        node, fresh = len(known) + len(new) + 1, key
                        new[key] = node
                before = len(lines)
                left = total - before - 1
                version = end.version + 1 + before
                record = Record(version, before, left, id_, text, node, fresh)
                lines.append(line_of(encode(record)))
            one.version = end.version + len(lines)
        if end.offset >= self._segment_bytes:
            end = start_of(end.version + 1)
        data = b"".join(lines)
        append(self._folder, end, data)
        end = Position(end.version + total, end.first, end.offset + len(data))
        known.update(new)
        for one in taken:
            for id_, text, _ in one.changes:
                self._living.apply(id_, text)
        self._version, self._end = end.version, end
        return end
