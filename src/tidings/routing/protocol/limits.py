"""Limits on what others can make a node store and do.

Requests beyond a limit are counted. Such a request is ignored if well-behaved clients retry it
after a while, and refused with a message if a retry would not help.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

# filters of more bytes than this are mostly kept out of memory, and their total size is limited
LONG = 4096
Positive = Annotated[int, msgspec.Meta(ge=1)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[limits]` of a router's file."""

    # connections
    strangers: Positive = 256  # links without a greeting; beyond this number, the oldest is closed
    greeting_bytes: Positive = 4096
    neighbours: Positive = 10_000
    channels: Positive = 20_000  # channels of a router
    neighbour_channels: Positive = 1_000  # channels that one agent opens
    guest_percent: Percent = 50  # share of `neighbours` for guests with the same token
    bound_percent: Percent = 10  # share of `neighbours` reserved for bound names and routers
    router_percent: Percent = 5  # share of `neighbours` reserved for routers
    frame_bytes: Positive = 16 << 20
    # bytes queued for one neighbour; at twice this size, its link is closed
    queue_bytes: Positive = 32 << 20
    # beyond this size, the link with the longest queue is closed
    all_queues_bytes: Positive = 512 << 20

    # limits for neighbours; names with `all_` limit all neighbours together
    nodes: Positive = 1_000_000  # nodes that one neighbour wants
    unknown: Positive = 10_000  # wanted nodes that are not in the graph yet
    all_unknown: Positive = 100_000
    questions: Positive = 10_000  # open questions of one owner that were passed on
    all_questions: Positive = 100_000
    publishers: Positive = 100_000  # publishers whose return path or last stamp is remembered

    # rendezvous point
    filter_bytes: Positive = 64 << 10
    filter_parts: Positive = 1_500  # attributes, comparisons and calls in one filter
    # bytes of all filters longer than 4 KiB; in memory, they take up to 30 times as much
    long_filter_bytes: Positive = 8 << 20
    long_percent: Percent = 25  # share of `long_filter_bytes` for one subscriber
    content_bytes: Positive = 1 << 20  # the attributes of a notification, without its payload
    # milliseconds that one subscriber's filters may compute on one notification; each megabyte of
    # the notification adds ten times this limit
    match_millis: Positive = 1
    new_nodes: Positive = 10_000  # nodes that one owner asked for and nobody has subscribed to yet
    all_new_nodes: Positive = 100_000
    all_nodes: Positive = 20_000_000
    marks: Positive = 256  # marks of one notification for the filters of one subscriber
    all_marks: Positive = 65_535  # marks of one notification for the filters of all subscribers
    matches: Positive = 1024  # filters of one subscriber that match one notification
    # size of all filters of one subscriber, as `work_of` measures it
    filters_bytes: Positive = 128 << 20
    # bytes of publications that are not on the disk yet; beyond this, links are not read
    unsynced_bytes: Positive = 64 << 20

    # a publication without attributes is refused if nodes changed more often than this since the
    # version of its tag
    tag_changes: Positive = 1_000
    part_bytes: Positive = 4 << 20  # bytes of the columns of one part that is handed over
    names: Positive = 10_000  # named subscriptions
    sources: Positive = 10_000  # sources of parts whose progress is remembered

    # notifications kept on the disk for subscribers that have fallen behind
    kept: Positive = 1_000_000
    # bytes of the journal for kept notifications; beyond this, the oldest are dropped
    kept_bytes: Positive = 4 << 30
    kept_marks: Positive = 10_000_000  # marks of kept notifications; each takes 32 bytes of memory
    kept_seconds: Positive = 7 * 86_400  # older notifications are dropped
    disk_bytes: Positive = 8 << 30  # bytes of the journal; beyond this, publications are refused

    # answers
    answer_bytes: Positive = 1 << 20  # bytes of the answer to one request for missed notifications
    # bytes queued for a neighbour; beyond this, its questions are ignored
    unread_bytes: Positive = 4 << 20
    burst: Positive = 500_000  # entries of answers that an owner may get in one burst
    work: Positive = 200_000  # entries of answers that an owner may get each second


NONE = Limits(
    **dict.fromkeys(Limits.__struct_fields__, 1 << 62)
    | {"guest_percent": 100, "long_percent": 100, "bound_percent": 0, "router_percent": 0}
)
"""No limits: for a router whose neighbours belong to one application."""


def work_of(interest: bytes) -> int:
    """What parsing a filter costs: as much as this many entries of an answer. Long filters cost
    more per byte."""
    size = len(interest)
    return 1 + size + 7 * max(0, size - 1024)


def long_bytes(work: int) -> int:
    """The size of a filter that costs `work` to parse, if it is longer than LONG; otherwise 0."""
    size = (work - 1 + 7 * 1024) // 8
    return size if size > LONG else 0
