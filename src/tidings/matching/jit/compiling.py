"""How kernels are compiled: cached on disk in a folder of the user's, and without the GIL.

Numba looks at the file of a kernel to see whether what it has cached is still true, and not at the
files of what the kernel calls. So each state of the sources of this room has a folder of its own,
named by their digest; those that were not used for long go when a new one is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEPT = 30 * 24 * 3600.0  # seconds after which a folder that nobody used may go
SHIPPED = "TIDINGS_KERNELS"
"""The variable that names a folder of kernels that came from another machine."""


def sources_digest(folder: Path) -> str:
    """A name for what the Python files of a folder say."""
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(folder.glob("*.py")):
        text = file.read_bytes()
        digest.update(f"{file.name}\n{len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


_DIGEST = sources_digest(Path(__file__).parent)


def cache_folder() -> Path:
    """Where compiled kernels are kept: in TIDINGS_CACHE_DIR, or in the user's cache folder."""
    given = os.environ.get("TIDINGS_CACHE_DIR")
    if given:
        base = Path(given)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches" / "tidings"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local", "tidings")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tidings")
    return base / "kernels" / _DIGEST


def open_cache(folder: Path) -> None:
    """Make the folder, or note that it is in use; with a new one, old ones beside it go.

    Quiet: where nothing can be written, Numba looks for another place by itself.
    """
    with contextlib.suppress(OSError):
        if folder.exists():
            os.utime(folder)
            return
        folder.mkdir(parents=True)
        oldest = folder.stat().st_mtime - KEPT
        for other in folder.parent.iterdir():
            if re.fullmatch("[0-9a-f]{12}", other.name) and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)


def _choose_folder() -> None:
    """Tell Numba where, unless the user has. A folder of ours was told by a process that started
    this one, perhaps with other sources."""
    ours = cache_folder()
    given = os.environ.get("NUMBA_CACHE_DIR")
    if not given or Path(given).parent == ours.parent:
        open_cache(ours)
        os.environ["NUMBA_CACHE_DIR"] = str(ours)


# Numba reads this once, when it is imported, and otherwise writes beside the source, which an
# installed package may not be allowed to do.
_choose_folder()

import numba  # noqa: E402
from numba.core.caching import _CacheLocator  # noqa: E402


def kernel_folder() -> Path:
    """Where Numba keeps the kernels of this room: its folder depends on where the sources are."""
    name: str = _CacheLocator.get_suitable_cache_subpath(__file__)  # type: ignore[no-untyped-call]
    return cache_folder() / name


def _adopt(shipped: Path, folder: Path) -> None:
    """Take over kernels that came from another machine, those that are not there yet. Numba sees by
    itself whether they are of these sources and for this processor."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for file in shipped.glob("*.nb?"):
            if not (folder / file.name).exists():
                beside = folder / f".{file.name}.{os.getpid()}"
                shutil.copyfile(file, beside)
                beside.replace(folder / file.name)


if os.environ.get(SHIPPED):
    _adopt(Path(os.environ[SHIPPED]), kernel_folder())


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use for the types it is called with."""
    return _kept_apart(
        numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")(function)
    )


def short_kernel(function: Callable[..., Any]) -> Any:
    """The same, but with the GIL: for work so short that asking for it again would take longer,
    above all while a background thread wants it too."""
    return _kept_apart(numba.njit(cache=True, boundscheck=False, error_model="numpy")(function))


def _kept_apart(compiled: Any) -> Any:
    """Have each process name the files that it puts into the cache as no other does.

    Numba gives them the next free number. Two processes that compile one kernel for different types
    at the same time take the same number, and the index then has the code of one under the types of
    the other: integers of 64 bits were sorted as if they had 32, without a word.
    """
    file = compiled._cache._cache_file
    name_of = file._data_name

    def own_name(_: int) -> str:
        return str(name_of(secrets.randbits(63)))

    file._data_name = own_name
    return compiled
