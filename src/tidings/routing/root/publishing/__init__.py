"""Publications at a rendezvous point: from a publisher's message to the acknowledgment.

    Publish ──stamps──> expected? ──tagger──> lowest nodes ──> number ──> journal ──> acknowledge
                           `── repeated: acknowledge again

    intake.py        accepts publications; a stamp advances when the journal has the notification
    stamps.py        the next stamp of each publisher, and the stamps that were refused
    root_tagger.py   finds the lowest nodes, and keeps the filters of each owner within its share

Only the rendezvous point uses this folder. Start at intake.py.
"""

from tidings.routing.root.publishing.intake import Intake
from tidings.routing.root.publishing.root_tagger import Outdated, Tagger
from tidings.routing.root.publishing.stamps import Stamps, UnorderedStamps

__all__ = ["Intake", "Outdated", "Stamps", "Tagger", "UnorderedStamps"]
