"""Tags tables and files: finds for each row the nodes, or the subscriptions, that match it.

    columns that filters test ──Arrow──> Python worker: snapshot, mapped once ──> column of lists
    all other columns stay in the JVM

    tagging.py      any DataFrame or stream
    parquet.py, parquet_files.py    Parquet to Parquet, bypassing the JVM's rows
    worker.py       the state of workers: a version of the subscriptions, opened once per process
    channel_kinds.py    the kind of a channel: topics, types, a class, predicates
    column_checks.py    checks that a table has the columns and types that filters test
    declared_columns.py    converts the columns of a table to declared types

Users get `tag` and `tag_parquet` from `tidings.spark`. Most other folders of this room use
worker.py, and cli uses the conversion of columns. Start at tagging.py.
"""

from tidings.spark.tagging.declared_columns import convert_columns

__all__ = ["convert_columns"]
