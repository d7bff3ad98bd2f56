"""Compares two revisions of tidings, or tidings and its peers, by measuring them in turn.

    files of the workload ──┬──> worker of A   <── a line: what to measure
                            └──> worker of B   ──> a line: the figures        A B, B A, A B, ...

    comparing.py, compared_revision.py, revision_worker.py    two revisions: `bench compare`
    verdict.py    faster, slower, or noise: from ratios of adjacent measurements
    peers.py      tidings and the peers of benchmarks/peers (benchmarks/peers/run.py)

This folder is used only inside `studies`, which exports its functions for cli. Start at
comparing.py.
"""
