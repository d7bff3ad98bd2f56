"""Compiles the nodes of a rendezvous point again after many changes, in the background.

Another process compiles; a thread waits for it and opens the result. Only the last step, which
begins to use the result, runs in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time

from tidings.channel.interests import ArrayInterests, Compilation

AGAIN = 300.0  # seconds before another attempt after a failure
MOST_FAILED = 5  # after this many failures in a row, the next attempt is at the next start
_log = logging.getLogger(__name__)


class Recompiling:
    """Runs at most one compilation at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._compilation: Compilation | None = None
        self._interests: ArrayInterests | None = None
        self._failures = 0
        self._failed = float("-inf")  # when an attempt last failed
        self.count = 0
        """How many compilations succeeded, so that their results were used."""

    def tend(self, interests: ArrayInterests) -> None:
        """Start a compilation if it is due. `interests` are the interests that are now in use. The
        result of a compilation of earlier interests is discarded."""
        self._interests = interests
        at_work = self._task is not None and not self._task.done()
        if at_work or not interests.is_due or self._failures >= MOST_FAILED:
            return
        if time.monotonic() - self._failed > AGAIN:
            self._task = asyncio.get_running_loop().create_task(self._compile(interests))

    async def _compile(self, interests: ArrayInterests) -> None:
        self._compilation = compilation = interests.begin_compilation()
        found = None
        try:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(None, compilation.run)
            if found is not None and self._interests is interests:
                interests.adopt(compilation, found)
                self.count += 1
        except Exception:
            _log.exception("filters could not be compiled")
        self._failures = 0 if found is not None else self._failures + 1
        self._failed = float("-inf") if found is not None else time.monotonic()

    async def stop(self) -> None:
        """End the process that compiles, if there is one."""
        if self._compilation is not None:
            self._compilation.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
