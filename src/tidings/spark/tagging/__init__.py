"""Tagging tables and files: for each row the nodes, or the subscriptions, that match it.

    columns that filters test ──Arrow──> Python worker: snapshot, mapped once ──> column of lists
    all other columns stay in the JVM

    tagging.py      any DataFrame or stream
    parquet.py, parquet_files.py    Parquet to Parquet, around the JVM's rows
    worker.py       what workers keep: a version of the subscriptions, opened once per process
    column_checks.py    what a table must bring for the filters to make sense on it

Users get `tag` and `tag_parquet` from `tidings.spark`. worker.py serves the whole room `spark`;
other rooms use nothing else from here. Start at tagging.py.
"""
