"""How many bytes of bodies a node has sent early."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.network import Link


class EarlyCounts:
    """Counts the bytes of bodies that were sent early, over open and ended links."""

    def __init__(self) -> None:
        self._sent = self._used = 0

    def end_link(self, link: Link) -> None:
        """Add the counts of a link that has ended."""
        if link.early_out is not None:
            self._sent += link.early_out.sent
            self._used += link.early_out.used

    def count(self, links: Iterable[Link]) -> tuple[int, int]:
        """How many bytes were sent early, and how many of these a notification later referred to.
        `links` are the links that are still open."""
        sent, used = self._sent, self._used
        for link in links:
            if link.early_out is not None:
                sent += link.early_out.sent
                used += link.early_out.used
        return sent, used
