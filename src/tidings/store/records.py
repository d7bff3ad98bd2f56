"""One line of the log: a checksum, a blank, and one change as a JSON array.

    6b8a1f02 [7,0,0,"sub-1","price > 90",3,"Nf1oD+I25AkzL5FwNUfzeg=="]
    crc32    |  | | id      text         | the identity of the filter, where its node is new
             |  | | (null: it ended)     the number of its node (0 when it ended)
             |  | how many changes of its group come after it; 0: the group is complete
             |  how many changes of its group come before it
             its version

A group is what was acknowledged together: all of it is there, or none. The checkpoint has lines
with the same checksum and other arrays.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from tidings.model import Id, TidingsError


class LogError(TidingsError):
    """A log that is damaged, that can't be written, or that does not have what was asked for."""


class Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A change as it stands in a segment."""

    version: int
    before: int
    left: int
    id: Id
    filter: str | None
    node: int
    key: bytes | None = None


_decoder = msgspec.json.Decoder(Record)
encode = msgspec.json.Encoder().encode


def line_of(body: bytes) -> bytes:
    """A body with its checksum, as a line."""
    return b"%08x %b\n" % (crc32(body), body)


def body_of(line: bytes) -> bytes | None:
    """What a line holds; None when it is not whole."""
    body = line[9:-1]
    if line[-1:] == b"\n" and line[:9] == b"%08x " % crc32(body):
        return body
    return None


def record_of(line: bytes) -> Record | None:
    """The record of a line; None when it is not whole."""
    body = body_of(line)
    if body is None:
        return None
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError:
        return None


def lost_its_end(line: bytes) -> bool:
    """Whether an unfinished last line is a whole one whose line feed was altered.

    A write that was cut off leaves the beginning of a line. A whole record and one more byte that
    is no line feed is not the beginning of any.
    """
    return record_of(line[:-1] + b"\n") is not None
