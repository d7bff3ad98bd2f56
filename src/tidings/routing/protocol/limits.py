"""Limits on what neighbours and strangers can make a node keep and do.

Requests beyond a limit are counted. They are ignored where a well-behaved neighbour asks again by
itself after a while, and refused in a sentence where asking again would not help.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

LONG = 4096  # bytes; of longer filters little is kept in memory, and all together are limited
Positive = Annotated[int, msgspec.Meta(ge=1)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[limits]` of a router's file."""

    # of connections
    strangers: Positive = 256  # connections without a greeting; the oldest is closed for the next
    greeting_bytes: Positive = 4096  # of a greeting
    neighbours: Positive = 10_000
    guest_percent: Percent = 50  # of them, for guests with the same token
    bound_percent: Percent = 10  # of them, reserved for bound names and routers,
    router_percent: Percent = 5  # and for routers
    frame_bytes: Positive = 16 << 20
    queue_bytes: Positive = 32 << 20  # that wait for one neighbour; at twice that it is closed
    all_queues_bytes: Positive = 512 << 20  # that wait for all; the link with most is closed

    # of one neighbour, and of all together
    nodes: Positive = 1_000_000  # that a neighbour wants
    unknown: Positive = 10_000  # of them, those that the graph lacks
    all_unknown: Positive = 100_000
    questions: Positive = 10_000  # of an owner, passed on and not answered yet
    all_questions: Positive = 100_000
    publishers: Positive = 100_000  # whose return path, or last stamp, is remembered

    # of a rendezvous point
    filter_bytes: Positive = 64 << 10
    filter_parts: Positive = 1_500  # attributes, comparisons and calls of one filter
    long_filter_bytes: Positive = 8 << 20  # of filters beyond 4 KiB; in memory up to 30 times that
    long_percent: Percent = 25  # of them, for one subscriber
    content_bytes: Positive = 1 << 20  # of a notification's attributes; the payload is apart
    match_millis: Positive = 1  # of one subscriber's filters, and tenfold for each megabyte
    new_nodes: Positive = 10_000  # that an owner asked for and nobody wants yet
    all_new_nodes: Positive = 100_000
    all_nodes: Positive = 2_000_000
    marks: Positive = 256  # of one notification, for the filters of one subscriber
    all_marks: Positive = 65_535  # for the filters of all
    matches: Positive = 1024  # filters of one subscriber that match one notification
    filters_bytes: Positive = 128 << 20  # of all filters of one subscriber, by `work_of`
    unsynced_bytes: Positive = 64 << 20  # of publications not on the disk; then nothing is read

    kept: Positive = 1_000_000  # notifications on the disk for subscribers that are behind,
    kept_bytes: Positive = 4 << 30  # of the journal for them; beyond it the oldest are dropped,
    kept_marks: Positive = 10_000_000  # of them; each takes 32 bytes of memory,
    kept_seconds: Positive = 7 * 86_400  # and older ones are dropped
    disk_bytes: Positive = 8 << 30  # of the whole journal; beyond it publications are refused

    # of answers
    answer_bytes: Positive = 1 << 20  # of the answer to one question for missed notifications
    unread_bytes: Positive = 4 << 20  # that wait for a neighbour; then its questions are ignored
    burst: Positive = 500_000  # entries of answers that an owner may get at once,
    work: Positive = 200_000  # and each second


NONE = Limits(
    **dict.fromkeys(Limits.__struct_fields__, 1 << 62)
    | {"guest_percent": 100, "long_percent": 100, "bound_percent": 0, "router_percent": 0}
)
"""No limits: for a router whose neighbours belong to one application."""


def work_of(interest: bytes) -> int:
    """The cost of reading a filter, in entries of an answer: long ones cost more."""
    size = len(interest)
    return 1 + size + 7 * max(0, size - 1024)


def long_bytes(work: int) -> int:
    """The bytes of a filter that costs so much to read, if it is long; else 0."""
    size = (work - 1 + 7 * 1024) // 8
    return size if size > LONG else 0
