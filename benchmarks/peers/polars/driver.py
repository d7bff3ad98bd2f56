"""Polars: filters as a frame of bounds, events joined with it in batches or asked one by one."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

from bounds import Bounds
from passes import Task, lines_of, serve, serve_batches

BATCH = 20  # with more, the joined frame outgrows the memory


def main() -> None:
    way, *arguments = sys.argv[1:]
    task = Task(arguments)
    polars: Any = importlib.import_module("polars")
    start = time.perf_counter()
    bounds = Bounds(task.filters)
    types = {"text": polars.String, "number": polars.Float64}
    schema = {column: types[kind] for column, kind in bounds.columns().items()}
    filters = polars.DataFrame(
        bounds.filter_rows(task.filters), schema={"id": polars.Int64, **schema}
    )
    build_seconds = time.perf_counter() - start

    if way == "join":
        # In the joined frame the columns of the filters end in `_f`.
        conditions = []
        for name in bounds.kinds:
            conditions.append(polars.col(f"{name}_low") >= polars.col(f"{name}_low_f"))
            conditions.append(polars.col(f"{name}_high") <= polars.col(f"{name}_high_f"))
        wanted = filters.rename({column: f"{column}_f" for column in schema})

        def match_batch(lines: list[bytes]) -> int:
            events = polars.DataFrame(
                bounds.event_rows(lines), schema={"event": polars.Int64, **schema}
            )
            joined = events.lazy().join_where(wanted.lazy(), *conditions)
            return int(joined.select("event", "id").collect().height)

        batches = lines_of(task.events, BATCH)
        serve_batches("polars join", polars.__version__, task, build_seconds, batches, match_batch)
        return

    def match(line: bytes) -> int:
        row = bounds.event_rows([line])
        tests = []
        for name in bounds.kinds:
            tests.append(polars.col(f"{name}_low") <= row[f"{name}_low"][0])
            tests.append(polars.col(f"{name}_high") >= row[f"{name}_high"][0])
        return int(filters.filter(*tests)["id"].len())

    serve("polars", polars.__version__, task, build_seconds, match)


if __name__ == "__main__":
    main()
