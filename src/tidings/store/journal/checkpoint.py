"""The state of a journal at one position, in a file, so that a start need not read all of it."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import msgspec

from tidings.model import EnvironmentProblem
from tidings.store.files import replace_file
from tidings.store.journal.state import State

NAME = "checkpoint"
FORMAT = b"tidings journal 2\n"


class Damaged(EnvironmentProblem):
    """A checkpoint that was altered."""


def read(folder: Path) -> State | None:
    """None where there is none."""
    path = folder / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    head, body = data[: len(FORMAT) + 8], data[len(FORMAT) + 8 :]
    if head != FORMAT + b"%08x" % crc32(body):
        raise Damaged(f"the checkpoint {path} was altered or is of another format")
    return msgspec.msgpack.decode(body, type=State)


def write(folder: Path, state: State) -> int:
    """Replace the one that is there; gives its size."""
    body = msgspec.msgpack.encode(state)
    replace_file(folder / NAME, FORMAT + b"%08x" % crc32(body) + body)
    return len(body)
