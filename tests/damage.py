"""What can happen to files while nobody has them open: put back, cut, flipped, zeroed, swapped,
deleted. All that is drawn comes from the `random.Random` that is given, as parts of a size, so that
a round can be replayed on files of another size."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

NEAR_END = 4096  # bytes, where the last writings are


class Missed(Exception):
    """There is nothing that this could be done to."""


def files_in(places: Iterable[Path], skip: Callable[[Path], bool] = lambda _: False) -> list[Path]:
    """All files at or below some places, but for locks, empty ones and those that are skipped; in
    the order of their names."""
    found: list[Path] = []
    for place in places:
        inside = place.rglob("*") if place.is_dir() else [place]
        found += (path for path in inside if path.is_file() and path.stat().st_size)
    return sorted(path for path in found if "lock" not in path.name and not skip(path))


def print_of(places: Iterable[Path]) -> dict[str, bytes]:
    """A digest of each file."""
    return {str(path): blake2b(path.read_bytes()).digest() for path in files_in(places)}


def copy_hot(folder: Path, to: Path) -> None:
    """Copy a folder whose files may change, come and go meanwhile, as a backup program would."""
    to.mkdir(parents=True)
    for path in sorted(folder.rglob("*")):
        there = to / path.relative_to(folder)
        try:
            if path.is_dir():
                there.mkdir(exist_ok=True)
            elif not path.is_socket():
                shutil.copy2(path, there)
        except FileNotFoundError:
            continue  # it went


def put_back(folder: Path, backup: Path) -> str:
    """A folder is what it was."""
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    return f"{folder.name} put back"


def put_back_some(folder: Path, backup: Path, chance: random.Random) -> str:
    """Some of its files that changed are what they were; those that are new stay."""
    kept = [
        path for path in files_in([backup]) if _differs(path, folder / path.relative_to(backup))
    ]
    if not kept:
        raise Missed
    some = chance.sample(kept, chance.randint(1, max(1, len(kept) // 2)))
    for path in some:
        there = folder / path.relative_to(backup)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, there)
    return f"put back {named(some)}"


def cut(files: list[Path], chance: random.Random) -> str:
    path = _one(files, chance)
    size = path.stat().st_size
    at = _place(size, chance)
    with path.open("r+b") as file:
        file.truncate(at)
    return f"{path.name} cut from {size:,} to {at:,} bytes"


def flip(files: list[Path], chance: random.Random) -> str:
    path = _one(files, chance)
    at, bit = _place(path.stat().st_size, chance), chance.randrange(8)
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))
    return f"{path.name} bit {bit} of byte {at:,} flipped"


def flip_bit(path: Path, at: int | None = None, bit: int = 1) -> None:
    """Alter one bit of a file, in the middle byte unless another is named."""
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2 if at is None else at] ^= bit
    path.write_bytes(whole)


def zero(files: list[Path], chance: random.Random) -> str:
    path = _one(files, chance)
    size = path.stat().st_size
    at, length = _place(size, chance), chance.choice((16, 512, 4096, 65536))
    length = min(length, size - at)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(length))
    return f"{path.name} bytes {at:,} to {at + length:,} zeroed"


def swap(files: list[Path], chance: random.Random) -> str:
    """Two files, of one kind where there are two of one."""
    if len(files) < 2:
        raise Missed
    one = _one(files, chance)
    alike = [path for path in files if path.suffix == one.suffix and path != one]
    other = chance.choice(alike or [path for path in files if path != one])
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{one.name} and {other.name} swapped"


def delete(files: list[Path], chance: random.Random) -> str:
    path = _one(files, chance)
    path.unlink()
    return f"{path.name} deleted"


SMALL: dict[str, Callable[[list[Path], random.Random], str]] = {
    "cut": cut, "flip": flip, "zero": zero, "swap": swap, "delete": delete,
}  # fmt: skip
"""What is done to files without a backup."""


def _differs(one: Path, other: Path) -> bool:
    return not other.exists() or one.read_bytes() != other.read_bytes()


def named(paths: list[Path]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(path.name for path in paths[:3]) + more


def _one(files: list[Path], chance: random.Random) -> Path:
    """A file: as often by its size as by its name, so that neither small nor large ones are left
    out."""
    if not files:
        raise Missed
    by_size = chance.random() < 0.5
    weights = [path.stat().st_size if by_size else 1 for path in files]
    return chance.choices(files, weights)[0]


def _place(size: int, chance: random.Random) -> int:
    """Anywhere, or near the end."""
    part = chance.random()
    if chance.random() < 0.4:
        return max(0, size - 1 - int(part * min(size, NEAR_END)))
    return int(part * size)
