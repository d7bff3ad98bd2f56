"""Messages as bytes. A frame begins with its length and the fields that routers read.

    0   u32  length of the rest of the frame
    4   u8   kind: 1 a notification, 2 any other message, 3 a switch to another channel, 4 and 5 a
             body that is sent early and a reference to it (routing/early)
    5   u8   version of this format
    6   u16  number of marks                       from here on: only in notifications
    8   u32  size of the labels in bytes
    12  u32  size of the publisher's name in bytes
    16  u64  epoch: the life of the rendezvous point
    24  u64  serial
    32  u64  stamp
    40       for each mark: u64 node, u64 number
        labels: for each mark, u16 number of nodes, then a u64 for each node
        publisher, payload; in a channel with relations, a context may precede the payload: see
        envelopes.py

A router decides by the labels alone where to send a frame. If the labels stay the same for a
neighbour, the frame is passed on unchanged, as a slice of the receive buffer. If the labels change,
the front is rewritten and the payload is copied. In other messages, MessagePack follows the bytes
of kind and version.

A link carries the frames of many channels. In a switch, a u32 follows the bytes of kind and
version: a channel's number on this link. All frames between this switch and the next one belong to
this channel. A link begins with channel 0. So a link with a single channel needs no numbers, and
the frames of a channel are the same bytes on every link.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar

import msgspec

from tidings.model import TidingsError
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.envelopes import read_context
from tidings.routing.protocol.marks import pack_marks

VERSION = 13
NOTIFICATION, OTHER, SWITCH, EARLY, REFERENCE = 1, 2, 3, 4, 5
LARGEST = 16 << 20
"""The largest frame that is accepted by default, in bytes."""
LARGEST_DOWN = 32 << 20
"""The largest frame from above, in bytes: its header may be as large as the largest payload."""

_HEAD = struct.Struct("<IBBHIIQQQ")
LONG = 1 << 16  # bytes; frames larger than this are decoded without a copy
FEW = 16  # up to this many marks, copying them one by one is faster
_MARK = struct.Struct("<QQ")
_WHOLE_MARK = struct.Struct(f"{_MARK.size}s")
_COUNT = struct.Struct("<H")
_LENGTH = struct.Struct("<I")
_SHORT = struct.Struct("<IBB")
_PLACE = struct.Struct("<QQ")  # epoch and serial
_PLACE_AT = 16  # the offset of the epoch in a frame
_FIRST = struct.Struct("<IH")  # the length, then kind and version read as one number
_KINDS = NOTIFICATION | VERSION << 8, OTHER | VERSION << 8
_SWITCH = struct.Struct("<IBBI")
_SWITCH_KIND = SWITCH | VERSION << 8
_EARLY_KINDS = EARLY | VERSION << 8, REFERENCE | VERSION << 8
SWITCH_SIZE = _SWITCH.size
HEAD = _HEAD.size
EARLY_HEAD = 32
"""The size of an early frame without its parts: see routing/early."""
SHORTEST = _SHORT.size
MOST_MARKS = (1 << 16) - 1
TOO_SHORT = "found a notification whose frame is too short for its parts"

Other = TypeVar("Other", bound=m.Message)
_OTHERS: msgspec.msgpack.Decoder[m.UP | m.DOWN | m.LINK] = msgspec.msgpack.Decoder(
    m.UP | m.DOWN | m.LINK
)
_FROM_BELOW: msgspec.msgpack.Decoder[m.UP | m.LINK] = msgspec.msgpack.Decoder(m.UP | m.LINK)


class FrameError(TidingsError):
    """Bytes that are not a valid frame. The link on which they came must be closed."""


class Front(NamedTuple):
    """Where the parts of a notification begin in a buffer."""

    start: int  # where the frame begins
    marks: int  # the number of marks
    labels: int  # where the labels begin
    rest: int  # where the publisher's name begins
    end: int


_encode_body = msgspec.msgpack.Encoder().encode


def encode(message: m.Message) -> bytes:
    """Encode a message as a frame."""
    if isinstance(message, m.Notification):
        return _encode_notification(message)
    body = _encode_body(message)
    return _SHORT.pack(2 + len(body), OTHER, VERSION) + body


def _encode_notification(message: m.Notification) -> bytes:
    labels = encode_labels([mark.label for mark in message.marks])
    return encode_marked(message, message.marks, labels)


def encode_marked(message: m.Notification, marks: Sequence[m.Mark], labels: bytes) -> bytes:
    """Encode a notification as a frame, with marks and labels that replace its own."""
    count = len(marks)
    if count > MOST_MARKS:
        raise FrameError(f"found {count} marks, expected at most {MOST_MARKS}")
    packed = pack_marks(marks)
    name = message.publisher.encode()
    length = HEAD - 4 + len(packed) + len(labels) + len(name) + len(message.payload)
    head = _HEAD.pack(
        length, NOTIFICATION, VERSION, count, len(labels), len(name),
        message.epoch, message.serial, message.stamp,
    )  # fmt: skip
    return b"".join((head, packed, labels, name, message.payload))


def encode_labels(labels: Sequence[m.Label]) -> bytes:
    return b"".join(
        _COUNT.pack(len(label)) + struct.pack(f"<{len(label)}Q", *label) for label in labels
    )


def decode_labels(data: bytes, marks: int) -> list[m.Label]:
    """Decode the labels of a notification; raise FrameError unless there is exactly one per
    mark."""
    found: list[m.Label] = []
    at = 0
    try:
        for _ in range(marks):
            (count,) = _COUNT.unpack_from(data, at)
            found.append(struct.unpack_from(f"<{count}Q", data, at + 2))
            at += 2 + 8 * count
    except struct.error:
        raise FrameError(
            f"found {len(data)} bytes of labels, expected labels of {marks} marks"
        ) from None
    if at != len(data):
        raise FrameError(f"found {len(data) - at} bytes after the labels, expected none")
    return found


def split(buffer: bytes | bytearray | memoryview, largest: int = LARGEST) -> tuple[list[int], int]:
    """Find where each complete frame of a buffer begins, and where the last one ends. Raise
    FrameError if a frame is invalid or too large, or belongs to another channel."""
    starts, end = scan(buffer, 0, largest)
    if switch_at(buffer, end) is not None:
        raise FrameError("found a switch to another channel, expected frames of a single channel")
    return starts, end


def scan(
    buffer: bytes | bytearray | memoryview, at: int, largest: int = LARGEST
) -> tuple[list[int], int]:
    """Find where each complete frame begins, from an offset on, and where the last one ends. The
    scan ends before the next switch, early body or reference. Raise FrameError if a frame is
    invalid or too large."""
    starts: list[int] = []
    last = len(buffer) - 6  # the last offset at which a frame can begin
    unpack, found = _FIRST.unpack_from, starts.append
    while at <= last:
        length, kind = unpack(buffer, at)
        if kind not in _KINDS or length < 2:
            if kind == _SWITCH_KIND and length == SWITCH_SIZE - 4:
                return starts, at
            if kind in _EARLY_KINDS and EARLY_HEAD <= 4 + length <= 4 + largest:
                return starts, at
            if kind not in _EARLY_KINDS or length <= largest:
                raise FrameError(_misfit(kind & 255, kind >> 8, length))
        if length > largest:
            raise FrameError(f"found a frame of {length:,} bytes, expected at most {largest:,}")
        found(at)
        at += 4 + length
    if at > last + 6:  # the last frame is incomplete
        at = starts.pop()
    return starts, at


def encode_switch(number: int) -> bytes:
    """A frame that switches to the channel that has this number on the link."""
    return _SWITCH.pack(SWITCH_SIZE - 4, SWITCH, VERSION, number)


def switch_at(buffer: bytes | bytearray | memoryview, at: int) -> int | None:
    """The number in the switch that begins at an offset; None if no complete one begins there."""
    if len(buffer) < at + SWITCH_SIZE or buffer[at + 4] != SWITCH:
        return None
    return int(_SWITCH.unpack_from(buffer, at)[3])


def _misfit(kind: int, version: int, length: int) -> str:
    """Why a frame is invalid, given the values of its first bytes."""
    if NOTIFICATION <= kind <= REFERENCE and version != VERSION and 0 < version < 64 \
            and 2 <= length <= LARGEST_DOWN:  # fmt: skip
        return (
            f"found version {version} of the protocol, expected version {VERSION}; use the same "
            "release of tidings at both ends"
        )
    return (
        f"found a frame of kind {kind} and version {version}, expected kinds 1 to 5 of version "
        f"{VERSION}"
    )


def early_at(buffer: bytes | bytearray | memoryview, at: int) -> int:
    """The kind of the early body or reference that begins at an offset; 0 if none begins there, or
    if it is incomplete."""
    if len(buffer) < at + SHORTEST or buffer[at + 4] not in (EARLY, REFERENCE):
        return 0
    return buffer[at + 4] if len(buffer) >= at + size_at(buffer, at) else 0


def size_at(buffer: bytes | bytearray | memoryview, start: int) -> int:
    """The size in bytes of the frame that begins at `start`, including its length field."""
    (length,) = _LENGTH.unpack_from(buffer, start)
    return 4 + int(length)


def are_notifications(buffer: bytes, starts: Sequence[int]) -> bool:
    """Are all frames notifications? Cost: one byte of each frame is read, in C."""
    kinds = memoryview(buffer)[4:]
    if len(starts) == 1:
        return kinds[starts[0]] == NOTIFICATION
    return OTHER not in itemgetter(*starts)(kinds)


def front_of(buffer: bytes | memoryview, start: int) -> Front:
    """Locate the parts of the notification that begins at `start`; raise FrameError if they do not
    fit into its frame."""
    (length,) = _LENGTH.unpack_from(buffer, start)
    if length + 4 < HEAD:
        raise FrameError(TOO_SHORT)
    _, _, _, marks, labels, name, *_ = _HEAD.unpack_from(buffer, start)
    first = start + HEAD + _MARK.size * marks
    end = start + 4 + length
    if first + labels + name > end:
        raise FrameError(TOO_SHORT)
    return Front(start, marks, first, first + labels, end)


def context_at(buffer: bytes | memoryview, start: int) -> bytes:
    """The context of the notification that begins at `start`; empty if it has none. Raises
    FrameError if the parts of the notification do not fit into its frame."""
    front = front_of(buffer, start)
    name = _HEAD.unpack_from(buffer, start)[5]
    return read_context(buffer, front.rest + name, front.end)


def origin_at(buffer: bytes | memoryview, start: int) -> tuple[bytes, int, int]:
    """The publisher and the stamp of the notification that begins at `start`, and where its body
    begins."""
    length, _, _, marks, labels, name, _, _, stamp = _HEAD.unpack_from(buffer, start)
    first = start + HEAD + _MARK.size * marks + labels
    if length + 4 < HEAD or first + name > start + 4 + length:
        raise FrameError(TOO_SHORT)
    return bytes(buffer[first : first + name]), stamp, first + name


def marks_at(buffer: bytes, start: int) -> int:
    """How many marks the notification that begins at `start` has; 0 if it is too short."""
    return int(_COUNT.unpack_from(buffer, start + 6)[0]) if len(buffer) >= start + 8 else 0


def place_of(buffer: bytes, start: int) -> tuple[int, int]:
    """The epoch and the serial of the notification that begins at `start`; raises FrameError if it
    is too short."""
    if size_at(buffer, start) < HEAD:
        raise FrameError(TOO_SHORT)
    epoch, serial = _PLACE.unpack_from(buffer, start + _PLACE_AT)
    return epoch, serial


def decode(buffer: bytes | memoryview, start: int = 0) -> m.Message:
    """Decode the frame that begins at `start`; raise FrameError if it is invalid."""
    (length,) = _LENGTH.unpack_from(buffer, start)
    if buffer[start + 4] != NOTIFICATION:
        return _decode_other(_OTHERS, buffer[start + 6 : start + 4 + length])
    front = front_of(buffer, start)
    _, _, _, count, _, name, epoch, serial, stamp = _HEAD.unpack_from(buffer, start)
    labels = decode_labels(bytes(buffer[front.labels : front.rest]), count)
    numbers = _MARK.iter_unpack(buffer[start + HEAD : front.labels])
    marks = tuple(
        m.Mark(node, number, label) for (node, number), label in zip(numbers, labels, strict=True)
    )
    try:
        publisher = bytes(buffer[front.rest : front.rest + name]).decode()
    except UnicodeDecodeError:
        raise FrameError("found a publisher's name that is not text, expected UTF-8") from None
    payload = bytes(buffer[front.rest + name : front.end])
    return m.Notification(epoch, serial, marks, payload, publisher, stamp)


def numbers_of(buffer: bytes, start: int) -> Iterator[tuple[int, int]]:
    """The nodes and numbers of the marks of the notification that begins at `start`."""
    front = front_of(buffer, start)
    return _MARK.iter_unpack(buffer[start + HEAD : front.labels])


def decode_from_below(buffer: bytes | memoryview, start: int = 0) -> m.Message:
    """Decode a frame from below; raise FrameError if it is invalid, or if its message only goes
    down."""
    (length,) = _LENGTH.unpack_from(buffer, start)
    if buffer[start + 4] == NOTIFICATION:
        raise FrameError(
            "found a notification from below, expected none: notifications only go down"
        )
    if length > LONG:
        buffer = memoryview(buffer)  # slices of a view copy nothing
    return _decode_other(_FROM_BELOW, buffer[start + 6 : start + 4 + length])


def _decode_other(decoder: msgspec.msgpack.Decoder[Other], data: bytes | memoryview) -> Other:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise FrameError(f"found a message that can't be read: {problem}") from None


def relabel(buffer: bytes | memoryview, front: Front, kept: Sequence[int], labels: bytes) -> bytes:
    """Rewrite the frame of a notification with only the marks at `kept`, and with new labels."""
    _, kind, version, count, _, name, *rest = _HEAD.unpack_from(buffer, front.start)
    first, size = front.start + HEAD, _MARK.size
    if len(kept) <= FEW:
        marks = b"".join(bytes(buffer[first + size * at : first + size * (at + 1)]) for at in kept)
    else:
        every = [one for (one,) in _WHOLE_MARK.iter_unpack(buffer[first : first + size * count])]
        marks = b"".join(map(every.__getitem__, kept))
    tail = bytes(buffer[front.rest : front.end])
    length = HEAD - 4 + len(marks) + len(labels) + len(tail)
    head = _HEAD.pack(length, kind, version, len(kept), len(labels), name, *rest)
    return b"".join((head, marks, labels, tail))
