"""The channels of a node: which link uses which number for which channel.

    (link, 2) ──> channel "tea" ──> its state machine ──> (link, 2), (hop "west", 1) ...

A channel is created when a neighbour opens it. A channel is dropped when no neighbour uses it any
more and its state machine has forgotten all neighbours. Like a state machine, `Channels` takes
messages and the time, and returns the messages to send, each with a link and the number of its
channel on that link. Messages about the link itself have number 0.

Invariants: a channel is in `awake` if and only if it has a state machine. A channel with number 0
on any of its links does not sleep, because pulses leave number 0 out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tidings.routing.channels.channel import Channel
from tidings.routing.channels.channel_link import LinkChannels, Out, answer_pulse, pulses
from tidings.routing.channels.credit import Flow
from tidings.routing.channels.node_links import ABOVE, Links
from tidings.routing.channels.repeats import ReceivedMessages, Repeats
from tidings.routing.channels.routes import Routes
from tidings.routing.channels.sleeping import may_sleep, put_to_sleep, wake
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.forwarding.router import Router
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.times import Times

MISSED = 4  # a channel that misses this many beats counts as silent
KEEP_ALIVE = 8  # half-beat ticks between two beats to a neighbour without subscriptions
QUIET = 2  # beats without traffic after which a channel may sleep


class Channels:
    """The channels of one node. `make` creates the state machine of a channel."""

    def __init__(
        self,
        times: Times,
        limits: Limits,
        routes: Routes,
        make: Callable[[str], Router],
    ) -> None:
        self.times = times
        self.limits = limits
        self.routes = routes
        self._make = make
        self.known: dict[str, Channel] = {}
        self.awake: dict[str, Channel] = {}
        self.counts: Counter[str] = Counter()
        """How many requests were refused or made no sense, and how many publications were
        dropped."""
        self.links = Links(self.counts)
        self._links, self._hops = self.links.neighbours, self.links.hops
        self._checked = self._pulsed_up = self._pulsed_down = float("-inf")

    def __len__(self) -> int:
        return len(self.known)

    # -- channels ------------------------------------------------------------------------------

    def keep(self, name: str, machine: object, hop: Name | None, now: float) -> Channel:
        """Add a channel that is never dropped. The channel has number 0 on the link to its hop."""
        channel = Channel(name, machine, hop, now)
        channel.is_kept = True
        self.known[name] = self.awake[name] = channel
        if hop is not None:
            self.links.hop(hop).numbers[0] = channel
        return channel

    def refusal(self, name: str) -> str:
        """The reason why a channel is not served here; empty if the channel is served."""
        if name in self.known:
            return ""
        if not self.routes and self.known:
            return f"found the channel {name[:80]!r}, expected {next(iter(self.known))!r}"
        if self.routes.find(name) is None:
            if not name:
                return "found no channel, expected one at the end of the address: HOST:PORT/CHANNEL"
            return f"found the channel {name[:80]!r}, which has no route here"
        if len(self.known) >= self.limits.channels:
            self.counts["channels"] += 1
            most = self.limits.channels
            return f"there are {len(self.known):,} channels, expected at most {most:,}"
        return ""

    def find(self, link: Name, number: int) -> Channel | None:
        """The channel that has a given number on the link of a neighbour."""
        known = self._links.get(link)
        return None if known is None else known.numbers.get(number)

    def find_above(self, hop: Name, number: int) -> Channel | None:
        """The channel that has a given number on the link to a hop."""
        known = self._hops.get(hop)
        return None if known is None else known.numbers.get(number)

    def was_opened(self, link: Name, number: int) -> bool:
        """Was a number ever opened on the link of a neighbour?"""
        known = self._links.get(link)
        return known is not None and number <= known.highest

    def count_nodes(self) -> int:
        """The number of nodes in all channels."""
        return sum(
            len(one.machine.graph) if one.asleep is None else len(one.asleep.nodes)
            for one in self.known.values()
        )

    def of_link(self, link: Name) -> int:
        """How many channels the link of a neighbour has."""
        known = self._links.get(link)
        return 0 if known is None else len(known.numbers)

    def _make_channel(self, name: str, now: float) -> tuple[Channel, list[Out]]:
        route = self.routes.find(name)
        assert route is not None
        channel = Channel(name, self._make(name), route.hop, now)
        self.known[name] = self.awake[name] = channel
        hop = self.links.hop(route.hop)
        hop.highest += 1
        channel.up = hop.highest
        hop.numbers[channel.up] = channel
        out: list[Out] = [(route.hop, 0, m.Open(channel.up, name))]
        return channel, out + self.send(channel, channel.machine.join_upstream(now), now)

    def _drop(self, channel: Channel) -> list[Out]:
        """Forget a channel that nobody uses any more."""
        del self.known[channel.name]
        self.awake.pop(channel.name, None)
        assert channel.hop is not None
        self.links.forget(self.links.hop(channel.hop), channel.up)
        return [(channel.hop, 0, m.Close(channel.up))]

    # -- links of neighbours -------------------------------------------------------------------

    def begin_link(
        self, link: Name, channel: Channel | None, now: float, flow: Flow | None = None
    ) -> None:
        """Start the new link of a neighbour. If `channel` is given, it has number 0 on this
        link."""
        self.end_link(link, now)
        known = self._links[link] = LinkChannels(flow)
        if channel is None:
            known.highest = -1
        else:
            self._wake(channel, now)
            known.numbers[0] = channel
            channel.below[link] = 0

    def end_link(self, link: Name, now: float) -> None:
        """End the link of a neighbour. The channels of the link wake up, so that their state
        machines can forget the neighbour if it does not come back."""
        known = self._links.get(link)
        if known is not None:
            for channel in known.numbers.values():
                self._wake(channel, now)
                if channel.below.get(link) is not None:
                    del channel.below[link]
            known.flow.end()
            del self._links[link]

    def open(self, link: Name, number: int, name: str, now: float) -> list[Out]:
        """Open a channel for a neighbour, under a number that the neighbour chose."""
        known = self._links.get(link)
        if known is None:
            return []
        reason = self.refusal(name)
        if number <= known.highest:
            reason = f"found the number {number}, expected one above {known.highest}"
        known.highest = max(known.highest, number)
        if reason:
            self.counts["refused channels"] += 1
            return [(link, 0, m.Closed(number, reason))]
        out: list[Out] = []
        channel = self.known.get(name)
        if channel is None:
            channel, out = self._make_channel(name, now)
        else:
            self._wake(channel, now)
        if link in channel.below:  # the new number replaces the old one
            out += self.close(link, channel.below[link], now)
        channel.below[link] = number
        known.numbers[number] = channel
        return out

    def close(self, link: Name, number: int, now: float) -> list[Out]:
        """Close a channel for a neighbour, and end all its subscriptions in the channel."""
        known = self._links.get(link)
        channel = None if known is None else known.numbers.get(number)
        if known is None or channel is None:
            return []
        self.links.forget(known, number)
        machine = self.wake(channel, now)
        if channel.below.get(link) == number:
            del channel.below[link]
        machine.context.now = now
        machine.drop(link)
        return self.send(channel, machine.drain_outgoing(), now)

    def hear(self, link: Name, number: int, message: m.Resubscribe) -> None:
        """Record a neighbour's message as soon as it arrives, because later pulses repeat it. The
        message itself may be handled after those pulses."""
        if number and self.find(link, number) is not None:
            self._links[link].heard.put(number, message)

    def receive(self, link: Name, number: int, message: m.Message, now: float) -> list[Out]:
        """Handle a message from a neighbour below; for a Resubscribe, call `hear` first."""
        channel = self.find(link, number)
        if channel is None:
            self.counts["unknown channels"] += 1
            return []
        machine = self.wake(channel, now)
        channel.used = now
        return self.send(channel, machine.receive(link, message, now), now, source=link)

    # -- links to hops -------------------------------------------------------------------------

    def join(self, hop: Name, now: float, flow: Flow | None = None) -> list[Out]:
        """Use a new link to a hop: open the channels of the hop on the link, and join the hop again
        in each channel."""
        known = self.links.renew_hop(hop, flow)
        channels = [*known.numbers.values()]
        for channel in channels:
            self._wake(channel, now)
        known.repeats, known.heard = Repeats(), ReceivedMessages()
        out: list[Out] = []
        for channel in channels:
            channel.used = now
            if channel.up:
                out.append((hop, 0, m.Open(channel.up, channel.name)))
            out += self.send(channel, channel.machine.join_upstream(now), now)
        return out

    def receive_above(self, hop: Name, number: int, message: m.Message, now: float) -> list[Out]:
        """Handle a message from a hop."""
        channel = self.find_above(hop, number)
        if channel is None:  # the channel was closed meanwhile
            return []
        machine = self.wake(channel, now)
        channel.used = now
        if number and isinstance(message, m.Beat):
            self._hops[hop].heard.put(number, message)
        return self.send(channel, machine.receive(ABOVE, message, now), now)

    def take_closed(self, hop: Name, message: m.Closed, now: float) -> list[Out]:
        """Drop a channel that its hop does not serve, and tell all neighbours that use it."""
        channel = self.find_above(hop, message.number)
        if channel is None or not message.number:
            return []
        out: list[Out] = []
        for link, number in [*channel.below.items()]:
            self._links[link].forget(number)
            out.append((link, 0, m.Closed(number, message.reason)))
        channel.below.clear()
        if not channel.is_kept:
            self._drop(channel)
        return out

    # -- pulses --------------------------------------------------------------------------------

    def take_pulse(
        self, link: Name, message: m.Pulse | m.Repeat, now: float, *, waits: bool = False
    ) -> list[Out]:
        """Handle a pulse of a neighbour, or a neighbour's request to repeat everything. If messages
        of the neighbour still wait (`waits`), the state machines do not get the repeated
        messages."""
        known = self._links.get(link)
        if known is None:
            return []
        out = answer_pulse(link, known, message, now, self.times.retry)
        if isinstance(message, m.Pulse) and known.heard.at == now and not waits:
            for channel in [*self.awake.values()]:
                said = known.heard.said.get(channel.below.get(link, 0))
                if said is not None:
                    out += self.send(channel, channel.machine.receive(link, said, now), now)
        return out

    def take_pulse_above(self, hop: Name, message: m.Pulse | m.Repeat, now: float) -> list[Out]:
        """Handle a pulse of a hop, or a hop's request to repeat everything."""
        known = self.links.hop(hop)
        out = answer_pulse(hop, known, message, now, self.times.retry)
        if isinstance(message, m.Pulse) and known.heard.at == now:
            for channel in [*self.awake.values()]:
                said = known.heard.said.get(channel.up) if channel.hop == hop else None
                if said is not None:
                    out += self.send(channel, channel.machine.receive(ABOVE, said, now), now)
        return out

    # -- time ----------------------------------------------------------------------------------

    def tick(self, now: float, *, kept: bool = True) -> list[Out]:
        """Do the work that is due. Call this at least every half beat. If `kept` is false, channels
        that are never dropped are left out: the caller must tick them."""
        out: list[Out] = []
        for channel in [*self.awake.values()]:
            if kept or not channel.is_kept:
                out += self.send(channel, channel.machine.tick(now), now)
                out += self.send(channel, channel.machine.keep_alive(now, KEEP_ALIVE), now)
        if now - self._checked >= self.times.beat:
            self._checked = now
            out += self._check(now)
        if now - self._pulsed_down >= self.times.beat * 0.9:
            self._pulsed_down = now
            self._leave_out_silent(now)
            out += pulses(self._links)
        if now - self._pulsed_up >= self.times.resubscribe * 0.9:
            self._pulsed_up = now
            out += pulses(self._hops)
        return out

    def _check(self, now: float) -> list[Out]:
        """Wake the channels of silent hops, drop channels that nobody uses, and put channels
        without traffic to sleep."""
        silent = {
            hop for hop, one in self._hops.items() if now - one.heard.at > self.times.silent / 2
        }
        if silent and len(self.awake) < len(self.known):
            for channel in [*self.known.values()]:
                if channel.machine is None and channel.hop in silent:
                    self._wake(channel, now)
        out: list[Out] = []
        for channel in [*self.awake.values()]:
            if channel.is_kept:
                continue
            if not channel.below and not channel.machine.neighbours:
                out += self._drop(channel)
            elif channel.hop not in silent and self._may_sleep(channel, now):
                channel.asleep = put_to_sleep(channel.machine)
                channel.machine = channel.extra = None
                del self.awake[channel.name]
        return out

    def _may_sleep(self, channel: Channel, now: float) -> bool:
        machine = channel.machine
        if now - channel.used < QUIET * self.times.beat or channel.hop is None:
            return False
        hop, links = self._hops[channel.hop], [self._links[one] for one in channel.below]
        said = hop.repeats.said.get(channel.up)
        # a new state machine waits for some time before it tells its hop which serial its
        # neighbours have reached
        if not isinstance(said, m.Resubscribe) or said.done < machine.serial_done_below():
            return False
        return (
            all(channel.below.values())
            and not hop.flow.waits(channel.up)
            and not any(one.flow.waits(number)
                        for one, number in zip(links, channel.below.values(), strict=True))
            and channel.up in hop.heard.said
            and all(number in one.repeats.said
                    for one, number in zip(links, channel.below.values(), strict=True))
            and machine.neighbours.keys() <= channel.below.keys()
            and may_sleep(machine)
        )  # fmt: skip

    def _leave_out_silent(self, now: float) -> None:
        """Leave out of the pulses all channels that have sent no beat lately."""
        for channel in self.awake.values():
            if now - channel.beaten > MISSED * self.times.beat:
                for link, number in channel.below.items():
                    self._links[link].repeats.leave_out(number)

    # -- between the state machines and the links ----------------------------------------------

    def wake(self, channel: Channel, now: float) -> Router:
        """The state machine of a channel; it is recreated if the channel was asleep."""
        self._wake(channel, now)
        machine: Router = channel.machine
        return machine

    def _wake(self, channel: Channel, now: float) -> None:
        asleep = channel.asleep
        if asleep is None:
            return
        assert channel.hop is not None
        channel.machine = machine = self._make(channel.name)
        channel.asleep = None
        channel.used = channel.woken = channel.beaten = now
        self.awake[channel.name] = channel
        beat = self._hops[channel.hop].heard.said.get(channel.up)
        wake(asleep, machine, beat, self._last_said(channel), now)

    def _last_said(self, channel: Channel) -> Iterator[tuple[Name, m.Message]]:
        for link, number in channel.below.items():
            said = self._links[link].heard.said.get(number)
            if said is not None:
                yield link, said

    def send(
        self, channel: Channel, sent: Iterable[Sent], now: float, source: Name | None = None
    ) -> list[Out]:
        """The messages of a state machine, with the links and numbers of its channel; see
        `Links.send`."""
        return self.links.send(channel, sent, now, source)
