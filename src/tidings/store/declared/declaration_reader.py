"""Follows the declarations in a channel's log.

Only the first part of the checkpoint is decoded, and only the declarations in the groups after the
checkpoint. So following a log stays cheap, however many subscriptions it has. A reader that follows
a log reads each group once.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from tidings.store.declared.declaration import StoredDeclaration
from tidings.store.groups import EndMark, GroupLog, Position, end_of
from tidings.store.journal import checkpoint, entries as t


class LastDeclaration(msgspec.Struct, frozen=True):
    """The declaration in a log, and whether the channel ever had a rendezvous point."""

    declaration: StoredDeclaration = StoredDeclaration()
    version: int = 0
    """The version of the declaration, if the log still has it."""
    had_root: bool = False
    """Whether the channel ever had a rendezvous point."""


class DeclarationReader:
    """The declaration at the end of a log. Any number of threads may use a reader."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mutex = threading.Lock()
        self._mark: EndMark | None = None
        self._at = Position()
        self._told = LastDeclaration()

    def read(self, mark: EndMark) -> LastDeclaration:
        """The declaration in the log up to an end mark. Raises EnvironmentProblem or
        FileNotFoundError if the log is damaged, or was changed meanwhile; then try again."""
        with self._mutex:
            before = self._mark
            if mark == before:
                return self._told
            is_known = (
                before is not None
                and before.log == mark.log
                and self._at.number <= mark.number
                and self._at.segment >= mark.oldest
            )
            self._mark = None
            if not is_known:
                self._at, self._told = self._start(mark)
            walk = GroupLog(self._folder).walk(self._at, end_of(mark))
            for group in walk:
                if walk.damages:
                    break
                for record in group.records:
                    self._take(record)
                self._at = group.end
            if walk.damages:
                self._at = Position()
                raise checkpoint.Damaged(walk.damages[0])
            self._mark = mark
            return self._told

    def _start(self, mark: EndMark) -> tuple[Position, LastDeclaration]:
        found = checkpoint.read_about(self._folder, mark if mark.log else None)
        if found is None:
            return Position(), LastDeclaration()
        past = found.history
        text = "" if past is None else past.declaration
        had = bool(found.lives) or bool(past and past.life)
        version = past.renewed if past is not None and text else 0
        return found.at, LastDeclaration(StoredDeclaration.decode(text), version, had)

    def _take(self, record: bytes | None) -> None:
        if record is None or record[:1] != t.THING or not record.startswith(_TAGS, 2):
            return
        thing = t.decode_small(record)
        if isinstance(thing, t.Life):
            self._told = msgspec.structs.replace(self._told, had_root=True)
        elif isinstance(thing, t.Renewed) and (
            thing.declaration != self._told.declaration.text
        ):  # an equal declaration is repeated if only the set of refused filters changed
            found = StoredDeclaration.decode(thing.declaration)
            self._told = LastDeclaration(found, thing.version, self._told.had_root)


# MessagePack writes the tag of an entry at a fixed place, so other entries need not be decoded
_TAGS = tuple(msgspec.msgpack.encode(one.__struct_config__.tag) for one in (t.Life, t.Renewed))
