"""The folder of a channel: who may write to it, and its format.

    00000000000000000001.log ...   groups of entries: see journal/entries.py and groups/
    end                            how far the log was acknowledged
    checkpoint                     the state after one of the groups
    channel                        the version of this format
    lock                           held while a process writes, or makes the log readable
    owner                          held by the owner, as long as it runs
    socket                         the owner accepts changes from commands here: see owner/
    numbers/                       the numbers of pipelines' notifications: see numbers/
    bulks/                         subscriptions that were adopted as a whole: see bulks/
    snapshots/                     compiled subscriptions of pipelines
    aside/                         files of older formats, and data after a loss

The rendezvous point of a channel owns the folder; without a rendezvous point, the driver of a
pipeline does. The owner takes both locks when it starts, and keeps `owner`. Other writers hold
`lock` while they append; if somebody holds `owner`, they hand their changes to the owner instead. A
driver gives up the folder when a rendezvous point asks for it. Readers need no lock, because the
end mark says how far they may read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from tidings import files
from tidings.model import EnvironmentProblem

LOCK, OWNER, FORMAT = "lock", "owner", "channel"
BULKS, NUMBERS, ASIDE = "bulks", "numbers", "aside"
CURRENT = 5
"""Since format 2, subscriptions can have an owner; since format 3, removed nodes and cursors
can have steps to other nodes; since format 4, there are bulks; since format 5, pipelines and
commands use the declaration in the log, and may write it."""
IDENTITIES = 2
"""The version of the rules by which identities are computed. Since version 2, null and absent
attributes are distinguished."""


class Owned(EnvironmentProblem):
    """Another process owns the folder, so nobody else may write."""


class Format(msgspec.Struct, frozen=True):
    """The file `channel`."""

    format: int = CURRENT
    identities: int = IDENTITIES


def make_folder(folder: Path) -> None:
    """Create the folder of a channel, with its lock files, if they don't exist."""
    files.make_durable_folder(folder)
    for name in (LOCK, OWNER):
        if not (folder / name).exists():
            files.make_private(folder / name)


def note_format(folder: Path) -> None:
    """Record the current format; call this when everything in the folder has this format. Each
    format includes all older ones, so a folder gets the latest format when it is next written."""
    found = read_format(folder)
    if found is None or found.format < CURRENT:
        files.replace_file(folder / FORMAT, msgspec.json.encode(Format()) + b"\n")


def read_format(folder: Path) -> Format | None:
    """The format of a folder; None if it is new, or from an older release. Raises
    EnvironmentProblem if a later release wrote it."""
    try:
        data = (folder / FORMAT).read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = msgspec.json.decode(data, type=Format)
    except msgspec.DecodeError:
        return None  # the files of the log show its format
    if found.format > CURRENT or found.identities > IDENTITIES:
        raise EnvironmentProblem(
            f"{folder / FORMAT} says {data[:80].decode(errors='replace').strip()!r}, expected "
            f"format {CURRENT}; use the release of tidings that wrote the folder, or a later one"
        )
    return found


@contextmanager
def writing(folder: Path, *, is_owner: bool = False) -> Iterator[None]:
    """Wait until no other process writes, then lock the folder while the block runs; raises Owned
    if the folder has an owner, unless the caller is the owner."""
    with files.hold_lock(folder / LOCK):
        if not is_owner and is_owned(folder):
            raise Owned(
                f"a running rendezvous point or pipeline owns '{folder}', so nobody else may "
                "change it; stop it first"
            )
        yield


@contextmanager
def writing_at_once(folder: Path) -> Iterator[Literal["free", "busy", "owned"]]:
    """Like `writing`, if the folder is free; otherwise this yields the reason why it is not."""
    with files.try_lock(folder / LOCK) as alone:
        yield "busy" if not alone else "owned" if is_owned(folder) else "free"


@contextmanager
def keep_unchanged(folder: Path) -> Iterator[None]:
    """Keep others from writing or dropping files; an owner may still append."""
    with files.share_lock(folder / LOCK):
        yield


def owner_of(folder: Path) -> int | None:
    """The id of the process that owns a folder; None if the folder has no owner."""
    return files.holder_of(folder / OWNER)


def own(folder: Path) -> int:
    """Become the owner; release the returned handle to stop. Raises BlockingIOError if the folder
    already has an owner."""
    make_folder(folder)
    with files.hold_lock(folder / LOCK):
        return files.take_lock(folder / OWNER)


def is_owned(folder: Path) -> bool:
    """Whether somebody owns a folder. The caller must hold `lock`, because this function locks
    `owner` for a moment."""
    with contextlib.suppress(FileNotFoundError), files.try_lock(folder / OWNER) as free:
        return not free
    return False
