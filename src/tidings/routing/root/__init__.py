""""""

from tidings.routing.root.interests import Fair, Placed, TooMuchWork
from tidings.routing.root.journal import Memory, Record
from tidings.routing.root.rendezvous import Rendezvous

__all__ = [
    "Fair",
    "Memory",
    "Placed",
    "Record",
    "Rendezvous",
    "TooMuchWork",
]
