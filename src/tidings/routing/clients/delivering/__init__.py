"""How the notifications of one subscription reach the application.

    arrived ──ordering, if requested──> pieces: whole payloads ──> handout: inbox ──> application

    handout.py        hands notifications to the application, once, whole and in order
    ordering.py       holds notifications back until all earlier ones have arrived
    pieces.py         puts together payloads that arrived in pieces

Used by subscriber.py and node_stream.py. Start at handout.py.
"""

from tidings.routing.clients.delivering.handout import HandOut
from tidings.routing.clients.delivering.ordering import Ordering

__all__ = ["HandOut", "Ordering"]
