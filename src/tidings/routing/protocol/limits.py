"""How much of what others say is kept, and how much is done for them.

Whatever a neighbour or a stranger can make a node keep has a bound here. What is beyond one is
ignored and counted where whoever asked asks again by itself, as those that mean well do after a
while; it is refused in a sentence where asking again would not help.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

LONG = 4096  # bytes of a filter of which no more is kept than is needed, and less of many
Positive = Annotated[int, msgspec.Meta(ge=1)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[limits]` of a router's file."""

    # of connections
    strangers: Positive = 256  # that have not said yet who they are; the oldest goes for the next
    greeting_bytes: Positive = 4096  # of what a stranger says
    neighbours: Positive = 10_000
    guest_percent: Percent = 50  # of them, that come with one and the same token of guests
    bound_percent: Percent = 10  # of them, that no guest gets, and
    router_percent: Percent = 5  # that nobody gets but routers
    frame_bytes: Positive = 16 << 20
    queue_bytes: Positive = 32 << 20  # that wait for one neighbour; twice that ends the link
    all_queues_bytes: Positive = 512 << 20  # the longest queue ends

    # of one neighbour, and of all together
    nodes: Positive = 1_000_000  # that a neighbour wants
    unknown: Positive = 10_000  # of them, those of which nothing is known yet
    all_unknown: Positive = 100_000
    questions: Positive = 10_000  # of an owner that were passed on and not answered yet
    all_questions: Positive = 100_000
    publishers: Positive = 100_000  # whose way back, or last stamp, is remembered

    # of a rendezvous point
    filter_bytes: Positive = 64 << 10
    filter_parts: Positive = 1_500  # attributes, comparisons and calls of one filter
    long_filter_bytes: Positive = 8 << 20  # of filters beyond 4 KiB; they take up to 30 times that
    long_percent: Percent = 25  # of them, those of one subscriber
    content_bytes: Positive = (
        1 << 20
    )  # of what filters read of a notification; the payload is apart
    match_millis: Positive = (
        1  # that one subscriber's filters compute, and tenfold for each megabyte
    )
    new_nodes: Positive = 10_000  # that an owner asked for, and nobody wants yet
    all_new_nodes: Positive = 100_000
    all_nodes: Positive = 2_000_000
    marks: Positive = 256  # of one notification, for the filters of one subscriber
    all_marks: Positive = 65_535  # for those of all
    matches: Positive = 1024  # filters of one subscriber that match one notification
    filters_bytes: Positive = 128 << 20  # of all filters of one subscriber, as `work_of` has them
    unsynced_bytes: Positive = (
        64 << 20
    )  # of publications that are not on the disk; then none is read

    kept: Positive = 1_000_000  # notifications that stay on the disk for those that are behind,
    kept_bytes: Positive = 4 << 30  # of the journal with them; beyond these the oldest go,
    kept_marks: Positive = 10_000_000  # that they have, of which each takes 32 bytes of memory,
    kept_seconds: Positive = 7 * 86_400  # and those that are older
    disk_bytes: Positive = (
        8 << 30
    )  # that the journal may take in all; beyond these nothing is taken

    # of answers
    answer_bytes: Positive = 1 << 20  # of payloads that one question for lost ones gives
    unread_bytes: Positive = 4 << 20  # that wait for a neighbour, for it to be answered no more
    burst: Positive = 500_000  # entries of answers that an owner may have at once,
    work: Positive = 200_000  # and each second


NONE = Limits(
    **dict.fromkeys(Limits.__struct_fields__, 1 << 62)
    | {"guest_percent": 100, "long_percent": 100, "bound_percent": 0, "router_percent": 0}
)
"""For routers whose neighbours are all of one application."""


def work_of(interest: bytes) -> int:
    """What it takes to read a filter, in entries of an answer: long ones are worse."""
    size = len(interest)
    return 1 + size + 7 * max(0, size - 1024)


def long_bytes(work: int) -> int:
    """The bytes of a filter that takes so much to read, where it is long; else 0."""
    size = (work - 1 + 7 * 1024) // 8
    return size if size > LONG else 0
