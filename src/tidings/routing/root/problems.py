"""Exceptions that nobody expected: logged and counted, and survived.

Whatever goes wrong with one message is told to its sender in a sentence; what others were promised
is kept.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from tidings.routing.forwarding.neighbours import Context

_log = logging.getLogger(__name__)


class Problems:
    """Those of one machine."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def report(self, what: str) -> str:
        """Log the current exception; the sentence for those whom it concerns."""
        self._context.beyond["problems"] += 1
        _log.exception("%s: could not %s", self._context.name, what)
        return f"the rendezvous point could not {what}, by a mistake of its own; see its log"

    @contextlib.contextmanager
    def survive(self, what: str) -> Iterator[None]:
        """Report what goes wrong, and go on with what comes after it."""
        try:
            yield
        except Exception:
            self.report(what)
