"""The credit that a node gives its neighbours: see routing/channels/credit.py. If a neighbour sends
without credit, reading from it stops until its frames have been passed on."""

from __future__ import annotations

from tidings.network import Link
from tidings.routing.channels import Links, Out


class Credit:
    """The credit of the neighbours of one node."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._overdrawn: set[Link] = set()  # neighbours that sent without credit

    def note_taken(self, link: Link) -> list[Out]:
        """Frames arrived from a neighbour."""
        out = self._links.note_taken(link.name, link.number)
        if self._links.overdrawn(link.name):
            self._overdrawn.add(link)
            link.read("credit", on=False)
        return out

    def pay(self) -> list[Out]:
        """Give new credit for the frames that have been passed on since the last call."""
        out = self._links.pay()
        for link in [*self._overdrawn]:
            if not self._links.overdrawn(link.name):
                self._overdrawn.remove(link)
                link.read("credit", on=True)
        return out

    def forget(self, link: Link) -> None:
        """A link has ended."""
        self._overdrawn.discard(link)
