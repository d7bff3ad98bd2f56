"""Unexpected exceptions are logged and counted, and the node continues.

If handling a message fails, its sender is told so. What others were promised is still done.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from tidings.routing.forwarding.neighbours import Context

_log = logging.getLogger(__name__)


class Problems:
    """The unexpected exceptions of one state machine."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def report(self, what: str) -> str:
        """Log the current exception; return a sentence for those who are affected."""
        self._context.beyond["problems"] += 1
        _log.exception("%s: could not %s", self._context.name, what)
        return f"the rendezvous point could not {what}: internal error; see its log"

    @contextlib.contextmanager
    def survive(self, what: str) -> Iterator[None]:
        """Report an exception of the block, and continue after it."""
        try:
            yield
        except Exception:
            self.report(what)
