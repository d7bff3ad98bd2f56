"""Early bodies of a running node, in channels with relations.

    publication, or early body from above ──> early_sending ──context──> learning: which neighbours?
                                                    `──body──> their links ──> early_counts
    frames that were forwarded ──> learning, in slices; between two slices, pauses
    settings: the table `relations`, or served_settings ──> learning ──learnt_report──> command

    early_sending.py    sends and passes on early bodies; learns when there is time
    pauses.py           how often a node learns
    early_counts.py     how many bytes were sent early, and used
    learnt_report.py    what was learnt, for a command that asks
    served_settings.py  the settings of a router that has no table `relations`

Used by the nodes of `broker`. Start at early_sending.py.
"""

from tidings.broker.early.early_sending import SLICE, EarlySending
from tidings.broker.early.pauses import PAUSE, pause_when_busy
from tidings.broker.early.served_settings import load_examples, serving_of

__all__ = ["PAUSE", "SLICE", "EarlySending", "load_examples", "pause_when_busy", "serving_of"]
