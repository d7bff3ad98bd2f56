""""""

from tidings.spark.session.failures import wrap_spark_errors
from tidings.spark.session.session import is_local_master, prepare_environment

__all__ = [
    "is_local_master",
    "prepare_environment",
    "wrap_spark_errors",
]
