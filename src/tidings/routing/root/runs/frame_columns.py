"""The columns of the array that describes the frames of a run; see run_kernels.py."""

from __future__ import annotations

from enum import IntEnum


class Column(IntEnum):
    """The columns of a publication's row: offsets in the buffer, and the values of `VALUES`."""

    NAME = 0  # the publisher's name
    NAME_END = 1
    STAMP = 2
    UNSETTLED = 3  # the first unsettled stamp
    CONTENT = 4  # the attributes
    CONTENT_END = 5
    PAYLOAD = 6
    PAYLOAD_END = 7
    CONTENT_HEAD = 8  # the number of encoded bytes before the attributes
    SHARES = 9  # 1 if subscribers get the attributes
    SUBJECT = 10  # the encoded subject, then the time
    TIME_END = 11
    TAG = 12
    TAG_END = 13


VALUES = [Column.STAMP, Column.UNSETTLED, Column.SHARES]
