"""Copies snapshots from and to an address such as s3://bucket/snapshot.

The copy is kept in a folder named after the snapshot's identity, in the user's cache or, if that
can't be used, in a temporary folder. So all processes of a machine share one copy. If another
snapshot replaces the one at an address, the new one is copied. Digests are checked when the copy is
opened, as for any snapshot.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from tidings.files import (
    address_of,
    copy_here,
    filling_folder,
    make_folder,
    open_cache_folder,
    open_place,
    user_cache_folder,
    user_temporary_folder,
)
from tidings.matching.disk import MANIFEST, SnapshotError

COPIES = "[0-9a-f]{32}"  # the pattern of the names of copies
MANIFESTS = (MANIFEST, f"index/{MANIFEST}")
KEPT = 30 * 86_400.0  # how many seconds an unused copy is kept


def remote_identity(address: str | Path) -> str:
    """The digest that `identity_of` would give for the snapshot at an address."""
    system, root = open_place(address)
    found = hashlib.sha256()
    for name in MANIFESTS:
        try:
            with system.open_input_stream(f"{root}/{name}") as source:
                found.update(source.read())
        except FileNotFoundError:
            raise SnapshotError(
                f"'{address_of(address)}' is not a snapshot: it has no {MANIFEST}"
            ) from None
        except OSError as problem:
            raise _failure(address, "read", problem) from problem
    return found.hexdigest()[:32]


def fetch_snapshot(address: str | Path) -> Path:
    """A local folder with a copy of the snapshot at an address."""
    identity = remote_identity(address)
    home = user_cache_folder("snapshots", identity)
    open_cache_folder(home, COPIES, KEPT)
    if not (home / "snapshot").is_dir() and not (home.is_dir() and os.access(home, os.W_OK)):
        # executors may have no cache folder
        home = user_temporary_folder() / "snapshots" / identity
        open_cache_folder(home, COPIES, KEPT)
    place = home / "snapshot"
    if place.is_dir():
        return place
    try:
        with filling_folder(place) as folder:
            make_folder(folder)
            copy_here(address, folder, _names(address))
    except OSError as problem:
        raise _failure(address, "read", problem) from problem
    return place


def put_snapshot(folder: Path, address: str | Path) -> None:
    """Copy a snapshot to an address. The manifests are removed first and written last, so an
    incomplete copy can't be mistaken for a snapshot."""
    system, root = open_place(address)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [str(path.relative_to(folder)) for path in paths]
    data = [name for name in names if name not in MANIFESTS]
    try:
        system.create_dir(f"{root}/index")
        for name in MANIFESTS:
            if system.get_file_info(f"{root}/{name}").is_file:
                system.delete_file(f"{root}/{name}")
        for name in (*data, *reversed(MANIFESTS)):
            system.create_dir(str(Path(root, name).parent))
            with (folder / name).open("rb") as source, _sink(system, f"{root}/{name}") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
    except OSError as problem:
        raise _failure(address, "written", problem) from problem


def _sink(system: Any, path: str) -> Any:
    return system.open_output_stream(path)


def _names(address: str | Path) -> list[str]:
    """The names of all files of a snapshot."""
    from pyarrow import fs

    system, root = open_place(address)
    found = system.get_file_info(fs.FileSelector(root, recursive=True))
    return [one.path[len(root) + 1 :] for one in found if one.is_file]


def _failure(address: str | Path, what: str, problem: Exception) -> SnapshotError:
    first = str(problem).partition("\n")[0]
    return SnapshotError(f"snapshot '{address_of(address)}' can't be {what}: {first}")
