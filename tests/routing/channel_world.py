"""Several channels with a root each on one tree of routers, in simulated time. Each channel is a
world of its own (world.py), with its own subscribers and publishers; its routers are the state
machines inside the channels of shared routers, and all its messages go over shared links.

Links keep the order of messages, as connections do. They delay, drop notifications and say so, and
end when one of their ends crashes: then everything under way is lost, and both ends begin again.

A node can be slow in one channel: then what comes in this channel waits, publications at a root,
and all messages from above elsewhere. Credit must keep this from the other channels of the link."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from operator import and_
from typing import Any

from tests.routing.simulation import Simulation
from tests.routing.world import ROOT, TICK, Disk, Faults, World

from tidings.routing.channels import (
    ABOVE,
    WINDOW,
    Channels,
    Flow,
    Out,
    ReceivedMessages,
    Route,
    Routes,
)
from tidings.routing.channels.credit import HEAVY_DOWN, Item, weigh
from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.router import Router
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.times import Times

MOST = 4  # windows of notifications that may wait on a link


class Machines(Mapping[str, Router]):
    """The state machines of one channel, by router; those that sleep are woken."""

    def __init__(self, net: Net, channel: str) -> None:
        self._net, self._channel = net, channel

    def __getitem__(self, name: str) -> Router:
        there = self._net.muxes[name]
        return there.wake(there.known[self._channel], self._net.now)

    def __iter__(self) -> Iterator[str]:
        return (one for one in self._net.routers if self._channel in self._net.muxes[one].known)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Net(Simulation):
    """The routers and links that all channels share."""

    def __init__(
        self, chance: random.Random, routers: int, channels: int, window: int = WINDOW
    ) -> None:
        self.chance = chance
        self.window = window
        self.slow: dict[tuple[str, str], int] = {}
        """By node and channel: how many of the messages that wait are handled in each tick."""
        self._sent: dict[tuple[str, str], dict[int, int]] = {}  # bytes, from one node to another
        self._came: dict[tuple[str, str], dict[int, int]] = {}
        self._waiting: dict[tuple[str, str, int], deque[tuple[int | None, m.Message]]] = {}
        self.times = Times()
        self.faults = Faults()
        self.slept = 0  # channels that were found asleep, over all ticks
        self._lives = 0
        self._events: list[tuple[float, int, Any]] = []
        self._busy: dict[tuple[str, str], float] = {}  # until when a link carries something
        self._links: dict[frozenset[str], int] = {}  # how often each link was made
        self._skipped: set[tuple[str, str, int]] = set()
        self._down: dict[str, float] = {}
        self.cut: set[frozenset[str]] = set()  # links over which nothing arrives
        self.names = [f"c{number}" for number in range(channels)]
        self.routers = [f"r{number}" for number in range(routers)]
        self.hops: dict[str, dict[str, str]] = {}  # the node above, by router and channel
        for at, name in enumerate(self.routers):
            self.hops[name] = {
                one: chance.choice([root_of(one), *self.routers[:at]]) for one in self.names
            }
        self.muxes: dict[str, Channels] = {}
        self.worlds: dict[str, ChannelWorld] = {}
        for one in self.names:
            self.worlds[one] = ChannelWorld(self, one)
        for name in self.routers:
            self.muxes[name] = self._new_router(name)
            self._join_above(name)
        self.at(TICK, ("tick",))

    # -- nodes ---------------------------------------------------------------------------------

    def _new_router(self, name: str) -> Channels:
        routes = {channel: Route(hop) for channel, hop in self.hops[name].items()}

        def make(_: str) -> Router:
            self._lives += 1
            return Router(name, ABOVE, self.times, Cache(20), self._lives)

        return self.new_mux(name, Channels(self.times, Limits(), Routes(routes), make))

    def new_mux(self, name: str, mux: Channels) -> Channels:
        """The channels of a node that has just started."""
        mux.links.unread = lambda link, number: sum(
            size_of(message) for _, message in self._waiting.get((str(link), name, number), ())
        )
        return mux

    def crash(self, name: str) -> None:
        """A node loses its memory, and all its links end."""
        if name in self.routers:
            self.muxes[name] = self._new_router(name)
        self._down[name] = self.now + self.chance.random() * 3
        self.at(self._down[name], ("up", name))

    def _come_up(self, name: str) -> None:
        if self._down.get(name, 0.0) > self.now:  # it crashed again meanwhile
            return
        if name in self.routers:
            self._join_above(name)
        for below, hops in self.hops.items():
            if name in hops.values():
                self._connect(below, name)
        for world in self.worlds.values():
            world.reconnect(name)

    def _join_above(self, name: str) -> None:
        for hop in {*self.hops[name].values()}:
            self._connect(name, hop)

    def reconnect(self, below: str, above: str) -> None:
        """The link between two nodes ends, and is made again."""
        self._connect(below, above)

    def _connect(self, below: str, above: str) -> None:
        if max(self._down.get(below, 0.0), self._down.get(above, 0.0)) > self.now:
            return
        self.renew(below, above)
        self.muxes[above].begin_link(below, None, self.now, self.flow(above, below))
        flow = self.flow(below, above, is_lower=True)
        self.transmit(below, self.muxes[below].join(above, self.now, flow))

    def renew(self, one: str, other: str) -> None:
        """A new link between two nodes; what was under way on the old one is lost."""
        key = frozenset((one, other))
        self._links[key] = self._links.get(key, 0) + 1
        for pair in ((one, other), (other, one)):
            self._sent[pair], self._came[pair] = {}, {}
            for lane in [lane for lane in self._waiting if lane[:2] == pair]:
                del self._waiting[lane]

    def flow(self, node: str, other: str, *, is_lower: bool = False) -> Flow:
        """The credit of a node on its new link to another."""
        came, sent = self._came[other, node], self._sent[node, other]
        window = self.window
        return Flow(came, sent, is_lower=is_lower, window=window, most=MOST * window)

    # -- time and messages ---------------------------------------------------------------------

    def at(self, when: float, event: Any) -> None:
        self._put(when, event)

    def _happen(self, event: Any) -> None:
        if event[0] == "tick":
            self._serve_slow()
            for name, mux in self.muxes.items():
                if self._down.get(name, 0.0) <= self.now:
                    self.transmit(name, mux.tick(self.now))
                    self.slept += len(mux.known) - len(mux.awake)
            for world in self.worlds.values():
                world.tick_clients()
            self.at(self.now + TICK, ("tick",))
        elif event[0] == "up":
            self._come_up(event[1])
        elif event[0] == "world":
            self.worlds[event[1]].happen(event[2])
        else:
            _, sender, to, made, number, message = event
            if made == self._links.get(frozenset((sender, to))):
                self._deliver(sender, to, number, message)

    def transmit(self, sender: str, out: Iterable[Out]) -> None:
        self._transmit(sender, out)
        mux = self.muxes.get(sender)
        while mux is not None and (more := mux.links.draw_again(self.now)):
            self._transmit(sender, more)

    def _transmit(self, sender: str, out: Iterable[Out]) -> None:
        for to, number, message in out:
            assert isinstance(to, str)
            key = sender, to, number
            if isinstance(message, m.Notification):
                if self.chance.random() < self.faults.drop:
                    self._skipped.add(key)
                    continue
                if key in self._skipped:
                    self._skipped.remove(key)
                    self._carry(sender, to, number, m.Skipped())
            self._carry(sender, to, number, message)

    def _carry(self, sender: str, to: str, number: int, message: Item) -> None:
        count(self._sent.setdefault((sender, to), {}), number, size_of(message))
        delay = self.chance.random() * self.faults.delay
        at = max(self._busy.get((sender, to), 0.0), self.now + delay)
        self._busy[sender, to] = at
        made = self._links.get(frozenset((sender, to)))
        self.at(at, ("message", sender, to, made, number, message))

    def _deliver(self, sender: str, to: str, number: int, message: m.Message) -> None:
        if self._down.get(to, 0.0) > self.now or self._down.get(sender, 0.0) > self.now:
            return
        if frozenset((sender, to)) in self.cut:
            return
        if self._must_wait(sender, to, number, message):
            made = self._links.get(frozenset((sender, to)))
            self._waiting.setdefault((sender, to, number), deque()).append((made, message))
            if isinstance(message, m.Publish):
                count(self._came.setdefault((sender, to), {}), number, size_of(message))
            return
        count(self._came.setdefault((sender, to), {}), number, size_of(message))
        self._handle(sender, to, number, message)

    def _must_wait(self, sender: str, to: str, number: int, message: m.Message) -> bool:
        if isinstance(message, m.CHANNELS):
            return False
        if (sender, to, number) in self._waiting:
            return not to.startswith(ROOT) or isinstance(message, m.Publish)
        mux = self.muxes.get(to)
        if mux is None:
            return (to, to.partition(":")[0]) in self.slow
        above = to in self.hops and sender in self.hops[to].values()
        channel = (mux.find_above if above else mux.find)(sender, number)
        return (
            channel is not None
            and (to, channel.name) in self.slow
            and (above or (to.startswith(ROOT) and isinstance(message, m.Publish)))
        )

    def _serve_slow(self) -> None:
        """Handle some of the messages that wait."""
        for lane, queue in [*self._waiting.items()]:
            sender, to, number = lane
            name = to.partition(":")[0] if ":" in to else ""
            many = min(
                [
                    self.slow[one]
                    for one in self.slow
                    if one[0] == to and (not name or one[1] == name)
                ],
                default=len(queue),
            )
            for _ in range(min(many, len(queue))):
                made, message = queue.popleft()
                if made == self._links.get(frozenset((sender, to))):
                    if not isinstance(message, m.Publish):
                        count(self._came.setdefault((sender, to), {}), number, size_of(message))
                    self._handle(sender, to, number, message)
            if not queue and self._waiting.get(lane) is queue:
                del self._waiting[lane]

    def check_credit(self) -> None:
        """What waits is bounded, and the sums are those of what is there."""
        large = 4 * self.window  # more than any step sends at once
        for mux in self.muxes.values():
            held = 0
            for known in mux._hops.values():
                held += sum(map(known.flow.waiting, known.flow.numbers))
            assert mux.links.held == held
            for known in mux._links.values():
                for queue in known.flow._queues.values():
                    told = sum(one.size for one in queue if isinstance(one.item, HEAVY_DOWN))
                    assert told <= MOST * self.window + large
                    beats = [isinstance(one.item, m.Beat) for one in queue]
                    assert not any(map(and_, beats, beats[1:]))
                assert all(one <= self.window + large for one in known.flow.held.values())

    def _handle(self, sender: str, to: str, number: int, message: m.Message) -> None:
        world = self.worlds.get(to.partition(":")[0])
        if world is not None:
            world.receive(to, number, message)
            return
        mux, now = self.muxes[to], self.now
        above = to in self.hops and sender in self.hops[to].values()
        if isinstance(message, m.Open):
            out = mux.open(sender, message.number, message.channel, now)
        elif isinstance(message, m.Close):
            out = mux.close(sender, message.number, now)
        elif isinstance(message, m.Closed):
            out = mux.take_closed(sender, message, now)
        elif isinstance(message, m.Credit):
            credit = mux.links.take_credit_above if above else mux.links.take_credit
            out = credit(sender, message, now)
        elif isinstance(message, m.Pulse | m.Repeat):
            take = mux.take_pulse_above if above else mux.take_pulse
            out = take(sender, message, now)
        elif above:
            out = mux.receive_above(sender, number, message, now)
        else:
            if isinstance(message, m.Resubscribe):
                mux.hear(sender, number, message)
            out = mux.receive(sender, number, message, now)
        self.transmit(to, out)
        self.transmit(
            to, (mux.links.note_taken_above if above else mux.links.note_taken)(sender, number)
        )
        self.transmit(to, mux.links.pay())
        if to.startswith(ROOT):
            self.worlds[to.removeprefix(f"{ROOT}/")].write_soon()


def count(counts: dict[int, int], number: int, size: int) -> None:
    counts[number] = counts.get(number, 0) + size


def size_of(message: Item) -> int:
    """The size of a frame: less than is estimated where it waits."""
    return 1 + weigh(message) // 4


def root_of(channel: str) -> str:
    return f"{ROOT}/{channel}"


class ChannelWorld(World):
    """One channel: its root, subscribers and publishers."""

    def __init__(self, net: Net, channel: str) -> None:
        self._net = net
        self._channel = channel
        super().__init__(net.chance, 0, net.times)
        self.signals = True
        self.routers = Machines(net, channel)  # type: ignore[assignment]
        hops = {router: hops[channel] for router, hops in net.hops.items()}
        self.parents = {router: ROOT if hop == root_of(channel) else hop
                        for router, hop in hops.items()}  # fmt: skip
        self._numbers: dict[str, int] = {}  # of the channel, on the link of each client
        self._heard: dict[str, ReceivedMessages] = {}
        self._flows: dict[str, Flow] = {}
        self._synced_upto = 0
        net.muxes[root_of(channel)] = self._new_mux()

    @property
    def now(self) -> float:
        return self._net.now

    @now.setter
    def now(self, _: float) -> None: ...

    def run(self, seconds: float) -> None:
        self._net.run(seconds)

    def _at(self, when: float, event: Any) -> None:
        if event[0] != "tick":
            self._net.at(when, ("world", self._channel, event))

    # -- the root ------------------------------------------------------------------------------

    def _new_mux(self) -> Channels:
        def make(_: str) -> Router:
            raise AssertionError("a root has no other channels")

        mux = Channels(self.times, Limits(), Routes({}), make)
        mux.keep(self._channel, self.root, None, self.now)
        return self._net.new_mux(root_of(self._channel), mux)

    def crash(self, name: str, *, disk: Disk | None = None) -> None:
        if name == ROOT:
            super().crash(name, disk=disk)
            name = root_of(self._channel)
            self._net.muxes[name] = self._new_mux()
        self._net.crash(name)

    def write_soon(self) -> None:
        if self.root.queue or self.root.written > self._synced_upto:
            self._synced_upto = self.root.written
            delay = self.chance.random() * 0.02
            self._at(self.now + delay, ("sync", self.disk, self.root.written))

    def happen(self, event: Any) -> None:
        self._happen(event)

    # -- clients -------------------------------------------------------------------------------

    def choose(self) -> str:
        return self.chance.choice([ROOT, *self._net.routers])

    def send(self, sender: Any, sent: Iterable[tuple[Any, m.Message]]) -> None:
        if sender == ROOT:
            root = root_of(self._channel)
            mux = self._net.muxes[root]
            out = mux.send(mux.known[self._channel], sent, self.now)
            self._net.transmit(root, out)
            return
        for to, message in sent:
            if sender not in self._numbers:
                self._connect(sender)
            number, flow = self._numbers[sender], self._flows.get(sender)
            if flow is not None and isinstance(message, m.Publish):
                flow.put(number, message)
                self._use_credit(sender)
            else:
                self._net.transmit(self._link(sender), [(self._node(to), number, message)])

    def _use_credit(self, client: str) -> None:
        """Send the publications for which there is credit, as an agent does."""
        number, node = self._numbers[client], self._node(self._one(client).router)
        while found := [*self._flows[client].draw(number, m.Publish)]:
            self._net.transmit(self._link(client), [(node, number, one) for one in found])

    def _link(self, client: str) -> str:
        return f"{self._channel}:{client}"

    def _node(self, name: str) -> str:
        return root_of(self._channel) if name == ROOT else name

    def _connect(self, client: str) -> None:
        one = self.subscribers.get(client) or self.publishers[client]
        assert isinstance(one.router, str)
        node, link = self._node(one.router), self._link(client)
        if self._net._down.get(node, 0.0) > self.now:
            self._numbers.setdefault(client, 1)
            return
        self._net.renew(link, node)
        flow = self._net.flow(node, link)
        self._net.muxes[node].begin_link(link, None, self.now, flow)
        self._flows[client] = self._net.flow(link, node, is_lower=True)
        number = self._numbers[client] = self.chance.randrange(1, 5)
        self._heard[client] = ReceivedMessages()
        self._net.transmit(link, [(node, 0, m.Open(number, self._channel))])

    def reconnect(self, node: str) -> None:
        """A node is back: its clients connect again, and may have missed something."""
        clients: dict[str, Any] = {**self.subscribers, **self.publishers}
        for client, one in clients.items():
            if self._node(one.router) == node and client in self._numbers:
                self._connect(client)
                if client in self.subscribers:
                    self.send(client, one.receive(m.Skipped(), self.now))

    def receive(self, link: str, number: int, message: m.Message) -> None:
        client = link.partition(":")[2]
        assert not isinstance(message, m.Closed | m.Repeat), message
        limit = self._flows[client].raise_limit(number)
        if limit is not None:
            node = self._node(self._one(client).router)
            self._net.transmit(link, [(node, 0, m.Credit({number: limit}))])
        if isinstance(message, m.Credit):
            self._flows[client].take(message)
            self._use_credit(client)
            return
        if isinstance(message, m.Pulse):
            heard = self._heard[client]
            if heard.take(message, self.now):
                self._net.transmit(link, [(self._node(self._one(client).router), 0, m.Repeat())])
            elif heard.at == self.now:
                for said in [*heard.said.values()]:
                    self._take(None, client, said)
            return
        if number != self._numbers[client]:
            raise AssertionError(f"{link} got a message with the number {number}")
        if isinstance(message, m.Beat):
            self._heard[client].put(number, message)
        self._take(None, client, message)

    def _one(self, client: str) -> Any:
        return self.subscribers.get(client) or self.publishers[client]

    def tick_clients(self) -> None:
        if self.root.failed and not self.full:
            self.root = self._new_root()
            self._net.muxes[root_of(self._channel)].known[self._channel].machine = self.root
        clients: dict[str, Any] = {**self.subscribers, **self.publishers}
        for name, one in clients.items():
            self.send(name, one.tick(self.now))
        self.write_soon()
