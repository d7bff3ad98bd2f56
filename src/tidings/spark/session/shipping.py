"""Ships tidings with a job to a cluster that does not have it installed.

    pack("tidings.tar.gz")     tidings/    the package installed here
                               kernels/    the kernels that Numba compiled here, by folder

The executors need Python with PyArrow, NumPy, Numba and msgspec. The package is shipped with the
job. The compiled kernels are shipped too, so that the executors need not compile them again:

    SparkSession.builder.config(map=shipped_settings(pack("tidings.tar.gz")))

An executor with a different processor ignores the kernels and compiles its own.

Nothing in tidings uses this module; users import both functions from `tidings.spark`
(docs/clusters.md).
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import tidings
from tidings.matching.jit import KERNEL_FILES, SHIPPED_KERNELS, kernel_folders
from tidings.model import TidingsError

NAME = "tidings-shipped"


def pack(path: str | Path) -> Path:
    """Pack tidings into an archive. The archive contains the kernels compiled so far, so run a
    match before packing."""
    path = Path(path).absolute()
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise TidingsError(f"found '{path.name}', expected a name that ends in .tar.gz")
    package = Path(tidings.__file__).parent
    with tarfile.open(path, "w:gz", compresslevel=3) as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.add(file, f"tidings/{file.relative_to(package)}")
        for name, folder in kernel_folders().items():
            for file in sorted(folder.glob(KERNEL_FILES)):
                archive.add(file, f"kernels/{name}/{file.name}")
    return path


def shipped_settings(archive: str | Path) -> dict[str, str]:
    """The Spark settings that make executors use the archive."""
    return {
        "spark.archives": f"{Path(archive).absolute()}#{NAME}",
        "spark.executorEnv.PYTHONPATH": NAME,
        f"spark.executorEnv.{SHIPPED_KERNELS}": f"{NAME}/kernels",
    }
