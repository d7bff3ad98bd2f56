"""Preprocessors that tag for an agent: it finds them through its channel, and asks them in turn.

    Seek ──> Found ──> links to a few of them ──Preprocess──> tags
                           └── gone, or silent: the next one; none: no tag, the root tags

A request that is not answered in time is not repeated: the notification is published without a tag.
So no notification waits long for a preprocessor, and none is lost when a preprocessor ends.

An agent greets preprocessors with a ticket, which its router signs. When half of the ticket's
lifetime is over, the agent presents the next ticket. If the router of the agent signs no tickets,
the agent sends only its name. This is enough if anybody may connect. The agent shows its token only
if the application allows this: any client with the right to preprocess can register an address, and
collect the tokens that agents show there.

If the agent's own link uses TLS, the agent connects only to preprocessors with TLS, because it
sends them its notifications, and perhaps its token.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
import time
from collections.abc import Callable, Sequence

import msgspec

from tidings.model import TidingsError
from tidings.network.link import Link
from tidings.network.router_url import RouterUrl, parse_address
from tidings.network.tls import context_for
from tidings.routing.protocol import Times, frames, messages as m, unpack_ticket

MOST_LINKS = 4  # the most preprocessors that one agent uses at a time
PATIENCE = 2.0  # a preprocessor that does not answer within this many seconds is disconnected
AGAIN = 5.0  # after a failure, a preprocessor is tried again after this many seconds
FIRST = 1 << 60  # the first request number; the agent's other requests have lower numbers
OF_AGENTS = (  # what to do if preprocessors expect a token
    "set ticket_key in the file of the agent's router, or allow the agent to show its token: "
    "connect(..., show_token=True), or --show-token"
)

_log = logging.getLogger(__name__)


class Preprocessors:
    """The preprocessors of a channel, as one agent uses them."""

    def __init__(
        self,
        send: Callable[[m.Message], bool],
        hello: m.Hello,
        times: Times,
        tls: ssl.SSLContext | None = None,
        *,
        show_token: bool = False,
        remedy: str = OF_AGENTS,
        pause: float = 0.0,
        longest: float = 0.0,
        changed: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """`send` sends a message to the router; False if there is no link. `tls` is the context of
        the link to the router. With `show_token`, preprocessors see the token of `hello` if the
        router signs no tickets. Without it, the message of a refusal ends with the text `remedy`.
        While there is no preprocessor, the agent searches every `pause` seconds; if `longest` is
        longer, the pause doubles after each search, up to `longest` seconds. `changed` is called
        with True when a preprocessor has been found, and with False when the last one has been
        lost."""
        self._show_token, self._remedy = show_token, remedy
        self._pause = pause or times.retry / 10
        self._longest = max(self._pause, longest)
        self._changed = changed
        self._send = send
        self._hello = hello
        self._times = times
        self._tls = tls
        self._links: dict[str, Link] = {}
        self._failed: dict[str, float] = {}  # address of a preprocessor -> when it failed
        self._open: dict[int, tuple[Link, asyncio.Future[m.Message]]] = {}
        self._request = FIRST
        self._sought = FIRST
        self._turn = 0
        self._ticket = b""  # empty if the router signs no tickets
        self._renew_at = 0.0  # seconds since 1970
        self._identifying: tuple[int, asyncio.Future[m.Identified]] | None = None
        self._asking = asyncio.Lock()
        self._is_closed = False
        self._settled = asyncio.Event()  # set if there is a link, or if all of them refuse
        self.refusal = ""
        """Why the last preprocessor refused this client; empty if none did, or if there is a
        link."""
        self.asked = 0
        """How many notifications preprocessors tagged."""

    def __len__(self) -> int:
        return len(self._links)

    # -- for the agent -------------------------------------------------------------------------

    async def tag(self, contents: Sequence[bytes]) -> list[bytes]:
        """The tags of notifications; a tag is empty if the rendezvous point must tag."""
        answer = await self._ask(lambda request: m.Preprocess(request, tuple(contents)))
        if isinstance(answer, m.Preprocessed) and len(answer.tags) == len(contents):
            self.asked += len(contents)
            return [*answer.tags]
        return [b""] * len(contents)

    async def place(
        self, interest: str, dialect: str, *, signs: bool = False, makes: bool = False
    ) -> m.Proposed | None:
        """The node of a filter, with a grant if `signs`; None if no preprocessor answers. With
        `makes`, a filter that has no node gets one."""
        answer = await self._ask(
            lambda request: m.Propose(request, interest.encode(), dialect, signs, makes)
        )
        return answer if isinstance(answer, m.Proposed) else None

    async def locate(self, question: m.Locate) -> m.Located | None:
        """The places of nodes; None if no preprocessor answers."""
        answer = await self._ask(lambda request: msgspec.structs.replace(question, request=request))
        return answer if isinstance(answer, m.Located) else None

    def expects(self, message: m.Found) -> bool:
        """Is this message the answer to the last search?"""
        return message.request == self._sought

    def take_ticket(self, message: m.Identified) -> None:
        """Process the answer to Identify."""
        if self._identifying is not None:
            request, answer = self._identifying
            if message.request == request and not answer.done():
                answer.set_result(message)

    def use_token(self, token: str) -> None:
        """From the next connection on, show this token."""
        self._hello = msgspec.structs.replace(self._hello, token=token)

    async def seek_forever(self) -> None:
        """Look for preprocessors, and keep links to them."""
        pause = self._pause
        while True:
            self._sought += 1
            self._send(m.Seek(self._sought))
            for link in self._links.values():
                link.send(m.Trace(0))  # a keep-alive: silent agents are disconnected
            await self._present_next()
            if self._links:
                pause = self._pause
                await asyncio.sleep(self._times.resubscribe)
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._longest)

    async def wait_for_any(self, seconds: float) -> bool:
        """Wait for a link to a preprocessor. Return False if none is found in time, or if all known
        preprocessors refuse this client (`refusal` says why)."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        return bool(self._links)

    async def receive(self, message: m.Found) -> None:
        """Process the answer to Seek: connect to some of the preprocessors."""
        if not self.expects(message):
            return
        now = time.monotonic()
        self._failed = {one: at for one, at in self._failed.items() if now - at < AGAIN}
        new = [one for one in message.addresses if one not in {*self._links, *self._failed}]
        if not new or not await self._need_ticket():
            return
        random.shuffle(new)  # agents should choose different preprocessors
        for address in new[: max(0, MOST_LINKS - len(self._links))]:
            if self._is_closed:  # while the last address was tried
                return
            await self._connect(address)
        if self.refusal:
            self._settled.set()

    def close(self) -> None:
        self._is_closed = True
        for link in [*self._links.values()]:
            link.close("the agent was closed")

    # -- links ---------------------------------------------------------------------------------

    async def _present_next(self) -> None:
        """Show the next ticket to all preprocessors if it is time for it."""
        before = self._ticket
        if before and self._links:
            await self._need_ticket()
            if self._ticket and self._ticket != before:
                self._request += 1
                for link in self._links.values():
                    link.send(m.Present(self._request, self._ticket))

    async def _need_ticket(self) -> bool:
        """Ask the router for a new ticket if the lifetime of the last one is half over. Return
        False if the agent has no ticket and does not know yet whether the router signs tickets."""
        async with self._asking:
            now = time.time()
            if self._ticket and now < self._renew_at:
                return True
            answer = await self._identify()
            if answer is None or answer.refusal:
                found = unpack_ticket(self._ticket)
                return found is not None and now < found.expires
            self._ticket = answer.ticket
            ticket = unpack_ticket(answer.ticket)
            self._renew_at = 0.0 if ticket is None else (now + ticket.expires) / 2
            return True

    async def _identify(self) -> m.Identified | None:
        self._request += 1
        answer: asyncio.Future[m.Identified] = asyncio.get_running_loop().create_future()
        self._identifying = self._request, answer
        if not self._send(m.Identify(self._request)):
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError:
            return None
        finally:
            self._identifying = None

    async def _connect(self, address: str) -> None:
        welcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def receive(link: Link, buffer: bytes, starts: list[int]) -> None:
            for start in starts:
                self._take(link, address, welcome, frames.decode(buffer, start))

        def end(link: Link, reason: str) -> None:
            if not welcome.done():
                welcome.cancel()
            self._forget(address, link)

        self._failed[address] = time.monotonic()
        link: Link | None = None
        try:
            place: RouterUrl = parse_address(address)
            if self._tls is not None and not place.secure:
                return
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(PATIENCE):
                _, link = await loop.create_connection(
                    lambda: Link(
                        receive, end, patience=self._times.silent, largest=frames.LARGEST_DOWN
                    ),
                    place.host,
                    place.port,
                    ssl=context_for(place, self._tls, None),
                )
                link.send(self._greeting(place.channel))
                await welcome
        except (OSError, TidingsError, asyncio.CancelledError):
            if link is not None:
                link.abort("it did not answer")
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise

    def _greeting(self, channel: str) -> m.Hello:
        token = self._hello.token if self._show_token and not self._ticket else ""
        return msgspec.structs.replace(
            self._hello, channel=channel, token=token, ticket=self._ticket
        )

    def _note_refusal(self, address: str, reason: str) -> None:
        """Remember why a preprocessor refuses this client, and log the reason once."""
        if self._links:
            return
        reason = f"the preprocessor at {address} refuses {self._hello.name!r}: {reason}"
        if self._hello.token and not self._ticket and not self._show_token:
            reason += f"; the token was not shown, because no ticket was signed: {self._remedy}"
        if reason != self.refusal:
            self.refusal = reason
            _log.warning("%s", reason)

    def _take(
        self, link: Link, address: str, welcome: asyncio.Future[None], message: m.Message
    ) -> None:
        if isinstance(message, m.Welcome) and self._is_closed:
            link.close("the agent was closed")
        elif isinstance(message, m.Welcome) and not welcome.done():
            self._links[address] = link
            self.refusal = ""
            self._settled.set()
            self._changed(True)
            self._failed.pop(address, None)
            welcome.set_result(None)
        elif isinstance(message, m.Goodbye):
            if not welcome.done():
                self._note_refusal(address, message.reason)
            link.close("goodbye")
        elif isinstance(message, m.Preprocessed | m.Proposed | m.Located):
            found = self._open.get(message.request)
            if found is not None and found[0] is link and not found[1].done():
                found[1].set_result(message)

    def _forget(self, address: str, link: Link) -> None:
        if self._links.get(address) is link:
            del self._links[address]
            self._failed[address] = time.monotonic()
            if not self._links:
                self._settled.clear()
                self._changed(False)
        for other, answer in self._open.values():
            if other is link and not answer.done():
                answer.cancel()

    async def _ask(self, question: Callable[[int], m.Message]) -> m.Message | None:
        """Ask the next preprocessor; None if there is none, or if no answer comes in time."""
        links = [*self._links.items()]
        if not links:
            return None
        self._turn += 1
        address, link = links[self._turn % len(links)]
        self._request += 1
        request, answer = self._request, asyncio.get_running_loop().create_future()
        self._open[request] = link, answer
        link.send(question(request))
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.wait([answer])
        except TimeoutError:
            link.close("it did not answer in time")
            self._forget(address, link)
        finally:
            del self._open[request]
        return None if not answer.done() or answer.cancelled() else answer.result()
