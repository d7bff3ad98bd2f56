"""Collects the answers that a follower gets: the definition of a channel, or the pages of its
changes.

    Follow ──> Changed, more ──> Follow, after ──> Changed    all pages have the same version

If the version changes between two pages, the first page is requested again.
"""

from __future__ import annotations

import msgspec

from tidings.routing.protocol import messages as m

Question = m.Describe | m.Follow


class Follower:
    """A question, and the pages of the answer that have arrived so far. `question` is the
    message to send now, and to repeat if no answer arrives."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._first = question
        self.described: m.Described | None = None
        self.changed: m.Changed | None = None
        """The complete answer: the last page, with the changes of all pages."""
        self.refusal = ""
        self._pages: list[m.Changed] = []

    @property
    def is_done(self) -> bool:
        return bool(self.refusal or self.described or self.changed)

    def receive(self, message: m.Message) -> bool:
        """Process an answer; return True if `question` has changed or the answer is complete."""
        if not isinstance(message, m.Described | m.Changed) or self.is_done:
            return False
        if message.request != self.question.request:
            return False
        if message.refusal:
            self.refusal = message.refusal
        elif isinstance(message, m.Described):
            self.described = message
        else:
            self._take_page(message)
        return True

    def _take_page(self, page: m.Changed) -> None:
        before = self._pages[-1] if self._pages else page
        if (page.life, page.version, page.whole) != (before.life, before.version, before.whole):
            self._pages = []  # the root has a new lineage, or no longer has these changes
            self._ask(self._first)
            return
        self._pages.append(page)
        if page.more and page.changes:
            self._ask(self._first, page.version, page.changes[-1].version)
            return
        changes = tuple(one for page in self._pages for one in page.changes)
        self.changed = m.Changed(
            page.epoch, page.request, page.life, page.version, page.whole, changes
        )

    def _ask(self, first: Question, upto: int = 0, after: int = 0) -> None:
        assert isinstance(first, m.Follow)
        request = self.question.request + 1
        self.question = msgspec.structs.replace(first, request=request, upto=upto, after=after)
