"""What is wrong with a set of subscriptions: filters that are odd, equal, or never needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidings import Filter
from tidings.cli import anatomy
from tidings.cli.covered import Coverers
from tidings.cli.screen import tracked
from tidings.cli.subscriptions import Subscription

MANY = 1_000  # filters of one subscriber, worth a progress bar
DUPLICATE, COVERED = "duplicate", "covered"

KINDS = {
    DUPLICATE: "the subscriber has an equal filter already",
    COVERED: "not needed: another of the subscriber's covers it",
    **anatomy.MEANING,
}

Parsed = tuple[Subscription, Filter]


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong with one subscription; `other` is the one that makes it so."""

    kind: str
    subscription: Subscription
    other: Subscription | None = None


def examine(parsed: list[Parsed]) -> list[Finding]:
    """All findings, in the order of the subscriptions.

    Filters without a subscriber count as those of one subscriber.
    """
    owners: dict[str | None, list[Parsed]] = {}
    for one in parsed:
        owners.setdefault(one[0].subscriber, []).append(one)
    place = {str(one.id): at for at, (one, _) in enumerate(parsed)}
    found = [finding for own in owners.values() for finding in _of_one(own)]
    return sorted(found, key=lambda finding: place[str(finding.subscription.id)])


def sharing(parsed: Iterable[Parsed]) -> int:
    """How many filters are equal to one of another subscriber: no fault, they share a node."""
    owners: dict[bytes, set[str | None]] = {}
    for one, filter_ in parsed:
        owners.setdefault(filter_.key, set()).add(one.subscriber)
    return sum(len(who) for who in owners.values() if len(who) > 1)


def _of_one(own: list[Parsed]) -> Iterator[Finding]:
    first: dict[bytes, Subscription] = {}
    sound: list[Parsed] = []
    for one, filter_ in own:
        odd = anatomy.oddities(filter_)
        empty = anatomy.NEVER in odd or anatomy.ALWAYS in odd  # all of these are equal
        earlier = one if empty else first.setdefault(filter_.key, one)
        if earlier is not one:
            yield Finding(DUPLICATE, one, earlier)
            continue
        yield from (Finding(kind, one) for kind in odd)
        if not empty:
            sound.append((one, filter_))
    yield from _covered(sound)


def _covered(own: list[Parsed]) -> Iterator[Finding]:
    """One finding for each filter that another covers."""
    filters = [filter_ for _, filter_ in own]
    coverers = Coverers(filters)
    numbers: Iterable[int] = range(len(own))
    if len(own) > MANY:
        numbers = tracked(numbers, "comparing", len(own))
    for at in numbers:
        for other in coverers.of(at):
            same = filters[at].covers(filters[other])  # equal, though written differently
            if not same or other < at:
                kind = DUPLICATE if same else COVERED
                yield Finding(kind, own[at][0], own[other][0])
                break
