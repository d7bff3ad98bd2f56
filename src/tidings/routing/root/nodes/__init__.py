"""The nodes of the content graph at a rendezvous point: how filters become nodes, and how nodes go.

    Ask ──admission──> within limits? ──placing──> new ──> wanted ──> unwanted ──> retired ──> gone
                                                       lifecycle

    admission.py   whether a filter is taken at all
    placing.py     filters become nodes, and the answer to whoever asked
    lifecycle.py   the life of a node, with its times
    set_aside.py   filters whose owner has more than its share of a notification
    ancestors.py   all nodes that a notification matches, from the lowest
    parts.py       what all of these work with

Used only inside `routing`, by the rendezvous point. Start at placing.py.
"""

from tidings.routing.root.nodes.admission import Admission
from tidings.routing.root.nodes.ancestors import Ancestors
from tidings.routing.root.nodes.lifecycle import Nodes
from tidings.routing.root.nodes.parts import Parts
from tidings.routing.root.nodes.placing import Placing
from tidings.routing.root.nodes.set_aside import SetAside

__all__ = ["Admission", "Ancestors", "Nodes", "Parts", "Placing", "SetAside"]
