"""Saves the rendezvous point work: finds the places of new filters in the graph of a channel.

    agent ──Propose──> place among the nodes of a version ──Suggest──> rendezvous point
                              there, it is compared with newer nodes, and gets its number

The same code places nodes here and at the rendezvous point. The nodes are loaded when the first
agent asks, which takes as long as a start of the rendezvous point; until they are loaded, the
rendezvous point places all filters. After that, changes are followed separately from the view that
tags. That view needs some milliseconds for each change, which would be too late: a place is useful
only if few nodes were added after it was found.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidings.model import TidingsError
from tidings.network import Agent
from tidings.preprocessing import Kind
from tidings.routing.clients import Follower
from tidings.routing.protocol import messages as m

PATIENCE = 1.5  # seconds to wait for the rendezvous point; agents wait two seconds
EVERY = 0.05  # seconds between two questions for changes
FIRST = 1 << 19  # added to request numbers, so that they differ from those of the view's requests
TOGETHER = 50  # the most filters that are suggested together
MOST_AHEAD = 2_000  # the most suggested nodes that the followed changes don't contain yet
MOST_WAITING = 1_000  # the most filters that wait; the rendezvous point places the rest

_log = logging.getLogger(__name__)


class Proposing:
    """Finds the places of filters, as described at the top of the module. Loading runs in a thread,
    and everything else in the event loop."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._view: Any = None  # the view whose nodes are loaded
        self._interests: Any = None
        self._version = 0
        self._loading: asyncio.Task[None] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._recompiling: Any = None
        self._ahead: dict[int, None] = {}  # suggested nodes whose changes have not arrived yet
        self._request = 0
        self._answer: tuple[int, asyncio.Future[m.Suggested]] | None = None  # that is awaited
        self._waiting: deque[tuple[str, asyncio.Future[int]]] = deque()
        self._working: asyncio.Task[None] | None = None
        self._follower: Follower | None = None
        self._answered = asyncio.Event()
        self.suggested = 0
        """How many filters were placed so far."""

    async def make(self, text: str) -> int:
        """Let the rendezvous point create a node for a filter in SQL, at the place found here. The
        result is the node, or 0 if the rendezvous point must find the place. Filters that wait are
        suggested together."""
        if len(self._waiting) >= MOST_WAITING:
            return 0
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, found))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await found

    async def _work(self) -> None:
        """Suggest the waiting filters, until none are left."""
        while self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
            nodes: Sequence[int] = ()
            try:
                async with asyncio.timeout(PATIENCE):
                    nodes = await self._suggest([text for text, _ in taken])
            except TimeoutError:
                self._reload()  # the rendezvous point may have placed some of the filters
            except Exception:
                _log.exception("filters could not be suggested")
                self._reload()
            for at, (_, found) in enumerate(taken):
                if not found.done():
                    found.set_result(nodes[at] if at < len(nodes) else 0)

    async def _suggest(self, texts: Sequence[str]) -> Sequence[int]:
        """The nodes of filters; 0 for those that the rendezvous point must place."""
        view = self._agent.view
        if view is None or view.definition.kind != "content" or view.definition.predicates:
            return ()
        if view is not self._view or self._interests is None:
            self._load(view)
            return ()
        if len(self._ahead) > MOST_AHEAD:
            return ()
        filters: list[m.Suggestion] = []
        places: dict[int, int] = {}  # index of a text -> index of its suggestion in the message
        for at, text in enumerate(texts):
            with contextlib.suppress(TidingsError):  # the rendezvous point reports the problem
                found = self._interests.find_place(text.encode())
                most = m.MOST_SUGGESTED
                if found is not None and max(len(found.above), len(found.below)) <= most:
                    # so that later filters are compared with it here, not at the rendezvous point
                    self._interests.follow(m.WITHIN + len(filters), text.encode())
                    places[at] = len(filters)
                    filters.append(m.Suggestion(text.encode(), *found))
        try:
            answer = await self._ask(view, filters) if filters else None
        finally:
            for number in range(len(filters)):
                self._interests.remove(m.WITHIN + number)
        if answer is None or len(answer.nodes) < len(filters):
            return ()
        if answer.refusal == m.UNKNOWN:  # the root lost some nodes in a crash
            self._reload()
            return ()
        found_nodes = [answer.nodes[places[at]] if at in places else 0 for at in range(len(texts))]
        for text, node in zip(texts, found_nodes, strict=True):
            if node:
                self._go_ahead(node, text)
                self.suggested += 1
        return found_nodes

    def _reload(self) -> None:
        self._view = None
        if self._loading is not None:
            self._loading.cancel()

    def _go_ahead(self, node: int, text: str) -> None:
        """Add a new node to the graph here before the change with this node arrives."""
        if node > self._version and node not in self._ahead:
            self._interests.follow(node, text.encode())
            self._ahead[node] = None

    def receive(self, message: m.Suggested | m.Changed) -> None:
        """Process an answer of the rendezvous point."""
        if isinstance(message, m.Changed):
            if self._follower is not None and self._follower.receive(message):
                self._answered.set()
        elif self._answer is not None:
            request, answer = self._answer
            if message.request == request and not answer.done():
                answer.set_result(message)

    async def stop(self) -> None:
        if self._working is not None:
            self._working.cancel()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        if self._recompiling is not None:
            await self._recompiling.stop()
        if self._folder is not None:
            self._folder.cleanup()

    async def _follow(self, view: Any) -> None:
        """Apply the changes of nodes to the nodes loaded here, as long as `view` is in use."""
        request = FIRST
        while self._agent.view is view:
            request += 1 << 20  # reserves a number for each page of the answer
            follower = self._follower = Follower(
                m.Follow(request, self._version, view.life, relayed=True)
            )
            while not follower.is_done:
                self._answered.clear()
                self._agent.send_up(follower.question)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE):
                        await self._answered.wait()
            told = follower.changed
            if told is None or told.whole:
                return  # a new view will replace this one
            await self._take(told)
            await asyncio.sleep(EVERY)

    async def _take(self, told: m.Changed) -> None:
        for at, (_, node, text) in enumerate(told.changes):
            with contextlib.suppress(TidingsError, KeyError):  # some filters can't be read here
                if text is None:
                    self._ahead.pop(node, None)
                    self._interests.remove(node)
                elif node not in self._ahead:
                    self._interests.follow(node, text.encode())
            if at % 10 == 9:
                await asyncio.sleep(0)  # tagging comes first
        self._version = told.version
        while self._ahead and (first := next(iter(self._ahead))) <= told.version:
            del self._ahead[first]
        self._recompiling.tend(self._interests)

    def _load(self, view: Any) -> None:
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load_nodes(view))

    async def _load_nodes(self, view: Any) -> None:
        try:
            made = await asyncio.get_running_loop().run_in_executor(None, self._make, view)
            from tidings.broker.recompiling import Recompiling  # loads kernels, like `_make`

            self._recompiling = self._recompiling or Recompiling()
            self._version, self._interests = made
            self._ahead = {}
            self._view = view
            await self._follow(view)
        except Exception:
            _log.exception("the places of filters can't be found here")
            await asyncio.sleep(PATIENCE)
        finally:
            self._view = None

    def _make(self, view: Any) -> tuple[int, Any]:
        from tidings.channel.interests import ArrayInterests  # loads the kernels

        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="tidings-places-")
        version, nodes = view.copy_nodes()
        stored = [(node, text.encode()) for node, text in sorted(nodes.items())]
        kind = Kind(view.attributes)
        folder = Path(self._folder.name) / "interests"
        return version, ArrayInterests(None, stored, version, folder=folder, kind=kind)

    async def _ask(self, view: Any, filters: Sequence[m.Suggestion]) -> m.Suggested:
        self._request += 1
        self._answer = self._request, asyncio.get_running_loop().create_future()
        self._agent.send_up(
            m.Suggest(self._request, view.life, self._version, tuple(filters), tuple(self._ahead))
        )
        return await self._answer[1]
