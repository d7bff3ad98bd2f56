"""Compile kernels that run without the GIL, and cache them in the user's cache folder.

Numba checks the file of a kernel to see whether its cached code is still valid, but not the files
of the kernels that it calls. Each version of this room's sources therefore has its own cache
folder, whose name is a digest of the sources. Folders that were not used for a long time are
removed when a new one is created.

By default, Numba derives the names of the folders in the cache folder from the paths of the
sources. Here, the names of these folders depend only on the content of the sources. All copies on a
machine (clones, environments) can therefore share their kernels.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tidings.files import copy_missing, open_cache_folder, user_cache_folder

KEPT = 30 * 24 * 3600.0  # seconds after which an unused folder may be removed
SHIPPED_KERNELS = "TIDINGS_KERNELS"
"""The environment variable with the path of a folder of kernels that were compiled on another
machine."""


def sources_digest(folder: Path) -> str:
    """A digest of all Python files in a folder and its subfolders."""
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(folder.rglob("*.py")):
        text = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\n{len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()


ROOM = Path(__file__).parents[1]
_DIGEST = sources_digest(ROOM)


def cache_folder() -> Path:
    """The folder for compiled kernels: in TIDINGS_CACHE_DIR if that is set, else in the user's
    cache folder."""
    given = os.environ.get("TIDINGS_CACHE_DIR")
    base = Path(given) if given else user_cache_folder()
    return base / "kernels" / _DIGEST


def open_cache(folder: Path) -> None:
    """Create the cache folder, or mark it as used. When a folder is created, old ones beside it are
    removed. If the folder is not writable, Numba itself chooses another place."""
    open_cache_folder(folder, "[0-9a-f]{12}", KEPT)


def _choose_folder() -> None:
    """Tell Numba where to cache kernels, unless the user has set this. If NUMBA_CACHE_DIR names one
    of these folders, a parent process has set it, perhaps for other sources, so it is set again."""
    ours = cache_folder()
    given = os.environ.get("NUMBA_CACHE_DIR")
    if not given or Path(given).parent == ours.parent:
        open_cache(ours)
        os.environ["NUMBA_CACHE_DIR"] = str(ours)


# Numba reads NUMBA_CACHE_DIR only once, when it is imported. If the variable is not set, Numba
# writes beside the sources, and in an installed package that folder may be read-only.
_choose_folder()

import numba  # noqa: E402
from numba.core.caching import (  # noqa: E402
    CompileResultCacheImpl,
    FunctionCache,
    _CacheLocator,
)

KERNEL_FILES = "*.nb?"  # the files in which Numba caches kernels


def kernel_folders() -> dict[str, Path]:
    """For each folder of this room, by name, the path at which its kernels are cached."""
    folders = sorted({file.parent for file in ROOM.rglob("*.py")})
    return {folder.name: _folder_of(folder / "kernels.py") for folder in folders}


def _folder_of(file: Path) -> Path:
    """The folder in which the kernels of a file are cached. The digest of this room does not cover
    files of other rooms. For a file of another room, the name of the cache folder therefore
    includes a digest of all files in its folder, because kernels may use constants from them. The
    name also has the version of Numba, because another version would drop the cached kernels."""
    name = f"{file.parent.name}-{numba.__version__}"
    if ROOM not in file.parents:
        name = f"{name}-{_digest_folder(file.parent)}"
    return cache_folder() / name


@cache
def _digest(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=6).hexdigest()


@cache
def _digest_folder(folder: Path) -> str:
    """A digest of the Python files in a folder, but not in its subfolders."""
    files = sorted(folder.glob("*.py"))
    digests = " ".join(f"{file.name} {_digest(file)}" for file in files)
    return hashlib.blake2b(digests.encode(), digest_size=6).hexdigest()


class _Locator(_CacheLocator):
    """Tells Numba where to cache a kernel, and when the code in the cache is out of date."""

    def __init__(self, line: int, file: Path) -> None:
        self._py_file = str(file)  # if Numba can't cache a kernel, its error names this file
        self.line = line

    def get_cache_path(self) -> str:
        return str(_folder_of(Path(self._py_file)))

    def get_source_stamp(self) -> str:
        return _digest(Path(self._py_file))

    def get_disambiguator(self) -> str:
        return str(self.line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator | None:
        """None if the user has chosen another folder, or if the file or the folder can't be used.
        In these cases, Numba chooses a place."""
        if os.environ.get("NUMBA_CACHE_DIR") != str(cache_folder()):
            return None
        found = cls(py_func.__code__.co_firstlineno, Path(py_file))
        try:
            found.get_source_stamp()
            found.ensure_cache_path()  # type: ignore[no-untyped-call]
        except OSError:
            return None
        return found


class _Placing(CompileResultCacheImpl):
    _locator_classes = [_Locator, *CompileResultCacheImpl._locator_classes]  # noqa: RUF012


class _KernelCache(FunctionCache):
    _impl_class = _Placing


def _adopt(shipped: Path) -> None:
    """Copy kernels from another machine, except those that are already in the cache. Numba checks
    that the cached kernels were made from these sources for this processor."""
    for name, folder in kernel_folders().items():
        copy_missing(shipped / name, KERNEL_FILES, folder)


if os.environ.get(SHIPPED_KERNELS):
    _adopt(Path(os.environ[SHIPPED_KERNELS]))


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, for the types of the arguments of that call."""
    return _cache_kernel(numba.njit(nogil=True, boundscheck=False, error_model="numpy")(function))


def short_kernel(function: Callable[..., Any]) -> Any:
    """Like `kernel`, but the kernel keeps the GIL. It is for work so short that releasing and
    taking the GIL would take longer than the work, above all if a background thread is waiting for
    the GIL."""
    return _cache_kernel(numba.njit(boundscheck=False, error_model="numpy")(function))


def _cache_kernel(compiled: Any) -> Any:
    """Cache a kernel, and give the files of each process unique names.

    Numba gives each new file the next free number as its name. If two processes compiled one kernel
    for different types at the same time, they would choose the same number. The index would then
    list the code for one type under the other type. This happened: without any error, 64-bit
    integers were sorted as if they had 32 bits.
    """
    compiled._cache = _KernelCache(compiled.py_func)  # type: ignore[no-untyped-call]
    file = compiled._cache._cache_file
    name_of = file._data_name

    def own_name(_: int) -> str:
        return str(name_of(secrets.randbits(63)))

    file._data_name = own_name
    return compiled
