"""Measures memory and processor time of processes and their descendants, from /proc (Linux)."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

EVERY = 0.5  # seconds between two samples


class Peaks(msgspec.Struct):
    """Peak memory, in bytes."""

    together: int = 0
    """The peak of all processes together. A page that several processes share is counted once for
    each of them."""
    by_name: dict[str, list[int]] = {}
    """The peak of each process (VmHWM), by program name; this process is `driver`."""


@contextmanager
def watch_peaks() -> Iterator[Peaks]:
    """Record peaks while the block runs; the result is complete when the block ends."""
    peaks, highest, done = Peaks(), dict[tuple[str, int], int](), threading.Event()

    def look() -> None:
        now = 0
        for pid in family(os.getpid()):
            found = _status(pid)
            name = "driver" if pid == os.getpid() else found.get("Name", "")
            now += _bytes(found.get("VmRSS"))
            known = highest.get((name, pid), 0)
            highest[name, pid] = max(known, _bytes(found.get("VmHWM")))
        peaks.together = max(peaks.together, now)

    def run() -> None:
        while not done.wait(EVERY):
            look()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()
        look()
        for (name, _), size in highest.items():
            if size:
                peaks.by_name.setdefault(name, []).append(size)


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def processor_seconds(pid: int) -> float:
    """Processor time of a process and its descendants, including finished ones."""
    ticks = 0
    for one in family(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            # the process's own ticks, and those of finished children
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def running_seconds(pid: int) -> float:
    """The processor time of the running threads of a process, in nanoseconds if the system provides
    that precision."""
    spent = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            spent += int((task / "schedstat").read_text().split()[0])
    except OSError:
        return processor_seconds(pid)
    return spent / 1e9


def resident_memory(pid: int) -> tuple[str, int]:
    """The name of a process, and its current memory in bytes."""
    found = _status(pid)
    return found.get("Name", ""), _bytes(found.get("VmRSS"))


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _bytes(field: str | None) -> int:
    return int(field.split()[0]) * 1024 if field else 0
