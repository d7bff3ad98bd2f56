"""Unexpected exceptions are logged and counted, and the rendezvous point continues.

If a message can't be handled, its sender gets an answer that says so. All other work that is due is
still done.
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
        """Log the current exception; return a sentence for the client that is affected."""
        self._context.beyond["problems"] += 1
        _log.exception("%s: could not %s", self._context.name, what)
        return f"the rendezvous point could not {what}: internal error; see its log"

    @contextlib.contextmanager
    def survive(self, what: str) -> Iterator[None]:
        """Report an exception in the `with` block, and continue after the block."""
        try:
            yield
        except Exception:
            self.report(what)
