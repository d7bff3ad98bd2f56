""""""

from tidings.routing.root.interests import Fair, Interests, Placed, TooMuchWork
from tidings.routing.root.journal import Journal, Memory, Record
from tidings.routing.root.rendezvous import Rendezvous

__all__ = [
    "Fair",
    "Interests",
    "Journal",
    "Memory",
    "Placed",
    "Record",
    "Rendezvous",
    "TooMuchWork",
]
