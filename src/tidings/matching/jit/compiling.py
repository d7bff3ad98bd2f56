"""How kernels are compiled: cached on disk in a folder of the user's, and without the GIL.

Numba looks at the file of a kernel to see whether its cached code is still valid, but not at the
files of the kernels that it calls. So each state of the sources of this room has a folder of its
own, named by their digest; one that was not used for long is removed when a new one is made.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidings.files import copy_missing, open_cache_folder, user_cache_folder

KEPT = 30 * 24 * 3600.0  # seconds after which a folder that nobody used may go
SHIPPED = "TIDINGS_KERNELS"
"""The variable that names a folder of kernels that came from another machine."""


def sources_digest(folder: Path) -> str:
    """A name for what the Python files of a folder, and of those in it, say."""
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(folder.rglob("*.py")):
        text = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\n{len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


ROOM = Path(__file__).parents[1]
_DIGEST = sources_digest(ROOM)


def cache_folder() -> Path:
    """Where compiled kernels are kept: in TIDINGS_CACHE_DIR, or in the user's cache folder."""
    given = os.environ.get("TIDINGS_CACHE_DIR")
    base = Path(given) if given else user_cache_folder()
    return base / "kernels" / _DIGEST


def open_cache(folder: Path) -> None:
    """Make the folder, or note that it is in use; a new one removes old ones beside it. Where
    nothing can be written, Numba looks for another place by itself."""
    open_cache_folder(folder, "[0-9a-f]{12}", KEPT)


def _choose_folder() -> None:
    """Tell Numba where to keep kernels, unless the user has. If the variable names a folder of
    ours, a parent process set it, perhaps one with other sources."""
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

KERNELS = "*.nb?"  # the names of the files that Numba keeps kernels in


def kernel_folders() -> dict[str, Path]:
    """Where Numba keeps the kernels of each folder of this room, by the name of the folder: the
    place depends on where the sources are."""
    found = {}
    for sources in sorted({file.parent for file in ROOM.rglob("*.py")}):
        name = _CacheLocator.get_suitable_cache_subpath(str(sources / "kernel.py"))  # type: ignore[no-untyped-call]
        found[sources.name] = cache_folder() / name
    return found


def _adopt(shipped: Path) -> None:
    """Take over kernels that came from another machine, those that are not there yet. Numba checks
    that they are of these sources and for this processor."""
    for name, folder in kernel_folders().items():
        copy_missing(shipped / name, KERNELS, folder)


if os.environ.get(SHIPPED):
    _adopt(Path(os.environ[SHIPPED]))


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use for the types it is called with."""
    return _name_files_uniquely(
        numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")(function)
    )


def short_kernel(function: Callable[..., Any]) -> Any:
    """The same, but it keeps the GIL: for work so short that getting the lock back would take
    longer, above all while a background thread wants it too."""
    return _name_files_uniquely(
        numba.njit(cache=True, boundscheck=False, error_model="numpy")(function)
    )


def _name_files_uniquely(compiled: Any) -> Any:
    """Give the cache files of each process unique names.

    Numba names them by the next free number. Two processes that compile one kernel for different
    types at the same time take the same number, and the index then has the code of one under the
    types of the other: 64-bit integers were sorted as if they had 32 bits, without any error.
    """
    file = compiled._cache._cache_file
    name_of = file._data_name

    def own_name(_: int) -> str:
        return str(name_of(secrets.randbits(63)))

    file._data_name = own_name
    return compiled
