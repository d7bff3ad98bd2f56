"""The links of a node: the messages to send in each channel, and those that wait for credit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tidings.routing.channels.channel import Channel
from tidings.routing.channels.channel_link import LinkChannels, Out
from tidings.routing.channels.credit import (
    HEAVY_DOWN,
    HEAVY_UP,
    MOST_HELD,
    Flow,
    Frames,
    Item,
    weigh,
)
from tidings.routing.forwarding.locating import LOCATOR
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.protocol import messages as m

ABOVE = "<upstream>"
"""The name under which every state machine knows the node above it."""


class Links:
    """The links of a node to its neighbours and to its hops."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self.neighbours: dict[Name, LinkChannels] = {}
        self.hops: dict[Name, LinkChannels] = {}
        self._owed: set[tuple[Name, int]] = set()  # neighbours' channels for which a Credit is due
        self._drawn: set[tuple[Name, int]] = set()  # channels in which more may be sent now
        self._drawn_above: set[tuple[Name, int]] = set()
        self.held = 0
        """About how many bytes of publications wait for credit."""
        self.unread: Callable[[Name, int], int] = lambda _link, _number: 0
        """How many bytes of a neighbour's channel have arrived, but have not been handed to
        `receive` yet."""
        self.locate: Callable[[Channel, m.Locate], None] = lambda _channel, _question: None
        """Asks a preprocessor of a channel for the places of nodes."""

    def hop(self, name: Name) -> LinkChannels:
        """The channels of the link to a hop."""
        return self.hops.setdefault(name, LinkChannels())

    def leave(self, hop: Name) -> None:
        """Drop the publications that wait for a hop, because its link has ended. Publishers repeat
        them."""
        self.renew_hop(hop, None)

    def renew_hop(self, hop: Name, flow: Flow | None) -> LinkChannels:
        """Count credit anew for the link to a hop, because the link is new or has ended."""
        known = self.hop(hop)
        for number in known.flow.numbers:
            self.held -= known.flow.waiting(number)
        known.flow.end()
        known.flow = flow or Flow()
        return known

    # -- what may be sent ----------------------------------------------------------------------

    def flow_of(self, link: Name) -> Flow:
        """The credit of the channels on the link of a neighbour."""
        return self.neighbours[link].flow

    def note_taken(self, link: Name, number: int) -> list[Out]:
        """After frames arrived from a neighbour, return a Credit for it, if one is due."""
        known = self.neighbours.get(link)
        if known is None:
            self._owed.discard((link, number))
            return []
        unread = self.unread(link, number)
        limit = known.flow.raise_limit(number, unread)
        if unread or known.flow.held.get(number):
            self._owed.add((link, number))
        else:
            self._owed.discard((link, number))
        return [] if limit is None else [(link, 0, m.Credit({number: limit}))]

    def overdrawn(self, link: Name) -> bool:
        """Did a neighbour send much more than it had credit for?"""
        known = self.neighbours.get(link)
        return known is not None and known.flow.is_overdrawn

    def is_stuck(self, link: Name) -> bool:
        """Does so much data wait for a neighbour that its link must be closed?"""
        known = self.neighbours.get(link)
        return known is not None and known.flow.is_stuck

    def note_taken_above(self, hop: Name, number: int) -> list[Out]:
        """After frames from a hop were passed on, return a Credit for the hop, if one is due."""
        limit = self.hop(hop).flow.raise_limit(number)
        return [] if limit is None else [(hop, 0, m.Credit({number: limit}))]

    def pay(self) -> list[Out]:
        """Give credit to neighbours whose frames had to wait, and have been passed on since."""
        return [one for link, number in [*self._owed] for one in self.note_taken(link, number)]

    def take_credit(self, link: Name, message: m.Credit, now: float) -> list[Out]:
        """Use the credit that a neighbour has given."""
        known = self.neighbours.get(link)
        if known is None:
            return []
        known.flow.take(message)
        return [one for number in message.upto for one in self._draw(link, known, number, now)]

    def take_credit_above(self, hop: Name, message: m.Credit, now: float) -> list[Out]:
        """Use the credit that a hop has given."""
        known = self.hop(hop)
        known.flow.take(message)
        return [one for number in message.upto for one in self._draw_above(hop, known, number, now)]

    def block(self, hop: Name, now: float, *, on: bool) -> list[Out]:
        """Record that the connection to a hop accepts no more data, or accepts data again."""
        known = self.hop(hop)
        known.flow.is_blocked = on
        if on:
            return []
        return [one for number in known.flow.numbers
                for one in self._draw_above(hop, known, number, now)]  # fmt: skip

    def draw_again(self, now: float) -> list[Out]:
        """Return the next waiting messages. Send the messages that are returned, then call this
        again, until nothing is returned."""
        if not self._drawn and not self._drawn_above:
            return []
        drawn, self._drawn = self._drawn, set()
        above, self._drawn_above = self._drawn_above, set()
        out: list[Out] = []
        for link, number in drawn:
            if link in self.neighbours:
                out += self._draw(link, self.neighbours[link], number, now)
        for hop, number in above:
            out += self._draw_above(hop, self.hop(hop), number, now)
        return out

    def _draw(self, link: Name, known: LinkChannels, number: int, now: float) -> list[Out]:
        channel, out = known.numbers.get(number), []
        if channel is not None:
            for item in known.flow.draw(number, HEAVY_DOWN):
                out += self._emit(channel, known, link, number, item, now)
                self._drawn.add((link, number))
        return out

    def _draw_above(self, hop: Name, known: LinkChannels, number: int, now: float) -> list[Out]:
        channel, out = known.numbers.get(number), []
        if channel is not None:
            before = known.flow.waiting(number)
            for item in known.flow.draw(number, HEAVY_UP):
                out += self._emit(channel, known, hop, number, item, now)
                self._drawn_above.add((hop, number))
            self.held -= before - known.flow.waiting(number)
        return out

    def forget(self, known: LinkChannels, number: int) -> None:
        """Forget a number that a link no longer uses."""
        channel = known.numbers.get(number)
        if channel is not None and self.hops.get(channel.hop) is known:
            self.held -= known.flow.waiting(number)
        known.forget(number)

    def hold_frames(self, link: Name, number: int, data: bytes | memoryview, count: int) -> int:
        """Let notifications wait for credit; return how many are dropped instead."""
        flow = self.neighbours[link].flow
        if flow.is_full(number):
            flow.skip(number)
            return count
        flow.put(number, Frames(bytes(data), count))
        return 0

    # -- sending ----------------------------------------------------------------------------------

    def send(
        self, channel: Channel, sent: Iterable[Sent], now: float, source: Name | None = None
    ) -> list[Out]:
        """The messages of a state machine, with the links and numbers of its channel. Messages that
        only repeat the previous one are left out, and large messages wait for credit. `source` is
        the neighbour whose message the state machine handled."""
        out: list[Out] = []
        for to, message in sent:
            if to == ABOVE and channel.hop is not None:
                link, number, known = channel.hop, channel.up, self.hops[channel.hop]
                waits = isinstance(message, HEAVY_UP) and not known.flow.passes(number)
                if waits:
                    self._hold(channel, known, number, message, source)
            elif to == LOCATOR:
                if isinstance(message, m.Locate):
                    self.locate(channel, message)
                continue
            else:
                found = channel.below.get(to)
                if found is None:  # the neighbour has no link at present
                    continue
                link, number, known = to, found, self.neighbours[to]
                flow = known.flow
                waits = flow.waits(number) or (
                    isinstance(message, HEAVY_DOWN) and not flow.passes(number)
                )
                if not waits:
                    pass
                elif isinstance(message, m.Notification) and flow.is_full(number):
                    flow.skip(number)
                else:
                    flow.put(number, message)
            if not waits:
                out += self._emit(channel, known, link, number, message, now)
        return out

    def _hold(
        self, channel: Channel, known: LinkChannels, number: int, message: m.Message,
        source: Name | None,
    ) -> None:  # fmt: skip
        """Let a publication wait for credit, or drop it if too many bytes wait at this node."""
        size = weigh(message)
        if self.held + size > MOST_HELD:
            self._counts["publications without credit"] += 1
            return
        self.held += size
        below = None if source is None else channel.below.get(source)
        if source is None or below is None:
            known.flow.put(number, message)
            return
        known.flow.put(number, message, (self.neighbours[source].flow, below))
        self._owed.add((source, below))

    def _emit(
        self, channel: Channel, known: LinkChannels, link: Name, number: int, item: Item, now: float
    ) -> list[Out]:
        if isinstance(item, m.Beat):
            channel.beaten = now
        if (
            not number
            or not isinstance(item, m.Beat | m.Resubscribe)
            or known.repeats.is_news(number, item)
        ):
            channel.used = now
            return [(link, number, item)]
        return []
