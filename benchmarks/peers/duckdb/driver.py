"""DuckDB: filters as a table of bounds, events joined with it in batches or asked one by one."""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bounds import Bounds
from passes import Task, lines_of, serve, serve_batches

TYPES = {"text": "VARCHAR", "number": "DOUBLE"}
BATCH = 200


def main() -> None:
    way, *arguments = sys.argv[1:]
    task = Task(arguments)
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"threads": 1})
    start = time.perf_counter()
    bounds = Bounds(task.filters)
    columns = bounds.columns()
    _fill(connection, "filters", {"id": "number", **columns}, bounds.filter_rows(task.filters))
    build_seconds = time.perf_counter() - start
    tests = [
        f"{{{name}_low}} >= f.{name}_low AND {{{name}_high}} <= f.{name}_high"
        for name in bounds.kinds
    ]
    condition = " AND ".join(tests)

    if way == "join":
        join = condition.format(**{column: f"e.{column}" for column in columns})
        query = f"SELECT e.event, f.id FROM events e JOIN filters f ON {join}"

        def match_batch(lines: list[bytes]) -> int:
            rows = bounds.event_rows(lines)
            _fill(connection, "events", {"event": "number", **columns}, rows)
            return len(connection.execute(query).fetchall())

        batches = lines_of(task.events, BATCH)
        serve_batches("duckdb join", duckdb.__version__, task, build_seconds, batches, match_batch)
        return

    one = condition.format(**{column: f"${column}" for column in columns})
    scan = f"SELECT f.id FROM filters f WHERE {one}"

    def match(line: bytes) -> int:
        row = {name: values[0] for name, values in bounds.event_rows([line]).items()}
        del row["event"]
        return len(connection.execute(scan, row).fetchall())

    serve("duckdb", duckdb.__version__, task, build_seconds, match)


def _fill(connection: Any, table: str, columns: dict[str, str], rows: dict[str, list[Any]]) -> None:
    """Make a table by way of a file: inserting row by row is far slower."""
    types = ", ".join(f"{name}: '{TYPES[kind]}'" for name, kind in columns.items())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.json")
        with file.open("w") as out:
            for values in zip(*rows.values(), strict=True):
                out.write(json.dumps(dict(zip(rows, map(_plain, values), strict=True))) + "\n")
        connection.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM read_json('{file}', "
            f"format = 'newline_delimited', columns = {{{types}}})"
        )


def _plain(value: Any) -> Any:
    """JSON has no infinity; DuckDB reads one from a text."""
    return str(value) if value in (float("inf"), float("-inf")) else value


if __name__ == "__main__":
    main()
