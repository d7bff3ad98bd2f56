"""Publications at a rendezvous point: from a publisher's message to the acknowledgment."""

from tidings.routing.root.publishing.intake import Intake
from tidings.routing.root.publishing.stamps import Stamps
from tidings.routing.root.publishing.tagger import Tagger

__all__ = ["Intake", "Stamps", "Tagger"]
