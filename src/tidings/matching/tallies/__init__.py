"""Kernels that run on matches: from the nodes that match an event to what is told of it.

    starts, places   the matches of a batch, event by event
       |──tag_kernels──>    the lowest nodes of each event; the ids of their subscribers
       `──tally_kernels──>  how often each filter fired in each stretch of time

Both are imported whole (`tag_kernels.keep_lowest`). For snapshots, which tag, and spark, which
counts in backtests; not for users. Start at tag_kernels.py.
"""
