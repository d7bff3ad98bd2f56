"""The channels of one link: the number, the last message and the credit of each."""

from __future__ import annotations

from tidings.routing.channels.channel import Channel
from tidings.routing.channels.credit import Flow, Item
from tidings.routing.channels.repeats import ReceivedMessages, Repeats
from tidings.routing.forwarding.neighbours import Name
from tidings.routing.protocol import messages as m

Out = tuple[Name, int, Item]


class LinkChannels:
    """The channels of one link, to a neighbour or to a hop."""

    __slots__ = ("flow", "heard", "highest", "numbers", "repeats", "said_all")

    def __init__(self, flow: Flow | None = None) -> None:
        self.flow = flow or Flow()
        self.numbers: dict[int, Channel] = {}
        self.highest = 0  # the highest number so far
        self.repeats = Repeats()
        self.heard = ReceivedMessages()
        self.said_all = float("-inf")  # when everything was last repeated for the other end

    def forget(self, number: int) -> None:
        """Forget a number that is no longer used."""
        self.numbers.pop(number, None)
        self.repeats.remove(number)
        self.heard.remove(number)
        self.flow.forget(number)


def answer_pulse(
    link: Name, known: LinkChannels, message: m.Pulse | m.Repeat, now: float, retry: float
) -> list[Out]:
    """The answer to a pulse, or to the request to repeat everything."""
    if isinstance(message, m.Pulse):
        return [(link, 0, m.Repeat())] if known.heard.take(message, now) else []
    if now - known.said_all < retry:  # so that requests can't cause constant repetition
        return []
    known.said_all = now
    return [(link, number, said) for number, said in known.repeats.said.items()]


def pulses(links: dict[Name, LinkChannels]) -> list[Out]:
    """The pulses that are due on all links. A link without channels gets an empty pulse, so that
    the other end does not consider the link dead."""
    found = (
        (link, known.repeats.pulse(even_empty=not known.numbers)) for link, known in links.items()
    )
    return [(link, 0, pulse) for link, pulse in found if pulse is not None]
