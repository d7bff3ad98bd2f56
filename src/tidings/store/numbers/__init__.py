"""Numbers notifications for channels without a rendezvous point: every node counts 1, 2, 3 ...

    pipeline ──outbox, batch, attempt, counts──> accept ──> the number before the first, by node
                                                   |
                                     one group in the log, before the answer

    node_counts.py    how often nodes occur, as bytes
    accepting.py      `accept`, and the log that it writes

A rendezvous point gives its own numbers to the notifications that it accepts: see journal/. A
notification that is only in an outbox takes none of these numbers, so subscribers in the network
see no gap.

Used by spark, for pipelines without a network. Start at accepting.py.
"""

from tidings.store.numbers.accepting import Accepting
from tidings.store.numbers.node_counts import pack_counts, unpack_counts

__all__ = ["Accepting", "pack_counts", "unpack_counts"]
