"""Sends notifications through a running system, at full speed or at a given rate.

    client ──a block, repeatedly──> forwarding processes ──> client, at one socket per neighbour

One process sends and receives, with large buffers encoded in advance. So the cost of the client is
small, and the same for every system. All notifications that a system receives have the same length,
and all that it sends have the same length, so the number of bytes gives the exact number of
notifications. The number of notifications in flight is bounded, so no system has to drop any; drops
are detected.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.model import EnvironmentProblem
from tidings.studies.host.process_usage import running_seconds

CHUNK = 1 << 20  # bytes read at once
PATIENCE = 10.0  # seconds without a byte after which missing notifications count as lost
TICK = 0.001  # seconds between two bursts of a paced sender


class Missing(EnvironmentProblem):
    """A system did not deliver exactly the notifications that were sent to it."""


class Receiver(msgspec.Struct):
    """The socket of one neighbour."""

    socket: socket.socket
    size: int  # the bytes of a notification
    stamp: int  # the offset of the payload in a notification
    received: int = 0  # bytes


class System(msgspec.Struct):
    """A running system, ready to forward."""

    name: str
    pids: list[int]  # the process ids of all forwarding processes
    sender: socket.socket
    receivers: list[Receiver]
    block: bytes  # complete notifications
    size: int  # bytes of each notification
    stamp: int  # the offset of the payload in a notification
    stop: Callable[[], None]
    rest: Callable[[], None] = lambda: None  # called before each run

    @property
    def count(self) -> int:
        """The number of notifications in a block."""
        return len(self.block) // self.size


class Throughput(msgspec.Struct, frozen=True):
    """The result of a run at full speed."""

    notifications: int
    seconds: float
    processor: float  # processor seconds of the forwarding processes

    @property
    def rate(self) -> float:
        return self.notifications / self.seconds

    @property
    def per_core(self) -> float:
        """Notifications per second of processor time."""
        return self.notifications / max(self.processor, 0.01)


def pump(system: System, seconds: float, window: int) -> Throughput:
    """Send at full speed, with at most `window` notifications in flight."""
    system.rest()
    sender, receivers, size = system.sender, system.receivers, system.size
    block, length, room = memoryview(system.block), len(system.block), memoryview(bytearray(CHUNK))
    # sent: bytes so far; goal: the total number of notifications, once sending has ended
    sent, goal = 0, -1
    before = _processor(system)
    with _selectors(system) as (reading, both):
        start = heard = time.perf_counter()
        deadline = start + seconds
        while True:
            now = time.perf_counter()
            arrived = min(one.received // one.size for one in receivers)
            if now >= deadline:
                if goal < 0 and sent % size == 0:
                    goal = sent // size
                if arrived == goal:
                    break
                allowed = -sent % size if goal < 0 else 0  # finish a partly sent notification
            else:
                allowed = (arrived + window) * size - sent
                if allowed < window * size // 4:
                    allowed = 0  # avoid small writes
            if allowed:
                at = sent % length
                with contextlib.suppress(BlockingIOError):
                    sent += sender.send(block[at : at + min(allowed, CHUNK)])
            for key, _ in (both if allowed else reading).select(0.1):
                if key.data is not None:
                    key.data.received += _read(system, key.data.socket, room)
                    heard = now
            if now - heard > PATIENCE:
                raise Missing(
                    f"{system.name}: {arrived:,} of {sent // size:,} notifications arrived, and "
                    f"then none for {PATIENCE:.0f} s"
                )
        took = time.perf_counter() - start
    used = _processor(system) - before
    _check(system, goal)
    return Throughput(goal, took, used)


def send_paced(system: System, rate: float, seconds: float, window: int) -> npt.NDArray[np.float64]:
    """Send at a steady rate; return the milliseconds that each notification took.

    A burst is due each millisecond and carries the time at which it was due. If `window`
    notifications are in flight when a burst is due, the burst is sent late.
    """
    system.rest()
    sender, size = system.sender, system.size
    stamps = {id(one): _Stamps(one) for one in system.receivers}
    room = memoryview(bytearray(CHUNK))
    rows = np.frombuffer(bytearray(system.block), np.uint8).reshape(-1, size)
    queue = deque[memoryview]()
    total = sent = 0  # notifications due so far, and bytes sent
    with _selectors(system) as (reading, both):
        start = heard = due = time.monotonic_ns()
        end, step = start + int(seconds * 1e9), int(TICK * 1e9)
        while True:
            now = time.monotonic_ns()
            while due <= now and due < end:
                goal = int((due + step - start) / 1e9 * rate)
                while total < goal:
                    at = total % len(rows)
                    some = rows[at : at + goal - total]
                    some[:, system.stamp : system.stamp + 8] = np.array([due]).view(np.uint8)
                    queue.append(memoryview(some.tobytes()))
                    total += len(some)
                due += step
            arrived = min(one.received // one.size for one in system.receivers)
            may = bool(queue) and sent < (arrived + window) * size
            if may:
                with contextlib.suppress(BlockingIOError):
                    count = sender.send(queue[0])
                    sent += count
                    queue[0] = queue[0][count:]
                    if not queue[0]:
                        queue.popleft()
            if due >= end and all(one.received == total * one.size for one in system.receivers):
                break
            pause = max(0.0, (due - time.monotonic_ns()) / 1e9) if due < end else 0.1
            for key, _ in (both if may else reading).select(pause):
                if key.data is not None:
                    count = _read(system, key.data.socket, room)
                    heard = time.monotonic_ns()
                    stamps[id(key.data)].take(bytes(room[:count]), heard)
                    key.data.received += count
            if now - heard > PATIENCE * 1e9:
                raise Missing(f"{system.name} lost some of {total:,} notifications")
    _check(system, total)
    return np.concatenate([one.milliseconds() for one in stamps.values()])


class _Stamps:
    """Collects the times that notifications took."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._rest = b""
        self._found: list[npt.NDArray[np.int64]] = []

    def take(self, data: bytes, now: int) -> None:
        one = self._receiver
        data = self._rest + data
        count = len(data) // one.size
        self._rest = data[count * one.size :]
        rows = np.frombuffer(data, np.uint8, count * one.size).reshape(count, one.size)
        due = rows[:, one.stamp : one.stamp + 8].copy().view("<i8").ravel()
        self._found.append(now - due)

    def milliseconds(self) -> npt.NDArray[np.float64]:
        return np.concatenate(self._found) / 1e6


