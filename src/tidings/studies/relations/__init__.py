"""Benchmarks of the relation repository: `tidings bench relations`.

    topics ──> learn ──> check deliveries ──> fast path, related, forwarding, overload ──> report

    relations_bench.py    the fast path against a matcher, and early sends against the exact hops
    related_bench.py      related deliveries against a full scan by the same formula
    forwarding_bench.py   what relations cost a router
    overload_bench.py     a queue in the order of merit, under overload, in simulated time
    planned_tagging.py    stored answers in front of the matcher of a rendezvous point
    live_overload.py      an overloaded rendezvous point, in the order of merit, with real processes
    live_traffic.py       its publishers and subscribers
    relation_bars.py      the whole report, with the figures and their targets

This folder is used only inside `studies`, which exports its functions for cli. Start at
relations_bench.py.
"""
