"""The program that is killed: runs a pipeline file until someone ends it.

python driver.py pipeline.toml
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidings.spark import local_session
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import load_settings


def main(file: Path) -> None:
    settings = load_settings(file)
    config = {"spark.master": settings.spark.master, **settings.spark.settings}
    spark = local_session(settings.name, 2, **config)
    with (file.parent / "applications").open("a") as out:
        out.write(f"{spark.sparkContext.applicationId}\n")
    pipeline = Pipeline(settings, spark)
    try:
        pipeline.start().awaitTermination()
    finally:
        pipeline.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
