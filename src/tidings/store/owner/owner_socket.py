"""The socket in a channel's folder, and the messages on it.

    owner ──> command    Greeting        which version it speaks, and which process it is
    command ──> owner    Changes         changes that are acknowledged together
                         Adopt           a snapshot in the folder, to be adopted as one version
                         Declare         another declaration of the channel
                         Yield           a rendezvous point wants to own the folder
                         Join            a pipeline wants a link: see below
    owner ──> command    Working         every few seconds, until it answers
                         Done | Refused

After `Join` and `Done`, the connection carries the frames of a link, as over TCP. A user who can
connect here may read and change all subscriptions, so a link needs no token.

A message is its length in 4 bytes, and a tagged array in MessagePack. A connection carries one
request and its answer. Only the user who owns the folder can connect, because the file has the mode
0600.

The path of a socket has at most 107 bytes, and the path of a folder can be longer. So the folder is
opened, and the socket is named relative to it, through /proc.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tidings.files import FILE
from tidings.model import Id

NAME = "socket"
SPEAKS = 3  # the version of these messages
HANDLES = "/proc/self/fd"
MOST = 1 << 30  # a message has at most this many bytes
_LENGTH = struct.Struct("<I")


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """A change to a subscription; without a text, the subscription ends."""

    id: Id
    text: str | None
    dialect: str
    owner: str = ""


class Greeting(msgspec.Struct, frozen=True, array_like=True, tag="tidings"):
    speaks: int
    instance: bytes  # a random id of the owner
    what: str  # "rendezvous point" or "pipeline"
    process: int


class Changes(msgspec.Struct, frozen=True, array_like=True, tag="changes"):
    changes: list[Asked]


class Adopt(msgspec.Struct, frozen=True, array_like=True, tag="adopt"):
    """A snapshot in the folder of bulks. The name of the bulk ends with `mark`."""

    name: str
    mark: str
    owner: str = ""


class Declare(msgspec.Struct, frozen=True, array_like=True, tag="declare"):
    """The texts of two declarations: the one that is to be replaced, and the new one. See
    declared/."""

    before: str
    text: str


class Yield(msgspec.Struct, frozen=True, array_like=True, tag="yield"):
    pass


class Join(msgspec.Struct, frozen=True, array_like=True, tag="join"):
    pass


class Working(msgspec.Struct, frozen=True, array_like=True, tag="working"):
    pass


class Done(msgspec.Struct, frozen=True, array_like=True, tag="done"):
    version: int


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    sentence: str
    is_fault: bool = False  # true if the owner could not write, false if the change is impossible


Message = Greeting | Changes | Adopt | Declare | Yield | Join | Working | Done | Refused
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


@contextmanager
def _shorten_path(folder: Path) -> Iterator[str]:
    """A path of the socket that is short even if the path of the folder is long."""
    if not Path(HANDLES).is_dir():
        yield str(folder / NAME)
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{HANDLES}/{handle}/{NAME}"
    finally:
        os.close(handle)


def listen(folder: Path) -> socket.socket:
    """Create the socket of a folder; a socket that a killed owner left is replaced. The caller must
    own the folder. Raises OSError if the file system does not support sockets."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _shorten_path(folder) as path:
            Path(path).unlink(missing_ok=True)
            made.bind(path)
            Path(path).chmod(FILE)  # nobody can connect before `listen`
            made.listen(64)
    except BaseException:
        made.close()
        raise
    return made


def close_listener(folder: Path, made: socket.socket) -> None:
    """Stop listening. The caller must still own the folder."""
    with contextlib.suppress(OSError):
        made.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts connections
    made.close()
    with contextlib.suppress(OSError):
        (folder / NAME).unlink()


def connect(folder: Path, seconds: float) -> socket.socket:
    """Connect to the owner of a folder; raises OSError if nobody listens."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(seconds)
        with _shorten_path(folder) as path:
            made.connect(path)
    except BaseException:
        made.close()
        raise
    return made


def send(link: socket.socket, message: Message) -> None:
    data = msgspec.msgpack.encode(message)
    if len(data) > MOST:
        raise ValueError(f"found {len(data):,} bytes of changes, expected at most {MOST:,}")
    link.sendall(_LENGTH.pack(len(data)) + data)


def receive(link: socket.socket) -> Message:
    """The next message; raises EOFError if the other side has closed the connection, and ValueError
    if it sent something that is not a message."""
    size = _LENGTH.unpack(_exactly(link, _LENGTH.size))[0]
    if size > MOST:
        raise ValueError(f"found a message of {size:,} bytes, expected at most {MOST:,}")
    return _decoder.decode(_exactly(link, size))


def _exactly(link: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = link.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError("the other side has closed the connection")
        parts += part
    return bytes(parts)
