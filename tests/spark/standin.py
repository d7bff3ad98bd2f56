"""A stand-in for the rendezvous point, until pipelines speak to a real one.

    python -m tests.spark.standin FOLDER [PORT]      from the top of the repository

It speaks handover.py over TCP and keeps what it took in FOLDER/log: records, each behind a head of
its length, its checksum and a checksum of these two. A record is on the disk before it is answered
for. A kill at any moment leaves at most the beginning of a record at the end, a power cut also
zeros; nobody was told of it, and it is cut off at the next start. A log that is broken in any other
way is refused: what is behind the place was answered for, and must not be lost without a word. The
log only grows, and the rows delivered are held in memory: that is what makes it a stand-in.
"""

from __future__ import annotations

import fcntl
import os
import socketserver
import struct
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import msgspec

from tidings.files import make_folder, private_file
from tidings.model import EnvironmentProblem
from tidings.spark.handover.handover import Outcome, Point
from tidings.spark.handover.handover_messages import Frames, Reply, Request, frame
from tidings.spark.outbox.sealed_files import sync

_HEAD = struct.Struct(">II")  # length, checksum
_CHECK = struct.Struct(">I")  # checksum of the head: a length that is wrong looks like an end
_BEFORE = _HEAD.size + _CHECK.size  # bytes in front of a record
_CHUNK = 256 * 1024


class Log:
    """An append-only file of records; what `append` returned from is durable."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        self._file = private_file(path, "a+b")
        self._failed = False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sync(path.parent)
            self.records, end = _read(path)
            self._file.truncate(end)
        except BlockingIOError as error:
            self._file.close()
            raise EnvironmentProblem(f"{path} is used by another process.") from error
        except BaseException:
            self._file.close()
            raise

    def check(self) -> None:
        """OSError: a record was lost, so that nothing may be answered any more."""
        if self._failed:
            raise OSError("the log could not be written")

    def append(self, record: Request) -> None:
        self._failed = True
        body = msgspec.msgpack.encode(record)
        head = _HEAD.pack(len(body), zlib.crc32(body))
        self._file.write(head + _CHECK.pack(zlib.crc32(head)) + body)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._failed = False

    def close(self) -> None:
        self._file.close()


class StandIn(socketserver.ThreadingTCPServer):
    """The server. `delivered` has the rows of each stream, in the order of the commits."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, folder: Path, port: int = 0, host: str = "127.0.0.1") -> None:
        self.delivered: dict[str, list[bytes]] = {}
        self._one_at_a_time = threading.Lock()
        self._point = Point()
        self._log = Log(folder / "log")
        for record in self._log.records:
            self._deliver(record, self._point.receive(record))
        try:
            super().__init__((host, port), _Connection)
        except OSError as error:
            self._log.close()
            raise EnvironmentProblem(f"Port {port} of {host} cannot be used: {error}.") from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def answer(self, request: Request) -> Reply:
        with self._one_at_a_time:
            self._log.check()
            outcome = self._point.receive(request)
            if outcome.record is not None:
                self._log.append(outcome.record)
            self._deliver(request, outcome)
            return outcome.reply

    def server_close(self) -> None:
        super().server_close()
        with self._one_at_a_time:
            self._log.close()

    def _deliver(self, request: Request, outcome: Outcome) -> None:
        if outcome.delivered:
            self.delivered.setdefault(request.stream, []).extend(outcome.delivered)


class _Connection(socketserver.BaseRequestHandler):
    server: StandIn

    def handle(self) -> None:
        frames: Frames[Request] = Frames(Request)
        try:
            while data := self.request.recv(_CHUNK):
                for request in frames.feed(data):
                    self.request.sendall(frame(self.server.answer(request)))
        except (OSError, ValueError):
            # The client went away, speaks another language, or we are closing: it will say what
            # it has to say again, or never should have.
            return


def delivered(folder: Path) -> dict[str, list[bytes]]:
    """The rows that a stand-in delivered, from its log; it need not run."""
    point, found = Point(), dict[str, list[bytes]]()
    for record in _read(folder / "log")[0]:
        found.setdefault(record.stream, []).extend(point.receive(record).delivered)
    return {stream: rows for stream, rows in found.items() if rows}


def main(arguments: list[str]) -> int:
    """Serve until killed; the first line printed says where."""
    folder, port = Path(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    try:
        server = StandIn(folder, port)
    except EnvironmentProblem as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"listening on port {server.port}", flush=True)
    server.serve_forever()
    return 0


def _read(path: Path) -> tuple[list[Request], int]:
    """The records that are whole, and where the last of them ends; EnvironmentProblem if what
    follows is not the beginning of one more."""
    data = path.read_bytes()
    decoder: Any = msgspec.msgpack.Decoder(Request)
    records: list[Request] = []
    start = 0
    while start + _BEFORE <= len(data) and any(data[start : start + _BEFORE]):
        head = data[start : start + _HEAD.size]
        length, checksum = _HEAD.unpack(head)
        begin = start + _BEFORE
        if _CHECK.unpack_from(data, start + _HEAD.size)[0] != zlib.crc32(head):
            raise _damaged(path, start)
        if begin + length > len(data):
            return records, start
        body = data[begin : begin + length]
        if zlib.crc32(body) != checksum:
            raise _damaged(path, start)
        records.append(decoder.decode(body))
        start = begin + length
    if len(data) - start >= _BEFORE and any(data[start:]):
        raise _damaged(path, start)
    return records, start


def _damaged(path: Path, start: int) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{path} is damaged at byte {start}; nothing was cut off, for records from there on may "
        f"have been answered for."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