def _processor(system: System) -> float:
    return sum(map(running_seconds, system.pids))


Selectors = tuple[selectors.BaseSelector, selectors.BaseSelector]


@contextlib.contextmanager
def _selectors(system: System) -> Iterator[Selectors]:
    """Two selectors: one for reading, and one for reading and sending."""
    ends = [system.sender, *(one.socket for one in system.receivers)]
    with selectors.DefaultSelector() as reading, selectors.DefaultSelector() as both:
        both.register(system.sender, selectors.EVENT_WRITE)
        for end in ends:
            end.setblocking(False)
        for one in system.receivers:
            one.received = 0
            reading.register(one.socket, selectors.EVENT_READ, one)
            both.register(one.socket, selectors.EVENT_READ, one)
        try:
            yield reading, both
        finally:
            for end in ends:
                end.setblocking(True)


def _read(system: System, source: socket.socket, room: memoryview) -> int:
    try:
        count = source.recv_into(room)
    except OSError:
        count = 0
    if not count:
        raise Missing(f"{system.name} closed the connection of a receiver")
    return count


def _check(system: System, count: int) -> None:
    """Check that nothing arrives after the last notification."""
    time.sleep(0.01)
    for one in system.receivers:
        one.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.received += len(one.socket.recv(CHUNK))
        one.socket.setblocking(True)
        if one.received != count * one.size:
            raise Missing(
                f"{system.name}: {one.received:,} bytes arrived, expected {count * one.size:,} for "
                f"{count:,} notifications"
            )
