"""The two halves of a micro-batch, which run in Spark's workers: rows become files of an outbox.

    rows ──batch_stages──> staged files, counts ──numbering──> first numbers ──filing──> Parquet

    batch_stages.py   first half: decodes and matches rows
    open_fields.py    matches rows that have fields which are not declared
    kind_rows.py      rows of channels of topics, types and an application's class
    predicate_rows.py rows that match if an installed predicate says so
    row_bodies.py     rows as subscribers of a channel get them: payload, subject, time, types
    numbering.py      every node counts 1, 2, 3 ... without gaps or repeats
    filing.py         second half: numbers rows, and writes them to files by time

Used inside `spark`. Start at batch_stages.py.
"""
