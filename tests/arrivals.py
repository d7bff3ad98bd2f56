"""Files that arrive in the folder of a source, all of their lines at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def put(folder: Path, name: str, lines: Iterable[str]) -> None:
    """Write a file to `in` in a folder. It has another name until it is complete."""
    beside = folder / f".{name}"
    beside.write_text("".join(f"{line}\n" for line in lines))
    beside.rename(folder / "in" / name)
