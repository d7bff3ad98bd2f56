"""A micro-batch in Spark's workers: rows become files of an outbox, in one job.

    rows ──batch_stages──> matched rows ──filing──> Parquet, by time; counts of nodes

    batch_stages.py   decodes and matches rows
    open_fields.py    matches rows that have fields which are not declared
    kind_rows.py      rows of channels of topics, types and an application's class
    predicate_rows.py rows that match if an installed predicate says so
    row_bodies.py     rows as subscribers of a channel get them: payload, subject, time, types
    filing.py         writes matched rows to files by time, with their places in the partition
    numbering.py      places within a partition, and the numbers that follow from them

Used inside `spark`. Start at batch_stages.py.
"""
