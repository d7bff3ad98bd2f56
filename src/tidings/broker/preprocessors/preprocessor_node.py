"""A running preprocessor: it follows the nodes of a channel, and tags for agents.

    rendezvous point ──changes──> agent with a view ──> preprocessor <──Preprocess, Propose── agents
           ^──Register, now and then─────┘                           <──Locate── routers

A preprocessor has no durable state: agents that lose their preprocessor find another, or let the
rendezvous point tag.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence

import msgspec

from tidings.broker.admission.listen import Door
from tidings.broker.admission.permissions import Permissions, Tokens
from tidings.broker.admission.signing import KeyProblem, Signer
from tidings.broker.connections import Connections
from tidings.broker.listening_server import ListeningServer
from tidings.broker.predicates import PredicateHelpers
from tidings.broker.preprocessors.granting import Granting
from tidings.broker.preprocessors.proposing import Proposing
from tidings.model import TidingsError
from tidings.network import Agent, Link, Refusal
from tidings.preprocessing import PredicateCall
from tidings.routing.protocol import DEFAULT_DIALECT, Times, frames, messages as m

MOST_LOCATING = 100  # the most questions of routers that are answered at the same time
LAG = 25  # a router's question waits for a newer view at most this many times 20 ms
PATIENCE = 1.5  # seconds to wait for predicates; agents wait two seconds

_log = logging.getLogger(__name__)


class PreprocessorNode:
    """A preprocessor of a channel."""

    def __init__(
        self,
        name: str,
        agent: Agent,
        door: Door,
        *,
        host: str | None = None,
        times: Times | None = None,
        signer: Signer | None = None,
    ) -> None:
        """`agent` must be started, and have `tag="local"`. `host` is the host by which agents reach
        the preprocessor, if it differs from the host on which the preprocessor listens. With a
        `signer`, the preprocessor signs grants. A preprocessor with a signer needs tokens or
        tickets, because without them anybody could ask for grants under any name; raises KeyProblem
        if `door` has neither."""
        if signer is not None and not door.is_guarded:
            raise KeyProblem(
                f"{name}: found a key for signing grants, but no tokens; expected [tokens] or "
                "[tickets] that say who may have grants"
            )
        self._granting = None if signer is None else Granting(agent, signer, door.channel)
        self.name = name
        self.door = door
        self._host = host or door.address.host
        self._agent = agent
        self._times = times or Times()
        self._connections = Connections(name, door, self._make_link)
        self._listening = ListeningServer(self._connections)
        self._helpers: PredicateHelpers | None = None
        self._asking: set[asyncio.Future[None]] = set()
        self._off: set[str] = set()  # predicates that are switched off here
        self._proposing = Proposing(agent)
        agent.take_suggested = self._proposing.receive
        self._began = time.monotonic()
        self.tagged = 0
        """How many notifications were tagged so far."""
        self.located = 0
        """How many places of nodes were given to routers so far."""
        self._locating = 0

    async def start(self) -> None:
        """Start listening, and register with the rendezvous point."""
        await self._listening.start()
        self._listening.spawn(self._tick_forever())

    @property
    def port(self) -> int:
        """The port that the preprocessor listens on."""
        return self._listening.port

    @property
    def address(self) -> str:
        """The address to which agents connect."""
        scheme = "tidings" if self.door.tls is None else "tidings+tls"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self.port}/{self.door.channel}"

    async def stop(self) -> None:
        await self._listening.stop("the preprocessor stops")
        for asking in self._asking:
            asking.cancel()
        await self._proposing.stop()
        if self._helpers is not None:
            await self._helpers.stop()

    def renew(self, tokens: Tokens | None, tickets: Mapping[str, str] | None = None) -> int:
        """From now on, accept these tokens, and tickets signed with these keys; return the number
        of closed links."""
        return self._connections.renew(tokens, tickets)

    async def _tick_forever(self) -> None:
        while True:
            if self._agent.view is not None:  # without a view, every question would be refused
                self._agent.send_up(self._status())
            limits = self._connections.connection_limits
            links = self._connections.links.values()
            limits.check(links, time.monotonic(), 3 * self._times.expire)
            self._connections.expire_tickets()
            await asyncio.sleep(min(self._times.resubscribe, self._times.expire / 4))

    def _status(self) -> m.Register:
        view = self._agent.view
        uptime = int(1000 * (time.monotonic() - self._began))
        return m.Register(self.address, self.name, view.life, view.version, self.tagged, uptime)

    # -- links ---------------------------------------------------------------------------------

    def _make_link(self) -> Link:
        limits = self.door.limits
        return Link(
            self._receive, self._connections.remove, largest=limits.greeting_bytes,
            most_waiting=limits.queue_bytes, patience=self._times.expire,
        )  # fmt: skip

    def _receive(self, link: Link, buffer: bytes, starts: list[int]) -> None:
        for start in starts:
            message = frames.decode_from_below(buffer, start)
            found = self._connections.permissions_in(link, self.door.channel)
            if found is None:
                if self._connections.is_stranger(link):
                    self._connections.greet(link, message, self._room_for)
            elif isinstance(message, m.Goodbye):
                link.close("the other end said goodbye")
            elif isinstance(message, m.Present):
                refusal = self._connections.present_ticket(link, message.grant)
                link.send(m.Presented(message.request, refusal))
            elif isinstance(message, m.Preprocess):
                missing = self._missing_calls(message)
                if missing:
                    self._listening.spawn(self._decide(link, message, missing))
                else:
                    link.send(self._tag(message))
            elif isinstance(message, m.Propose):
                if message.signs and self._granting is not None:
                    self._listening.spawn(self._granting.answer(link, found, message))
                elif message.makes and "subscribe" in found.may:
                    self._listening.spawn(self._make(link, message))
                else:
                    link.send(self._place(message))
            elif isinstance(message, m.Locate):
                self._listening.spawn(self._locate(link, found, message))

    def _room_for(self, name: str) -> str:
        most = self.door.limits.neighbours
        if len(self._connections.links) >= most and name not in self._connections.links:
            return f"there is no place for another agent, expected at most {most:,} agents"
        return ""

    async def _locate(self, link: Link, who: Permissions, message: m.Locate) -> None:
        """Send a router the places of nodes, as soon as the view contains the newest of them. If a
        router gets no places from the preprocessor, it asks the node above the router."""
        answer = m.Located(0, message.request)
        if "route" in who.may and self._locating < MOST_LOCATING:
            self._locating += 1
            try:
                newest, view = max(message.nodes, default=0), self._agent.view
                for _ in range(LAG):
                    if view is not None and view.version >= newest and view.epoch == message.epoch:
                        break
                    await asyncio.sleep(0.02)
                    view = self._agent.view
                if view is not None:
                    loop = asyncio.get_running_loop()
                    answer = await loop.run_in_executor(None, view.locate, message)
                    self.located += len(answer.places)
            except TidingsError:
                pass
            finally:
                self._locating -= 1
        link.send(answer)

    # -- predicates ----------------------------------------------------------------------------

    def _missing_calls(self, message: m.Preprocess) -> list[PredicateCall]:
        """The calls of predicates that must be decided before notifications are tagged. Predicates
        that are switched off here are left out."""
        view = self._agent.view
        missing = [] if view is None else view.missing_calls(message.contents)
        return [call for call in missing if call.name not in self._off]

    async def _decide(
        self, link: Link, message: m.Preprocess, missing: Sequence[PredicateCall]
    ) -> None:
        """Tag notifications once the predicates that they need have answered. Notifications that
        are not decided in time get an empty tag: the rendezvous point tags them."""
        until = time.monotonic() + PATIENCE
        while missing and time.monotonic() < until:
            asking = asyncio.ensure_future(self._need_helpers().ask(missing))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
            await asyncio.wait([asking], timeout=until - time.monotonic())
            missing = self._missing_calls(message)
        link.send(self._tag(message))

    def _need_helpers(self) -> PredicateHelpers:
        """The processes of the predicates that the channel has now."""
        view, helpers = self._agent.view, self._helpers
        assert view is not None
        if helpers is None or helpers.decisions is not view.decisions:
            if helpers is not None:
                self._listening.spawn(helpers.stop())
            self._off = set()
            helpers = PredicateHelpers(view.definition, view.decisions, self._switch_off)
            self._helpers = helpers
        return helpers

    async def _switch_off(self, name: str, reason: str) -> None:
        """Stop calling a predicate in this process. The rendezvous point tags the notifications
        that need the predicate, and decides whether the predicate is switched off for the whole
        channel."""
        _log.error("%s: the predicate '%s' is not called any more: %s", self.name, name, reason)
        self._off.add(name)

    def _tag(self, message: m.Preprocess) -> m.Preprocessed:
        view = self._agent.view
        try:
            if view is None:
                raise Refusal("the nodes of the channel are not known yet; ask again later")
            tags = tuple(view.tag_many(message.contents))
        except TidingsError as problem:
            return m.Preprocessed(message.request, refusal=str(problem))
        except Exception:  # the rendezvous point tags instead
            _log.exception("%s: notifications could not be tagged", self.name)
            return m.Preprocessed(message.request, refusal="an unexpected problem; see the log")
        self.tagged += len(tags)
        return m.Preprocessed(message.request, tags)

    async def _make(self, link: Link, message: m.Propose) -> None:
        """Answer with the node of a filter. If the filter has no node, let the rendezvous point
        create one."""
        answer = self._place(message)
        if not answer.node and not answer.refusal and message.dialect == DEFAULT_DIALECT:
            with contextlib.suppress(TidingsError):  # the rendezvous point reports the problem
                node = await self._proposing.make(message.interest.decode())
                answer = msgspec.structs.replace(answer, node=node)
        link.send(answer)

    def _place(self, message: m.Propose) -> m.Proposed:
        view = self._agent.view
        try:
            if view is None:
                raise Refusal("the nodes of the channel are not known yet; ask again later")
            if message.signs:
                raise Refusal(
                    f"{self.name!r} signs no grants; expected a preprocessor with a key "
                    "(`tidings preprocessor --key`)"
                )
            with contextlib.suppress(UnicodeDecodeError):
                found = view.place(message.interest.decode(), message.dialect)
                return m.Proposed(message.request, found.node, found.life, found.version)
            raise Refusal("the filter is not valid UTF-8")
        except TidingsError as problem:
            return m.Proposed(message.request, refusal=str(problem))
