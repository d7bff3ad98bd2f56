"""Subscriptions to snapshots, from tables on Spark and from change logs.

    table of id, filter ──loading, load_tasks──> snapshot      millions, no filter in memory
    change log ──log_snapshots──> snapshots/VERSION-COLUMNS    one for each set of columns

    loading.py         checks and compiles a table; the driver holds arrays of small integers
    load_tasks.py      what runs in the workers meanwhile
    log_snapshots.py   the snapshots that pipelines keep beside a log
    restated.py        filters of a log under the columns of a pipeline: which number has each

Users get `subscriptions` and `build_snapshot` from `tidings.spark`; what is exported here is for
cli. Start at loading.py, or at log_snapshots.py for pipelines.
"""

from tidings.spark.loading.log_snapshots import home_of, latest_attributes, list_set_aside
from tidings.spark.loading.restated import Aside

__all__ = [
    "Aside",
    "home_of",
    "latest_attributes",
    "list_set_aside",
]
