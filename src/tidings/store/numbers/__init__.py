"""The numbers of notifications where no rendezvous point gives them: every node counts 1, 2, 3 ...

    pipeline ──outbox, batch, attempt, counts──> accept ──> the number before the first, by node
                                                   |
                                     one group in the log, before the answer

    node_counts.py    how often nodes occur, as bytes
    accepting.py      `accept`, and the log that it writes

A rendezvous point numbers what it accepts itself: see journal/. So a notification that only an
outbox has takes no number at it, and its subscribers miss none.

Used by spark, for pipelines without a network. Start at accepting.py.
"""

from tidings.store.numbers.accepting import Accepting
from tidings.store.numbers.node_counts import pack_counts, unpack_counts

__all__ = ["Accepting", "pack_counts", "unpack_counts"]
