"""A Spark session, and what it needs: Java, the Kafka connector, the package on a cluster.

    java.py       finds Java 17 or later, or gets one from PyPI
    session.py    a session on this machine, and settings that every session needs
    kafka.py      the connector, by maven.py from Maven Central into the user's cache
    shipping.py   the package and its kernels as an archive, for executors
    failures.py   one sentence from what Spark wraps around a failure

Users get `local_session`, `java_home`, `kafka_jars` and `kafka_settings` from `tidings.spark`; what
is exported here is for cli and the rest of this room. Start at session.py.
"""

from tidings.spark.session.failures import wrap_spark_errors
from tidings.spark.session.session import is_local_master, prepare_environment

__all__ = [
    "is_local_master",
    "prepare_environment",
    "wrap_spark_errors",
]
