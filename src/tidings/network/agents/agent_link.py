"""The link of an agent to a router, which all channels of the agent share.

When the link is lost, the agent connects again, to the next of several routers. Every channel has a
number on the link. Number 0 is the channel in the address to which the agent connected.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.network.agents.refusals import Refusal, TimedOut
from tidings.network.link import Link, keep_early
from tidings.network.router_url import RouterUrl
from tidings.network.tls import sentence_of
from tidings.routing.channels import Flow, Frames, ReceivedMessages, Repeats
from tidings.routing.protocol import Times, frames, messages as m

RETRY = (0.1, 5.0)  # the first and the longest pause in seconds before reconnecting
REPLACED = "another program has connected with the name {!r}, so this one has ended"
GREETING = 10.0  # how many seconds the router may take to answer


class LinkState(msgspec.Struct, frozen=True):
    """Whether an agent is linked to a router: if so, to which one (`router`, as "host:port");
    otherwise the reason why it is not, and the router that it tries next or tried last. `since` is
    when the link was last lost or made, in seconds since 1970. `direct` is the address of the
    rendezvous point if notifications arrive from there over a second link."""

    linked: bool
    router: str
    reason: str
    since: float
    direct: str = ""


class LinkedChannel(Protocol):
    """A channel of an agent, as its link sees it."""

    channel_name: str
    refusal: str

    def join(self, publisher: str) -> None: ...
    def interrupt(self, reason: str) -> None: ...
    def refuse(self, reason: str) -> None: ...
    def displace(self, reason: str) -> None: ...
    def receive(self, message: m.Message) -> None: ...
    def tick(self, now: float) -> None: ...


class AgentLink:
    """One link, with the channels that use it."""

    def __init__(
        self,
        places: Sequence[RouterUrl],
        hello: m.Hello,
        tls: ssl.SSLContext | None,
        times: Times,
        on_link: Callable[[str], object] | None,
    ) -> None:
        self.hello = hello
        self.times = times
        self._on_link = on_link
        self._gone = ""  # why there is no link, as passed to `on_link`
        self._since = time.time()  # when the link was last lost or made
        self._places = deque(places)  # the first is connected, or is tried next
        self.tls = tls
        self._link: Link | None = None
        self._refusal = self._reason = self._publisher = ""
        self._replaced = ""  # the reason, if another program now uses the name of this agent
        self.router_name = ""
        """The name of the router that is linked, or was linked last."""
        self._new: tuple[Link, RouterUrl] | None = None  # the link to which the agent is moving
        # The router to which the agent moved, unless it was given the address of this router.
        self._moved: set[RouterUrl] = set()
        self._lost = asyncio.Event()
        self._change = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._numbers: dict[LinkedChannel, int] = {}
        self._channels: dict[int, LinkedChannel] = {}
        self._highest = 0
        self._heard, self._repeats = ReceivedMessages(), Repeats()
        self._flow = Flow()
        self._pulsed = self._opened = float("-inf")

    async def start(self, timeout: float | None) -> None:
        """Connect; raise EnvironmentProblem or Refusal if that fails."""
        try:
            async with asyncio.timeout(timeout):
                await self._connect_to_any()
        except TimeoutError:
            raise self.overdue(f"there is no link to {self._where}", timeout) from None
        self._tasks = [
            asyncio.create_task(self._tick_forever()),
            asyncio.create_task(self._keep_connected()),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        link = self._link
        if link is not None:
            link.close("the agent was closed")
        await asyncio.sleep(0)
        if link is not None:
            await link.wait_gone()

    @property
    def state(self) -> LinkState:
        """Whether there is a link now, and to which router."""
        linked = self._link is not None
        return LinkState(linked, self._where, "" if linked else self._reason, self._since)

    def overdue(self, what: str, timeout: float | None) -> TimedOut:
        """The error to raise if something took too long."""
        why = f": {self._gone}" if self._gone else ""
        return TimedOut(f"{what} after {timeout or 0:g} seconds{why}")

    def note_change(self) -> None:
        """Wake the tasks that wait for a message: a message has arrived over another link."""
        self._change.set()

    async def wait_for_change(self) -> None:
        """Wait until a message arrives or the link ends."""
        self._change.clear()
        await self._change.wait()

    # -- channels ------------------------------------------------------------------------------

    def add(self, channel: LinkedChannel) -> None:
        """Add a channel; the first has number 0."""
        number = 0 if not self._channels else self._next_number()
        self._numbers[channel] = number
        self._channels[number] = channel
        if self._link is not None:
            self._join(channel)

    def remove(self, channel: LinkedChannel) -> None:
        """Close a channel."""
        number = self._numbers.pop(channel, None)
        if number is not None:
            self._forget_number(number)
            if self._link is not None and number:
                self._link.send(m.Close(number))
                self._link.forget_channel(number)

    def _next_number(self) -> int:
        self._highest += 1
        return self._highest

    def _forget_number(self, number: int) -> None:
        self._channels.pop(number, None)
        self._heard.remove(number)
        self._repeats.remove(number)
        self._flow.forget(number)

    def _join(self, channel: LinkedChannel) -> None:
        number = self._numbers[channel]
        if number and self._link is not None:
            self._link.send(m.Open(number, channel.channel_name))
        channel.join(self._publisher)

    def send(self, channel: LinkedChannel, message: m.Message) -> bool:
        """Send a message of a channel; False if there is no link."""
        if self._link is None or channel.refusal:
            return False
        number = self._numbers.get(channel)
        if number is None:
            return False
        if isinstance(message, m.Publish):
            self._publish(self._link, number, (message,))
        elif not number or not isinstance(message, m.Resubscribe) or self._repeats.is_news(
            number, message
        ):  # fmt: skip
            self._link.send(message, number)
        return True

    def publish_all(self, channel: LinkedChannel, messages: Sequence[m.Publish]) -> None:
        """Send publications of a channel; let them wait while it has no credit."""
        if self._link is not None and not channel.refusal:
            self._publish(self._link, self._numbers[channel], messages)

    def _publish(self, link: Link, number: int, messages: Sequence[m.Publish]) -> None:
        if self._flow.fits(number, messages):
            link.send_all(messages, number)
            return
        for message in messages:
            self._flow.put(number, message)
        self._use_credit(link, number)

    def _use_credit(self, link: Link, number: int) -> None:
        """Send the publications for which there is credit."""
        while messages := [
            one for one in self._flow.draw(number, m.Publish) if not isinstance(one, Frames)
        ]:
            link.send_all(messages, number)

    def has_credit(self, channel: LinkedChannel) -> bool:
        """Can a channel publish now? It can if none of its publications waits for credit."""
        return not self._flow.waits(self._numbers.get(channel, 0))

    def send_first(self, message: m.Message) -> None:
        """Send a message of the first channel, if there is a link."""
        if self._link is not None:
            self._link.send(message)

    @property
    def is_linked(self) -> bool:
        return self._link is not None

    @property
    def waiting(self) -> int:
        """How many bytes are not sent yet."""
        return 0 if self._link is None else self._link.waiting

    def has_room(self) -> bool:
        link = self._link
        return link is not None and link.waiting <= link.most_waiting

    # -- the link ------------------------------------------------------------------------------

    @property
    def place(self) -> RouterUrl:
        """The router that is linked, or is tried next."""
        return self._places[0]

    async def move(self, place: RouterUrl) -> bool:
        """Use another router from now on. Return False if the agent can't use that router, or has
        no link now. The old link is used until the new router has answered. If the link is lost,
        the agent still tries the routers that were given at first."""
        if self._link is None or self._new is not None:
            return False
        new: Link | None = None
        try:
            async with asyncio.timeout(min(GREETING, self.times.silent)):
                _, new = await asyncio.get_running_loop().create_connection(
                    lambda: Link(
                        self._receive,
                        self._handle_end,
                        patience=self.times.silent,
                        largest=frames.LARGEST_DOWN,
                        early=keep_early,
                    ),
                    place.host,
                    place.port,
                    ssl=self.tls,
                )
                self._new = new, place
                new.send(self.hello)
                while not new.name and not new.is_over:
                    await self.wait_for_change()
        except (OSError, ssl.SSLError):  # a timeout is an OSError too
            pass
        finally:
            self._new = None
        if new is None or not new.name:
            if new is not None:
                new.close("the agent stays at its router")
            return False
        return True

    @property
    def _where(self) -> str:
        return f"{self._places[0].host}:{self._places[0].port}"

    async def _connect_to_any(self) -> None:
        """Connect to the first router that can be reached. If no router can be reached, raise the
        error of the first attempt."""
        problems: list[TidingsError] = []
        for _ in range(len(self._places)):
            try:
                await self._connect()
                return
            except TidingsError as problem:
                problems.append(problem)
                self._places.rotate(-1)
        refusals = (one for one in problems if isinstance(one, Refusal))
        raise next(refusals, problems[0])

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._lost.clear()
        self._refusal = ""
        host, port = self._places[0][:2]
        patience = self.times.silent
        try:
            async with asyncio.timeout(patience):
                _, link = await loop.create_connection(
                    lambda: Link(
                        self._receive,
                        self._handle_end,
                        patience=patience,
                        largest=frames.LARGEST_DOWN,
                        early=keep_early,
                    ),
                    host,
                    port,
                    ssl=self.tls,
                )
        except TimeoutError:
            sentence = f"can't connect to {host}:{port}: no answer within {patience:g} seconds"
            raise EnvironmentProblem(sentence) from None
        except (OSError, ssl.SSLError) as problem:
            hint = "; expected a router there" if isinstance(problem, ConnectionError) else ""
            raise EnvironmentProblem(
                f"can't connect to {host}:{port}: {sentence_of(problem)}{hint}"
            ) from None
        link.send(self.hello)
        try:
            async with asyncio.timeout(min(GREETING, patience)):
                while not link.name and not self._lost.is_set():
                    await self.wait_for_change()
        except TimeoutError:
            link.close("the greeting was not answered in time")
            raise EnvironmentProblem(
                f"{host}:{port} does not answer, expected a tidings router there"
            ) from None
        except asyncio.CancelledError:
            link.close("the agent no longer waits for an answer")
            raise
        if not link.name:
            raise Refusal(f"{host}:{port}: {self._refusal}")

    async def _keep_connected(self) -> None:
        pause = RETRY[0]
        while True:
            await self._lost.wait()
            if not self._gone:
                self._tell_link(self._refusal)
                self._places.rotate(-1)  # perhaps another router answers at once
            if self._replaced:  # reconnecting would take the name from the other program
                for channel in [*self._numbers]:
                    channel.displace(self._replaced)
                self._change.set()
                return
            await asyncio.sleep(pause)
            if self._link is not None:  # meanwhile, the agent has moved
                self._lost.clear()
                self._tell_link("")
                continue
            pause = min(2 * pause, RETRY[1])
            try:
                await self._connect_to_any()
                pause = RETRY[0]
                self._tell_link("")
            except TidingsError as problem:
                self._refusal = str(problem)
                if isinstance(problem, Refusal):  # the router answers again, but refuses this agent
                    self._tell_link(self._refusal)
                self._lost.set()  # try again

    def _tell_link(self, gone: str) -> None:
        """Report that the link was lost, and why; or report that it is back."""
        if gone != self._gone:
            self._gone = gone
            if self._on_link is not None:
                asyncio.get_running_loop().call_soon(self._on_link, gone)

    def _handle_end(self, link: Link, reason: str) -> None:
        if self._link is link or self._link is None:
            if self._link is link:
                self._since, self._reason = time.time(), reason
                for channel in [*self._numbers]:
                    channel.interrupt(self._refusal or reason)
            self._link = None
            if not link.name:
                reason += " before it answered"
                if self.tls:
                    reason += "; over TLS this can mean that a certificate was refused"
            self._refusal = self._reason = self._refusal or reason
            self._lost.set()
        self._change.set()

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        if link.name and link is not self._link:
            return  # the agent now uses another router
        for start in starts:
            message = frames.decode(buffer, start)
            if isinstance(message, m.Welcome):
                self._begin(link, message)
            elif isinstance(message, m.Goodbye) and not self._is_new(link):
                self._refusal = message.reason
                if message.reason == m.REPLACED and link is self._link:
                    self._refusal = self._replaced = REPLACED.format(self.hello.name)
                link.close("goodbye")
            elif isinstance(message, m.Closed):
                self._take_closed(message)
            elif isinstance(message, m.Pulse):
                self._take_pulse(link, message)
            elif isinstance(message, m.Credit):
                self._flow.take(message)
                for number in message.upto:
                    self._use_credit(link, number)
            elif isinstance(message, m.Repeat):
                for number, said in self._repeats.said.items():
                    link.send(said, number)
            elif link.name:
                if link.number and isinstance(message, m.Beat):
                    self._heard.put(link.number, message)
                channel = self._channels.get(link.number)
                if channel is not None:
                    channel.receive(message)
        limit = self._flow.raise_limit(link.number)
        if limit is not None and link.name:
            link.send(m.Credit({link.number: limit}))
        self._change.set()

    def _is_new(self, link: Link) -> bool:
        """Is this the link to which the agent is moving, and not its current link?"""
        return self._link is not None and link is not self._link

    def _begin(self, link: Link, message: m.Welcome) -> None:
        link.name, self.router_name = "<upstream>", message.name
        before, self._link, self._since = self._link, link, time.time()
        if self._new is not None and link is self._new[0]:
            place = self._new[1]
            first = [one for one in self._places if one not in self._moved]
            self._moved = {place} - set(first)
            self._places = deque(dict.fromkeys((place, *first)))
        if before is not None:
            before.close("the agent moves to another router")
        self._publisher = message.publisher
        self._heard, self._repeats = ReceivedMessages(), Repeats()
        self._flow = Flow(link.taken, link.sent, is_lower=True)
        for channel in [*self._numbers]:
            self._join(channel)

    def _take_closed(self, message: m.Closed) -> None:
        """The router does not serve a channel. The agent tries to open it again after a while."""
        channel = self._channels.get(message.number)
        if channel is not None and message.number:
            self._forget_number(message.number)
            channel.refuse(message.reason)

    def _take_pulse(self, link: Link, message: m.Pulse) -> None:
        now = time.monotonic()
        if self._heard.take(message, now):
            link.send(m.Repeat())
        elif self._heard.at == now:
            for number, said in [*self._heard.said.items()]:
                channel = self._channels.get(number)
                if channel is not None:
                    channel.receive(said)

    async def _tick_forever(self) -> None:
        pause = min(self.times.beat, self.times.retry) / 2
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            link = self._link
            if link is not None and now - link.heard > 2 * self.times.silent:
                link.abort("nothing was heard for too long")
            for channel in [*self._numbers]:
                channel.tick(now)
            if self._link is not None:
                self._pulse(self._link, now)

    def _pulse(self, link: Link, now: float) -> None:
        """Repeat the last message of each channel, and try again to open refused channels."""
        if now - self._pulsed >= self.times.resubscribe:
            self._pulsed = now
            pulse = self._repeats.pulse()
            if pulse is not None:
                link.send(pulse)
        if now - self._opened >= self.times.resubscribe:
            self._opened = now
            for channel in [one for one in self._numbers if one.refusal]:
                number = self._numbers[channel] = self._next_number()
                self._channels[number] = channel
                self._join(channel)
