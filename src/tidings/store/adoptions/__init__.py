"""How a rendezvous point adopts a snapshot while it runs.

    command ──saves──> bulks/incoming-MARK ──Adopt, over the socket──> owner
    owner, in a thread:        what is in the log? ──> a bulk, with numbers far ahead
    owner, on its event loop:  does that still hold? ──> one entry of the log, synced ──> version

    adoption.py          the owner's side: prepares a bulk, and commits it
    adoption_request.py  the side of commands: hands a snapshot over, and finds its outcome

While a bulk is written, other nodes and subscriptions may be added, and may end. So a gap is left
before the numbers of the bulk. Before the bulk is committed, the log is checked for changes that
affect it.

Used by change_log.py, and by broker. Start at adoption.py.
"""

from tidings.store.adoptions.adoption import Adoption
from tidings.store.adoptions.adoption_request import hand_snapshot

__all__ = ["Adoption", "hand_snapshot"]
