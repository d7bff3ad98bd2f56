"""The listening socket of a node, and its background tasks: started and stopped together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from tidings.broker.connections import Connections

CLOSING = 2.0  # seconds to wait for the socket to close

_log = logging.getLogger(__name__)


class ListeningServer:
    """Accepts connections for a node. If a background task fails, the failure is logged, and the
    other tasks continue."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Start listening; raise EnvironmentProblem if the address can't be used."""
        self._server = await self._connections.listen(self.spawn)

    @property
    def port(self) -> int:
        """The port that the node listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine in the background until it ends or the node stops."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish_task)
        return task

    def _finish_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            name, problem = self._connections.name, task.exception()
            _log.error("%s: a background task failed", name, exc_info=problem)

    async def stop(self, reason: str) -> None:
        """Cancel all tasks, stop listening, and close all links."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        await self._connections.close_all(reason)
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), CLOSING)
