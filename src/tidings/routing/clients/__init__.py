""""""

from tidings.routing.clients.publisher import Publisher
from tidings.routing.clients.subscriber import Lost, Phase, Subscriber, Told

__all__ = [
    "Lost",
    "Phase",
    "Publisher",
    "Subscriber",
    "Told",
]
