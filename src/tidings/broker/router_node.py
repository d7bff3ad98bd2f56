"""A running router, which keeps links to the nodes above it."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from tidings.broker.admission.listen import UPSTREAM, Address, Door
from tidings.broker.admission.permissions import Tokens
from tidings.broker.early import EarlySending, load_examples
from tidings.broker.links import Above, Locators, hop_name
from tidings.broker.server import CACHE_BYTES, Server
from tidings.network import FrameCache, Link, draw_life
from tidings.routing.channels import Channel, Flow, Route, Routes
from tidings.routing.early import Early
from tidings.routing.forwarding import Forwarding, Name, Router
from tidings.routing.protocol import Times, frames, messages as m

if TYPE_CHECKING:
    from tidings.routing.learning import EarlySettings

OVERLOAD = 4 << 20  # if more bytes wait for a slow node above, nothing is read from below
CHANNEL_CACHE_BYTES = 1 << 20  # for each other channel with traffic


class RouterNode(Server):
    """A router between the nodes above it and its neighbours."""

    machine: Router

    def __init__(
        self,
        name: str,
        upstream: Address | Sequence[Address],
        door: Door,
        *,
        times: Times | None = None,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        forwarding: Forwarding | None = None,
        cache_bytes: int = CACHE_BYTES,
        hops: Mapping[str, Sequence[Address]] | None = None,
        routes: Mapping[str, Route] | None = None,
        places: Literal["upstream", "preprocessor"] = "upstream",
        show_token: bool = False,
        relations: Callable[[], EarlySettings] | None = None,
    ) -> None:
        """For the router's own channel, `upstream` has the addresses of the node above; `hops` has
        the addresses of the other nodes above. `routes` has the hop that each of the other channels
        uses; the hop "" is `upstream`. `places` says whether the router asks the node above or a
        preprocessor where a new node belongs in the graph of a channel. With `show_token`,
        preprocessors see `token` if the node above signs no tickets. `relations` loads the settings
        of channels with relations when the first context arrives; without `relations`, the settings
        in the shipped files are used."""
        self._load_relations = relations or load_examples
        self._frames = FrameCache(cache_bytes)
        machine = Router(name, UPSTREAM, times, self._frames, draw_life(), door.limits)
        named = {
            channel: Route(hop_name(one.hop), one.limits) for channel, one in (routes or {}).items()
        }
        super().__init__(machine, door, forwarding, Routes(named))
        self._routes = Routes(named)
        above = [upstream] if isinstance(upstream, Address) else [*upstream]
        self.hops: dict[Name, Above] = {}
        own = m.Hello(name, door.channel, token, routes=True)
        other = m.Hello(name, "", token, routes=True, opens=True)
        for hop, addresses in {"": above, **(hops or {})}.items():
            self.hops[hop_name(hop)] = Above(
                name, hop_name(hop), addresses, other if hop else own, tls,
                machine.times.silent, received=self._from_above, ended=self._forget_above,
                pressed=self._note_pressure, early=self._take_early,
            )  # fmt: skip

        self.locators: Locators | None = None
        if places == "preprocessor":
            self.locators = Locators(
                self, m.Hello(name, door.channel, token), machine.times, tls, self._spawn,
                show_token=show_token,
            )  # fmt: skip
            self.channels.links.locate = self.locators.ask

    def renew(self, tokens: Tokens | None, token: str = "") -> int:
        for one in self.hops.values():
            one.use_token(token)
        if self.locators is not None:
            self.locators.use_token(token)
        return super().renew(tokens, token)

    async def start(self) -> None:
        await super().start()
        for one in self.hops.values():
            self._spawn(one.keep_connected())
        if self.locators is not None:
            self.locators.tend()

    async def stop(self) -> None:
        await super().stop()
        if self.locators is not None:
            self.locators.close()

    @property
    def upstream(self) -> Address:
        """The address of the node above for the router's own channel."""
        return self.hops[UPSTREAM].address

    def make_early(self) -> EarlySending | None:
        return EarlySending(self, self._load_relations)

    def make_machine(self, channel: str) -> Router:
        route = self._routes.find(channel)
        limits = None if route is None else route.limits
        machine = Router(
            self.machine.name, UPSTREAM, self.machine.times, FrameCache(CHANNEL_CACHE_BYTES),
            draw_life(), limits or self.limits,
        )  # fmt: skip
        self.prepare(machine, channel)
        return machine

    @property
    def nodes_above(self) -> Iterable[Name]:
        return self.hops

    def link_to(self, name: Name) -> Link | None:
        above = self.hops.get(name)
        return super().link_to(name) if above is None else above.link

    # -- places of nodes -----------------------------------------------------------------------

    def send_above(self, channel: Channel, message: m.Message) -> bool:
        """Send a message to the node above for a channel; return False if there is no link."""
        above = None if channel.hop is None else self.hops[channel.hop]
        if above is None or above.link is None:
            return False
        above.link.send(message, channel.up)
        return True

    def take_places(self, channel: Channel, asked: m.Locate, answer: m.Located | None) -> None:
        """Handle the answer of a preprocessor of a channel; None if there was no answer."""
        if self.channels.awake.get(channel.name) is channel:
            machine = channel.machine
            before = machine.locating.located
            sent = machine.take_places(asked, answer, self.now)
            self.located += machine.locating.located - before
            self.transmit(self.channels.send(channel, sent, self.now))

    # -- links to nodes above ------------------------------------------------------------------

    def _check_links(self, now: float) -> None:
        """Close the links to nodes above from which nothing was heard for too long."""
        super()._check_links(now)
        for one in self.hops.values():
            one.check(now)
        if self.locators is not None:
            self.locators.tend()

    def _note_pressure(self, above: Above) -> None:
        self.transmit(self.channels.links.block(above.hop, self.now, on=above.is_slow))

    def is_above_overloaded(self) -> bool:
        return any(
            one.is_slow and one.link is not None and one.link.waiting > OVERLOAD
            for one in self.hops.values()
        )

    def _forget_above(self, above: Above, link: Link) -> None:
        if above.hop == UPSTREAM and self.links.get(UPSTREAM) is link:
            del self.links[UPSTREAM]
            self.channels.links.leave(above.hop)
        elif above.hop != UPSTREAM:
            self.channels.links.leave(above.hop)
        self.reports.end_link(link, above=True)

    # -- messages from above -------------------------------------------------------------------

    def _from_above(self, above: Above, link: Link, buffer: bytes, starts: list[int]) -> None:
        self._take_frames_from_above(above, link, buffer, starts)
        if link.name:
            self.transmit(self.channels.links.note_taken_above(above.hop, link.number))

    def _take_early(self, above: Above, link: Link, early: Early) -> None:
        channel = self.channels.find_above(above.hop, link.number)
        if link.name and channel is not None and self.early is not None:
            self.early.pass_on(channel, early)

    def _take_frames_from_above(
        self, above: Above, link: Link, buffer: bytes, starts: list[int]
    ) -> None:
        ends = [*starts[1:], starts[-1] + frames.size_at(buffer, starts[-1])]
        channel = self.channels.find_above(above.hop, link.number)
        if link.name and channel is not None and frames.are_notifications(buffer, starts):
            link.told_in += len(starts)
            self._pass_on(above, link.number, channel, buffer, starts, ends)
            return
        first = 0
        while first < len(starts):
            last = first
            while last < len(starts) and buffer[starts[last] + 4] == frames.NOTIFICATION:
                last += 1
            if last > first and link.name and channel is not None:
                link.told_in += last - first
                self._pass_on(above, link.number, channel, buffer, starts[first:last],
                              ends[first:last])  # fmt: skip
            if last < len(starts):
                message = frames.decode(buffer, starts[last])
                self._take_from_above(above, link, channel, message)
            first = last + 1

    def _take_from_above(
        self, above: Above, link: Link, channel: Channel | None, message: m.Message
    ) -> None:
        now = self.now
        if isinstance(message, m.Welcome):
            above.welcome(link, message)
            if above.hop == UPSTREAM:
                self.above = message.name
                self.links[UPSTREAM] = link
            flow = Flow(link.taken, link.sent, is_lower=True)
            self.transmit(self.channels.join(above.hop, now, flow))
        elif isinstance(message, m.Goodbye):
            above.say_goodbye(link, message)
        elif not link.name:
            return
        elif isinstance(message, m.Closed):
            self.transmit(self.channels.take_closed(above.hop, message, now))
        elif isinstance(message, m.Credit):
            self.transmit(self.channels.links.take_credit_above(above.hop, message, now))
        elif isinstance(message, m.Pulse | m.Repeat):
            self.transmit(self.channels.take_pulse_above(above.hop, message, now))
        elif self.locators is not None and self.locators.receive(channel, message):
            pass
        elif channel is self.own:
            self.feed(UPSTREAM, message)
        elif channel is not None:
            self.transmit(self.channels.receive_above(above.hop, link.number, message, now))

    def _pass_on(
        self, above: Above, number: int, channel: Channel, buffer: bytes, starts: list[int],
        ends: list[int],
    ) -> None:  # fmt: skip
        """Forward frames without decoding them, if they belong to this life. Serials increase, so
        the last frame has the highest serial. Only the first and the last frame are checked. That
        is enough: when a life begins, nodes exchange the lineage, so there is a message between the
        frames of two lives."""
        machine = self.channels.wake(channel, self.now)
        channel.used = self.now
        first, _ = frames.place_of(buffer, starts[0])
        last, serial = frames.place_of(buffer, starts[-1])
        if first == last == machine.epoch:
            if not serial:  # the last frame is a fast notification, which has no serial
                serial = max(frames.place_of(buffer, start)[1] for start in starts)
            machine.note_passed(serial)
            self.forward(buffer, starts, ends, channel)
            return
        for start in starts:  # the state machine handles frames of other lives
            message = frames.decode(buffer, start)
            if channel is self.own:
                self.feed(UPSTREAM, message)
            else:
                self.transmit(self.channels.receive_above(above.hop, number, message, self.now))
