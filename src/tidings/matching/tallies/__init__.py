"""Kernels that turn the matches of a batch into tags and counts.

    starts, places   the matches of a batch, event by event
       |──tag_kernels──>    the lowest nodes of each event; the ids of their subscribers
       |──edge_kernels──>   the lowest nodes in a graph that grows; adding and removing nodes
       `──tally_kernels──>  how often each filter fired in each time bucket

Callers import the modules, not single kernels, and write `tag_kernels.keep_lowest(...)`. This
folder is for snapshots and channel, which use the tags, and for spark, which uses the counts in
backtests; it is not for users. Start at tag_kernels.py.
"""
