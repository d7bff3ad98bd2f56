"""Keeps pandas out of processes that do not need it."""

from __future__ import annotations

import sys


class _Absent:  # no MetaPathFinder: importing that takes a tenth as long as importing tidings
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not loaded in this process", name=name)


_absent = _Absent()


def block_pandas() -> None:
    """Make imports of pandas fail in this process from now on. Call this only at the start of a
    process.

    When pyarrow makes its first array, it imports pandas if pandas is installed, only to recognise
    pandas objects. The import takes a quarter of a second and 32 MB in each rendezvous point.
    """
    sys.meta_path.insert(0, _absent)


def allow_pandas() -> None:
    """Let imports of pandas succeed again, because application code may need it."""
    if _absent in sys.meta_path:
        sys.meta_path.remove(_absent)
