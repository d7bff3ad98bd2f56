"""Spark sessions: on this machine, for the demo, tests and small jobs, or on a cluster."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.model import EnvironmentProblem
from tidings.spark.session.java import java_home, quiet_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")


def local_session(app_name: str, cores: int = 2, **config: str) -> SparkSession:
    """Return a Spark session that runs in this process and one Java process beside it.

    `config` has further settings for Spark, which override the defaults: `local_session("study",
    **{"spark.sql.shuffle.partitions": "8"})`. A process has one session: a second call returns the
    first session.

    Sets JAVA_HOME, PYSPARK_PYTHON, SPARK_HOME and SPARK_LOCAL_IP in this process's environment.
    """
    prepare_environment()
    from pyspark.sql import SparkSession

    # The host's own name may not resolve, or may resolve to an address that can't be bound.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    for key, value in (_settings(cores) | config).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def cluster_session(app_name: str, master: str, **config: str) -> SparkSession:
    """Return a session whose driver runs in this process and whose executors run elsewhere.

    Spark and `config` decide how the driver is reached and how many partitions there are.
    """
    prepare_environment()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(app_name)
    own = _settings(2)
    for key in ("spark.driver.host", "spark.sql.shuffle.partitions"):
        del own[key]
    for key, value in (own | config).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def is_local_master(master: str) -> bool:
    """Whether it is certain that all executors of a master run on this machine and can read its
    folders."""
    return re.match(r"local\b|spark://(localhost|127\.[\d.]+|\[::1\]):\d+$", master) is not None


def prepare_environment() -> None:
    """Set the environment variables that Spark's driver needs.

    Raises EnvironmentProblem if PySpark or Java is missing.
    """
    try:
        # PySpark is imported here because it is an extra, and slow to import.
        import pyspark
    except ImportError as error:
        raise EnvironmentProblem(
            "PySpark is not installed; install tidings with the extra `tidings[spark]`"
        ) from error

    os.environ["JAVA_HOME"] = str(quiet_home(java_home()))
    # The workers must run the same Python as this process, with the same packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # The SPARK_HOME of another installation would combine this PySpark with the wrong jars.
    own_home = Path(pyspark.__file__).parent
    if (own_home / "jars").is_dir():
        os.environ["SPARK_HOME"] = str(own_home)


def _settings(cores: int) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        "spark.sql.session.timeZone": "UTC",
        # Spark's default of 200 is meant for a cluster; on one machine, partitions beyond the
        # number of cores gain nothing, and each costs a task.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
