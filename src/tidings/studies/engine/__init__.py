"""Benchmarks of the matching engine: `tidings bench match`, `updates` and `graph`.

    workload ──> build ──> check matches ──> warm up ──> batches, single events, memory ──> report

    matching_bench.py  build, batches, single events, memory
    match_report.py    the results, as data
    shared_tests.py    how many tests an event takes, with and without sharing equal tests
    growth.py          how time grows with the number of filters
    update_bench.py    loading, single additions, matching while a merge runs, snapshots
    graph_bench.py     building a content graph in bulk

Times are medians over repeats. This folder is used only inside `studies`, which exports its
functions for cli. Start at matching_bench.py.
"""
