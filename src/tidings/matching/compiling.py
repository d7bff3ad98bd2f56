"""How kernels are compiled: cached on disk in a folder of the user's, and without the GIL."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """Where compiled kernels are kept: TIDINGS_CACHE_DIR, or the user's cache folder."""
    given = os.environ.get("TIDINGS_CACHE_DIR")
    if given:
        return Path(given) / "kernels"
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tidings" / "kernels"


# Numba reads this once, when it is imported, and otherwise writes beside the source, which an
# installed package may not be allowed to do.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))

import numba  # noqa: E402


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use for the types it is called with."""
    return numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")(function)


def short_kernel(function: Callable[..., Any]) -> Any:
    """The same, but with the GIL: for work so short that asking for it again would take longer,
    above all while a background thread wants it too."""
    return numba.njit(cache=True, boundscheck=False, error_model="numpy")(function)
