"""Compiles subscriptions into snapshots, from tables on Spark and from change logs.

    table of id, filter ──loading, load_tasks──> snapshot      millions, none in the driver's memory
    change log ──log_snapshots──> snapshots/VERSION-DECLARED   one for each declaration

    loading.py         checks and compiles a table; the driver holds arrays of small integers
    load_tasks.py      the tasks that run in the workers
    log_snapshots.py   the snapshots that pipelines keep beside a log
    background.py      compiles in a separate process
    log_filters.py     reads the filters of a log with the attributes that its channel declares

Users get `subscriptions` and `build_snapshot` from `tidings.spark`; the names exported here are for
cli. Start at loading.py, or at log_snapshots.py for pipelines.
"""

from tidings.spark.loading.log_filters import RefusedSubscription
from tidings.spark.loading.log_snapshots import home_of, latest_attributes, list_set_aside

__all__ = [
    "RefusedSubscription",
    "home_of",
    "latest_attributes",
    "list_set_aside",
]
