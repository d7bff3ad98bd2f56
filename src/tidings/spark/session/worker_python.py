"""Chooses the Python of Spark's workers, and reports a Python that lacks tidings.

If PYSPARK_PYTHON is not set, PySpark starts workers with the `python3` on the PATH. If a virtual
environment is not activated, that program is a Python outside the environment. In a local session,
workers run the Python of the driver. On a cluster, only the user knows the right Python, so a
worker without tidings says what to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from tidings.spark.session.session import is_local_master

Function = Callable[[Iterator[Any]], Iterator[Any]]


def send_to_workers(spark: Any, function: Function) -> Any:
    """Wrap a function for the workers of a session. Workers call the function with the batches of a
    task."""
    use_this_python(spark)
    return _unpack_there(function)


def use_this_python(spark: Any) -> None:
    """Make the workers of a local session run this Python, unless PYSPARK_PYTHON is set."""
    # None with Spark Connect, whose server starts the workers
    context = getattr(spark, "_sc", None)
    if context is None or "PYSPARK_PYTHON" in os.environ:
        return
    if is_local_master(context.master):
        context.pythonExec = sys.executable


def _unpack_there(function: Function) -> Any:
    from pyspark import cloudpickle

    packed = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]

    # Nested functions are pickled by value. So this function can be unpickled without tidings, as
    # long as it refers to nothing in tidings. PySpark derives the kind of UDF from the annotations.
    def run(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        import pickle
        import sys

        try:
            unpacked = pickle.loads(packed)
        except ModuleNotFoundError as missing:
            raise RuntimeError(
                f"the Python of Spark's workers, {sys.executable}, has no module "
                f"{missing.name!r}: set PYSPARK_PYTHON to a Python with tidings on every machine "
                f"before the session starts, or ship tidings with the job, with "
                f"tidings.spark.pack (docs/clusters.md)"
            ) from None
        yield from unpacked(batches)

    return run
