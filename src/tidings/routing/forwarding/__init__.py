""""""

from tidings.routing.forwarding.cache import Cache, cost_of, look_up
from tidings.routing.forwarding.downstream import Downstream
from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.ways import MOST_LISTED, Forwarding, Mode, first_label, ways_of

__all__ = [
    "MOST_LISTED",
    "Cache",
    "Downstream",
    "Forwarding",
    "Label",
    "Mode",
    "Name",
    "Router",
    "Sent",
    "cost_of",
    "first_label",
    "look_up",
    "ways_of",
]
