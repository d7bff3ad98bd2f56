"""Publications at a rendezvous point: from a publisher's message to the acknowledgment.

    Publish ──stamps──> expected? ──tagger──> lowest nodes ──> number ──> journal ──> acknowledge
                           `── said before: acknowledge again

    intake.py   takes publications; a stamp advances when the journal has the notification
    stamps.py   which stamp of each publisher comes next, and which were refused
    tagger.py   the lowest nodes, with no owner's filters beyond their share

Used only inside `routing`, by the rendezvous point. Start at intake.py.
"""

from tidings.routing.root.publishing.intake import Intake
from tidings.routing.root.publishing.stamps import Stamps
from tidings.routing.root.publishing.tagger import Tagger

__all__ = ["Intake", "Stamps", "Tagger"]
