"""The state at one version, in a file, so that older segments need not be kept.

    checkpoint.jsonl    {"format":..., "version":..., "subscriptions":N, "nodes":M}
                        N lines [id, text, node]
                        M lines: the identities of the nodes 1 to M

Each line has a checksum, as in a segment. The file is written beside the old one, synced, and takes
its place at once: there is always one whole checkpoint, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tidings.files import private_file
from tidings.model import Id
from tidings.store.disk import sync
from tidings.store.records import LogError, body_of, encode, line_of
from tidings.store.state import Nodes, Subscriptions

NAME, BESIDE = "checkpoint.jsonl", "checkpoint.new"
FORMAT = "tidings-changes-1"


class Header(msgspec.Struct, frozen=True):
    """The first line."""

    format: str
    version: int
    subscriptions: int
    nodes: int


class Checkpoint(msgspec.Struct, frozen=True):
    """What a checkpoint holds; without a file, the state before the first change."""

    version: int
    subscriptions: Subscriptions
    nodes: Nodes


_entry = msgspec.json.Decoder(tuple[Id, str, int])
_key = msgspec.json.Decoder(bytes)


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint beside the one that is there; `take_place` makes it the one."""
    path = folder / BESIDE
    texts, keys = checkpoint.subscriptions, checkpoint.nodes.numbers
    try:
        with private_file(path, "wb") as file:
            header = Header(FORMAT, checkpoint.version, len(texts), len(keys))
            file.write(line_of(encode(header)))
            file.writelines(line_of(encode((id_, *rest))) for id_, rest in texts.items())
            file.writelines(line_of(encode(key)) for key in keys)
        sync(path)
    except OSError as problem:
        path.unlink(missing_ok=True)
        raise LogError(f"'{path}' can't be written: {problem.strerror}") from problem
    return path


def take_place(folder: Path) -> None:
    """Make the checkpoint that was written beside the other the one that counts."""
    (folder / BESIDE).rename(folder / NAME)
    sync(folder)


def version_of(folder: Path) -> int:
    """The version of the checkpoint, 0 without one."""
    try:
        with (folder / NAME).open("rb") as file:
            return _header(_Lines(file, folder / NAME)).version
    except FileNotFoundError:
        return 0


def read(folder: Path, *, ids_only: bool = False) -> Checkpoint:
    """The checkpoint; `ids_only` leaves out texts and nodes, which a writer has no use for."""
    path = folder / NAME
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return Checkpoint(0, {}, Nodes())
    with file:
        lines = _Lines(file, path)
        header = _header(lines)
        entries = (_entry.decode(body) for body in lines.take(header.subscriptions))
        subscriptions: Subscriptions
        if ids_only:
            subscriptions = dict.fromkeys((id_ for id_, _, _ in entries), ("", 0))
        else:
            subscriptions = {id_: (text, node) for id_, text, node in entries}
        nodes = Nodes(_key.decode(body) for body in lines.take(header.nodes))
        lines.end()
    return Checkpoint(header.version, subscriptions, nodes)


class _Lines:
    """The lines of a checkpoint, each checked; an error names it."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file = file
        self._path = path
        self._number = 0

    def take(self, count: int) -> Iterator[bytes]:
        there = 0
        for line in islice(self._file, count):
            self._number += 1
            there += 1
            body = body_of(line)
            if body is None:
                raise self.damage("was altered, its checksum differs")
            yield body
        if there < count:
            self._number += 1
            raise self.damage("is missing, the file was cut short")

    def end(self) -> None:
        if self._file.read(1):
            self._number += 1
            raise self.damage("is one more than there should be")

    def damage(self, problem: str) -> LogError:
        return LogError(f"the log is damaged: '{self._path}', line {self._number}, {problem}")


def _header(lines: _Lines) -> Header:
    (body,) = lines.take(1)
    try:
        header = msgspec.json.decode(body, type=Header)
    except msgspec.DecodeError:
        header = None
    if header is None or header.format != FORMAT:
        raise lines.damage(f"is not the first line of {FORMAT}")
    return header
