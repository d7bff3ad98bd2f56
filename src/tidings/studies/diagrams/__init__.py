"""Measures decision diagrams with implications: `tidings bench bdd`.

    filters ──> build ──> check matches ──> node steps, batches, sweep ──> coverings ──> bars

    bdd_bench.py        the workloads, each evaluated in several ways
    sweep.py            the automatic choice of the engine, compared with both engines
    found_coverings.py  coverings and edges of the content graph, by two ways to prove them
    small_domains.py    coverings compared with brute force, on all events of a small domain
    figure_nine.py      two filters whose implication edges are known
    bdd_report.py       the results, as data
    bdd_bars.py         the figures with their targets

This folder is used only inside `studies`, which exports its functions for cli. Start at
bdd_bench.py.
"""
