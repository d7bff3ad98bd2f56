"""One connection to the owner of a channel, at its address or through the channel's folder. Calls
block, with time limits."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from pathlib import Path
from typing import Protocol

from tidings.model import EnvironmentProblem
from tidings.network import Refusal, RouterUrl, sentence_of
from tidings.routing.protocol import frames, messages as m
from tidings.store.owner import Unowned, join_owner

AT_ONCE = 1 << 18  # bytes
UNOWNED = (
    "no rendezvous point owns the folder; start one whose `journal` is this folder, or leave out "
    "the sink `channel` to run without a network"
)


class LostConnection(EnvironmentProblem):
    """The connection was lost, or could not be made; another attempt may succeed."""


class OwnerPlace(Protocol):
    """How to reach the owner of a channel."""

    @property
    def where(self) -> str:
        """The address or folder of the owner, for messages."""

    def open(self, until: float) -> socket.socket:
        """Connect; raise OSError or EnvironmentProblem if that fails."""


class OwnerAddress:
    """An owner that listens on an address."""

    def __init__(self, place: RouterUrl, tls: ssl.SSLContext | None) -> None:
        self.where = f"{place.host}:{place.port}"
        self._place, self._tls = place, tls

    def open(self, until: float) -> socket.socket:
        place, tls = self._place, self._tls
        made = socket.create_connection(
            (place.host, place.port), timeout=max(0.01, until - time.monotonic())
        )
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made if tls is None else tls.wrap_socket(made, server_hostname=place.host)
        except BaseException:
            made.close()
            raise


class OwnerFolder:
    """An owner that listens on a socket in the channel's folder."""

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        self._folder = folder

    def open(self, until: float) -> socket.socket:
        try:
            return join_owner(self._folder)
        except Unowned:
            raise EnvironmentProblem(UNOWNED) from None


class Connection:
    """A socket that carries messages. Every call takes a deadline, as a time of
    `time.monotonic`."""

    def __init__(self, place: OwnerPlace, hello: m.Hello, until: float) -> None:
        """Connect, and send a greeting. Raise LostConnection if nobody answers, Refusal if the
        other end refuses the connection, and FrameError if the other end uses another version of
        the protocol."""
        self._rest = b""
        self._where = place.where
        try:
            self._socket = place.open(until)
        except (OSError, ssl.SSLError) as problem:
            raise LostConnection(
                f"can't connect to {self._where}: {sentence_of(problem)}"
            ) from None
        except EnvironmentProblem as problem:
            raise LostConnection(f"can't connect to {self._where}: {problem}") from None
        try:
            self.send(hello, until)
            self._expect_welcome(until)
        except BaseException:
            self.close()
            raise

    def _expect_welcome(self, until: float) -> None:
        while True:
            for message in self.receive(until):
                if isinstance(message, m.Welcome):
                    return
                if isinstance(message, m.Goodbye):
                    raise Refusal(message.reason)
            if time.monotonic() >= until:
                raise LostConnection(f"{self._where} does not answer")

    def send(self, message: m.Message, until: float) -> None:
        try:
            self._socket.settimeout(max(0.01, until - time.monotonic()))
            self._socket.sendall(frames.encode(message))
        except (OSError, ssl.SSLError) as problem:
            raise LostConnection(f"{self._where}: {sentence_of(problem)}") from None

    def receive(self, until: float) -> list[m.Message]:
        """The messages that have arrived; empty if none arrive in time."""
        try:
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            data = self._socket.recv(AT_ONCE)
        except TimeoutError:
            return []
        except (OSError, ssl.SSLError) as problem:
            raise LostConnection(f"{self._where}: {sentence_of(problem)}") from None
        if not data:
            raise LostConnection(f"{self._where} closed the connection")
        data = self._rest + data
        starts, end = frames.split(data, frames.LARGEST_DOWN)
        self._rest = data[end:]
        return [frames.decode(data, start) for start in starts]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
