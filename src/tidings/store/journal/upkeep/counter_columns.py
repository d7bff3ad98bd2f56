"""The columns of the table in which kernels add up the counters of nodes."""

from __future__ import annotations

from enum import IntEnum


class Counted(IntEnum):
    """The counters of a node."""

    TIMES = 0  # how many notifications matched the node
    NUMBER = 1  # its last number
    SERIAL = 2  # the serial of the notification with the last number
