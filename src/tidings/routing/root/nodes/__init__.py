"""The nodes of the content graph at a rendezvous point: how they come, whose they are, how they
go."""

from tidings.routing.root.nodes.admission import Admission
from tidings.routing.root.nodes.ancestors import Ancestors
from tidings.routing.root.nodes.lifecycle import Nodes
from tidings.routing.root.nodes.placing import Placing
from tidings.routing.root.nodes.set_aside import SetAside

__all__ = ["Admission", "Ancestors", "Nodes", "Placing", "SetAside"]
